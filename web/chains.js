"use strict";
/* Products of attention maps of random heads and their distance from rank 1 (Dong et al., ICML 2021), by the number of
   maps. */

const CHAINS = "head_chains";
/* From the lowest line of a box plot to the highest. */
const CHAIN_QUANTILES = ["minimum", "quantile 0.25", "median", "quantile 0.75", "maximum"];
const CHAIN_ORDERS = { formula: "P_hk … P_h1, as in the formula", code: "P_h1 … P_hk, as in the public code" };

/* The box plots of a run: {x: length, y: median, box: values of CHAIN_QUANTILES, figures}. */
function chainBoxes(run, order) {
  const of = CHAIN_QUANTILES.map((name) => meansOf(run, CHAINS, statisticIn(name, order)));
  return of[0].map((_, i) => of.map((figures) => figures[i]))
    .filter((figures) => figures.every((f) => isNumber(f?.mean)))
    .map((figures) => {
      const box = figures.map((f) => f.mean);
      return { x: pathAt(figures[0].node).length, y: box[2], box, figures };
    });
}

function chainTooltip(run, { x, figures }) {
  return [run.name, `length ${x}`, ...figures.map((f, i) => `${CHAIN_QUANTILES[i]}: ${plusMinus(f.mean, f.deviation)}`),
    `n = ${plural(figures[0].n, "image")}`].join("\n");
}

function chainChart(order, log) {
  const among = runs.filter((run) => chainBoxes(run, order).length);
  if (!among.length) return null;
  return chart({ title: CHAIN_ORDERS[order] ?? order, xLabel: "maps in the product", pad: 0.5, log,
    series: among.map((run) => ({ run, boxes: true, shift: 2 * shiftOf(run, among), points: chainBoxes(run, order),
      tooltip: (p) => chainTooltip(run, p) })),
    caption: "Box: quartiles and median over the chains of an image; line: their extremes; means over images." });
}

function chainCharts(log) {
  return infoOf(CHAINS).readings.map((order) => chainChart(order, log)).filter(Boolean);
}

function chainTable() {
  return table(["run", "order", "length", ...CHAIN_QUANTILES, "n"], runs.flatMap((run) =>
    infoOf(CHAINS).readings.flatMap((order) => chainBoxes(run, order).map(({ x, figures }) => [
      element("td", {}, nameOf(run)), element("td", { class: "text" }, order), countCell(x),
      ...figures.map((f) => numberCell(f.mean)), countCell(figures[0].n)]))));
}

function chainsSection() {
  const charts = element("div", { class: "charts" });
  const show = (log) => charts.replaceChildren(...chainCharts(log));
  const part = section(CHAINS, titleOf(CHAINS), summaryOf(CHAINS, titleOf(CHAINS)), scaleChoice(true, show));
  show(true);
  part.append(...[charts, scrolling(chainTable()), method(CHAINS)].filter(Boolean));
  return part;
}
