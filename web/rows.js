"use strict";
/* Tables whose rows the user sorts, by the headings of columns, and filters, by words. The URL's fragment keeps both.
*/

/* The value by which a cell is sorted: a number, a text, or null if it is missing. */
function sortValue(cell) {
  const { value } = cell.dataset, text = (value ?? cell.textContent).trim();
  if (text === "" || text === "–") return null;
  return Number.isNaN(Number(text)) ? text : Number(text);
}
/* Numbers come before texts. */
function compareValues(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a.localeCompare(b, "en", { numeric: true });
}
/* The rows in the order of a column. Missing values are last in both directions, and equal rows keep their order. */
function sortedRows(rows, column, descending) {
  const valueOf = new Map(rows.map((row) => [row, sortValue(row.cells[column])]));
  const sign = descending ? -1 : 1;
  return [...rows].sort((first, second) => {
    const [a, b] = [valueOf.get(first), valueOf.get(second)];
    return a === null || b === null ? (a === null) - (b === null) : sign * compareValues(a, b);
  });
}
/* All words must occur in the row, in any case and in any column. */
function hasWords(row, words) {
  const text = [...row.cells].map((cell) => cell.textContent).join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

const FEW = 5; /* fewer rows need no filter */

/* Makes the rows of a table sortable and filterable: {node, show(rows)}. name: of the table in the URL's fragment.
   noun: what a row is. className: that of scrolling(). show() replaces the rows; rows with the same data-row keep their
   elements, and with them the focus. */
function arranged(name, noun, content, className) {
  const body = content.tBodies[0], heads = [...content.tHead.rows[0].cells];
  const titles = heads.map((head) => head.textContent), label = `Filter ${noun}s`;
  const input = element("input", { type: "search", "aria-label": label, placeholder: label });
  const told = element("span", { class: "reading", role: "status" });
  const filter = element("div", { class: "tools" }, input, told);
  let rows = [...body.rows], column = -1, descending = false;

  function arrange() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = column < 0 ? rows : sortedRows(rows, column, descending);
    for (const row of rows) row.hidden = !hasWords(row, words);
    if (body.rows.length !== shown.length || shown.some((row, i) => body.rows[i] !== row)) {
      const focused = body.contains(document.activeElement) ? document.activeElement : null;
      body.replaceChildren(...shown);
      if (focused?.isConnected) focused.focus({ preventScroll: true });
    }
    heads.forEach((head, i) => head.setAttribute("aria-sort",
      i !== column ? "none" : descending ? "descending" : "ascending"));
    filter.hidden = rows.length < FEW && !words.length;
    const left = rows.filter((row) => !row.hidden).length;
    told.textContent = words.length ? `${count(left)} of ${plural(rows.length, noun)}` : "";
  }
  function keep() {
    fragment.set({ [`${name}-sort`]: column < 0 ? null : `${descending ? "-" : "+"}${titles[column]}`,
      [`${name}-find`]: input.value.trim() });
    arrange();
  }
  /* A first click sorts upwards, a second one downwards, a third one restores the first order. */
  function sortBy(clicked) {
    const last = clicked === column && descending;
    descending = clicked === column && !descending;
    column = last ? -1 : clicked;
    keep();
  }
  function begin() {
    const sort = fragment.get(`${name}-sort`) ?? "";
    column = titles.indexOf(sort.slice(1));
    descending = sort.startsWith("-");
    input.value = fragment.get(`${name}-find`) ?? "";
    arrange();
  }
  function show(next) {
    const old = new Map(rows.map((row) => [row.dataset.row, row]));
    rows = next.map((row) => {
      const known = old.get(row.dataset.row), cells = [...row.cells];
      if (!known) return row;
      [...known.cells].forEach((cell, i) => cell.isEqualNode(cells[i]) || cell.replaceWith(cells[i]));
      return known;
    });
    arrange();
  }
  heads.forEach((head, i) => head.replaceChildren(element("button", { type: "button", class: "sort",
    onclick: () => sortBy(i) }, titles[i])));
  input.addEventListener("input", keep);
  begin();
  fragment.listen(begin);
  return { node: element("div", { class: "arranged" }, filter, scrolling(content, className)), show };
}
