"use strict";
/* Paths through heads and skips: contributions by length, and a picture of sampled paths (Dong et al., ICML 2021, Fig.
   1). The instruments are "paths" and "path_samples". */

const PATHS = ["paths", "path_samples"];

function hasPaths() {
  return PATHS.some(hasInstrument);
}

/* The length in a node's name, and the heads of a single path, 0 for the skip: "length.2.path.0-3-1" gives 2 and
   [0, 3, 1]. Null for other nodes ("biases"). */
function pathAt(node) {
  const found = node.match(/^length\.(\d+)(?:\.path\.([\d-]+))?$/);
  return found && { length: Number(found[1]), heads: found[2]?.split("-").map(Number) ?? null };
}

/* "head 2, skip, head 0" of [3, 0, 1]. */
function pathWords(heads) {
  return heads.map((head) => (head ? `head ${head - 1}` : "skip")).join(", ");
}

/* The points of a statistic: those of lengths (single false), or of single paths. */
function pathPoints(run, instrument, statistic, single) {
  return meansOf(run, instrument, statistic).flatMap((f) => {
    const place = pathAt(f.node);
    return place && Boolean(place.heads) === single
      ? [{ x: place.length, y: f.mean, deviation: f.deviation, figure: f }] : [];
  });
}

/* [instrument, statistic, title, logarithmic] of each chart. */
const PATH_CHARTS = [
  ["paths", "norm", "Norm of the contribution, relative to the output", true],
  ["paths", "share", "Share of the output", false],
  ["paths", "composite", "Rank residual of the contribution, composite norm", true],
  ["path_samples", "composite", "Rank residual of single paths, composite norm", true],
  ["paths", "paths", "Number of paths", true],
  ["paths", "path share", "Share of all paths", false],
];

function pathSeries([instrument, statistic], among) {
  const { unit } = statisticInfo(instrument, statistic);
  const common = (run) => ({ run, shift: shiftOf(run, among), tooltip: (p) => tooltipOf(run, p.figure, unit) });
  return among.flatMap((run) => {
    const single = pathPoints(run, instrument, statistic, true);
    return [...(single.length ? [{ ...common(run), points: single, heads: true }] : []),
      { ...common(run), points: pathPoints(run, instrument, statistic, false) }];
  });
}

function pathChart(kind) {
  const [instrument, statistic, title, log] = kind;
  const among = runs.filter((run) => pathPoints(run, instrument, statistic, false).length);
  if (!among.length) return null;
  return chart({ title, xLabel: "path length", fromZero: true, pad: 0.5, log, series: pathSeries(kind, among),
    caption: instrument === "path_samples" ? "Dots: single paths, means over images." : null });
}

/* --- the picture ------------------------------------------------------------------------------------------------- */

/* The single paths of a run: {length, heads, words} each. kind: [instrument, statistic, its name]. */
function sampledPaths(run, [instrument, statistic, name]) {
  return meansOf(run, instrument, statistic)
    .map((f) => ({ ...pathAt(f.node), words: `${name} ${plusMinus(f.mean, f.deviation)}` }))
    .filter(({ heads }) => heads);
}

const CELL = { width: 56, height: 30, left: 64, top: 18 };

/* Draws the columns: a node for each head that a path takes or that lies below one, and one for the skip. */
function drawNodes(svg, layers, heads) {
  for (let layer = 0; layer < layers; layer++) {
    const x = CELL.left + layer * CELL.width;
    svg.append("text").attr("class", "label").attr("x", x).attr("y", CELL.top + (heads + 1) * CELL.height + 6)
      .attr("text-anchor", "middle").text(layer);
    for (let head = 0; head <= heads; head++)
      svg.append("circle").attr("class", head ? "path-node" : "path-node path-skip").attr("r", head ? 7 : 4)
        .attr("cx", x).attr("cy", CELL.top + (heads - head) * CELL.height);
  }
  for (let head = 0; head <= heads; head++)
    svg.append("text").attr("class", "label").attr("x", 4).attr("y", CELL.top + (heads - head) * CELL.height + 4)
      .text(head ? `head ${head - 1}` : "skip");
}

