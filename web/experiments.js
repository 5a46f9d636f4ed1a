"use strict";
/* Experiments of Dong et al. (ICML 2021): the accuracy of sums of paths by their length, and the trajectories of circle
   (attscope experiment). The instruments are "path_accuracy" and "circle". */

const EXPERIMENTS = ["path_accuracy", "circle"];

/* What was trained, in one sentence. */
function experimentWords({ name, facts }) {
  const { depth, heads, width, mlp, opt, lr, epochs, updates, seed, networks, quirks, texts } = facts;
  return `${runs.length > 1 ? `${name}: ` : ""}${facts.task}, ${facts.summary}: ${plural(depth, "layer")}, ` +
    `${plural(heads, "head")}, width ${width}${String(mlp) === "true" ? ", MLP in every layer" : ""}; ${opt}, ` +
    `learning rate ${number(lr)}, ${plural(epochs, "epoch")}, ${plural(updates, "update")}; ` +
    `${plural(networks, "network")}, seed ${seed}${networks > 1 ? " and following" : ""}` +
    `${texts ? `; texts: ${texts}` : ""}${quirks ? `; quirks of the public code: ${quirks}` : ""}.`;
}
function experimentNotes(instrument) {
  return runs.filter((run) => run.figures.some((f) => f.instrument === instrument))
    .map((run) => element("p", { class: "note" }, experimentWords(run)));
}
function titled(run, text) {
  return runs.length > 1 ? `${run.name}: ${text}` : capital(text);
}
/* What deviations are over. */
function deviationWords({ facts: { networks, repeats } }) {
  return networks > 1 ? `${plural(networks, "network")}, each the mean of ${plural(repeats, "draw")} of paths`
    : `${plural(repeats, "draw")} of paths through one network`;
}

/* --- paths -------------------------------------------------------------------------------------------------------- */

/* A line for each number of summed paths. */
function accuracyLines(run) {
  const found = meansOf(run, "path_accuracy", "accuracy")
    .map((figure) => ({ figure, place: figure.node.match(/^sum\.(\d+)\.length\.(\d+)$/) }))
    .filter(({ place }) => place);
  return [...d3.group(found, ({ place }) => place[1])].map(([sum, own], i) => ({
    run, colour: `var(--run-${i})`, dash: "none", text: plural(Number(sum), "path"), band: true,
    tooltip: (p) => `${plural(Number(sum), "path")} of length ${p.x}\n${plusMinus(p.y, p.deviation)}`,
    points: own.map(({ figure: { mean, deviation }, place }) => ({ x: Number(place[2]), y: mean, deviation })),
  }));
}

function accuracyChart(run) {
  const series = accuracyLines(run), { published_whole: whole, published_baseline: baseline } = run.facts;
  const reference = (name, label) => {
    const f = figureNamed(run, "path_accuracy", name);
    return f ? [{ y: f.mean, label: `${label} ${plusMinus(f.mean, f.deviation)}` }] : [];
  };
  return chart({ title: titled(run, "accuracy of sums of paths"), xLabel: "path length", zero: true, max: 1, pad: 0.2,
    series, key: keyOfLines(series),
    references: [...reference("whole", "whole network"), ...reference("baseline", "most frequent class")],
    caption: `Share of tokens that are right. Bands: ± standard deviation (n − 1) over ${deviationWords(run)}. ` +
      (isNumber(whole) ? `Public code: whole network ${number(whole)}, baseline ${number(baseline)}.` : "") });
}

function singleChart(run) {
  const points = pathPoints(run, "path_accuracy", "accuracy", true);
  const tooltip = (p) => `path ${pathWords(pathAt(p.figure.node).heads)}\n${number(p.y)}`;
  return points.length ? chart({ title: titled(run, "accuracy of single paths"), xLabel: "path length", zero: true,
    max: 1, pad: 0.2, series: [{ run, points, heads: true, tooltip }],
    caption: "Each dot is one of the sampled paths, alone, in the first network." }) : null;
}

function accuracySection() {
  const among = runs.filter((run) => accuracyLines(run).length);
  const part = section("path_accuracy", "Accuracy of paths",
    "A path of length k uses k of the layers and one head in each; it has no skip connections, and each layer " +
    "computes its attention from the path's own state. The states of several random paths are added, normed and " +
    "classified, as in the public code of Dong et al. (ICML 2021).");
  const charts = among.flatMap((run) => [accuracyChart(run), singleChart(run)]).filter(Boolean);
  part.append(...experimentNotes("path_accuracy"), element("div", { class: "charts" }, ...charts),
    ...picturesWithChoice(["path_accuracy", "accuracy", "accuracy"]),
    valueTable(() => figuresTable(["path_accuracy"])));
  return part;
}

/* --- circle ------------------------------------------------------------------------------------------------------- */

const BOX = 0.56, RADIUS = 0.3;

/* The positions [x, y] of a point at each step, or null. */
function trajectoryOf(run, node) {
  const [x, y] = ["x", "y"].map((axis) => meansOf(run, "circle", axis).find((f) => f.node === node)?.samples);
  return x && y ? x.map((value, step) => [value, y[step]]) : null;
}

function circleFigure(run, variant) {
  const figure = (statistic) => meansOf(run, "circle", statistic).find((f) => f.node === variant);
  const words = (f) => (f ? plusMinus(f.mean, f.deviation) : "–");
  const svg = d3.create("svg").attr("class", "shifts circle").attr("role", "img")
    .attr("viewBox", `${-BOX} ${-BOX} ${2 * BOX} ${2 * BOX}`)
    .attr("aria-label", `${variant}: trajectories of both points`);
  svg.append("path").attr("class", "cross").attr("d", `M${-BOX} 0H${BOX}M0 ${-BOX}V${BOX}`);
  svg.append("rect").attr("class", "frame").attr("x", -BOX).attr("y", -BOX).attr("width", 2 * BOX)
    .attr("height", 2 * BOX);
  svg.append("circle").attr("class", "frame").attr("r", RADIUS);
  for (const [i, point] of ["first", "second"].entries()) {
    const places = trajectoryOf(run, `${variant}.${point}`);
    if (!places) continue;
    const group = svg.append("g").attr("data-point", point).attr("stroke", `var(--run-${i})`);
    const line = d3.line().defined(([x, y]) => isNumber(x) && isNumber(y)).y(([, y]) => -y);
    group.append("path").attr("d", line(places));
    group.append("circle").attr("class", "start").attr("r", 0.018).attr("cx", places[0][0]).attr("cy", -places[0][1])
      .attr("fill", `var(--run-${i})`);
    group.append("title").text(`${point} point, ${plural(places.length, "step")}`);
  }
  return element("figure", { "data-variant": variant }, element("h3", {}, titled(run, variant)), svg.node(),
    element("figcaption", {}, `Mean error of the radius ${words(figure("radius error"))}; distance of the points at ` +
      `the end ${words(figure("distance"))}.`));
}

function circleSection() {
  const among = runs.filter((run) => meansOf(run, "circle", "distance").length);
  const part = section("circle", "Trajectories of circle",
    `Two points start opposite each other on a circle of radius ${RADIUS}, drawn in grey; a network of one layer ` +
    `moves them, each step from its own last output. Dots: the start. Both axes go from −${BOX} to ${BOX}. ` +
    "Trajectories are those of the first network.");
  const figures = among.flatMap((run) => meansOf(run, "circle", "distance").map((f) => circleFigure(run, f.node)));
  part.append(...experimentNotes("circle"), element("div", { class: "charts close" }, ...figures),
    valueTable(() => figuresTable(["circle"])));
  return part;
}
