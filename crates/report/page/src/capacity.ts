// Charts of a search for the capacity: one mark for each run, a line through their means.

import type uPlot from "uplot";
import { type ChartOptions, drawChart } from "./chart";
import type { CapacityPoints, CapacityStep, Curve } from "./data";
import { milliseconds, qps, shortCount, tick } from "./format";
import { colour, lineColour } from "./palette";

/** A figure of a step; null where nothing was measured. */
type Figure = (step: CapacityStep) => number | null;

/** Half the size of a mark in CSS pixels. */
const MARK = 3.5;

/** Draws the charts of a search. */
export function drawCapacity(points: CapacityPoints): (uPlot | undefined)[] {
  const isRate = points.sought === "rate";
  const at = [...new Set(points.steps.map((step) => step.at))].sort((one, other) => one - other);
  // A sweep doubles its window from step to step.
  const scaled = (value: number) => (isRate ? value : Math.log2(value));
  const x = at.map(scaled);
  const first = x[0] ?? 0;
  const last = x[x.length - 1] ?? 1;
  const room = (last - (isRate ? 0 : first)) * 0.03 || 1;
  const axis = {
    x,
    xRange: [isRate ? 0 : first - room, last + room] as [number, number],
    xText: (place: number) => (isRate ? `${qps(place)} qps` : `${qps(2 ** place)} outstanding`),
    xTick: (place: number) => (isRate ? shortCount(place) : tick(2 ** place)),
    xLabel: isRate ? "intended queries per second" : "queries outstanding over all clients",
    // Every second window is enough where all of them would touch each other.
    ...(isRate ? {} : { xTicks: () => x.filter((_, place) => x.length <= 8 || place % 2 === 0) }),
  };
  const draw = (id: string, own: Own): uPlot | undefined => {
    const figure = document.getElementById(`chart-capacity-${id}`);
    if (!figure) return undefined;
    const curves = own.figures.map((value) => curveOf(points.steps, at, value));
    const under = (plot: uPlot) => {
      shadeAnswer(plot, points.answer?.map(scaled));
      if (own.isDiagonal) line(plot, [0, 0], [last + room, last + room]);
      for (const bound of own.bounds) boundLine(plot, bound.text, Math.log10(bound.ms));
    };
    const over = (plot: uPlot) => {
      own.figures.forEach((value, place) => {
        for (const step of points.steps) {
          const figure = value(step);
          if (figure === null || (own.log && figure <= 0)) continue;
          const y = own.log ? Math.log10(figure) : figure;
          mark(plot, scaled(step.at), y, step.outcome === "met", place);
        }
      });
    };
    return drawChart(figure, { ...axis, ...own, curves, under, over });
  };
  const answered = draw("answered", {
    variants: ["answered"],
    figures: [(step) => step.answered],
    bounds: [],
    isDiagonal: isRate,
    // Room in which the diagonal parts from the line.
    atLeast: isRate ? 1.25 * Math.max(...points.steps.map((step) => step.answered)) : 0,
    height: 340,
    yText: qps,
    yTick: shortCount,
    log: false,
  });
  const logs = points.bounds.map((bound) => Math.log10(bound.ms));
  const latency = draw("latency", {
    variants: ["p50", "p99"],
    figures: [(step) => step.p50_ms, (step) => step.p99_ms],
    bounds: points.bounds,
    isDiagonal: false,
    height: 340,
    yText: milliseconds,
    yTick: (ms) => milliseconds(ms).replace(/\.0+(?= )/, ""),
    log: true,
    including: logs,
  });
  return [answered, latency];
}

/** What one of these charts says for itself. */
type Own = Pick<
  ChartOptions,
  "variants" | "height" | "yText" | "yTick" | "log" | "including" | "atLeast"
> & {
  figures: Figure[];
  /** Bounds of the objective that are drawn as lines. */
  bounds: { text: string; ms: number }[];
  /** True if the line on which everything offered is answered is drawn. */
  isDiagonal: boolean;
};

/** Means over the steps at each place, and the band around them. */
function curveOf(steps: CapacityStep[], places: number[], value: Figure): Curve {
  const curve: Curve = { mean: [], low: [], high: [] };
  for (const place of places) {
    const own = steps.filter((step) => step.at === place).map(value);
    const figures = own.filter((figure) => figure !== null);
    const none = figures.length === 0;
    const sum = figures.reduce((before, figure) => before + figure, 0);
    curve.mean.push(none ? null : sum / figures.length);
    curve.low.push(none ? null : Math.min(...figures));
    curve.high.push(none ? null : Math.max(...figures));
  }
  return curve;
}

/** A place of the plot in pixels of its canvas. */
function place(plot: uPlot, x: number, y: number): [number, number] {
  return [plot.valToPos(x, "x", true), plot.valToPos(y, "y", true)];
}

/** Calls `draw` with the drawing confined to the plot, and `pixel` canvas pixels to a CSS one. */
function inside(plot: uPlot, draw: (ctx: CanvasRenderingContext2D, pixel: number) => void): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw(ctx, devicePixelRatio);
  ctx.restore();
}

/** A dashed line between two places. */
function line(plot: uPlot, from: [number, number], to: [number, number]): void {
  inside(plot, (ctx, pixel) => {
    ctx.strokeStyle = colour("--quiet");
    ctx.lineWidth = pixel;
    ctx.setLineDash([6 * pixel, 5 * pixel]);
    ctx.beginPath();
    ctx.moveTo(...place(plot, ...from));
    ctx.lineTo(...place(plot, ...to));
    ctx.stroke();
  });
}

/** A dashed line at a bound, with its text above it. */
function boundLine(plot: uPlot, text: string, y: number): void {
  const { min = 0, max = 1 } = plot.scales["x"] ?? {};
  line(plot, [min, y], [max, y]);
  inside(plot, (ctx, pixel) => {
    ctx.fillStyle = colour("--quiet");
    ctx.font = `${12 * pixel}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "bottom";
    ctx.fillText(text, plot.bbox.left + 8 * pixel, place(plot, 0, y)[1] - 4 * pixel);
  });
}

/** Shades the answer: a band over its interval, and a line at its value. */
function shadeAnswer(plot: uPlot, answer: number[] | undefined): void {
  if (answer === undefined) return;
  const [value = 0, low = 0, high = 0] = answer;
  const { top, height } = plot.bbox;
  const left = plot.valToPos(low, "x", true);
  const width = plot.valToPos(high, "x", true) - left;
  inside(plot, (ctx, pixel) => {
    ctx.fillStyle = `${colour("--accent")}22`;
    ctx.fillRect(left, top, width, height);
    ctx.fillStyle = colour("--accent");
    ctx.fillRect(plot.valToPos(value, "x", true) - pixel / 2, top, pixel, height);
  });
}

/** A dot for a run that met everything, else a cross. */
function mark(plot: uPlot, x: number, y: number, isMet: boolean, variant: number): void {
  const [left, top] = place(plot, x, y);
  inside(plot, (ctx, pixel) => {
    const size = MARK * pixel;
    ctx.lineWidth = 1.5 * pixel;
    ctx.strokeStyle = isMet ? lineColour(variant) : colour("--bad");
    ctx.fillStyle = lineColour(variant);
    ctx.beginPath();
    if (isMet) {
      ctx.arc(left, top, size * 0.8, 0, 2 * Math.PI);
      ctx.fill();
      return;
    }
    ctx.moveTo(left - size, top - size);
    ctx.lineTo(left + size, top + size);
    ctx.moveTo(left - size, top + size);
    ctx.lineTo(left + size, top - size);
    ctx.stroke();
  });
}
