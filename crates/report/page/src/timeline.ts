// Charts over the time of a run.

import { type Chart, type ChartOptions, type Panel, drawChart } from "./chart";
import type { Charts, Plot, Series } from "./data";
import { kilobytes, mebibytes, milliseconds, percent, qps, shortCount, shortMilliseconds, tick } from "./format";
import { panelsOf } from "./panels";

/** What one of these charts says for itself. */
type Own = Pick<ChartOptions, "yText" | "yTick"> & Partial<ChartOptions>;

const latency: Own = { yText: milliseconds, yTick: shortMilliseconds, log: true };
const count: Own = { yText: (value) => qps(value), yTick: shortCount };
const perSecond: Own = { yText: (value) => `${kilobytes(value)}/s`, yTick: (value) => `${kilobytes(value, true)}/s` };

/** The charts by the name of their figure, in `Figure::id`. */
const CHARTS: Record<string, Own> = {
  qps: { ...count, height: 300 },
  counted: count,
  p50: latency,
  p95: latency,
  p99: latency,
  cpu: { yText: percent, yTick: (y) => `${tick(y)} %`, atLeast: 100 },
  cores: { yText: percent, yTick: (y) => `${tick(y)} %`, atLeast: 100 },
  rcodes: { yText: percent, yTick: (y) => `${tick(y)} %`, atLeast: 100 },
  memory: { yText: mebibytes, yTick: (y) => `${tick(y)} MiB` },
  log: perSecond,
  network: perSecond,
  connections: count,
  "open-connections": count,
  handshakes: count,
};

/** Draws every chart whose axis is time; their cursors move together. */
export function drawTimelines(charts: Charts): void {
  const { series } = charts.timeline;
  const first = series[0];
  if (!first) return;
  const drawn = new Map<string, Chart>();
  for (const id of Object.keys(CHARTS)) {
    const figure = document.getElementById(`chart-${id}`);
    const options = optionsOf(charts, first, id);
    const chart = figure && options ? drawChart(figure, options) : undefined;
    if (chart) drawn.set(id, chart);
  }
  const place = document.getElementById("width");
  if (place) {
    offerWidths(place, series, (chosen) => {
      for (const [id, chart] of drawn) {
        const options = optionsOf(charts, chosen, id);
        if (options) chart.update(options);
      }
    });
  }
}

/** The options of a chart in buckets of one width. */
function optionsOf(charts: Charts, series: Series, id: string): ChartOptions | undefined {
  const own = CHARTS[id];
  const curves = series.figures[id];
  const plots: Record<string, Plot[]> = { cores: series.cores, rcodes: series.rcodes };
  const several = plots[id];
  const panels = several ? several.map(panelOf) : curves ? panelsOf(charts, curves) : [];
  if (!own || panels.length === 0) return undefined;
  const half = series.width_s / 2;
  const first = series.at_s[0] ?? 0;
  const last = series.at_s[series.at_s.length - 1] ?? 1;
  return {
    x: series.at_s,
    xRange: [Math.min(first - half, 0), last + half],
    xText: (at) => `${tick(at - half)} to ${tick(at + half)} s`,
    xTick: tick,
    xLabel: "seconds",
    log: false,
    shadedUntil: 0,
    shaded: charts.timeline.events ?? [],
    sync: "time",
    ...own,
    panels,
    height: panels.length > 1 ? 160 : (own.height ?? 230),
  };
}

/** The plot of one variant, with a line for each of its curves. */
function panelOf({ name, labels, curves }: Plot): Panel {
  return { title: name, lines: curves.map((curve, slot) => ({ label: labels[slot] ?? "", slot, curve })) };
}

/** Buttons for the widths of the buckets, if there is a choice. */
function offerWidths(place: HTMLElement, series: Series[], choose: (chosen: Series) => void): void {
  place.replaceChildren("In buckets of ");
  // Wide ones first, whichever is shown.
  const sorted = [...series].sort((one, other) => other.width_s - one.width_s);
  const buttons = sorted.map((each) => {
    const text = `${tick(each.width_s)} s`;
    if (series.length < 2) {
      place.append(text);
      return undefined;
    }
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.setAttribute("aria-pressed", String(each === series[0]));
    button.addEventListener("click", () => {
      for (const other of buttons) other?.setAttribute("aria-pressed", String(other === button));
      choose(each);
    });
    place.append(button);
    return button;
  });
  place.hidden = false;
}
