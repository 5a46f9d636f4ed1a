"use strict";
/* Texts as lines of words: the tokens of a text, shaded by numbers. */

/* Whether a piece goes on with the word before it: "##ing", or one without "▁" if the vocabulary marks words by it. */
function joinsBefore(piece, marks) {
  return marks ? !piece.startsWith("▁") : piece.startsWith("##");
}
/* The tokens of an answer with their names for people: {name, joined, special}. */
function wordsOfText({ pieces }) {
  const marks = pieces.some(({ piece }) => piece.startsWith("▁"));
  return pieces.map(({ piece, special }, i) => ({ special, name: marks ? piece.replace(/^▁(?=.)/, "") : piece,
    joined: i > 0 && !special && !pieces[i - 1].special && joinsBefore(piece, marks) }));
}

const SPEAKS_FOR = d3.rgb("#e8930c"), SPEAKS_AGAINST = d3.rgb("#8f6fd0");
/* How strongly a share of the largest number is shaded, 0 to 1. Small shares stay visible. */
function coverOf(share) {
  return Math.sqrt(Math.min(1, Math.abs(share)));
}
/* The colours of shares from 0 to 1, or from -1 to 1, as rampOf() takes them. */
function shades(signed) {
  return d3.range(256).map((i) => {
    const share = signed ? i / 127.5 - 1 : i / 255, { r, g, b } = share < 0 ? SPEAKS_AGAINST : SPEAKS_FOR;
    return d3.rgb(r, g, b, coverOf(share));
  });
}

/* Draws a cell for each token, in rows of at most MOST_CELLS, which are read like lines. */
const MOST_CELLS = 24;
function drawTokens(canvas, values) {
  const rows = Math.ceil(values.length / MOST_CELLS), columns = Math.ceil(values.length / rows);
  const largest = d3.max(values, Math.abs) || 1, context = canvas.getContext("2d");
  canvas.width = columns;
  canvas.height = rows;
  for (const [i, value] of values.entries()) {
    if (Number.isNaN(value)) continue;
    const { r, g, b } = value < 0 ? SPEAKS_AGAINST : SPEAKS_FOR;
    context.fillStyle = d3.rgb(r, g, b, coverOf(value / largest)).toString();
    context.fillRect(i % columns, Math.floor(i / columns), 1, 1);
  }
}

/* A line of words. hover(token) is called when the pointer or the focus is at a word, hover(null) when it leaves, and
   keep(token) after a click or Enter; without them the words cannot be chosen. Returns {panel, show, shade}: show(words)
   shows other words of wordsOfText(), and shade(values, strength, query) their numbers; NaN: the token is not seen. */
function textLine({ hover, keep } = {}) {
  const panel = element("div", { class: "words", role: "group", "aria-label": "The text. The arrow keys move among its " +
    "tokens, Enter keeps one as the query, C the first one." });
  let parts = [], shown = null;

  function word({ name, joined, special }, token) {
    const kind = `word${joined ? " joined" : ""}${special ? " special" : ""}`;
    const about = { dir: "auto", ...special ? { title: "A special token, which the tokenizer added" } : {} };
    if (!keep) return element("span", { class: kind, "data-token": token, ...about }, name);
    const part = element("button", { type: "button", class: kind, "data-token": token, "aria-pressed": "false",
      ...about, onclick: () => keep(token) }, name);
    for (const event of ["pointerenter", "focus"]) part.addEventListener(event, () => hover(token));
    part.addEventListener("blur", () => hover(null));
    return part;
  }
  function show(words) {
    if (words === shown) return;
    shown = words;
    parts = words.map(word);
    panel.replaceChildren(...parts);
  }
  function shade(values, strength, query) {
    const largest = d3.max(values, Math.abs) || 1;
    for (const [token, part] of parts.entries()) {
      const value = values[token], share = Number.isNaN(value) ? 0 : value / largest;
      part.style.setProperty("--share", `${100 * Math.min(1, coverOf(share) * strength)}%`);
      part.classList.toggle("against", share < 0);
      part.classList.toggle("unseen", Number.isNaN(value));
      part.dataset.value = value;
      if (keep) part.setAttribute("aria-pressed", String(token === query));
    }
  }
  if (keep) {
    roving(panel);
    panel.addEventListener("pointerleave", () => hover(null));
    panel.addEventListener("keydown", (event) => {
      if (event.key === "c" && !event.ctrlKey && !event.metaKey && !event.altKey) keep(0);
    });
  }
  return { panel, show, shade };
}

/* A field in which a text is typed. show(id) is called with the identifier of the text. */
const MOST_BYTES = 4090; /* of a text in an identifier */
function textForm(show) {
  const field = element("textarea", { rows: 2, "aria-label": "A text",
    placeholder: "Type a text here", onkeydown: (event) => {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      submit();
    } });
  function submit() {
    const { length } = new TextEncoder().encode(field.value);
    field.setCustomValidity(length <= MOST_BYTES ? "" : `This text has ${count(length)} bytes. At most ` +
      `${count(MOST_BYTES)} can be typed; put longer texts into the file of --texts.`);
    if (field.value && field.reportValidity()) show(`text:${field.value}`);
  }
  return element("div", { class: "type-text" }, field,
    element("button", { type: "button", class: "quiet", onclick: submit }, "Show this text"));
}
