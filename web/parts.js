"use strict";
/* Building blocks of sections: elements, colours and markers of runs, the tooltip, radio buttons, tables, descriptions
   of instruments. */

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

/* The cell of a grid at a share of its width or height, from 0 to cells - 1. */
function cellAt(share, cells) {
  return Math.max(0, Math.min(cells - 1, Math.floor(share * cells)));
}

/* --- colours and markers of runs --------------------------------------------------------------------------------- */

const SHAPES = [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, d3.symbolStar, d3.symbolCross,
  d3.symbolWye];
const DASHES = [null, "7 5", "2 4.5", "11 4 2 4", "13 7"];
const COLOURS = 8;

/* If there are several settings, the colour shows the setting, and marker and dash show the seed. Otherwise colour and
   marker show the run. When colours repeat, marker and dash change. */
const bySetting = runs.some((run) => run.setting !== null) && groupsOf(runs).length > 1;
const looks = (() => {
  const seeds = [...new Set(runs.filter((run) => run.setting !== null).map(seedOf))];
  const numberIn = (group, run) => (run.setting === null ? 0
    : distinctSeeds(group).length === group.length ? seeds.indexOf(seedOf(run)) : group.indexOf(run));
  const groups = bySetting ? groupsOf(runs).map(({ group }) => group) : runs.map((run) => [run]);
  return new Map(groups.flatMap((group, i) => group.map((run) => {
    const round = Math.floor(i / COLOURS);
    const variant = bySetting ? round * Math.max(1, seeds.length) + numberIn(group, run) : round;
    return [run, { colour: i % COLOURS, shape: SHAPES[(bySetting ? variant : i) % SHAPES.length],
      dash: DASHES[variant % DASHES.length] }];
  })));
})();
const anyDashed = [...looks.values()].some(({ dash }) => dash);

function symbolOf(run, size = 46) {
  return d3.symbol().type(looks.get(run).shape).size(size)();
}
function classOf(run) {
  return `run-${looks.get(run).colour}`;
}
function dashOf(run) {
  return looks.get(run).dash;
}
function markerOf(run) {
  const svg = d3.create("svg").attr("viewBox", "-7 -7 14 14").attr("aria-hidden", "true").attr("class", classOf(run));
  svg.append("path").attr("class", "mark").attr("d", symbolOf(run, 80));
  return svg.node();
}
/* The run's marker and, if runs differ in their dashes, its line. */
function lineSampleOf(run) {
  if (!anyDashed) return markerOf(run);
  const svg = d3.create("svg").attr("viewBox", "-24 -7 48 14").attr("aria-hidden", "true")
    .attr("class", `sample ${classOf(run)}`);
  svg.append("line").attr("class", "line").attr("x1", -23).attr("x2", 23).attr("stroke-dasharray", dashOf(run));
  svg.append("path").attr("class", "mark").attr("d", symbolOf(run, 80));
  return svg.node();
}
function nameOf(run) {
  return element("span", { class: "name" }, markerOf(run), run.name);
}

/* --- the tooltip ------------------------------------------------------------------------------------------------- */

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

/* --- choices ----------------------------------------------------------------------------------------------------- */

let choices = 0;
/* Radio buttons. options: [value, label] each. Calls change(value) when the user chooses another option. */
function choice(title, options, chosen, change) {
  const name = `choice-${choices++}`;
  return element("div", { class: "choice", role: "radiogroup", "aria-label": title },
    element("span", { class: "legend", "aria-hidden": "true" }, title),
    ...options.map(([value, label]) => element("label", {},
      element("input", { type: "radio", name, checked: value === chosen, onchange: () => change(value) }), label)));
}

/* A list that opens, for many options: [value, label, reason] each. reason: why the user cannot choose the option, if
   so. */
function dropdown(title, options, chosen, change) {
  return element("label", { class: "slider" }, title, element("select", { "aria-label": title,
    onchange: (event) => change(event.target.value) }, ...options.map(([value, text, reason]) =>
    element("option", { value, selected: value === chosen, disabled: Boolean(reason), title: reason }, text))));
}

