"use strict";
/* Instruments by depth: one chart a statistic, all runs over each other. heads: figures of single heads are drawn too;
   steps: places are residual additions, not layers. */

const DEPTHS = [
  { instrument: "entropy", title: "Attention entropy", heads: true,
    labels: { mean: "Entropy by layer" },
    references: entropyLimits },
  { instrument: "distance", title: "Attention distance", heads: true,
    labels: { mean: "Mean distance", renormalised: "Renormalised over other grid tokens" } },
  { instrument: "jacobian", title: "Softmax Jacobian", heads: true,
    labels: { nuclear: "Nuclear norm", frobenius: "Frobenius norm" } },
  { instrument: "nsi", title: "Neural stiffness index", steps: true, xLabel: "residual addition t",
    labels: { attention: "dt is the gate", unit: "dt = 1", block: "Whole blocks, dt = 1" },
    xLabels: { block: "block" },
    caption: "The first step of a stage is drawn hollow: it is left out of TNS." },
  { instrument: "residual", title: "Rank residual", steps: true, log: true, xLabel: "after residual addition",
    labels: { composite: "Composite norm", frobenius: "Frobenius norm",
      "composite median": "Composite norm, from the median", "frobenius median": "Frobenius norm, from the median" },
    caption: "Down: tokens become alike." },
];

/* And those that nobody here knows of. */
function depthSpecs() {
  const known = new Set([...DEPTHS.map((spec) => spec.instrument), "accuracy", "tns"]);
  const measured = new Set(runs.flatMap((run) => run.figures.map((f) => f.instrument)));
  const others = [...measured].filter((name) => !known.has(name));
  return [...DEPTHS.filter((spec) => hasInstrument(spec.instrument)),
    ...others.map((name) => ({ instrument: name, title: name, heads: true, labels: {} }))];
}

/* ln N, once for each N. */
function entropyLimits(among) {
  const sizes = [...new Set(among.map(tokensOf))].filter((tokens) => tokens > 0);
  return sizes.map((tokens) => ({ y: Math.log(tokens), label: `ln ${count(tokens)}, all tokens alike` }));
}

/* Several runs stand beside each other at one layer, a few pixels apart. */
function shiftOf(run, among) {
  const step = Math.min(6, 24 / Math.max(1, among.length));
  return (among.indexOf(run) - (among.length - 1) / 2) * step;
}

/* Whether every node was measured, so that the first step listed is the network's first. */
function isWhole(run) {
  const figure = run.figures.find((f) => f.instrument === "nsi" && f.statistic !== "block");
  return (figure?.nodes || run.facts.measure_nodes || "*") === "*";
}

function tellFigure(run, figure, unit) {
  const head = figure.head < 0 ? "" : `, head ${figure.head}`;
  const value = `${plusMinus(figure.mean, figure.deviation)}${unit === "1" ? "" : ` ${unit}`}`;
  return `${run.name}\n${figure.node}${head}: ${value}\nn = ${count(figure.n)} images`;
}

/* Nodes that begin a stage, as steps that TNS leaves out. */
function beginningsOf(figures) {
  return new Set(stagesOf(figures).map(([, own]) => own[0].node));
}

function depthSeries(spec, statistic, among) {
  const unit = instruments.get(spec.instrument)?.unit ?? "";
  return among.flatMap((run) => {
    const means = meansOf(run, spec.instrument, statistic);
    const place = new Map(means.map((f, i) => [f.node, i]));
    const leftOut = spec.instrument === "nsi" && statistic !== "block" && isWhole(run) ? beginningsOf(means) : new Set();
    const point = (f) => ({ x: place.get(f.node), y: f.mean, deviation: f.deviation, figure: f,
      hollow: leftOut.has(f.node) });
    const common = { run, shift: shiftOf(run, among), tell: (p) => tellFigure(run, p.figure, unit) };
    const heads = headsOf(run, spec.instrument, statistic).filter((f) => place.has(f.node)).map(point);
    return [...(heads.length ? [{ ...common, points: heads, heads: true }] : []),
      { ...common, points: means.map(point), dashed: isDashed(run) }];
  });
}

function depthTicks(spec, statistic, among) {
  const longest = among.map((run) => meansOf(run, spec.instrument, statistic))
    .reduce((a, b) => (b.length > a.length ? b : a), []);
  if (!spec.steps) return longest.map((f) => layerOf(f.node));
  return longest.map((f, i) => (f.node === "input" ? "in" : String(i)));
}

