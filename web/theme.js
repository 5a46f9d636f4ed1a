"use strict";
/* Light, dark, or what the system says, which the style sheet knows by itself. */

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
  } catch { /* a page from disk may be refused its storage */ }
  choose(chosen);
  button.addEventListener("click", () => {
    choose(names[(names.indexOf(chosen) + 1) % names.length]);
    try {
      localStorage.setItem(KEY, chosen);
    } catch { /* as above */ }
  });
})();
