// The form of the chart data; `src/chart.rs` writes it.

/** A figure per point of an axis; null where nothing was measured. */
export type Figures = (number | null)[];

/** A line and its band, from the smallest to the largest run; one run has no band. */
export interface Curve {
  mean: Figures;
  low?: Figures;
  high?: Figures;
}

/** Variants that are drawn together. */
export interface Group {
  /** Empty where there is one group only. */
  name: string;
  /** Places of the variants. */
  members: number[];
  /** Their names without what they have in common. */
  labels: string[];
}

/** What happened over time, in buckets of one width; curves are per variant. */
export interface Series {
  width_s: number;
  /** Seconds since the measured window began. */
  at_s: number[];
  figures: Record<string, Curve[]>;
  /** The use of each CPU in percent, of each variant, or of all together: then without a name. */
  cores: Plot[];
  /** How the queries of each variant ended, in percent. */
  rcodes: Plot[];
}

/** Several curves of one variant. */
export interface Plot {
  name: string;
  labels: string[];
  curves: Curve[];
}

/** Latency over the share of the slowest queries. */
export interface Percentiles {
  /** In (0, 1], from all queries to the slowest few. */
  slowest_share: number[];
  /** Per variant. */
  latency_ms: Curve[];
}

/** Latency over the size of the load. */
export interface LatencyOverLoad {
  /** Ascending, intended queries per second. */
  load_qps: number[];
  lines: LatencyLine[];
}

/** One server or variant. */
export interface LatencyLine {
  name: string;
  /** The number of its colour. */
  slot: number;
  p50_ms: Curve;
  p99_ms: Curve;
}

/** Servers over the size of their load. */
export interface Sweep extends LatencyOverLoad {
  lines: (LatencyLine & {
    /** Answered without an error. */
    answered_percent: Curve;
    /** The lowest load that is held in no run. */
    breaks_qps: number | null;
  })[];
  /** The least share answered without an error with which a load is held. */
  held_percent: number;
}

/** Servers over the number of their threads. */
export interface Scaling {
  /** From 1 to the largest. */
  threads: number[];
  lines: {
    name: string;
    /** The number of its colour. */
    slot: number;
    answered_qps: Curve;
    /** Nowhere, if there is no law. */
    law_qps: Curve;
    efficiency_percent: Curve;
    law_efficiency_percent: Curve;
    /** Numbers of threads that the law leaves out. */
    left_out: number[];
  }[];
}

/** Everything that the charts draw. */
export interface Charts {
  variants: string[];
  /** Per variant, the number of its colour; null for the reference, which is grey. */
  slots: (number | null)[];
  groups: Group[];
  /** The reference, if it is drawn in every group. */
  baseline: number | null;
  percentiles: Percentiles;
  /** Those of the time windows. */
  windows: Percentiles[];
  sweep: Sweep | null;
  scaling: Scaling | null;
  shares: LatencyOverLoad | null;
  timeline: {
    /** The first one is shown until another is chosen. */
    series: Series[];
    /** From when to when something was done during the loads, seconds. */
    events?: [number, number][];
  };
}

/** One step of a search for the capacity. */
export interface CapacityStep {
  /** Intended queries per second, or queries outstanding over all clients. */
  at: number;
  outcome: "met" | "violated" | "generator-limited";
  /** Answered queries per second. */
  answered: number;
  p50_ms: number | null;
  p99_ms: number | null;
}

/** A search for the capacity; `src/capacity/chart.rs` writes it. */
export interface CapacityPoints {
  sought: "rate" | "window";
  steps: CapacityStep[];
  /** Where the lines have their points, ascending, in the unit of `at` of a step. */
  at: number[];
  answered: Curve;
  p50_ms: Curve;
  p99_ms: Curve;
  /** Bounds of the objective on latency. */
  bounds: { text: string; ms: number }[];
  /** The answer with the ends of its interval, in the unit of `at`. */
  answer: [number, number, number] | null;
}

/** Reads the data block of the page. */
export function readCharts(): Charts | { capacity: CapacityPoints } {
  const text = document.getElementById("data")?.textContent;
  if (!text) throw new Error("the page has no data block");
  return JSON.parse(text) as Charts | { capacity: CapacityPoints };
}
