"use strict";
/* What sections are made of: elements, runs' looks, the tip, choices, tables, an instrument's method. */

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false)
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/* --- runs' looks -------------------------------------------------------------------------------------------------- */

const SHAPES = [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, d3.symbolStar, d3.symbolCross,
  d3.symbolWye];
const COLOURS = 8;

function symbolOf(run, size = 46) {
  return d3.symbol().type(SHAPES[run.index % SHAPES.length]).size(size)();
}
function classOf(run) {
  return `run-${run.index % COLOURS}`;
}
/* Colours repeat after eight runs; each time the lines are dashed otherwise: 32 looks in all. */
const DASHES = 4;
function dashOf(run) {
  return Math.floor(run.index / COLOURS) % DASHES;
}
function emblem(run) {
  const svg = d3.create("svg").attr("viewBox", "-7 -7 14 14").attr("aria-hidden", "true").attr("class", classOf(run));
  svg.append("path").attr("class", "mark").attr("d", symbolOf(run, 80));
  return svg.node();
}
function nameOf(run) {
  return element("span", { class: "name" }, emblem(run), run.name);
}

/* --- the tip ------------------------------------------------------------------------------------------------------ */

const tip = (() => {
  const node = document.getElementById("tip");
  function show(text, x, y) {
    node.textContent = text;
    node.hidden = false;
    const { width, height } = node.getBoundingClientRect();
    const left = x + 16 + width > innerWidth ? x - 16 - width : x + 16;
    node.style.left = `${Math.max(4, Math.min(left, innerWidth - width - 4))}px`;
    node.style.top = `${Math.max(4, Math.min(y - height / 2, innerHeight - height - 4))}px`;
  }
  function hide() {
    node.hidden = true;
  }
  return { show, hide };
})();

/* --- choices ------------------------------------------------------------------------------------------------------ */

let choices = 0;
/* One of several: [value, label] each. Calls back when another is chosen. */
function choice(title, options, chosen, change) {
  const name = `choice-${choices++}`;
  return element("div", { class: "choice", role: "radiogroup", "aria-label": title },
    element("span", { class: "legend", "aria-hidden": "true" }, title),
    ...options.map(([value, label]) => element("label", {},
      element("input", { type: "radio", name, checked: value === chosen, onchange: () => change(value) }), label)));
}

function scaleChoice(log, change) {
  return choice("Scale", [[false, "linear"], [true, "log"]], log, change);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

/* A cell that shows a number rounded and keeps it whole. */
function numberCell(value, deviation, n) {
  const whole = isNumber(value) ? String(value) : "";
  const cell = element("td", { "data-value": whole, title: whole }, plusMinus(value, deviation));
  if (n !== undefined) cell.append(element("small", {}, ` n ${count(n)}`));
  return cell;
}
function table(head, rows, className = "") {
  return element("table", { class: className },
    element("thead", {}, element("tr", {}, ...head.map((text, i) =>
      element("th", { scope: "col", class: rows[0]?.[i].className }, text)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells))));
}
/* A table that scrolls where it is wider than the page, and says so. */
const widths = new ResizeObserver((entries) => requestAnimationFrame(() => {
  for (const { target } of entries)
    target.nextElementSibling.hidden = target.scrollWidth <= target.clientWidth + 1;
}));
function scrolling(content, className = "") {
  const part = element("div", { class: `scroll ${className}`.trim(), tabindex: 0 }, content);
  widths.observe(part);
  return element("div", { class: "scrolling" }, part,
    element("p", { class: "more", hidden: true }, "The table goes on to the right: scroll →"));
}
/* A table that is made when somebody opens it. */
function valueTable(make) {
  const details = element("details", {}, element("summary", {}, "Values"));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1)
      details.append(scrolling(make()));
  });
  return details;
}

/* Formula, reading, source and unit of an instrument. */
function method(name) {
  const info = instruments.get(name);
  if (!info) return null;
  return element("dl", { class: "method", "data-instrument": name },
    ...[["Formula", element("code", {}, info.formula)], ["Reading", info.reading], ["Source", info.source],
      ["Unit", info.unit === "1" ? "none, a ratio" : info.unit]].flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)]));
}

/* What an instrument is for, without its name where that is the heading already. */
function summaryOf(name, heading) {
  const text = instruments.get(name)?.summary ?? "", start = `${heading.toLowerCase()}: `;
  return text.startsWith(start) ? text.slice(start.length) : text;
}

/* A section with its heading; `extra` stands at the heading's right. */
function section(id, title, about, extra) {
  return element("section", { id, "aria-labelledby": `${id}-title` },
    element("div", { class: "section-head" },
      element("div", {}, element("h2", { id: `${id}-title` }, title),
        about ? element("p", { class: "about" }, about) : null),
      extra ?? null));
}
