// Charts over the size of the load: a line for each server, and where it breaks.

import { type ChartOptions, type Frame, type Line, drawChart } from "./chart";
import type { LatencyOverLoad, Sweep } from "./data";
import { milliseconds, percent, qps, shortCount, shortMilliseconds, tick } from "./format";
import { COLOURS } from "./palette";
import { MARK, crossed, svg } from "./svg";

/** Draws both charts of a sweep. */
export function drawSweep(sweep: Sweep | null): void {
  if (!sweep) return;
  const { load_qps, lines, held_percent } = sweep;
  const crosses = (frame: Frame) =>
    lines.flatMap(({ breaks_qps, answered_percent }) => {
      const at = breaks_qps === null ? -1 : load_qps.indexOf(breaks_qps);
      const share = answered_percent.mean[at];
      return share == null ? [] : [crossed(frame.x(load_qps[at] ?? 0), frame.y(share), 2 * MARK)];
    });
  draw("sweep-answered", load_qps, {
    lines: lines.map(({ name, slot, answered_percent }) => ({ label: name, slot, curve: answered_percent })),
    yText: percent,
    yTick: (y) => `${tick(y)} %`,
    log: false,
    atLeast: 100,
    under: (frame) => {
      const y = frame.y(held_percent);
      return [svg("path", { class: "dashed", d: `M${frame.left} ${y}H${frame.left + frame.width}` })];
    },
    over: crosses,
  });
  drawLatencyOverLoad("sweep", sweep);
}

/** Draws p50 and p99 over the load, in the place `<id>-latency`. */
export function drawLatencyOverLoad(id: string, latency: LatencyOverLoad | null): void {
  if (!latency) return;
  const { load_qps, lines } = latency;
  draw(`${id}-latency`, load_qps, {
    // The second round through the palette is dashed.
    lines: lines.flatMap(({ name, slot, p50_ms, p99_ms }) => [
      { label: `${name} p99`, slot: slot % COLOURS, curve: p99_ms },
      { label: `${name} p50`, slot: (slot % COLOURS) + COLOURS, curve: p50_ms },
    ]),
    yText: milliseconds,
    yTick: shortMilliseconds,
    log: true,
  });
}

function draw(id: string, load_qps: number[], own: Own): void {
  const figure = document.getElementById(`chart-${id}`);
  if (!figure) return;
  const last = load_qps[load_qps.length - 1] ?? 1;
  drawChart(figure, {
    x: load_qps,
    xRange: [0, last * 1.03],
    height: 340,
    xText: (at) => `${qps(at)} qps`,
    xTick: shortCount,
    xLabel: "intended queries per second",
    joined: true,
    ...own,
    panels: [{ title: "", lines: own.lines }],
  });
}

/** What one of these charts says for itself. */
type Own = Pick<ChartOptions, "yText" | "yTick" | "log" | "atLeast" | "under" | "over"> & { lines: Line[] };
