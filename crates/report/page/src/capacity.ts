// Charts of a search for the capacity: one mark for each run, a line through their means.

import { type ChartOptions, type Frame, type Line, drawChart } from "./chart";
import type { CapacityPoints, CapacityStep } from "./data";
import { milliseconds, qps, shortCount, shortMilliseconds, tick } from "./format";
import { COLOURS, colourClass } from "./palette";
import { MARK, crossed, rounded, svg } from "./svg";

/** Draws the charts of a search. */
export function drawCapacity(points: CapacityPoints): void {
  const isRate = points.sought === "rate";
  // A sweep doubles its window from step to step.
  const scaled = (value: number) => (isRate ? value : Math.log2(value));
  const x = points.at.map(scaled);
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
    const under = (frame: Frame) => [
      ...answerShade(frame, points.answer?.map(scaled)),
      ...(own.isDiagonal ? [diagonal(frame, last + room, own.atLeast ?? 0)] : []),
      ...own.bounds.flatMap((bound) => boundLine(frame, bound.text, Math.log10(bound.ms))),
    ];
    const over = (frame: Frame) =>
      own.lines.flatMap(({ figure, slot }) =>
        points.steps.flatMap((step) => {
          const value = figure(step);
          if (value === null || (own.log && value <= 0)) return [];
          const y = own.log ? Math.log10(value) : value;
          return [mark(frame, scaled(step.at), y, step.outcome === "met", slot)];
        }),
      );
    drawChart(figure, { ...axis, ...own, panels: [{ title: "", lines: own.lines }], under, over });
  };
  draw("answered", {
    lines: [{ label: "answered", slot: 0, curve: points.answered, figure: (step) => step.answered }],
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
    // One server has one colour; the second round through the palette is dashed.
    lines: [
      { label: "p99", slot: 0, curve: points.p99_ms, figure: (step) => step.p99_ms },
      { label: "p50", slot: COLOURS, curve: points.p50_ms, figure: (step) => step.p50_ms },
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

/** A line with the figure of each step; null where nothing was measured. */
type StepLine = Line & { slot: number; figure: (step: CapacityStep) => number | null };

/** What one of these charts says for itself. */
type Own = Pick<
  ChartOptions,
  "height" | "yText" | "yTick" | "log" | "including" | "atLeast"
> & {
  lines: StepLine[];
  /** Bounds of the objective that are drawn as lines. */
  bounds: { text: string; ms: number }[];
  /** True if the line on which everything offered is answered is drawn. */
  isDiagonal: boolean;
};

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
