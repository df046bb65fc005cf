// Each figure as a file, for a talk: SVG, or PNG of twice the size. All of it is made here, without a server.

import { svg } from "./svg";

/** What of the look of an element goes into the file. */
const LOOK = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-linecap",
  "stroke-linejoin",
  "stroke-dasharray",
  "font-size",
  "font-weight",
  "font-family",
  "opacity",
  "paint-order",
] as const;

/** Room around a picture. */
const EDGE = 16;

/** Gives every figure its two buttons. */
export function offerDownloads(): void {
  for (const figure of document.querySelectorAll<HTMLElement>("figure.drawn, figure.chart")) {
    const caption = figure.querySelector("figcaption");
    if (!caption || figure.querySelector(".plot.empty")) continue;
    const title = figure.querySelector("h2, h3")?.textContent ?? "chart";
    const place = document.createElement("span");
    place.className = "downloads";
    for (const [kind, save] of [
      ["SVG", saveSvg],
      ["PNG", savePng],
    ] as const) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.setAttribute("aria-label", `download "${title}" as ${kind}`);
      button.addEventListener("click", () => save(figure, fileName(title)));
      place.append(button);
    }
    caption.prepend(place);
  }
}

/** The name of a file: that of the experiment and of the figure. */
function fileName(title: string): string {
  const experiment = document.querySelector("header span")?.textContent ?? "dnslab";
  return `${experiment} ${title}`.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
}

/**
 * The figure as one picture that needs no style sheet: its title, its legends and its plots, and what was measured
 * where and when, because a picture loses its report.
 */
function standalone(figure: HTMLElement): SVGSVGElement {
  // It is on the page for a moment, so that the browser breaks it into lines.
  const origin = document.createElement("p");
  origin.className = "origin";
  origin.textContent = document.querySelector<HTMLElement>("header")?.dataset["origin"] ?? "";
  figure.append(origin);
  const frame = figure.getBoundingClientRect();
  const ground = getComputedStyle(document.documentElement).getPropertyValue("--ground").trim();
  const texts = figure.querySelectorAll<HTMLElement>("h2, h3, h4, p, .legend button");
  const pictures = [...figure.querySelectorAll<SVGSVGElement>("svg")];
  const seen = pictures.filter((one) => one.getBoundingClientRect().width > 0);
  const [width, height] = [frame.width + 2 * EDGE, frame.height + 2 * EDGE];
  const whole = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
  whole.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  whole.append(svg("rect", { width, height, fill: ground }));
  const at = (box: DOMRect) => ({ x: box.left - frame.left + EDGE, y: box.top - frame.top + EDGE });
  for (const text of texts) {
    for (const line of linesOf(text)) whole.append(lineText(line.text, at(line.box), line.box, text));
    const key = text.querySelector<HTMLElement>(".key");
    if (key) {
      const box = key.getBoundingClientRect();
      const fill = getComputedStyle(key).getPropertyValue("--own").trim();
      whole.append(svg("rect", { ...at(box), width: box.width, height: box.height, rx: 2, fill }));
    }
  }
  for (const picture of seen) {
    const box = picture.getBoundingClientRect();
    const copy = copyWithLook(picture);
    copy.querySelector(".cursor")?.remove();
    for (const [name, value] of Object.entries({ ...at(box), width: box.width, height: box.height })) {
      copy.setAttribute(name, String(value));
    }
    whole.append(copy);
  }
  origin.remove();
  return whole;
}

/** A text as it is broken into lines on the screen. */
function linesOf(element: HTMLElement): { text: string; box: DOMRect }[] {
  const lines: { text: string; box: DOMRect }[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement?.closest("output, .downloads")) continue;
    const words = (node.textContent ?? "").split(/(?<=\s)/);
    let from = 0;
    for (const word of words) {
      range.setStart(node, from);
      from += word.length;
      range.setEnd(node, from);
      const box = range.getBoundingClientRect();
      const last = lines[lines.length - 1];
      if (last && Math.abs(last.box.top - box.top) < 4) last.text += word;
      else if (word.trim()) lines.push({ text: word, box });
    }
  }
  return lines;
}

function lineText(text: string, at: { x: number; y: number }, box: DOMRect, like: HTMLElement) {
  const look = getComputedStyle(like);
  return svg(
    "text",
    {
      x: at.x,
      y: at.y + box.height * 0.76,
      fill: look.color,
      "font-size": look.fontSize,
      "font-weight": look.fontWeight,
      "font-family": "system-ui, sans-serif",
    },
    text.trim(),
  );
}

/** A copy in which each element says itself how it looks. */
function copyWithLook(picture: SVGSVGElement): SVGSVGElement {
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const pairs = [...picture.querySelectorAll<SVGElement>("*")];
  const copies = [...copy.querySelectorAll<SVGElement>("*")];
  pairs.forEach((original, place) => {
    const own = copies[place];
    if (!own || ["title", "desc"].includes(original.tagName)) return;
    const look = getComputedStyle(original);
    for (const property of LOOK) {
      const value = look.getPropertyValue(property);
      if (value && value !== "normal") own.setAttribute(property, value);
    }
    own.removeAttribute("class");
  });
  return copy;
}

/** The figure as the text of an SVG file. */
function svgText(figure: HTMLElement): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(standalone(figure))}\n`;
}

function saveSvg(figure: HTMLElement, name: string): void {
  save(new Blob([svgText(figure)], { type: "image/svg+xml" }), `${name}.svg`);
}

function savePng(figure: HTMLElement, name: string): void {
  const picture = standalone(figure);
  const [width, height] = [Number(picture.getAttribute("width")), Number(picture.getAttribute("height"))];
  const text = new XMLSerializer().serializeToString(picture);
  const image = new Image();
  image.addEventListener("load", () => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [Math.round(2 * width), Math.round(2 * height)];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => {
      if (blob) save(blob, `${name}.png`);
    }, "image/png");
  });
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

/** Hands a file to the browser. */
function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