function scaleChoice(log, change) {
  return choice("Scale", [[false, "linear"], [true, "log"]], log, change);
}

/* --- tables ------------------------------------------------------------------------------------------------------ */

function whole(value) {
  return isNumber(value) ? String(value) : "";
}
/* A cell that shows rounded numbers. data-value has the unrounded value; data-more has the unrounded deviation and n as
   a JSON list. */
function numberCell(value, deviation, n) {
  const more = n !== undefined ? [deviation, n] : deviation !== undefined ? [deviation] : null;
  const cell = element("td", { "data-value": whole(value), title: whole(value),
    "data-more": more && JSON.stringify(more.map(whole)) }, plusMinus(value, deviation));
  if (n !== undefined) cell.append(element("small", {}, ` n ${count(n)}`));
  return cell;
}
function countCell(value, write = count) {
  return element("td", { "data-value": whole(Number(value ?? NaN)) }, write(value));
}
/* head: texts, or {text, csv} to give the columns of the CSV file other names (see csvHeads() in export.js). */
function table(head, rows, className = "") {
  const names = head.map((entry) => (typeof entry === "string" ? { text: entry } : entry));
  return element("table", { class: className },
    element("thead", {}, element("tr", {}, ...names.map(({ text, csv }, i) =>
      element("th", { scope: "col", class: rows[0]?.[i].className, "data-csv": csv && JSON.stringify(csv) }, text)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells))));
}
/* The largest possible value in a unit; undefined if there is none. */
function maximumOf(unit) {
  return unit === "%" ? 100 : undefined;
}
/* "mean, nats" */
function withUnit(name, unit) {
  return unit && unit !== "1" ? `${name}, ${unit}` : name;
}
/* A table with an export button. If it is wider than the page, it scrolls and shows a hint. */
const widths = new ResizeObserver((entries) => requestAnimationFrame(() => {
  for (const { target } of entries)
    target.parentElement.lastElementChild.hidden = target.scrollWidth <= target.clientWidth + 1;
}));
function scrolling(content, className = "") {
  const part = element("div", { class: `scroll ${className}`.trim(), tabindex: 0 }, content);
  widths.observe(part);
  return element("div", { class: "scrolling" }, part, exportButton("CSV", "table", () => csvOf(content)),
    element("p", { class: "more", hidden: true }, "Scroll right for more columns →"));
}
/* A collapsed table, which is built when the user opens it. */
function valueTable(make, note) {
  const details = element("details", {}, element("summary", {}, "Values"));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1)
      details.append(...[scrolling(make()), note && element("p", { class: "note-below" }, note)].filter(Boolean));
  });
  return details;
}

/* A reading is a list of rules, which "; " separates, except in parentheses. */
function readingList(reading) {
  return element("ul", {}, ...(reading ?? "").split(/; (?![^(]*\))/).map((rule) => element("li", {}, rule)));
}
/* The scales of an instrument for the precisions in which the page's runs were measured. */
function scaleRows(info) {
  const rows = (term, scales) => (scales ?? []).map(({ statistic, text, source }) =>
    [term, `${statistic ? `${statistic}: ` : ""}${text} (${source})`]);
  if (!info.scales_f64) return rows("Scale", info.scales);
  const precisions = new Set(runs.map((run) =>
    (({ ...run.facts, ...measuredFacts(run) }).precision === "f64" ? "f64" : "f32")));
  return [...precisions].sort().flatMap((precision) =>
    rows(precisions.size > 1 ? `Scale in ${precision}` : "Scale", precision === "f64" ? info.scales_f64 : info.scales));
}
/* Formula, reading, source and unit of an instrument. */
function method(name) {
  const info = instruments.get(name);
  if (!info) return null;
  return element("dl", { class: "method", "data-instrument": name },
    ...[["Formula", element("code", {}, info.formula)], ["Reading", readingList(info.reading)], ["Source", info.source],
      ["Unit", info.unit === "1" ? "none (a ratio)" : info.unit],
      ...scaleRows(info)]
      .flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)]));
}

