// Charts over the number of a server's threads: what was measured, and the law.

import { type ChartOptions, type Frame, type Line, drawChart } from "./chart";
import type { Curve, Scaling } from "./data";
import { percent, qps, shortCount, tick } from "./format";
import { COLOURS, colourClass } from "./palette";
import { MARK, crossed, svg } from "./svg";

/** Draws both charts of servers over their threads. */
export function drawScaling(scaling: Scaling | null): void {
  if (!scaling) return;
  const { threads, lines } = scaling;
  const draw = (id: string, own: Own): void => {
    const figure = document.getElementById(`chart-scaling-${id}`);
    if (!figure) return;
    drawChart(figure, {
      x: threads,
      xRange: [0, (threads[threads.length - 1] ?? 1) * 1.03],
      height: 340,
      xText: (at) => (at === 1 ? "1 thread" : `${at} threads`),
      xTicks: (_, last, most) => {
        const step = Math.ceil(last / most);
        return threads.filter((count) => count % step === 0);
      },
      xTick: (at) => String(at),
      xLabel: "threads of the server",
      log: false,
      joined: true,
      ...own,
      panels: [{ title: "", lines: own.lines }],
    });
  };
  // The second round through the palette is dashed.
  const both = (measured: (line: Server) => Curve, law: (line: Server) => Curve): Line[] =>
    lines.flatMap((line) => [
      { label: line.name, slot: line.slot, curve: measured(line) },
      ...(law(line).mean.some((value) => value !== null)
        ? [{ label: `${line.name}, by the law`, slot: line.slot + COLOURS, curve: law(line) }]
        : []),
    ]);
  const marks = (frame: Frame, measured: (line: Server) => Curve): SVGElement[] =>
    lines.flatMap((line) =>
      measured(line).mean.flatMap((value, at) => {
        if (value === null) return [];
        const count = threads[at] ?? 0;
        const [x, y] = [frame.x(count), frame.y(value)];
        if (line.left_out.includes(count)) return [crossed(x, y, 2 * MARK)];
        const mark = svg("g", { class: `line ${colourClass(line.slot)}` });
        mark.append(svg("circle", { cx: x, cy: y, r: MARK }));
        return [mark];
      }),
    );
  draw("answered", {
    lines: both(
      (line) => line.answered_qps,
      (line) => line.law_qps,
    ),
    yText: (value) => `${qps(value)} qps`,
    yTick: shortCount,
    over: (frame) => marks(frame, (line) => line.answered_qps),
  });
  draw("efficiency", {
    lines: both(
      (line) => line.efficiency_percent,
      (line) => line.law_efficiency_percent,
    ),
    yText: percent,
    yTick: (y) => `${tick(y)} %`,
    atLeast: 100,
    over: (frame) => marks(frame, (line) => line.efficiency_percent),
  });
}

type Server = Scaling["lines"][number];

/** What one of these charts says for itself. */
type Own = Pick<ChartOptions, "yText" | "yTick" | "atLeast" | "over"> & { lines: Line[] };
