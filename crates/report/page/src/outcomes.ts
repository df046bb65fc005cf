// Outcomes and response codes as bars on a logarithmic scale, so that one lost query in a hundred
// thousand shows beside the answered ones.

import type { Bar, Charts } from "./data";
import { qps, share } from "./format";
import { colourClass } from "./palette";

/** The left end of the scale: a share of 10^-6, 0.0001 %. */
const DECADES = 6;

/** Draws both bar charts. */
export function drawBars(charts: Charts): void {
  for (const [id, bars] of [
    ["chart-outcomes", charts.outcomes],
    ["chart-rcodes", charts.rcodes],
  ] as const) {
    const place = document.querySelector<HTMLElement>(`#${id} .plot`);
    if (place) drawGroups(place, bars, charts.variants);
  }
}

/** One group per outcome that any query had; the others are named in a line below. */
function drawGroups(place: HTMLElement, bars: Bar[], variants: string[]): void {
  place.classList.add("bars");
  const seen = bars.filter((bar) => bar.counts.some((count) => count > 0));
  if (seen.length === 0) {
    place.textContent = "Not measured.";
    place.classList.add("empty");
    return;
  }
  for (const bar of seen) {
    const group = element("div", "group");
    group.append(element("h4", "", bar.name));
    variants.forEach((variant, at) => group.append(row(bar, variant, at)));
    place.append(group);
  }
  const never = bars.filter((bar) => !seen.includes(bar)).map((bar) => bar.name);
  if (never.length > 0) place.append(element("p", "never", `Never: ${never.join(", ")}.`));
}

function row(bar: Bar, variant: string, at: number): HTMLElement {
  const line = element("div", "bar");
  const value = bar.shares[at] ?? 0;
  const track = element("span", "track");
  const fill = element("i", colourClass(at));
  fill.style.width = `${(100 * length(value)).toFixed(2)}%`;
  track.append(fill);
  line.title = `${variant}: ${qps(bar.counts[at] ?? 0)} queries`;
  line.append(element("span", "name", variant), track, element("span", "value", share(value)));
  return line;
}

/** Length of the bar of a share, in [0, 1]; anything above zero is seen. */
function length(value: number): number {
  if (value <= 0) return 0;
  return Math.min(Math.max(1 + Math.log10(value) / DECADES, 0.01), 1);
}

function element(tag: string, className: string, text = ""): HTMLElement {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}
