"use strict";
// Before the page is drawn, so that it is not first light and then dark.
(() => {
  const themes = ["auto", "light", "dark"];
  const stored = () => {
    try { return themes.includes(localStorage.theme) ? localStorage.theme : "auto"; } catch { return "auto"; }
  };
  const set = theme => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (!button) return;
    const name = document.createElement("span");
    name.textContent = `: ${theme === "auto" ? "system" : theme}`;
    button.replaceChildren("Theme", name);
    button.setAttribute("aria-label", button.textContent);
  };
  set(stored());
  addEventListener("DOMContentLoaded", () => {
    set(stored());
    document.getElementById("theme")?.addEventListener("click", () => {
      const next = themes[(themes.indexOf(stored()) + 1) % themes.length];
      try { localStorage.theme = next; } catch { /* it holds for this page */ }
      set(next);
    });
  });
})();
