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

/** A share in [0, 1] as a percentage that never rounds to nothing. */
export function share(value: number): string {
  if (value === 0 || value === 1) return `${value * 100} %`;
  if (value > 0.999 && value < 1) return "> 99.9 %";
  const figure = value * 100;
  if (figure < 0.0001) return "< 0.0001 %";
  return `${figure >= 10 ? figure.toFixed(1) : Number(figure.toPrecision(2))} %`;
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
