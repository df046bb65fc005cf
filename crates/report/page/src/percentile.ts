// Latency as a logarithmic percentile chart, the form that PowerDNS and DNS Shotgun made known.

import { drawChart } from "./chart";
import type { Charts, Figures, Percentiles } from "./data";
import { milliseconds, shortMilliseconds, tick } from "./format";
import { panelsOf } from "./panels";
import { thinned } from "./scale";

/** Draws the percentiles of the whole run and of each time window. */
export function drawPercentiles(charts: Charts): void {
  drawSlowest("chart-percentiles", charts, charts.percentiles);
  charts.windows.forEach((own, place) => drawSlowest(`chart-window-${place}`, charts, own));
}

/** Draws latency over the slowest share, from 0.001 % at the left to all queries at the right. */
function drawSlowest(id: string, charts: Charts, { slowest_share, latency_ms }: Percentiles): void {
  const figure = document.getElementById(id);
  if (!figure) return;
  // Nothing is drawn beyond the slowest query.
  const last = slowest_share.findLastIndex((_, at) => latency_ms.some((of) => of.mean[at] !== null));
  const until = Math.max(last, 1) + 1;
  const cut = (figures: Figures) => figures.slice(0, until).reverse();
  const curves = latency_ms.map(({ mean, low, high }) => ({
    mean: cut(mean),
    ...(low && high ? { low: cut(low), high: cut(high) } : {}),
  }));
  const panels = panelsOf(charts, curves);
  drawChart(figure, {
    panels,
    // The logarithm of the share: 0 is all queries, -5 is the slowest 0.001 %.
    x: slowest_share.slice(0, until).map(Math.log10).reverse(),
    height: panels.length > 1 ? 280 : 380,
    xText: (at) => `slowest ${tick(Number((100 * 10 ** at).toPrecision(2)))} %`,
    xTicks: (begin, _end, most) =>
      thinned([0, -1, -2, -3, -4, -5].filter((at) => at >= begin - 0.01), most),
    xTick: (at) => `${tick(100 * 10 ** at)} %`,
    xLabel: "slowest percentage of queries",
    yText: milliseconds,
    yTick: shortMilliseconds,
    log: true,
  });
}
