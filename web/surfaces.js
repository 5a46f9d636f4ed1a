"use strict";
/* Shares of stiff images and of stiff steps over the thresholds M1 and M2 (Huang et al., ICCV 2023). */

const SURFACES = "stiff_surface";
const SURFACE_SIZE = 320;

/* The cells of a run's surface, {m1, m2, figure}; m1 and m2 are the middle of a cell. */
function surfaceCells(run, statistic) {
  return meansOf(run, SURFACES, statistic).map((figure) => {
    const [, m1, m2] = figure.node.match(/^M1=(\S+) M2=(\S+)$/) ?? [];
    return { m1: Number(m1), m2: Number(m2), figure };
  }).filter(({ m1, m2, figure }) => isNumber(m1) && isNumber(m2) && isNumber(figure.mean));
}

/* The scale of an axis whose cells have these middles, and the width of a cell. */
function cellScale(middles, range) {
  const cells = new Set(middles).size, width = 2 * d3.min(middles);
  return { scale: d3.scaleLinear([0, cells * width], range), width };
}

/* p is a share of steps and small, so that its colours end at its largest value. */
function surfaceFigure(run, statistic, title) {
  const cells = surfaceCells(run, statistic), largest = statistic === "delta" ? 1 : d3.max(cells, (c) => c.figure.mean);
  const x = cellScale(cells.map(({ m1 }) => m1), [MARGIN.left, SURFACE_SIZE - MARGIN.right]);
  const y = cellScale(cells.map(({ m2 }) => m2), [SURFACE_SIZE - MARGIN.bottom, MARGIN.top]);
  const svg = d3.create("svg").attr("class", "surface").attr("role", "img").attr("aria-label", `${run.name}: ${title}`)
    .attr("viewBox", `0 0 ${SURFACE_SIZE} ${SURFACE_SIZE}`);
  svg.selectAll("rect").data(cells).join("rect").attr("class", "cell").attr("data-value", ({ figure }) => figure.mean)
    .attr("x", ({ m1 }) => x.scale(m1 - x.width / 2)).attr("y", ({ m2 }) => y.scale(m2 + y.width / 2))
    .attr("width", x.scale(x.width) - x.scale(0)).attr("height", y.scale(0) - y.scale(y.width))
    .attr("fill", ({ figure }) => d3.interpolateInferno(largest > 0 ? figure.mean / largest : 0))
    .append("title").text(({ m1, m2, figure }) => `M1 ${number(m1)}, M2 ${number(m2)}: ${number(figure.mean)}`);
  svg.append("g").attr("class", "axis x").attr("transform", `translate(0,${SURFACE_SIZE - MARGIN.bottom})`)
    .call(d3.axisBottom(x.scale).ticks(5));
  svg.append("g").attr("class", "axis y").attr("transform", `translate(${MARGIN.left},0)`)
    .call(d3.axisLeft(y.scale).ticks(5));
  svg.append("text").attr("class", "label").attr("x", SURFACE_SIZE - MARGIN.right).attr("y", SURFACE_SIZE - 3)
    .attr("text-anchor", "end").text("M1");
  svg.append("text").attr("class", "label").attr("x", 4).attr("y", MARGIN.top + 8).text("M2");
  return picture(runs.length > 1 ? `${title}: ${run.name}` : title, svg.node(), null,
    `From 0 (dark) to ${number(largest)} (bright).`);
}

function surfacesOf(run) {
  return [["delta", "δ(M), share of stiff images"], ["p", "p̂(M), share of stiff steps"]]
    .filter(([statistic]) => surfaceCells(run, statistic).length)
    .map(([statistic, title]) => surfaceFigure(run, statistic, title));
}

/* TNS by the grid beside the exact value. */
function surfaceTable(among) {
  const names = ["tns by grid", "tns", "outside"];
  return table(["run", ...names.map((name) => statisticInfo(SURFACES, name).title), "n"], among.map((run) => {
    const figures = names.map((name) => figureNamed(run, SURFACES, name));
    return [element("td", {}, nameOf(run)), ...figures.map((f) => numberCell(f?.mean ?? null, f?.deviation)),
      countCell(figures.find(Boolean)?.n)];
  }), "headline");
}

function surfacesSection() {
  const among = runs.filter((run) => run.figures.some((f) => f.instrument === SURFACES));
  const part = section(SURFACES, titleOf(SURFACES), summaryOf(SURFACES, titleOf(SURFACES)));
  part.append(...[element("div", { class: "charts" }, ...among.flatMap(surfacesOf)),
    scrolling(surfaceTable(among), "whole"), method(SURFACES)].filter(Boolean));
  return part;
}
