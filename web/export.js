"use strict";
/* Exports tables as CSV, charts and pictures as SVG. scrolling(), chart() and picture() add the buttons. */

/* Makes a file name such as "4-runs-entropy-table" from untrusted texts. It contains only letters, digits, dots, dashes
   and underscores, at most 48 from each text. */
function fileName(...parts) {
  const plain = parts.filter(Boolean).map((part) =>
    [...part.replace(/[^\p{L}\p{N}._-]+/gu, "-")].slice(0, 48).join("").replace(/^[-.]+|-+$/g, ""));
  return plain.filter(Boolean).join("-").replace(/-{2,}/g, "-") || "report";
}

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* A button that saves what make() returns: a text, or for PNG a promise of a blob. what: name of the exported object,
   for labels and file names. */
function exportButton(format, what, make) {
  const { type, suffix } = { CSV: { type: "text/csv;charset=utf-8", suffix: "csv" },
    SVG: { type: "image/svg+xml", suffix: "svg" }, PNG: { type: "image/png", suffix: "png" } }[format];
  const button = element("button", { type: "button", class: "export", "aria-label": `Download ${what} as ${format}`,
    title: `Download as ${format}` }, format);
  button.addEventListener("click", async () => {
    const section = button.closest("section");
    const same = [...section?.querySelectorAll(".export") ?? [button]]
      .filter((other) => other.getAttribute("aria-label") === button.getAttribute("aria-label"));
    const number = same.length > 1 ? String(same.indexOf(button) + 1) : "";
    const name = fileName(document.querySelector("h1").textContent, section?.id, what, number);
    save(`${name}.${suffix}`, type, await make());
  });
  return button;
}

/* --- CSV --------------------------------------------------------------------------------------------------------- */

/* Quotes a value as in RFC 4180. A text that a spreadsheet would run as a formula (the name of a run's folder is
   untrusted) gets a leading apostrophe. Numbers do not. */