/* Lines of several paths through one node lie beside each other. */
function drawPath(svg, path, i, paths, heads) {
  const offset = (i - (paths.length - 1) / 2) * Math.min(2.4, 14 / paths.length);
  const at = (head, layer) => [CELL.left + layer * CELL.width, CELL.top + (heads - head) * CELL.height + offset];
  const longest = d3.max(paths, ({ length }) => length) || 1;
  svg.append("path").attr("class", "path-line").attr("data-path", path.heads.join("-")).attr("data-length", path.length)
    .style("stroke", `color-mix(in oklab, var(--deep) ${Math.round((100 * path.length) / longest)}%, var(--shallow))`)
    .attr("d", d3.line()(path.heads.map(at)))
    .append("title").text(`${pathWords(path.heads)}: length ${path.length}, ${path.words}`);
}

function pathPicture(run, paths) {
  const layers = paths[0].heads.length, heads = d3.max(paths, (path) => d3.max(path.heads)) || 1;
  const width = CELL.left + layers * CELL.width;
  const svg = d3.create("svg").attr("class", "path-picture").attr("role", "img")
    .attr("aria-label", `${plural(paths.length, "sampled path")} through ${plural(layers, "layer")}`)
    .attr("viewBox", `0 0 ${width} ${CELL.top + (heads + 1) * CELL.height + 12}`)
    .style("max-width", `${1.5 * width}px`);
  drawNodes(svg, layers, heads);
  paths.forEach((path, i) => drawPath(svg, path, i, paths, heads));
  return picture(`${run.name}: sampled paths`, svg.node(), null, "Columns are attention layers, from the input to " +
    "the output; a line takes one head or the skip in each. Faint: short paths; strong: long paths. Only heads up to " +
    "the highest that a path takes are drawn. Names of nodes write the skip as 0 and head 0 as 1.", "paths-figure");
}

/* The first path drawn of each length, or all. */
function chosenPaths(run, kind, every) {
  const paths = sampledPaths(run, kind);
  return every ? paths : [...d3.group(paths, ({ length }) => length).values()].map(([first]) => first);
}

function pathPictures(kind, every) {
  return runs.map((run) => [run, chosenPaths(run, kind, every)]).filter(([, paths]) => paths.length)
    .map(([run, paths]) => pathPicture(run, paths));
}

/* The pictures, and the choice between one path of each length and all: a list of elements, empty without paths. */
function picturesWithChoice(kind) {
  const pictures = element("div", { class: "charts" }, ...pathPictures(kind, false));
  const tools = element("div", { class: "tools" }, choice("Picture", [[false, "one path of each length"],
    [true, "all sampled paths"]], false, (every) => pictures.replaceChildren(...pathPictures(kind, every))));
  return pictures.childElementCount ? [tools, pictures] : [];
}

/* --- the section ------------------------------------------------------------------------------------------------- */

/* Contributions of sources other than paths, and what no contribution explains. */
function restTable() {
  const rest = [["biases", "norm"], ["biases", "share"], ["others", "norm"], ["others", "share"], ["", "unexplained"]];
  const figure = (run, node, statistic) => meansOf(run, "paths", statistic).find((f) => f.node === node);
  const among = runs.filter((run) => run.figures.some((f) => f.instrument === "paths"));
  if (!among.length) return null;
  return scrolling(table(["run", ...rest.map(([node, statistic]) => [node, statistic].filter(Boolean).join(", "))],
    among.map((run) => [element("td", {}, nameOf(run)), ...rest.map(([node, statistic]) => {
      const f = figure(run, node, statistic);
      return numberCell(f?.mean ?? null, f?.deviation);
    })]), "headline"), "whole");
}

/* All figures of some instruments. */
function figuresTable(instruments) {
  return table(["run", "instrument", "statistic", "node", "mean", "deviation", "n"], runs.flatMap((run) =>
    run.figures.filter((f) => instruments.includes(f.instrument)).map((f) => [element("td", {}, run.name),
      element("td", { class: "text" }, f.instrument), element("td", { class: "text" }, f.statistic),
      element("td", { class: "text" }, f.node), numberCell(f.mean), numberCell(f.deviation), countCell(f.n)])));
}

function pathsSection() {
  const part = section("paths", "Paths", "contributions of paths through heads and skips, by their length");
  part.append(...[element("div", { class: "charts" }, ...PATH_CHARTS.map(pathChart).filter(Boolean)), restTable(),
    ...picturesWithChoice(["path_samples", "composite", "rank residual"]), ...PATHS.filter(hasInstrument).map(method),
    valueTable(() => figuresTable(PATHS))].filter(Boolean));
  return part;
}
