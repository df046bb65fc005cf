// Elements of SVG.

const NAMESPACE = "http://www.w3.org/2000/svg";

/** Attributes by name; numbers are rounded to a tenth of a pixel. */
export type Attributes = Record<string, string | number>;

/** An element with attributes and children. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, typeof value === "number" ? rounded(value) : value);
  }
  made.append(...children);
  return made;
}

/** A number of pixels as text. */
export function rounded(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** Half the size of a mark in CSS pixels. */
export const MARK = 3.5;

/** A cross: something was not met here. `half` is half its size in CSS pixels. */
export function crossed(x: number, y: number, half = MARK): SVGElement {
  const size = 2 * half;
  const d = `M${rounded(x - half)} ${rounded(y - half)}l${size} ${size}m0 ${-size}l${-size} ${size}`;
  return svg("path", { class: "violated", d });
}