function csvField(value) {
  const plain = String(value);
  const text = /^[=+\-@\t\r]/.test(plain) && Number.isNaN(Number(plain)) ? `'${plain}` : plain;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/* The unrounded values of a cell: [mean, deviation, n] for "12 ± 3 n 4". The value of a dash is "". */
function valuesOfCell(cell) {
  const { value, more } = cell.dataset;
  const first = value ?? cell.textContent.trim();
  return [first === "–" ? "" : first, ...(more ? JSON.parse(more) : [])];
}

/* The names of the CSV columns for one table column, one for each value in its cells. The heading "top-1 %, mean ±
   deviation" becomes "top-1 %, mean" and "top-1 %, deviation", unless data-csv has other names. */
function csvHeads(head, width) {
  const text = head.textContent.trim(), [first, second] = text.split(" ± ");
  const base = first.replace(/, mean$/, "");
  const names = head.dataset.csv ? JSON.parse(head.dataset.csv)
    : [second ? first : text, second ? `${base}, ${second}` : `${text}, deviation`, `${base}, n`];
  return names.slice(0, width);
}

/* The rows that are shown, in their order. */
function csvOf(table) {
  const rows = [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => [...row.cells].map(valuesOfCell));
  const heads = [...table.tHead.rows[0].cells];
  const widths = heads.map((_, i) => d3.max(rows, (row) => row[i].length) ?? 1);
  const lines = [heads.flatMap((head, i) => csvHeads(head, widths[i])),
    ...rows.map((row) => row.flatMap((values, i) => d3.range(widths[i]).map((k) => values[k] ?? "")))];
  return lines.map((line) => `${line.map(csvField).join(",")}\r\n`).join("");
}

/* --- SVG --------------------------------------------------------------------------------------------------------- */

const SVG = "http://www.w3.org/2000/svg";
const INHERITED = ["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray",
  "stroke-linecap", "stroke-linejoin", "paint-order", "font-family", "font-size", "font-weight", "text-anchor"];

/* Converts a colour to rgb() or rgba(), because drawing programs may not support the style sheet's colour spaces. */
const plainColour = (() => {
  const canvas = document.createElement("canvas"), known = new Map();
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  return (colour) => {
    if (!known.has(colour)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
      known.set(colour, a === 255 ? `rgb(${r}, ${g}, ${b})` : `rgba(${r}, ${g}, ${b}, ${a / 255})`);
    }
    return known.get(colour);
  };
})();

function svgElement(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/* Copies the computed style of a node to attributes of its copy. Omits properties inherited from the parent. */
function inlineStyle(node, copy, inherited) {
  const style = getComputedStyle(node);
  for (const name of INHERITED) {
    const value = style.getPropertyValue(name);
    if (inherited && value === inherited.getPropertyValue(name)) continue;
    const isColour = (name === "fill" || name === "stroke") && value !== "none";
    copy.setAttribute(name, isColour ? plainColour(value) : value);
  }
  if (style.opacity !== "1") copy.setAttribute("opacity", style.opacity);
  if (style.vectorEffect !== "none") copy.setAttribute("vector-effect", style.vectorEffect);
  return style;
}

/* Returns a copy of a node that does not depend on the style sheet, or null if the node is not shown. */
function standalone(node, inherited = null) {
  const shown = getComputedStyle(node);
  if (shown.display === "none" || shown.visibility === "hidden") return null;
  const copy = svgElement(node.localName);
  for (const { name, value } of node.attributes)
    if (!/^(class|style|tabindex|role|xmlns|visibility|aria-.*|data-.*)$/.test(name)) copy.setAttribute(name, value);
  const style = inlineStyle(node, copy, inherited);
  for (const child of node.childNodes) {
    const part = child.nodeType === Node.TEXT_NODE ? document.createTextNode(child.data)
      : child.nodeType === Node.ELEMENT_NODE ? standalone(child, style) : null;
    if (part) copy.append(part);
  }
  return copy;
}

/* The marks of an entry of a key. A coloured square becomes an SVG. */
function marksOf(item) {
  const squares = [...item.querySelectorAll(".swatch")].map((swatch) => {
    const square = svgElement("rect", { width: 10, height: 10, rx: 2 });
    square.style.fill = swatch.style.background;
    return svgElement("svg", { viewBox: "0 0 10 10" }, square);
  });
  return [...item.querySelectorAll("svg"), ...squares];
}
function keyEntries(figure) {
  return [...figure.querySelectorAll(".key > span")].map((item) =>
    ({ marks: marksOf(item), text: item.textContent.trim() }));
}

/* The entries of the exported legend, from the page's legend and the chart's key: [{marks: [svg], text}]. */
function legendOf(figure, spec) {
  const key = keyEntries(figure);
  if (!spec.series) return key;
  const shown = [...new Set(visibleIn(spec).series.map((series) => series.run))];
  const unnamed = runs.length < 2 || spec.series.some((series) => series.colour || series.apart);
  return [...(unnamed ? [] : shown.map((run) => ({ marks: [lineSampleOf(run)], text: run.name }))), ...key];
}

/* Arranges the legend in rows below the chart. Returns {nodes, height}. The marks must be in the page, so that their
   styles can be computed. */
function drawLegend(entries, width, top, font) {
  const context = document.createElement("canvas").getContext("2d");
  context.font = `12px ${font}`;
  const nodes = [];
  let x = 12, y = top;
  for (const { marks, text } of entries) {
    const boxes = marks.map((mark) => mark.viewBox.baseVal);
    const wide = d3.sum(boxes, (box) => box.width + 4) + context.measureText(text).width + 16;
    if (x > 12 && x + wide > width - 12) {
      x = 12;
      y += 20;
    }
    for (const [i, mark] of marks.entries()) {
      const copy = standalone(mark), { width: w, height: h } = boxes[i];
      for (const [name, value] of Object.entries({ x, y: y - 4 - h / 2, width: w, height: h, overflow: "visible" }))
        copy.setAttribute(name, value);
      nodes.push(copy);
      x += w + 4;
    }
    nodes.push(svgElement("text", { x, y }, text));
    x += context.measureText(text).width + 16;
  }
  return { nodes, height: entries.length ? y - top + 16 : 0 };
}

/* Replaces characters that XML does not allow. */
function xmlText(text) {
  return text.replace(/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, "\u{FFFD}");
}

/* The size of a drawing in pixels, and how far it extends to the left and to the right. */
function extentOfDrawing(drawn) {
  if (!drawn.classList.contains("chart")) {
    const { width, height } = drawn.getBoundingClientRect();
    return { width, height, left: 0, right: width };
  }
  const { width, height } = drawn.viewBox.baseVal;
  const box = drawn.getBBox(); /* labels of an axis may extend beyond the view box */
  return { width, height, left: Math.min(0, box.x), right: Math.max(width, box.x + box.width) };
}

/* Returns the chart or picture as currently shown, with title, legend and key, as the text of an SVG file. spec: that
   of a chart, or {title, caption} of a picture. */
function svgOf(figure, spec) {
  const drawn = figure.querySelector(":scope > svg"), { width, height, ...extent } = extentOfDrawing(drawn), head = 30;
  const left = extent.left - 4, wide = Math.ceil(extent.right + 4 - left);
  const style = getComputedStyle(figure), place = element("div", { class: "exporting" });
  const entries = legendOf(figure, spec);
  figure.append(place);
  place.append(...entries.flatMap(({ marks }) => marks.filter((mark) => !mark.isConnected)));
  const legend = drawLegend(entries, width, head + height + 18, style.fontFamily);
  const total = head + height + 8 + legend.height, chart = standalone(drawn);
  place.remove();
  const overflow = drawn.classList.contains("chart") ? "visible" : "hidden";
  for (const [name, value] of Object.entries({ y: head, width, height, overflow })) chart.setAttribute(name, value);
  const label = figure.querySelector("svg .label"), below = figure.querySelector(".key, figcaption") ?? figure;
  const soft = plainColour(label ? getComputedStyle(label).fill : getComputedStyle(below).color);
  const whole = svgElement("svg", { viewBox: `${left} 0 ${wide} ${total}`, width: wide, height: total,
    "font-family": style.fontFamily },
  svgElement("title", {}, spec.title), svgElement("desc", {}, [spec.caption, document.title].filter(Boolean).join(" ")),
  svgElement("rect", { x: left, width: wide, height: total, fill: plainColour(style.backgroundColor) }),
  svgElement("text", { x: 12, y: 20, "font-size": 14, "font-weight": 600, fill: plainColour(style.color) }, spec.title),
  chart, svgElement("g", { "font-size": 12, fill: soft }, ...legend.nodes));
  return `<?xml version="1.0" encoding="UTF-8"?>\n${xmlText(new XMLSerializer().serializeToString(whole))}\n`;
}

/* A figure with a title, an export button and a picture; key and caption may be null. */
function picture(title, svg, key, caption, className) {
  const figure = element("figure", { class: className }, element("div", { class: "figure-head" },
    element("h3", {}, title), exportButton("SVG", title, () => svgOf(figure, { title, caption }))), svg, key,
  caption ? element("figcaption", {}, caption) : null);
  return figure;
}
