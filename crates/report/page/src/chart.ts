// Charts with one line and one band for each variant, as SVG: what is on the screen is what is downloaded.

import type { Curve, Figures } from "./data";
import { colourClass, dash } from "./palette";
import { linearTicks, logTicks, thinned } from "./scale";
import { rounded, svg } from "./svg";

/** One line of a chart. */
export interface Line {
  label: string;
  /** The number of its colour; null for the reference, which is grey. */
  slot: number | null;
  /** In the unit of the vertical axis. */
  curve: Curve;
}

/** One plot: all of a chart, or the part of one group. */
export interface Panel {
  /** Empty where the chart has one plot only. */
  title: string;
  lines: Line[];
}

/** The space of a plot on the screen, for those who draw into it. */
export interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
  /** Pixels of a place on the horizontal axis. */
  x: (at: number) => number;
  /** Pixels of a figure; on a logarithmic axis of its logarithm. */
  y: (figure: number) => number;
}

/** What makes a chart different from the others. */
export interface ChartOptions {
  panels: Panel[];
  /** Places on the horizontal axis, ascending. */
  x: number[];
  /** The ends of the horizontal axis; by default from the first to the last place. */
  xRange?: [number, number];
  /** Height of a plot in CSS pixels. */
  height: number;
  /** A horizontal place as text. */
  xText: (x: number) => string;
  /** Ticks of the horizontal axis; by default round ones. */
  xTicks?: (min: number, max: number, most: number) => number[];
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
  /** What is before this place on the horizontal axis is shaded: the warm-up. */
  shadedUntil?: number;
  /** Spans of the horizontal axis that are shaded, too: what was done meanwhile. */
  shaded?: [number, number][];
  /** Figures that the vertical axis has to reach, on its scale. */
  including?: number[];
  /** True if a line goes on over places where it has no figure. */
  joined?: boolean;
  /** Draws what lies under the lines. */
  under?: (frame: Frame) => SVGElement[];
  /** Draws what lies over the lines. */
  over?: (frame: Frame) => SVGElement[];
  /** Charts with the same key move their cursors together. */
  sync?: string;
  /** What the picture is, for those who do not see it. */
  about?: string;
  /** What stands beside the name of a line while no place is chosen; by default nothing. */
  idle?: (curve: Curve) => string;
}

/** Room around a plot: for the vertical ticks, above, and for the horizontal axis. */
const LEFT = 58;
const RIGHT = 24;
const TOP = 8;
const BOTTOM = 40;

/** Charts whose cursors move together, by key. */
const synced = new Map<string, Chart[]>();

/** A chart in its figure. */
export class Chart {
  private options: ChartOptions;
  private readonly place: HTMLElement;
  private readonly plots: Plot[] = [];

  /** Draws into the place of the figure. */
  constructor(
    private readonly figure: HTMLElement,
    place: HTMLElement,
    options: ChartOptions,
  ) {
    this.options = options;
    this.place = place;
    if (options.sync) synced.set(options.sync, [...(synced.get(options.sync) ?? []), this]);
    this.fill();
    let width = place.clientWidth;
    new ResizeObserver(() => {
      if (place.clientWidth === width || place.clientWidth === 0) return;
      width = place.clientWidth;
      for (const plot of this.plots) plot.draw();
    }).observe(place);
  }

  /** Draws other figures in the place of those before. */
  update(options: ChartOptions): void {
    this.options = options;
    this.fill();
  }

  private fill(): void {
    const { panels } = this.options;
    const range = yRange(this.options);
    // Lines that were hidden stay so, as the cursor and the focus stay where they are.
    if (this.plots.length === panels.length && panels.every((panel, at) => this.plots[at]?.shows(panel))) {
      panels.forEach((panel, at) => this.plots[at]?.update(this.options, panel, range));
      return;
    }
    this.place.classList.toggle("panels", panels.length > 1);
    this.place.replaceChildren();
    this.plots.length = 0;
    const title = this.figure.querySelector("h2, h3")?.textContent ?? "chart";
    for (const panel of panels) {
      const plot = new Plot(this.options, panel, range, `${title} ${panel.title}`.trim());
      plot.onMove = (at) => this.move(at);
      this.place.append(plot.element);
      this.plots.push(plot);
      plot.draw();
    }
  }

