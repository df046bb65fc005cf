// Colours come from the style sheet, so that the light and the dark theme are declared once.

/** Colours of the palette (Okabe and Ito 2008, without yellow); further slots begin again. */
export const COLOURS = 7;

/** Dashes of the second and third round through the palette. */
const DASHES = ["", "8 4", "2 3"];

/** Classes that give a slot its colour, and set it apart from an earlier one of the same. */
export function colourClass(slot: number): string {
  return `v${slot % COLOURS}${slot >= COLOURS ? " again" : ""}`;
}

/** Dashes of the line of a slot; empty for a full line. */
export function dash(slot: number): string {
  return DASHES[Math.floor(slot / COLOURS) % DASHES.length] ?? "";
}
