"use strict";
/* The four views of one checkpoint: what its figures say, with the scale beside them. */

const VIEWS = [
  { name: "step size", title: "Step size", about: "Residual additions as steps of a differential equation",
    says: saysOfSteps, without: "No figures: the network has no residual additions, or they were not measured." },
  { name: "convolution", title: "Convolution", about: "Heads of attention as filters of a convolution",
    says: saysOfHeads, without: "No figures: the network has no attention between tokens, or its heads were not measured." },
  { name: "rank", title: "Rank", about: "How far tokens become equal with depth",
    says: saysOfRank, without: "No figures: the network has no tokens that could become equal, or they were not measured." },
  { name: "uniform", title: "Uniform attention", about: "How densely queries attend",
    says: saysOfEntropy, without: "No figures: the network has no attention, or it was not measured." },
];

/* The figures of one statistic over the nodes of a network, without those that another instrument leaves out. */
function figuresOver(run, instrument, statistic) {
  return run.figures.filter((f) => f.instrument === instrument && f.statistic === statistic && f.head < 0 &&
    !f.excluded && isNumber(f.mean));
}
function extremes(figures) {
  return { least: d3.least(figures, (f) => f.mean), most: d3.greatest(figures, (f) => f.mean),
    mean: d3.mean(figures, (f) => f.mean) };
}
const shareText = (value) => `${number(100 * value, 3)} %`;

function saysOfSteps(run) {
  const steps = figuresOver(run, "nsi", "attention");
  if (!steps.length) return null;
  const { least, most } = extremes(steps), gates = figuresOver(run, "gate", "mean");
  const gated = gates.length ? `its gates multiply branches by ${number(d3.mean(gates, (f) => f.mean), 3)} on average`
    : "it has no gates, so every step has the size 1";
  return `A step changes its input by ${number(least.mean, 3)} (${least.node}) to ${number(most.mean, 3)} ` +
    `(${most.node}) times the input's norm: the larger, the stiffer; ${gated}.`;
}

function saysOfHeads(run) {
  const types = Object.fromEntries(["local", "previous", "global", "uniform", "degenerate"]
    .map((type) => [type, figuresOver(run, "head_types", type).find((f) => f.node === "")?.mean ?? 0]));
  const all = d3.sum(Object.values(types));
  if (!all) {
    const far = figuresOver(run, "distance", "mean");
    return far.length ? `A query attends at a distance of ${number(extremes(far).mean, 3)} ` +
      `${statisticInfo("distance", "mean").unit} on average; a convolution attends at a fixed, short one.` : null;
  }
  const local = types.local + types.previous;
  return `Of the heads, ${shareText(local / all)} attend to the query's surroundings, as a filter does, ` +
    `${shareText(types.global / all)} attend globally, ${shareText(types.uniform / all)} to all tokens alike, and ` +
    `${shareText(types.degenerate / all)} to a single token.`;
}

function saysOfRank(run) {
  const left = figuresOver(run, "residual", "frobenius").filter((f) => f.node !== "input");
  if (!left.length) return null;
  const first = left[0], last = left.at(-1);
  const which = last.mean < 0.1 ? "the tokens have nearly collapsed to one"
    : last.mean < first.mean ? "the tokens become more equal, but do not collapse" : "the tokens do not become more equal";
  return `The part in which tokens differ is ${shareText(first.mean)} of their norm after the first addition and ` +
    `${shareText(last.mean)} after the last: ${which}.`;
}

function saysOfEntropy(run) {
  const layers = figuresOver(run, "entropy", "mean").filter((f) => f.bound > 0);
  if (!layers.length) return null;
  const share = (f) => f.mean / f.bound, dense = d3.greatest(layers, share), sparse = d3.least(layers, share);
  return `Attention has ${shareText(d3.mean(layers, share))} of the entropy of uniform attention on average, from ` +
    `${shareText(share(sparse))} in ${sparse.node} to ${shareText(share(dense))} in ${dense.node}.`;
}

/* --- the table of a view ----------------------------------------------------------------------------------------- */

/* The statistic that stands for an instrument: the one that tables of sweeps show, or else the first. */
function mainStatistic(run, instrument) {
  const own = run.figures.filter((f) => f.instrument === instrument && f.head < 0), { brief } = infoOf(instrument);
  return own.find((f) => f.statistic === brief)?.statistic ?? own[0]?.statistic;
}

/* "0.2 to 1.06" over nodes, or the value of the whole network. */
function rangeOf(run, instrument, statistic) {
  const figures = figuresOver(run, instrument, statistic);
  if (!figures.length) return "not defined";
  const { least, most, mean } = extremes(figures);
  return figures.length === 1 ? number(mean, 3)
    : `${number(least.mean, 3)} to ${number(most.mean, 3)}, mean ${number(mean, 3)}`;
}

function scaleOf(instrument, statistic) {
  const { name } = splitStatistic(instrument, statistic);
  return (infoOf(instrument).scales ?? [])
    .filter(({ statistic: of }) => !of || of === statistic || of === name)
    .map(({ text }) => text).join("; ") || "–";
}

function viewRow(run, instrument) {
  const statistic = mainStatistic(run, instrument), { name } = splitStatistic(instrument, statistic);
  const { title, unit } = statisticInfo(instrument, name || statistic);
  return [element("td", { class: "text" }, element("a", { href: `#${instrument}` }, titleOf(instrument))),
    element("td", { class: "text" }, withUnit(title, unit)),
    element("td", { class: "text" }, rangeOf(run, instrument, statistic)),
    element("td", { class: "text" }, scaleOf(instrument, statistic))];
}

function viewPart(run, view) {
  const measured = measuredInstruments().filter((name) => infoOf(name).view === view.name);
  const left = report.instruments.filter((info) => info.view === view.name && info.costly &&
    !measured.includes(info.name)).map(({ name }) => name);
  const head = element("h3", { class: "kind" }, view.title, element("small", {}, ` ${view.about}`));
  if (!measured.length)
    return element("article", { class: "view", "data-view": view.name }, head, element("p", { class: "says" }, view.without));
  return element("article", { class: "view", "data-view": view.name }, head,
    element("p", { class: "says" }, view.says(run) ?? "The figures that this sentence reads were not measured."),
    scrolling(table(["instrument", "statistic", "figures of this checkpoint", "scale"],
      measured.map((name) => viewRow(run, name)), "views")),
    left.length ? element("p", { class: "note-below" },
      `Not measured, because they cost more time or do not apply: ${left.join(", ")} (attscope measure --budget).`) : null);
}

function hasViews() {
  return runs.length === 1 && !EXPERIMENTS.some(hasInstrument) &&
    measuredInstruments().filter((name) => infoOf(name).view).length > 1;
}
function viewsSection() {
  const part = section("views", "Four views", "What the measurements say about this checkpoint: each view with its " +
    "figures over the nodes of the network, and the scale beside them.");
  part.append(...VIEWS.map((view) => viewPart(runs[0], view)));
  return part;
}
