// A chart with one line and one band per variant, on top of uPlot.

import uPlot from "uplot";
import type { Curve, Figures } from "./data";
import { bandColour, colour, colourClass, dash, lineColour } from "./palette";

/** What makes a chart different from the others. */
export interface ChartOptions {
  /** Names of the variants. */
  variants: string[];
  /** Places on the horizontal axis, ascending. */
  x: number[];
  /** Per variant, in the unit of `y`. */
  curves: Curve[];
  /** Height of the plot in CSS pixels. */
  height: number;
  /** A horizontal place as text. */
  xText: (x: number) => string;
  /** Ticks of the horizontal axis; by default uPlot's. */
  xTicks?: (min: number, max: number) => number[];
  /** A horizontal tick as text. */
  xTick: (x: number) => string;
  /** What the horizontal axis is. */
  xLabel: string;
  /** A figure as text. */
  yText: (y: number) => string;
  /** A vertical tick as text. */
  yTick: (y: number) => string;
  /** True if the vertical axis is logarithmic. */
  log: boolean;
  /** The smallest upper end of a linear vertical axis. */
  atLeast?: number;
  /** Where the measured window begins on the horizontal axis; what is before it is shaded. */
  shadedUntil?: number;
  /** The ends of the horizontal axis; by default from 0 to the last place. */
  xRange?: [number, number];
  /** Figures that the vertical axis has to reach, on its scale. */
  including?: number[];
  /** Draws what lies under the lines. */
  under?: (plot: uPlot) => void;
  /** Draws what lies over the lines. */
  over?: (plot: uPlot) => void;
  /** Charts with the same key move their cursors together. */
  sync?: string;
}

/** Round ticks between two logarithms to base 10, as logarithms. */
export function logTicks(min: number, max: number): number[] {
  // The coarsest digits that give enough ticks to read the axis by.
  const choices = [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 7], [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9]];
  for (const digits of choices) {
    const ticks = ticksOf(digits, min, max);
    if (ticks.length >= 4) return ticks;
  }
  return ticksOf([1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9], min, max);
}

function ticksOf(digits: number[], min: number, max: number): number[] {
  const ticks: number[] = [];
  for (let power = Math.floor(min); power <= Math.ceil(max); power += 1) {
    for (const digit of digits) {
      const at = power + Math.log10(digit);
      if (at >= min && at <= max) ticks.push(at);
    }
  }
  return ticks;
}

/** Draws a chart into `figure` and returns it; undefined when there is nothing to draw. */
export function drawChart(figure: HTMLElement, options: ChartOptions): uPlot | undefined {
  const place = figure.querySelector<HTMLElement>(".plot");
  if (!place) return undefined;
  const measured = options.curves.some((curve) => curve.mean.some((value) => value !== null));
  if (!measured) {
    place.textContent = "Not measured.";
    place.classList.add("empty");
    return undefined;
  }
  const legend = new Legend(options);
  place.before(legend.element);
  const plot = new uPlot(plotOptions(place, options, legend), plotData(options), place);
  legend.onToggle = (variant, show) => {
    for (const series of [1, 2, 3]) plot.setSeries(variant * 3 + series, { show });
  };
  resizeWith(place, plot, options.height);
  moveByKeys(place, plot, figure);
  return plot;
}

/** Per variant three series: the line, and the upper and lower edge of its band. */
function plotData(options: ChartOptions): uPlot.AlignedData {
  const scaled = (figures: Figures) =>
    options.log
      ? figures.map((value) => (value !== null && value > 0 ? Math.log10(value) : null))
      : figures;
  const series = options.curves.flatMap(({ mean, low, high }) => [mean, high, low].map(scaled));
  return [options.x, ...series];
}

function plotOptions(place: HTMLElement, options: ChartOptions, legend: Legend): uPlot.Options {
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  options.curves.forEach((_, variant) => {
    const edge = { stroke: "transparent", width: 0, points: { show: false } };
    series.push(
      {
        stroke: () => lineColour(variant),
        width: 2,
        dash: dash(variant),
        points: {
          show: true,
          size: 4,
          stroke: () => lineColour(variant),
          fill: () => lineColour(variant),
          filter: (plot, at) => lonely(plot.data[at] ?? []),
        },
      },
      edge,
      { ...edge },
    );
    bands.push({ series: [variant * 3 + 2, variant * 3 + 3], fill: () => bandColour(variant) });
  });
  const cursor: uPlot.Cursor = {
    y: false,
    drag: { x: false, y: false },
    points: {
      // The edges of a band have no point of their own.
      show: (_plot, at) => (at % 3 === 1 ? cursorPoint((at - 1) / 3) : (undefined as never)),
    },
  };
  if (options.sync) cursor.sync = { key: options.sync };
  return {
    width: Math.max(place.clientWidth, 200),
    height: options.height,
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor,
    series,
    bands,
    scales: {
      x: { time: false, range: (_plot, _min, max) => options.xRange ?? [0, max] },
      y: { range: (_plot, min, max) => yRange(options, min, max) },
    },
    axes: axes(options),
    hooks: {
      drawClear: [(plot) => shade(plot, options.shadedUntil)],
      drawAxes: [(plot) => options.under?.(plot)],
      draw: [(plot) => options.over?.(plot)],
      setCursor: [(plot) => legend.show(plot.cursor.idx ?? null)],
    },
  };
}

