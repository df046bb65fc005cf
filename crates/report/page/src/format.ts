// Figures as the tables write them; see `src/number.rs`.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** A number with three significant digits. */
export function threeDigits(value: number): string {
  if (value === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.min(Math.max(2 - exponent, 0), 12));
}

/** Queries per second with thousands separators. */
export function qps(value: number): string {
  return whole.format(value);
}

/** Milliseconds, in the unit that fits. */
export function milliseconds(ms: number): string {
  if (ms < 0.9995) return `${threeDigits(ms * 1000)} us`;
  if (ms < 999.5) return `${threeDigits(ms)} ms`;
  return `${threeDigits(ms / 1000)} s`;
}

/** A percentage. */
export function percent(value: number): string {
  return `${threeDigits(value)} %`;
}

/** Memory in MiB. */
export function mebibytes(value: number): string {
  return `${threeDigits(value)} MiB`;
}

/** Octets, given in kB (1,000), in the unit that fits; a tick has no more digits than it needs. */
export function kilobytes(value: number, isTick = false): string {
  const write = isTick ? tick : threeDigits;
  if (value >= 1000) return `${write(value / 1000)} MB`;
  return value >= 1 || value === 0 ? `${write(value)} kB` : `${write(value * 1000)} B`;
}

/** Milliseconds as a tick: digits that say nothing are left away. */
export function shortMilliseconds(ms: number): string {
  return milliseconds(ms).replace(/(\.\d*?)0+(?= )/, "$1").replace(/\.(?= )/, "");
}

/** A tick: no more digits than it needs. */
export function tick(value: number): string {
  return Number(value.toPrecision(6)).toString();
}

/** A tick of a large count: 150 k. */
export function shortCount(value: number): string {
  if (value >= 1e6) return `${tick(value / 1e6)} M`;
  return value >= 1000 ? `${tick(value / 1000)} k` : tick(value);
}
