// A table that is wider than its place says so.

/** Marks the places whose content goes on to the right, for the shade at that edge. */
export function markScrolling(): void {
  for (const place of document.querySelectorAll<HTMLElement>(".wide")) {
    const update = () => {
      const rest = place.scrollWidth - place.clientWidth - place.scrollLeft;
      place.classList.toggle("goes-on", rest > 1);
      place.classList.toggle("went-on", place.scrollLeft > 1);
    };
    place.addEventListener("scroll", update, { passive: true });
    new ResizeObserver(update).observe(place);
    update();
  }
}
