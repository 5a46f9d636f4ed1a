"use strict";
/* The button that selects the theme: light, dark or the system's, which the style sheet detects. */

(() => {
  const KEY = "attscope-theme";
  const words = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" };
  const names = Object.keys(words);
  const button = document.getElementById("theme");
  let chosen = "system";

  function choose(name) {
    chosen = names.includes(name) ? name : "system";
    document.documentElement.dataset.theme = chosen;
    button.textContent = words[chosen];
  }
  try {
    chosen = localStorage.getItem(KEY);
  } catch { /* browsers may deny storage to a page from the disk */ }
  choose(chosen);
  button.addEventListener("click", () => {
    choose(names[(names.indexOf(chosen) + 1) % names.length]);
    try {
      localStorage.setItem(KEY, chosen);
    } catch { /* as above */ }
  });
})();
