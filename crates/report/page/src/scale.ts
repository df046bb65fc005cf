// Axes: where a figure stands, and which figures are written at an axis.

/** Round ticks between two figures, about `count` of them. */
export function linearTicks(min: number, max: number, count: number): number[] {
  const span = max - min;
  if (!(span > 0)) return [min];
  const raw = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => each >= raw * 0.999) ?? raw;
  const ticks: number[] = [];
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  for (let at = Math.ceil(min / step - 1e-9); at * step <= max + step * 1e-9; at += 1) {
    ticks.push(Number((at * step).toFixed(digits + 1)));
  }
  return ticks;
}

/** Round ticks between two logarithms to base 10, as logarithms; about four to eight. */
export function logTicks(min: number, max: number): number[] {
  // The coarsest digits that give enough ticks to read the axis by.
  const choices = [
    [1],
    [1, 3],
    [1, 2, 5],
    [1, 1.5, 2, 3, 4, 5, 7],
    [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9],
  ];
  for (const digits of choices) {
    const ticks = ticksOf(digits, min, max);
    if (ticks.length >= 4) return thinned(ticks, 8);
  }
  return ticksOf([1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9], min, max);
}

function ticksOf(digits: number[], min: number, max: number): number[] {
  const ticks: number[] = [];
  for (let power = Math.floor(min); power <= Math.ceil(max); power += 1) {
    for (const digit of digits) {
      const at = power + Math.log10(digit);
      if (at >= min && at <= max) ticks.push(at);
    }
  }
  return ticks;
}

/** Every nth of them, so that at most `most` are left. */
export function thinned<T>(all: T[], most: number): T[] {
  const step = Math.ceil(all.length / Math.max(most, 1));
  return all.filter((_, place) => place % step === 0);
}
