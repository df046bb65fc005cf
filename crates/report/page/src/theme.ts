// The switch between the light and the dark theme.

/** Makes the switch work. */
export function startTheme(): void {
  const button = document.getElementById("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () => (root.dataset["theme"] ?? (dark.matches ? "dark" : "light")) === "dark";
  const update = () => {
    if (button) button.textContent = isDark() ? "Light" : "Dark";
  };
  if (button) {
    button.hidden = false;
    button.setAttribute("aria-label", "switch between the light and the dark theme");
    button.addEventListener("click", () => {
      root.dataset["theme"] = isDark() ? "light" : "dark";
      update();
    });
  }
  dark.addEventListener("change", update);
  // Paper is white.
  let before: string | undefined;
  addEventListener("beforeprint", () => {
    before = root.dataset["theme"];
    root.dataset["theme"] = "light";
    update();
  });
  addEventListener("afterprint", () => {
    if (before === undefined) delete root.dataset["theme"];
    else root.dataset["theme"] = before;
    update();
  });
  update();
}