function keyOf(spec, heads) {
  const item = (draw, text) => {
    const svg = d3.create("svg").attr("viewBox", "0 0 22 10").attr("class", runs.length === 1 ? "run-0" : "run-7");
    draw(svg);
    return element("span", {}, svg.node(), text);
  };
  return element("div", { class: "key", "aria-hidden": "true" },
    item((svg) => {
      svg.append("line").attr("class", "whisker").attr("x1", 11).attr("x2", 11).attr("y1", -1).attr("y2", 11);
      svg.append("path").attr("class", "mark").attr("d", d3.symbol().size(40)()).attr("transform", "translate(11,5)");
    }, "mean ± deviation over images"),
    heads ? item((svg) => {
      for (const x of [5, 11, 17])
        svg.append("circle").attr("class", "head-dot").attr("r", 2.6).attr("cx", x).attr("cy", 5);
    }, "one head each") : null);
}

/* Two readings that agree everywhere are drawn once. */
function drawnOf(spec, statistics, among) {
  const values = (statistic) =>
    JSON.stringify(among.map((run) => meansOf(run, spec.instrument, statistic).map((f) => f.mean)));
  const titles = statistics.map((statistic) => [statistic, spec.labels[statistic] ?? statistic]);
  const readings = ["attention", "unit"];
  if (!statistics.includes("unit") || new Set(readings.map(values)).size > 1) return titles;
  const title = `${readings.map((name) => spec.labels[name]).join(", and ")}: no gates here, both readings agree`;
  return [["attention", title], ...titles.filter(([name]) => !readings.includes(name))];
}

function depthChart(spec, statistic, title, measured, log) {
  const among = measured.filter((run) => meansOf(run, spec.instrument, statistic).length);
  const unit = instruments.get(spec.instrument)?.unit;
  const heads = spec.heads && among.some((run) => headsOf(run, spec.instrument, statistic).length);
  return chart({
    title: `${title}${unit && unit !== "1" ? `, ${unit}` : ""}`,
    xLabel: spec.xLabels?.[statistic] ?? spec.xLabel ?? "layer",
    xTicks: depthTicks(spec, statistic, among),
    pad: 0.4,
    log,
    references: spec.references?.(among),
    caption: statistic === "block" ? null : spec.caption,
    key: keyOf(spec, heads),
    series: depthSeries(spec, statistic, among),
  });
}

function depthTable(spec, statistics) {
  const rows = runs.flatMap((run) => statistics.flatMap((statistic) =>
    run.figures.filter((f) => f.instrument === spec.instrument && f.statistic === statistic).map((f) => [
      element("td", {}, run.name), element("td", { class: "text" }, statistic),
      element("td", { class: "text" }, f.node),
      element("td", {}, f.head < 0 ? "all" : String(f.head)), numberCell(f.mean), numberCell(f.deviation),
      element("td", {}, count(f.n))])));
  return table(["run", "statistic", "node", "head", "mean", "deviation", "n"], rows);
}

/* Charts of runs that were measured in one way, and what they were measured on. */
function depthGroup(spec, { words, among }, log) {
  const statistics = statisticsOf(spec.instrument).filter((statistic) =>
    among.some((run) => meansOf(run, spec.instrument, statistic).length));
  const origins = new Set(among.map(originOf)).size === 1 ? [originOf(among[0])]
    : among.map((run) => `${run.name}: ${originOf(run)}`);
  return [words ? element("h3", { class: "kind" }, words) : null,
    element("div", { class: "charts" }, ...drawnOf(spec, statistics, among).map(([statistic, title]) =>
      depthChart(spec, statistic, title, among, log))),
    element("figcaption", {}, `Measured on ${origins.join("; ")}.`)].filter(Boolean);
}

function depthSection(spec) {
  const measured = runs.filter((run) => run.figures.some((f) => f.instrument === spec.instrument));
  const place = element("div", { class: "kinds" });
  const show = (log) => place.replaceChildren(...kindsOf(measured).flatMap((kind) => depthGroup(spec, kind, log)));
  const part = section(spec.instrument, spec.title, summaryOf(spec.instrument, spec.title),
    scaleChoice(spec.log ?? false, show));
  show(spec.log ?? false);
  part.append(...[place, method(spec.instrument),
    valueTable(() => depthTable(spec, statisticsOf(spec.instrument)))].filter(Boolean));
  return part;
}