/** Places of the figures without a neighbour: a line alone would not show them. */
function lonely(figures: ArrayLike<number | null | undefined>): number[] {
  const places: number[] = [];
  for (let at = 0; at < figures.length; at += 1) {
    if (figures[at] != null && figures[at - 1] == null && figures[at + 1] == null) places.push(at);
  }
  return places;
}

/** The dot on a line under the cursor. */
function cursorPoint(variant: number): HTMLElement {
  const dot = document.createElement("div");
  dot.className = `dot ${colourClass(variant)}`;
  return dot;
}

/** The ends of the vertical axis: from zero if linear, with some room if logarithmic. */
function yRange(options: ChartOptions, min: number | null, max: number | null): uPlot.Range.MinMax {
  if (min === null || max === null) return [0, 1];
  if (options.log) {
    const including = options.including ?? [];
    const [least, most] = [Math.min(min, ...including), Math.max(max, ...including)];
    const room = Math.max((most - least) * 0.06, 0.05);
    return [least - room, most + room];
  }
  return [0, Math.max(max * 1.06, options.atLeast ?? 0)];
}

function axes(options: ChartOptions): uPlot.Axis[] {
  const look = {
    stroke: () => colour("--quiet"),
    grid: { stroke: () => colour("--rule"), width: 1 },
    ticks: { show: false },
    font: "12px system-ui, sans-serif",
  };
  const x: uPlot.Axis = {
    ...look,
    grid: { show: false },
    ticks: { show: true, stroke: () => colour("--rule"), size: 4, width: 1 },
    label: options.xLabel,
    labelFont: "12px system-ui, sans-serif",
    labelSize: 20,
    size: 30,
    values: (_plot, splits) => splits.map(options.xTick),
  };
  const { xTicks } = options;
  if (xTicks) x.splits = (_plot, _axis, min, max) => xTicks(min, max);
  const y: uPlot.Axis = {
    ...look,
    size: 62,
    values: (_plot, splits) =>
      splits.map((at) => options.yTick(options.log ? 10 ** at : at)),
  };
  if (options.log) y.splits = (_plot, _axis, min, max) => logTicks(min, max);
  return [x, y];
}

/** Shades what is before the measured window. */
function shade(plot: uPlot, until: number | undefined): void {
  if (!until) return;
  const { ctx, bbox } = plot;
  const right = Math.min(Math.max(plot.valToPos(until, "x", true), bbox.left), bbox.left + bbox.width);
  ctx.save();
  ctx.fillStyle = colour("--shade");
  ctx.fillRect(bbox.left, bbox.top, right - bbox.left, bbox.height);
  ctx.restore();
}

/** Keeps the plot as wide as its place. */
function resizeWith(place: HTMLElement, plot: uPlot, height: number): void {
  new ResizeObserver(() => {
    const width = place.clientWidth;
    if (width > 0 && width !== plot.width) plot.setSize({ width, height });
  }).observe(place);
}

/** Lets the arrow keys move the cursor of a focused plot. */
function moveByKeys(place: HTMLElement, plot: uPlot, figure: HTMLElement): void {
  const title = figure.querySelector("h3")?.textContent ?? "chart";
  place.tabIndex = 0;
  place.setAttribute("role", "group");
  place.setAttribute("aria-label", `${title}: arrow keys move along the chart`);
  place.addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
    if (steps === undefined) return;
    event.preventDefault();
    const last = plot.data[0].length - 1;
    const from = plot.cursor.idx ?? (steps > 0 ? -1 : last + 1);
    const at = Math.min(Math.max(from + steps, 0), last);
    const left = plot.valToPos(plot.data[0][at] ?? 0, "x");
    plot.setCursor({ left, top: plot.over.clientHeight / 2 });
  });
}

/** Names of the variants, switches for them, and the figures under the cursor. */
class Legend {
  readonly element = document.createElement("div");
  onToggle: (variant: number, show: boolean) => void = () => {};
  private readonly where = document.createElement("span");
  private readonly values: HTMLElement[] = [];

  constructor(private readonly options: ChartOptions) {
    this.element.className = "legend";
    options.variants.forEach((name, variant) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      const key = document.createElement("i");
      key.className = `key ${colourClass(variant)}`;
      const value = document.createElement("output");
      button.append(key, name, value);
      button.addEventListener("click", () => {
        const show = button.getAttribute("aria-pressed") !== "true";
        button.setAttribute("aria-pressed", String(show));
        this.onToggle(variant, show);
      });
      this.values.push(value);
      this.element.append(button);
    });
    this.where.className = "where";
    this.element.append(this.where);
  }

  /** Shows the figures at a place of the horizontal axis, or none. */
  show(at: number | null): void {
    const { x, xText, yText, curves } = this.options;
    const place = at === null ? undefined : x[at];
    this.where.textContent = place === undefined ? "" : xText(place);
    curves.forEach((curve, variant) => {
      const output = this.values[variant];
      if (!output) return;
      const mean = at === null ? null : curve.mean[at];
      const [low, high] = at === null ? [null, null] : [curve.low[at], curve.high[at]];
      output.textContent = mean === null || mean === undefined ? "" : yText(mean);
      output.title = low == null || high == null ? "" : `${yText(low)} to ${yText(high)}`;
    });
  }
}