  /** Shows the figures at a place of the horizontal axis in all charts that move together. */
  private move(at: number | null): void {
    const charts = this.options.sync ? (synced.get(this.options.sync) ?? []) : [this];
    for (const chart of charts) {
      for (const plot of chart.plots) plot.point(at);
    }
  }
}

/** Draws a chart into `figure`; undefined when there is nothing to draw. */
export function drawChart(figure: HTMLElement, options: ChartOptions): Chart | undefined {
  const place = figure.querySelector<HTMLElement>(".plot");
  if (!place) return undefined;
  const lines = options.panels.flatMap((panel) => panel.lines);
  if (!lines.some((line) => line.curve.mean.some((value) => value !== null))) {
    place.textContent = "Not measured.";
    place.classList.add("empty");
    return undefined;
  }
  return new Chart(figure, place, options);
}

/** One plot with its legend. */
class Plot {
  readonly element = document.createElement("div");
  onMove: (at: number | null) => void = () => {};
  private readonly place = document.createElement("div");
  private readonly where = document.createElement("span");
  private readonly values: HTMLElement[] = [];
  private readonly hidden = new Set<number>();
  private frame: Frame | undefined;
  private cursor: SVGGElement | undefined;
  private at: number | null = null;

  constructor(
    private options: ChartOptions,
    private panel: Panel,
    private range: [number, number],
    title: string,
  ) {
    this.element.className = "panel";
    this.place.className = "drawing";
    this.place.tabIndex = 0;
    this.place.setAttribute("role", "group");
    this.place.setAttribute("aria-label", `${title}: arrow keys move along the chart`);
    this.element.append(this.legend(), this.place);
    this.listen();
  }

  /** True if its lines have the names of those of a panel. */
  shows(panel: Panel): boolean {
    const { lines } = this.panel;
    return lines.length === panel.lines.length && panel.lines.every(({ label }, at) => lines[at]?.label === label);
  }

  /** Draws other figures of lines of the same names. */
  update(options: ChartOptions, panel: Panel, range: [number, number]): void {
    [this.options, this.panel, this.range] = [options, panel, range];
    this.draw();
  }

  /** Draws all of it, as wide as its place. */
  draw(): void {
    const { options, panel, range } = this;
    const width = Math.max(this.place.clientWidth, 200);
    const frame = frameOf(options, range, width);
    this.frame = frame;
    const picture = svg("svg", {
      class: "drawing",
      width,
      height: options.height,
      viewBox: `0 0 ${width} ${options.height}`,
      role: "img",
      "aria-label": options.about ?? "lines over the horizontal axis; the files beside this page have the figures",
    });
    picture.append(...shade(options, frame), ...axes(options, range, frame));
    picture.append(...(options.under?.(frame) ?? []));
    panel.lines.forEach((line, place) => {
      if (!this.hidden.has(place)) picture.append(lineOf(options, line, frame));
    });
    picture.append(...(options.over?.(frame) ?? []));
    this.cursor = svg("g", { class: "cursor" });
    picture.append(this.cursor);
    this.place.replaceChildren(picture);
    this.point(this.at);
  }

  /** Shows the figures at a place of the horizontal axis, or none. */
  point(at: number | null): void {
    const { options, panel, frame } = this;
    const x = at === null ? undefined : options.x[at];
    this.at = x === undefined ? null : at;
    this.where.textContent = x === undefined ? "" : options.xText(x);
    this.cursor?.replaceChildren();
    if (x !== undefined && frame && this.cursor) {
      const left = frame.x(x);
      const { top, height } = frame;
      this.cursor.append(svg("line", { x1: left, x2: left, y1: top, y2: top + height }));
    }
    panel.lines.forEach((line, place) => {
      const output = this.values[place];
      const mean = at === null ? null : line.curve.mean[at];
      const [low, high] = at === null ? [null, null] : [line.curve.low?.[at], line.curve.high?.[at]];
      if (!output) return;
      output.textContent = mean != null ? options.yText(mean) : at === null ? (options.idle?.(line.curve) ?? "") : "";
      output.title =
        low == null || high == null ? "" : `${options.yText(low)} to ${options.yText(high)}`;
      if (mean == null || x === undefined || !frame || this.hidden.has(place)) return;
      const y = scaled(options, mean);
      if (y === null) return;
      const dot = svg("circle", { class: classOf(line), cx: frame.x(x), cy: frame.y(y), r: 4 });
      this.cursor?.append(dot);
    });
  }

