"use strict";
/* The state of a page in the fragment of its URL, which a link or a bookmark restores: "#SECTION&name=value&...". The
   name of a section may be absent. Texts of the fragment are untrusted. */

const fragment = (() => {
  const read = () => new URLSearchParams(location.hash.slice(1));
  const sectionOf = (given) => [...given].find(([, value]) => value === "")?.[0] ?? "";
  const stateOf = (given) => new Map([...given].filter(([, value]) => value !== ""));
  const listeners = [];
  let state = stateOf(read());

  function write(section) {
    const pairs = new URLSearchParams([...state]).toString();
    const text = [section && encodeURIComponent(section), pairs].filter(Boolean).join("&");
    history.replaceState(null, "", text ? `#${text}` : `${location.pathname}${location.search}`);
  }
  function get(name) {
    return state.get(name) ?? null;
  }
  /* Sets values; null and "" remove one. */
  function set(values) {
    for (const [name, value] of Object.entries(values))
      if (value === null || value === "") state.delete(name);
      else state.set(name, String(value));
    write(sectionOf(read()));
  }
  /* Calls act() when the user opens another address of this page. */
  function listen(act) {
    listeners.push(act);
  }
  /* A section's name beside state is no fragment that the browser itself scrolls to. */
  function show() {
    const section = sectionOf(read());
    if (section && state.size) document.getElementById(section)?.scrollIntoView({ behavior: "instant" });
  }
  /* A link to a section keeps the state. */
  addEventListener("hashchange", () => {
    const given = read(), found = stateOf(given);
    if (!found.size && sectionOf(given)) {
      write(sectionOf(given));
      return;
    }
    state = found;
    for (const act of listeners) act();
    show();
  });
  return { get, set, listen, show };
})();
