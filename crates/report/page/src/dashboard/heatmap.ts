// Queries by latency and time: a rectangle for each bucket of a histogram at each point of time.

import type { Frame } from "../chart";
import { svg } from "../svg";
import type { Series } from "./prometheus";

/** One bucket with its figures by time. */
interface Bucket {
  /** Logarithms to base 10 of its bounds. */
  low: number;
  high: number;
  counts: Map<number, number>;
}

/** Draws the buckets of a cumulative histogram (label `le`); times are seconds since 1970. */
export class Heatmap {
  private readonly buckets: Bucket[] = [];
  private readonly most: number;

  constructor(series: Series[]) {
    const bounds = series
      .map(({ labels, points }) => ({ le: Number(labels["le"]), counts: new Map(points) }))
      .sort((one, other) => one.le - other.le)
      // The last one, without an upper bound, has no place on the axis: a quantile shows what is in it.
      .filter(({ le }) => le > 0 && Number.isFinite(le));
    bounds.forEach(({ le, counts }, at) => {
      const below = bounds[at - 1];
      if (!below) return;
      const own = [...counts].map(([time, count]): [number, number] => [time, count - (below.counts.get(time) ?? 0)]);
      const filled = own.filter(([, count]) => count > 0);
      if (filled.length === 0) return;
      this.buckets.push({ low: Math.log10(below.le), high: Math.log10(le), counts: new Map(filled) });
    });
    const counts = this.buckets.flatMap((bucket) => [...bucket.counts.values()]);
    this.most = counts.reduce((one, other) => Math.max(one, other), 0);
  }

  get isEmpty(): boolean {
    return this.buckets.length === 0;
  }

  /** The ends of its vertical axis, as logarithms. */
  get ends(): number[] {
    return this.buckets.flatMap(({ low, high }) => [low, high]);
  }

  /** Its rectangles; a point of time covers the `step` seconds before it. */
  draw(frame: Frame, step: number): SVGElement[] {
    const cells = this.buckets.flatMap(({ low, high, counts }) => {
      const [top, bottom] = [frame.y(high), frame.y(low)];
      return [...counts].map(([time, count]) => {
        const left = Math.max(frame.x(time - step), frame.left);
        return svg("rect", {
          x: left,
          y: top,
          width: Math.max(frame.x(time) - left, 0),
          height: bottom - top,
          // Few queries have to be seen beside many: the root of the share, as in the dashboard for Grafana.
          "fill-opacity": String(0.08 + 0.92 * Math.sqrt(count / this.most)),
        });
      });
    });
    return [svg("g", { class: "cells" }, ...cells)];
  }
}
