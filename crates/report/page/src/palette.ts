// Colours come from the style sheet, so that the light and the dark theme are declared once.

/** Colours of the palette (Okabe and Ito 2008, without yellow); further variants begin again. */
export const COLOURS = 7;

/** Dashes of the second and third round through the palette. */
const DASHES: number[][] = [[], [8, 4], [2, 3]];

/** Classes that give a variant its colour, and set it apart from an earlier one of the same. */
export function colourClass(variant: number): string {
  return `v${variant % COLOURS}${variant >= COLOURS ? " again" : ""}`;
}

/** A colour of the style sheet as it is in the current theme. */
export function colour(property: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(property).trim();
}

/** Colour of a variant's lines. */
export function lineColour(variant: number): string {
  return colour(`--v${variant % COLOURS}`);
}

/** Colour of a variant's band. */
export function bandColour(variant: number): string {
  // Two hexadecimal digits after the colour are its opacity.
  return `${lineColour(variant)}2b`;
}

/** Dashes of a variant's line; empty for a full line. */
export function dash(variant: number): number[] {
  return DASHES[Math.floor(variant / COLOURS) % DASHES.length] ?? [];
}