/* An instrument's summary, without the instrument's name if the heading already contains it. */
function summaryOf(name, heading) {
  const text = instruments.get(name)?.summary ?? "", start = `${heading.toLowerCase()}: `;
  return text.startsWith(start) ? text.slice(start.length) : text;
}

/* A section with a heading. extra: element to the right of the heading. */
function section(id, title, about, extra) {
  return element("section", { id, "aria-labelledby": `${id}-title` },
    element("div", { class: "section-head" },
      element("div", {}, element("h2", { id: `${id}-title` }, title),
        about ? element("p", { class: "about" }, about) : null),
      extra ?? null));
}

/* Shows links to the pages of `attscope serve`, which take the checkpoint and the image along. more: links that only
   this page has. */
function showPages(current, ...more) {
  const kept = () => new URLSearchParams([...new URLSearchParams(location.hash.slice(1))]
    .filter(([name]) => name === "model" || name === "image"));
  const links = ["explore", "ablate", "means", "network", "lessons"].map((page) => {
    const link = element("a", { href: `/${page}#${kept()}`, "aria-current": page === current ? "page" : null },
      capital(page));
    for (const event of ["pointerenter", "focus"])
      link.addEventListener(event, () => link.setAttribute("href", `/${page}#${kept()}`));
    return link;
  });
  const runs = element("a", { href: "/", "aria-current": current === "runs" ? "page" : null }, "Runs");
  document.getElementById("subtitle").after(element("nav", { class: "pages", "aria-label": "Pages" }, runs, ...links,
    ...more));
}

/* The address of a page about runs, which their names on the server identify. */
function runsAddress(page, names) {
  return `/${page}?${new URLSearchParams(names.map((name) => ["run", name]))}`;
}

/* --- the keyboard ------------------------------------------------------------------------------------------------ */

/* Makes a link that is shown when it has the focus, and gives the focus to an element. The address stays as it is,
   because it holds the state of the page. */
function skipTo(link, find) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    find()?.focus();
  });
  return link;
}
skipTo(document.querySelector(".skip"), () => {
  const content = document.getElementById("sections");
  content.tabIndex = -1;
  return content;
});

/* Makes the buttons of an element one stop of the Tab key; the arrow keys, Home and End move among them. The stop is the
   pressed button, or the one that had the focus last. wanted: a selector of the buttons. */
function roving(place, wanted = "button") {
  const all = () => [...place.querySelectorAll(wanted)];
  function stopAt(button) {
    for (const other of all()) other.tabIndex = other === button ? 0 : -1;
  }
  function settle() {
    const buttons = all(), now = buttons.filter((button) => button.getAttribute("tabindex") === "0");
    if (buttons.length && now.length !== 1)
      stopAt(buttons.find((button) => button.getAttribute("aria-pressed") === "true") ?? buttons[0]);
  }
  /* The nearest button in a direction: first of the same row or column. */
  function towards(from, dx, dy) {
    const a = from.getBoundingClientRect(), x = a.left + a.width / 2, y = a.top + a.height / 2;
    return minBy(all().filter((button) => button !== from).map((button) => {
      const b = button.getBoundingClientRect(), across = b.left + b.width / 2 - x, down = b.top + b.height / 2 - y;
      return { button, ahead: dx * across + dy * down, aside: Math.abs(dx * down) + Math.abs(dy * across) };
    }).filter(({ ahead }) => ahead > 1), ({ ahead, aside }) => ahead + 4 * aside)?.button;
  }
  place.addEventListener("keydown", (event) => {
    const at = event.target.closest(wanted), move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1],
      ArrowDown: [0, 1] }[event.key];
    if (!at || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = move ? towards(at, ...move) : { Home: all()[0], End: all().at(-1) }[event.key];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  place.addEventListener("focusin", (event) => {
    const button = event.target.closest(wanted);
    if (button && place.contains(button)) stopAt(button);
  });
  new MutationObserver(settle).observe(place, { childList: true, subtree: true });
  settle();
  return place;
}