  private legend(): HTMLElement {
    const legend = document.createElement("div");
    legend.className = "legend";
    if (this.panel.title) {
      const title = document.createElement("h4");
      title.textContent = this.panel.title;
      legend.append(title);
    }
    this.panel.lines.forEach((line, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      const key = document.createElement("i");
      key.className = `key ${classOf(line)}`;
      const value = document.createElement("output");
      button.append(key, line.label, value);
      button.addEventListener("click", () => {
        const show = this.hidden.delete(place);
        if (!show) this.hidden.add(place);
        button.setAttribute("aria-pressed", String(show));
        this.draw();
      });
      this.values.push(value);
      legend.append(button);
    });
    this.where.className = "where";
    legend.append(this.where);
    return legend;
  }

  private listen(): void {
    const { place } = this;
    place.addEventListener("pointermove", (event) => {
      const { frame, options } = this;
      if (!frame) return;
      const left = event.clientX - place.getBoundingClientRect().left;
      let nearest = 0;
      options.x.forEach((x, at) => {
        const known = frame.x(options.x[nearest] ?? 0);
        if (Math.abs(frame.x(x) - left) < Math.abs(known - left)) nearest = at;
      });
      this.onMove(nearest);
    });
    place.addEventListener("pointerleave", () => this.onMove(null));
    place.addEventListener("keydown", (event) => {
      const steps = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
      if (steps === undefined) return;
      event.preventDefault();
      const last = this.options.x.length - 1;
      const from = this.at ?? (steps > 0 ? -1 : last + 1);
      this.onMove(Math.min(Math.max(from + steps, 0), last));
    });
  }
}

/** Classes of a line: its colour, or that of the reference. */
function classOf(line: Line): string {
  return line.slot === null ? "reference" : colourClass(line.slot);
}

/** A figure on the scale of the vertical axis; null where it has no place there. */
function scaled(options: ChartOptions, value: number | null): number | null {
  if (value === null || !options.log) return value;
  return value > 0 ? Math.log10(value) : null;
}

/** The ends of the vertical axis of all panels: from zero if linear, with some room if logarithmic. */
function yRange(options: ChartOptions): [number, number] {
  const all = options.panels.flatMap((panel) =>
    panel.lines.flatMap(({ curve }) => [curve.mean, curve.low ?? [], curve.high ?? []].flat()),
  );
  const figures = all.map((value) => scaled(options, value)).filter((value) => value !== null);
  const including = options.including ?? [];
  const most = [...figures, ...including].reduce((one, other) => Math.max(one, other), -Infinity);
  const least = [...figures, ...including].reduce((one, other) => Math.min(one, other), Infinity);
  if (!Number.isFinite(most)) return [0, 1];
  if (options.log) {
    const room = Math.max((most - least) * 0.06, 0.05);
    return [least - room, most + room];
  }
  return [0, Math.max(most * 1.06, options.atLeast ?? 0) || 1];
}

function frameOf(options: ChartOptions, [low, high]: [number, number], width: number): Frame {
  const first = options.x[0] ?? 0;
  const last = options.x[options.x.length - 1] ?? 1;
  const [begin, end] = options.xRange ?? [first, last];
  const across = width - LEFT - RIGHT;
  const down = options.height - TOP - BOTTOM;
  return {
    left: LEFT,
    top: TOP,
    width: across,
    height: down,
    x: (at) => LEFT + ((at - begin) / (end - begin || 1)) * across,
    y: (figure) => TOP + (1 - (figure - low) / (high - low || 1)) * down,
  };
}

/** Shades what is before the measured window, and while something was done. */
function shade(options: ChartOptions, frame: Frame): SVGElement[] {
  const { left, top, height } = frame;
  const x = (at: number) => Math.min(Math.max(frame.x(at), left), left + frame.width);
  const spans: [number, number][] = (options.shaded ?? []).map(([from, to]) => [x(from), x(to)]);
  if (options.shadedUntil !== undefined) spans.push([left, x(options.shadedUntil)]);
  const wide = spans.filter(([from, to]) => to > from);
  return wide.map(([from, to]) => svg("rect", { class: "shade", x: from, y: top, width: to - from, height }));
}

