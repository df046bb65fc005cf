// Charts of a search for the capacity: one mark for each run, a line through their means.

import { type ChartOptions, type Frame, drawChart } from "./chart";
import type { CapacityPoints, CapacityStep, Curve } from "./data";
import { milliseconds, qps, shortCount, shortMilliseconds, tick } from "./format";
import { colourClass } from "./palette";
import { MARK, crossed, rounded, svg } from "./svg";

/** A figure of a step; null where nothing was measured. */
type Figure = (step: CapacityStep) => number | null;

/** Draws the charts of a search. */
export function drawCapacity(points: CapacityPoints): void {
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
  const draw = (id: string, own: Own): void => {
    const figure = document.getElementById(`chart-capacity-${id}`);
    if (!figure) return;
    const lines = own.figures.map(([label, value], slot) => ({
      label,
      slot,
      curve: curveOf(points.steps, at, value),
    }));
    const under = (frame: Frame) => [
      ...answerShade(frame, points.answer?.map(scaled)),
      ...(own.isDiagonal ? [diagonal(frame, last + room, own.atLeast ?? 0)] : []),
      ...own.bounds.flatMap((bound) => boundLine(frame, bound.text, Math.log10(bound.ms))),
    ];
    const over = (frame: Frame) =>
      own.figures.flatMap(([, value], slot) =>
        points.steps.flatMap((step) => {
          const figure = value(step);
          if (figure === null || (own.log && figure <= 0)) return [];
          const y = own.log ? Math.log10(figure) : figure;
          return [mark(frame, scaled(step.at), y, step.outcome === "met", slot)];
        }),
      );
    drawChart(figure, { ...axis, ...own, panels: [{ title: "", lines }], under, over });
  };
  draw("answered", {
    figures: [["answered", (step) => step.answered]],
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
  draw("latency", {
    figures: [
      ["p50", (step) => step.p50_ms],
      ["p99", (step) => step.p99_ms],
    ],
    bounds: points.bounds,
    isDiagonal: false,
    height: 340,
    yText: milliseconds,
    yTick: shortMilliseconds,
    log: true,
    including: logs,
  });
}

/** What one of these charts says for itself. */
type Own = Pick<
  ChartOptions,
  "height" | "yText" | "yTick" | "log" | "including" | "atLeast"
> & {
  /** Lines: their names and figures. */
  figures: [string, Figure][];
  /** Bounds of the objective that are drawn as lines. */
  bounds: { text: string; ms: number }[];
  /** True if the line on which everything offered is answered is drawn. */
  isDiagonal: boolean;
};

/** Means over the steps at each place, and the band around them. */
function curveOf(steps: CapacityStep[], places: number[], value: Figure): Curve {
  const curve: Required<Curve> = { mean: [], low: [], high: [] };
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

/** The line on which everything offered is answered, as far as the plot reaches. */
function diagonal(frame: Frame, right: number, top: number): SVGElement {
  const end = Math.min(right, top);
  return svg("path", {
    class: "dashed",
    d: `M${rounded(frame.x(0))} ${rounded(frame.y(0))}L${rounded(frame.x(end))} ${rounded(frame.y(end))}`,
  });
}

/** A dashed line at a bound, with its text above it. */
function boundLine(frame: Frame, text: string, figure: number): SVGElement[] {
  const y = frame.y(figure);
  const right = frame.left + frame.width;
  return [
    svg("path", { class: "dashed", d: `M${frame.left} ${rounded(y)}H${rounded(right)}` }),
    svg("text", { class: "end", x: frame.left + 8, y: y - 5 }, text),
  ];
}

/** Shades the answer: a band over its interval, and a line at its value. */
function answerShade(frame: Frame, answer: number[] | undefined): SVGElement[] {
  if (answer === undefined) return [];
  const [value = 0, low = 0, high = 0] = answer;
  const inside = (x: number) => Math.min(Math.max(frame.x(x), frame.left), frame.left + frame.width);
  const [left, right, at] = [inside(low), inside(high), inside(value)];
  const { top, height } = frame;
  return [
    svg("rect", { class: "answer", x: left, y: top, width: right - left, height }),
    svg("line", { class: "answer", x1: at, x2: at, y1: top, y2: top + height }),
  ];
}

/** A dot for a run that met everything, else a cross. */
function mark(frame: Frame, x: number, y: number, isMet: boolean, slot: number): SVGElement {
  const [cx, cy] = [frame.x(x), frame.y(y)];
  if (isMet) return svg("circle", { class: `run ${colourClass(slot)}`, cx, cy, r: MARK * 0.8 });
  return crossed(cx, cy);
}
