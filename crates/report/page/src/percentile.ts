// Latency as a logarithmic percentile chart, the form that PowerDNS and DNS Shotgun made known.

import type uPlot from "uplot";
import { drawChart } from "./chart";
import type { Charts } from "./data";
import { milliseconds, tick } from "./format";

/** Draws latency over the slowest share, from all queries at the left to 0.001 % at the right. */
export function drawPercentiles(charts: Charts): (uPlot | undefined)[] {
  const figure = document.getElementById("chart-percentiles");
  if (!figure) return [];
  const { slowest_share, latency_ms } = charts.percentiles;
  // The negative logarithm of the share: 0 is all queries, 5 is the slowest 0.001 %.
  const x = slowest_share.map((share) => -Math.log10(share));
  const plot = drawChart(figure, {
    variants: charts.variants,
    x,
    curves: latency_ms,
    height: 380,
    xText: (at) => `slowest ${tick(Number((100 * 10 ** -at).toPrecision(2)))} %`,
    xTicks: () => [0, 1, 2, 3, 4, 5],
    xTick: (at) => `${tick(100 * 10 ** -at)} %`,
    xLabel: "slowest percentage of queries",
    yText: milliseconds,
    yTick: (ms) => milliseconds(ms).replace(/\.0+(?= )/, ""),
    log: true,
  });
  return [plot];
}
