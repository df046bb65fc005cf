// Charts over the time of a run.

import type uPlot from "uplot";
import { type ChartOptions, drawChart } from "./chart";
import type { Charts, Curve } from "./data";
import { mebibytes, milliseconds, percent, qps, shortCount, tick } from "./format";

/** Draws every chart whose axis is time; their cursors move together. */
export function drawTimelines(charts: Charts): (uPlot | undefined)[] {
  const { timeline, variants } = charts;
  const draw = (id: string, curves: Curve[], own: Own): uPlot | undefined => {
    const figure = document.getElementById(`chart-${id}`);
    if (!figure) return undefined;
    return drawChart(figure, {
      variants,
      x: timeline.at_s,
      curves,
      height: 230,
      xText: (at) => `${at.toFixed(2)} s`,
      xTick: tick,
      xLabel: "seconds since the load began",
      log: false,
      shadedUntil: timeline.window_start_s,
      sync: "time",
      ...own,
    });
  };
  const latency: Own = {
    yText: milliseconds,
    yTick: (ms) => milliseconds(ms).replace(/\.0+(?= )/, ""),
    log: true,
  };
  return [
    draw("qps", timeline.qps, { yText: qps, yTick: shortCount, height: 300 }),
    draw("counted", timeline.counted_qps, { yText: qps, yTick: shortCount }),
    draw("p50", timeline.p50_ms, latency),
    draw("p99", timeline.p99_ms, latency),
    draw("cpu", timeline.cpu_percent, { yText: percent, yTick: (y) => `${tick(y)} %`, atLeast: 100 }),
    draw("memory", timeline.memory_mib, { yText: mebibytes, yTick: (y) => `${tick(y)} MiB` }),
  ];
}

/** What one of these charts says for itself. */
type Own = Pick<ChartOptions, "yText" | "yTick"> & Partial<ChartOptions>;
