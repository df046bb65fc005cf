// The form of the chart data; `src/chart.rs` writes it.

/** A figure per point of an axis; null where nothing was measured. */
export type Figures = (number | null)[];

/** A line and its band, from the smallest to the largest run. */
export interface Curve {
  mean: Figures;
  low: Figures;
  high: Figures;
}

/** One outcome or response code; lists are per variant. */
export interface Bar {
  name: string;
  counts: number[];
  /** In [0, 1]. */
  shares: number[];
}

/** Everything that the charts draw. */
export interface Charts {
  variants: string[];
  percentiles: {
    /** In (0, 1], from all queries to the slowest few. */
    slowest_share: number[];
    latency_ms: Curve[];
  };
  timeline: {
    /** Seconds since the load began. */
    at_s: number[];
    window_start_s: number;
    qps: Curve[];
    p50_ms: Curve[];
    p99_ms: Curve[];
    cpu_percent: Curve[];
    memory_mib: Curve[];
  };
  outcomes: Bar[];
  rcodes: Bar[];
}

/** Reads the data block of the page. */
export function readCharts(): Charts {
  const text = document.getElementById("data")?.textContent;
  if (!text) throw new Error("the page has no data block");
  return JSON.parse(text) as Charts;
}
