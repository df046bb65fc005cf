// Latency as a logarithmic percentile chart, the form that PowerDNS and DNS Shotgun made known.

import { drawChart } from "./chart";
import type { Charts } from "./data";
import { milliseconds, shortMilliseconds, tick } from "./format";
import { panelsOf } from "./panels";
import { thinned } from "./scale";

/** Draws latency over the slowest share, from all queries at the left to 0.001 % at the right. */
export function drawPercentiles(charts: Charts): void {
  const figure = document.getElementById("chart-percentiles");
  if (!figure) return;
  const { slowest_share, latency_ms } = charts.percentiles;
  // Nothing is drawn beyond the slowest query.
  const last = slowest_share.findLastIndex((_, at) => latency_ms.some((of) => of.mean[at] !== null));
  const until = Math.max(last, 1) + 1;
  const cut = latency_ms.map(({ mean, low, high }) => ({
    mean: mean.slice(0, until),
    ...(low && high ? { low: low.slice(0, until), high: high.slice(0, until) } : {}),
  }));
  const panels = panelsOf(charts, cut);
  drawChart(figure, {
    panels,
    // The negative logarithm of the share: 0 is all queries, 5 is the slowest 0.001 %.
    x: slowest_share.slice(0, until).map((share) => -Math.log10(share)),
    height: panels.length > 1 ? 200 : 380,
    xText: (at) => `slowest ${tick(Number((100 * 10 ** -at).toPrecision(2)))} %`,
    xTicks: (_begin, end, most) =>
      thinned([0, 1, 2, 3, 4, 5].filter((at) => at <= end + 0.01), most),
    xTick: (at) => `${tick(100 * 10 ** -at)} %`,
    xLabel: "slowest percentage of queries",
    yText: milliseconds,
    yTick: shortMilliseconds,
    log: true,
  });
}
