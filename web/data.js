"use strict";
/* The data, and what all sections ask of them. Everything in them is text from outside: it reaches the page as text
   nodes only. */

const report = (() => {
  const place = document.getElementById("data");
  const data = JSON.parse(place.textContent);
  place.remove();
  return data;
})();
const instruments = new Map(report.instruments.map((info) => [info.name, info]));

/* What a run was told and what it says of itself: one flat set, under names with underscores. */
function factsOf(run) {
  const facts = {};
  for (const source of [run.settings, run.measured_begin, run.begin])
    for (const [key, value] of Object.entries(source ?? {})) facts[key.replaceAll("-", "_")] = value;
  return facts;
}

const FIGURE = ["instrument", "node", "head", "statistic", "mean", "deviation", "n"];
function figureOf(row) {
  return Object.fromEntries(FIGURE.map((name, i) => [name, row[i]]));
}

const runs = report.runs.map((run, index) => ({
  ...run,
  index,
  facts: factsOf(run),
  figures: (run.measured?.figures ?? []).map(figureOf),
}));

/* Figures of one instrument and statistic, in the network's order: all heads together, or one head each. */
function meansOf(run, instrument, statistic) {
  return run.figures.filter((f) => f.instrument === instrument && f.statistic === statistic && f.head < 0);
}
function headsOf(run, instrument, statistic) {
  return run.figures.filter((f) => f.instrument === instrument && f.statistic === statistic && f.head >= 0);
}
function figureNamed(run, instrument, statistic) {
  return run.figures.find((f) => f.instrument === instrument && f.statistic === statistic && f.head < 0);
}
function hasInstrument(instrument) {
  return runs.some((run) => run.figures.some((f) => f.instrument === instrument));
}
function statisticsOf(instrument) {
  return [...new Set(runs.flatMap((run) =>
    run.figures.filter((f) => f.instrument === instrument).map((f) => f.statistic)))];
}

/* Tokens of an attention, where something says so. */
function tokensOf(run) {
  if (run.maps) return run.maps.tokens;
  const { entropy_bound, img_size, patch_size, class_token } = run.facts;
  if (entropy_bound > 0) return Math.round(Math.exp(entropy_bound));
  const side = Math.floor(Number(img_size) / Number(patch_size));
  return side > 0 ? side * side + (String(class_token) === "false" ? 0 : 1) : null;
}

/* "blocks.3.attn" -> "3" */
function layerOf(node) {
  return node.match(/\d+/)?.[0] ?? node;
}

/* Where a run's measured figures come from. */
function originOf(run) {
  if (!run.measured) return "";
  const { step, split, images } = run.measured;
  const where = images === null ? split : `${count(images)} images${split ? ` (${split})` : ""}`;
  return run.measured_apart ? where : `${where}, while training, at update ${count(step)}`;
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* The item with the least score; undefined where there is none. */
function least(items, score) {
  const scores = Array.from(items, score);
  return items[scores.reduce((best, s, i) => (best < 0 || s < scores[best] ? i : best), -1)];
}
function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}
function count(value) {
  return isNumber(Number(value)) ? d3.format(",")(Number(value)) : "–";
}
/* Four significant digits, unless said otherwise. */
function number(value, digits = 4) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) return d3.format(`.${digits - 1}~e`)(value);
  return size >= 1000 ? d3.format(",.0f")(value) : d3.format(`.${digits}~r`)(value);
}
function plusMinus(mean, deviation) {
  return isNumber(deviation) ? `${number(mean)} ± ${number(deviation, 2)}` : number(mean);
}
function millions(value) {
  const size = Number(value);
  if (!(size > 0)) return "–";
  return size < 1e6 ? count(size) : `${d3.format(".3~r")(size / 1e6)} M`;
}
function plural(size, noun) {
  return `${count(size)} ${noun}${size === 1 ? "" : "s"}`;
}

/* --- accuracy and seeds ------------------------------------------------------------------------------------------- */

/* The run's accuracy on images it did not train on: the measured one, else the last evaluation's. */
function accuracyOf(run) {
  const measured = run.measured_apart ? figureNamed(run, "accuracy", "top1") : undefined;
  if (measured) return { top1: measured.mean, where: `of ${plural(measured.n, "image")}` };
  const epoch = run.epochs.findLast((e) => isNumber(e.eval_top1));
  return epoch ? { top1: epoch.eval_top1, where: `after epoch ${epoch.epoch + 1}` } : { top1: null, where: "" };
}

/* What tells two runs of one configuration apart without making it another one. */
const VOLATILE = new Set([
  "event", "epoch", "step", "seconds", "fingerprint", "output", "experiment", "resume", "threads", "workers",
  "lanes", "log_interval", "checkpoint_hist", "recovery_interval", "checkpoint", "status", "message", "measure",
  "measure_every", "measure_nodes", "with", "nodes", "images", "split", "use_ema", "entropy_bound",
]);

/* What the training was told; where there is none, the measurement. Measuring one run of several changes nothing. */
function configurationOf(run) {
  const told = Object.entries(factsOf(run.begin ? { ...run, measured_begin: null } : run)).filter(([key]) => key !== "seed" && !VOLATILE.has(key));
  return JSON.stringify(told.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

const configurations = [...runs.reduce((groups, run) => {
  const key = configurationOf(run);
  return groups.set(key, [...(groups.get(key) ?? []), run]);
}, new Map()).values()];

/* Names of settings in which the runs differ: [key, value of each run]. */
function differences() {
  const keys = [...new Set(runs.flatMap((run) => Object.keys(run.facts)))].filter((key) => !VOLATILE.has(key));
  return keys.map((key) => [key, runs.map((run) => run.facts[key])])
    .filter(([, values]) => values.every((v) => v !== undefined) && new Set(values.map(String)).size > 1);
}