function axes(options: ChartOptions, range: [number, number], frame: Frame): SVGElement[] {
  const { left, top, width, height } = frame;
  const bottom = top + height;
  const drawn: SVGElement[] = [];
  const most = Math.max(2, Math.floor(height / 36));
  const ticks = options.log
    ? thinned(logTicks(...range), Math.max(3, Math.floor(height / 26)))
    : linearTicks(...range, most);
  for (const tick of ticks) {
    const y = frame.y(tick);
    drawn.push(svg("line", { class: "mark", x1: left, x2: left + width, y1: y, y2: y }));
    const text = options.yTick(options.log ? 10 ** tick : tick);
    drawn.push(svg("text", { class: "end", x: left - 8, y: y + 4, "text-anchor": "end" }, text));
  }
  const [begin, end] = options.xRange ?? [options.x[0] ?? 0, options.x[options.x.length - 1] ?? 1];
  const room = Math.max(3, Math.floor(width / 70));
  const places = options.xTicks?.(begin, end, room) ?? linearTicks(begin, end, room);
  for (const at of places) {
    const x = frame.x(at);
    drawn.push(svg("line", { class: "mark", x1: x, x2: x, y1: bottom, y2: bottom + 4 }));
    const text = options.xTick(at);
    drawn.push(svg("text", { class: "end", x, y: bottom + 17, "text-anchor": "middle" }, text));
  }
  const label = { class: "end", x: left + width / 2, y: bottom + 35, "text-anchor": "middle" };
  drawn.push(svg("text", label, options.xLabel));
  return drawn;
}

/** A line with its band. */
function lineOf(options: ChartOptions, line: Line, frame: Frame): SVGElement {
  const drawn = svg("g", { class: `line ${classOf(line)}` });
  const points = (figures: Figures) =>
    figures.map((value, at): [number, number] | null => {
      const y = scaled(options, value);
      return y === null ? null : [frame.x(options.x[at] ?? 0), frame.y(y)];
    });
  const { mean } = line.curve;
  const kept = (all: Figures) => points(all).filter((_, at) => !options.joined || mean[at] !== null);
  const { low, high } = line.curve;
  if (low && high && line.slot !== null) {
    const band = bandPath(kept(low), kept(high));
    if (band) drawn.append(svg("path", { class: "band", d: band }));
  }
  const { path, lonely } = linePath(kept(mean));
  const dashes = line.slot === null ? "3 4" : dash(line.slot);
  drawn.append(svg("path", { d: path, ...(dashes ? { "stroke-dasharray": dashes } : {}) }));
  for (const [cx, cy] of lonely) drawn.append(svg("circle", { cx, cy, r: 2.5 }));
  return drawn;
}

/** The path through the points that follow each other, and those that have no neighbour. */
export function linePath(points: ([number, number] | null)[]): {
  path: string;
  lonely: [number, number][];
} {
  let path = "";
  const lonely: [number, number][] = [];
  points.forEach((point, at) => {
    if (!point) return;
    const isFirst = !points[at - 1];
    if (isFirst && !points[at + 1]) {
      lonely.push(point);
      return;
    }
    path += `${isFirst ? "M" : "L"}${rounded(point[0])} ${rounded(point[1])}`;
  });
  return { path, lonely };
}

/** The area between two lines, where both are known. */
function bandPath(low: ([number, number] | null)[], high: ([number, number] | null)[]): string {
  let path = "";
  let run: [[number, number], [number, number]][] = [];
  const end = () => {
    if (run.length > 1) {
      const edge = [...run.map(([, upper]) => upper), ...run.map(([lower]) => lower).reverse()];
      path += `M${edge.map(([x, y]) => `${rounded(x)} ${rounded(y)}`).join("L")}Z`;
    }
    run = [];
  };
  low.forEach((lower, at) => {
    const upper = high[at];
    if (lower && upper) run.push([lower, upper]);
    else end();
  });
  end();
  return path;
}
