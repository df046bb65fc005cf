// Figures in the units of Grafana that the dashboards use.

import { milliseconds, percent, qps, shortCount, shortMilliseconds, threeDigits, tick } from "../format";

/** How figures of a unit are written: in a sentence or a legend, and at an axis. */
export interface Unit {
  text: (value: number) => string;
  tick: (value: number) => string;
  /** What an axis that ends at a figure counts in, where that is not 1: round numbers of it are at its ticks. */
  counted?: (most: number) => number;
}

const count: Unit = {
  text: (value) => (Math.abs(value) < 1000 && !Number.isInteger(value) ? threeDigits(value) : qps(value)),
  tick: shortCount,
};

const UNITS: Record<string, Unit> = {
  short: count,
  s: {
    text: (value) => milliseconds(value * 1000),
    tick: (value) => (value === 0 ? "0" : shortMilliseconds(value * 1000)),
  },
  bytes: {
    text: (value) => octets(value, threeDigits),
    tick: (value) => octets(value, tick),
    counted: (most) => 1024 ** power(most),
  },
  percentunit: { text: (value) => percent(value * 100), tick: (value) => `${tick(value * 100)} %` },
  pps: { text: (value) => `${count.text(value)} packets/s`, tick: shortCount },
  dateTimeFromNow: { text: since, tick: shortCount },
};

/** The unit of a panel. */
export function unitOf(name: string | undefined): Unit {
  const suffix = /^suffix: (.*)$/.exec(name ?? "")?.[1];
  if (suffix !== undefined) return { text: (value) => `${count.text(value)} ${suffix}`, tick: shortCount };
  const unit = UNITS[name ?? "short"];
  if (!unit) throw new Error(`this page does not know the unit ${name}`);
  return unit;
}

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB"];

/** The place in [`BINARY`] of the unit that fits. */
function power(octets: number): number {
  return Math.min(Math.max(Math.floor(Math.log2(Math.abs(octets) || 1) / 10), 0), BINARY.length - 1);
}

function octets(value: number, write: (figure: number) => string): string {
  return `${write(value / 1024 ** power(value))} ${BINARY[power(value)]}`;
}

/** How long an instant is past, given in milliseconds since 1970. */
function since(at: number): string {
  const seconds = Math.max(0, (Date.now() - at) / 1000);
  for (const [length, unit] of [[86_400, "days"], [3_600, "h"], [60, "min"]] as const) {
    if (seconds >= 2 * length) return `${Math.floor(seconds / length)} ${unit} ago`;
  }
  return `${Math.floor(seconds)} s ago`;
}
