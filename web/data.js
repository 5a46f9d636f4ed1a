"use strict";
/* The data, and what all sections ask of them. Everything in them is text from outside: it reaches the page as text
   nodes only. */

const report = (() => {
  const place = document.getElementById("data");
  const data = JSON.parse(place.textContent);
  place.remove();
  return data;
})();
/* What instruments say about themselves (att_instrument_info in attscope/measure.h). Sections are made from it; only
   how charts look may depend on an instrument's name (DEPTHS, DEVELOPMENTS). Figures may be of an instrument that is
   not here. */
const instruments = new Map(report.instruments.map((info) => [info.name, info]));
function infoOf(instrument) {
  return instruments.get(instrument) ?? { name: instrument };
}
function titleOf(instrument) {
  return infoOf(instrument).title ?? instrument;
}
/* "tns unit" is the statistic "tns" in the reading "unit"; a statistic may be called as its reading alone. */
function splitStatistic(instrument, statistic) {
  const reading = (infoOf(instrument).readings ?? []).find((r) => statistic === r || statistic.endsWith(` ${r}`));
  return { name: reading ? statistic.slice(0, -reading.length).trim() : statistic, reading: reading ?? null };
}
function statisticIn(name, reading) {
  return [name, reading].filter(Boolean).join(" ");
}
/* Title and unit of a statistic, without its reading. */
function statisticInfo(instrument, name) {
  const info = infoOf(instrument), own = info.statistics?.find((s) => s.statistic === name);
  return { title: own?.title ?? name, unit: own?.unit ?? info.unit ?? "" };
}
/* All readings have the same figures. */
function agreeSentence(instrument) {
  const { readings, readings_agree: why } = infoOf(instrument);
  return `${readings.length === 2 ? "Both" : "All"} readings, ${readings.join(" and ")}, agree${why ? `: ${why}` : ""}`;
}
/* The instrument that tells how good a network is, and its statistic that does; null where no instrument does. */
const SCORE = (() => {
  const info = report.instruments.find(({ score }) => score);
  return info ? { instrument: info.name, statistic: info.score } : null;
})();

/* What tasks say about their metrics (att_task_info in attscope/task.h). Records of the first versions name no task:
   they are of the first one. */
const tasks = new Map(report.tasks.map((task) => [task.name, task]));
const FIRST_TASK = report.tasks[0].name;

/* Under names with underscores. */
function flat(...sources) {
  const facts = {};
  for (const source of sources)
    for (const [key, value] of Object.entries(source ?? {})) facts[key.replaceAll("-", "_")] = value;
  return facts;
}
/* What the training was told and says of itself. Precision and data are called as a measurement calls them. */
function trainedFacts(run) {
  if (!run.begin) return {};
  const facts = flat(run.settings, run.begin);
  if (facts.amp !== undefined) facts.precision ??= String(facts.amp) === "true" ? "bf16" : "f32";
  if (facts.data_dir !== undefined) facts.data ??= facts.data_dir;
  delete facts.data_dir;
  facts.task ??= FIRST_TASK;
  return facts;
}
function measuredFacts(run) {
  return flat(run.measured_begin);
}

const FIGURE = ["instrument", "node", "head", "statistic", "mean", "deviation", "n", "excluded", "samples"];
function figureOf(row) {
  return Object.fromEntries(FIGURE.map((name, i) => [name, row[i]]));
}

const runs = report.runs.map((run, index) => ({
  ...run,
  index,
  trained: trainedFacts(run),
  facts: { task: FIRST_TASK, ...measuredFacts(run), ...trainedFacts(run) },
  figures: run.measured.flatMap((event) => event.figures.map((row) => ({ ...figureOf(row), nodes: event.nodes }))),
}));

/* What the mark of a figure says that another instrument leaves out. */
function excludedNote(instrument) {
  return infoOf(instrument).excluded ?? "left out";
}

/* Whether every node was measured, so that the first step listed is the network's first. */
function isWhole(run, figures) {
  return (figures[0]?.nodes || run.facts.measure_nodes || "*") === "*";
}
/* Nodes that begin a stage. */
function beginningsOf(figures) {
  return new Set(stagesOf(figures).map(([, own]) => own[0].node));
}
/* Records of the first versions do not say which steps are left out: the first ones of each stage. */
for (const run of runs)
  for (const { name } of report.instruments.filter((info) => info.excluded)) {
    const steps = run.figures.filter((f) => f.instrument === name);
    if (steps.some((f) => f.excluded) || !isWhole(run, steps)) continue;
    const beginnings = beginningsOf(steps);
    for (const f of steps) f.excluded = beginnings.has(f.node);
  }

/* Runs by setting, in order; a run that no sweep made is a setting of its own. */
function groupsOf(among) {
  return [...d3.group(among, (run) => run.setting ?? run.index).values()]
    .map((group) => ({ name: group[0].setting ?? group[0].name, group }));
}

/* Figures of one instrument and statistic, in the network's order: all heads together, or one head each. What two
   measurements found of one statistic lies in two pieces. */
function meansOf(run, instrument, statistic) {
  const found = run.figures.filter((f) => f.instrument === instrument && f.statistic === statistic && f.head < 0);
  if (run.measured.length < 2) return found;
  return found.sort((a, b) => compareNodes(a.node, b.node));
}
function headsOf(run, instrument, statistic) {
  return run.figures.filter((f) => f.instrument === instrument && f.statistic === statistic && f.head >= 0);
}
function figureNamed(run, instrument, statistic) {
  return run.figures.find((f) => f.instrument === instrument && f.statistic === statistic && f.head < 0);
}
/* "tns/tns unit", "entropy/blocks.3.attn/mean" */
function figureCalled(run, name) {
  return run.figures.find((f) =>
    f.head < 0 && [f.instrument, f.node, f.statistic].filter((part) => part !== "").join("/") === name);
}
/* Instruments that found something, those of the library first and in its order. */
function measuredInstruments() {
  const found = new Set(runs.flatMap((run) => run.figures.map((f) => f.instrument)));
  return [...report.instruments.map(({ name }) => name).filter((name) => found.has(name)),
    ...[...found].filter((name) => !instruments.has(name))];
}
/* Whether all figures of an instrument are of whole networks. */
function isOfNetworks(instrument) {
  return runs.every((run) => run.figures.every((f) => f.instrument !== instrument || f.node === ""));
}
/* Names of statistics without readings, in order. */
function statisticNames(instrument) {
  return [...new Set(statisticsOf(instrument).map((statistic) => splitStatistic(instrument, statistic).name))];
}
function hasInstrument(instrument) {
  return runs.some((run) => run.figures.some((f) => f.instrument === instrument));
}
function statisticsOf(instrument) {
  return [...new Set(runs.flatMap((run) =>
    run.figures.filter((f) => f.instrument === instrument).map((f) => f.statistic)))];
}

/* Tokens of an attention, where something says so. Trainings by version 0.1 recorded the options of the network only;
   its images and patches were square. */
function tokensOf(run) {
  if (run.maps) return run.maps.tokens;
  const { tokens, img_size, patch_size, class_token } = run.facts;
  if (tokens > 0) return Number(tokens);
  const side = Math.floor(Number(img_size) / Number(patch_size));
  return side > 0 ? side * side + (String(class_token) === "false" ? 0 : 1) : null;
}

/* "layer2" and "5" of "layer2.5.add", "blocks" and "7" of "blocks.7.add1": what stands before a block's number is its
   stage. */
function stepAt(node) {
  const found = node.match(/^(.*)\.(\d+)(\..*)?$/);
  return { stage: found?.[1] ?? "", block: found?.[2] ?? node };
}
/* "layer2.5" of "layer2.5.se.gate"; what lies in no block stands for itself. */
function blockOf(node) {
  const { stage, block } = stepAt(node);
  return stage ? `${stage}.${block}` : node;
}
/* "se.channel" of "layer2.5.se.channel.gate": which of a block's gates it is. */
function partOf(node) {
  return node.slice(blockOf(node).length + 1).replace(/\.gate$/, "");
}
/* Of each part the first place that it has in a block: {part: 0, 1 ...}. */
function orderOfParts(nodes) {
  const order = new Map();
  for (const own of d3.group(nodes, blockOf).values())
    own.map(partOf).forEach((part, i) => order.set(part, Math.min(i, order.get(part) ?? i)));
  return order;
}
/* "2.5" of "layer2.5.add", "7" of "blocks.7.attn". */
function blockName(node) {
  const { stage, block } = stepAt(node);
  return [stage.match(/\d+$/)?.[0], block === "input" ? "in" : block].filter(Boolean).join(".");
}

/* As the network has them. */
function compareNodes(a, b) {
  const place = (node) => (node === "input" ? "" : node);
  return place(a).localeCompare(place(b), "en", { numeric: true });
}
/* An axis on which every block that one of the nodes lies in has its place, 0, 1 ...: [[block, place]]. */
function axisOf(nodes) {
  return new Map([...new Set(nodes.map(blockOf))].sort(compareNodes).map((block, i) => [block, i]));
}
function ticksOf(axis) {
  return [...axis.keys()].map(blockName);
}
/* Where one run's nodes stand: {node: place}. Several of a block share its room. */
function placesOn(axis, nodes) {
  return new Map([...d3.group(nodes, blockOf)].flatMap(([block, own]) =>
    own.map((node, i) => [node, axis.get(block) + (i - (own.length - 1) / 2) / own.length])));
}
/* [stage, its figures in the network's order] */
function stagesOf(figures) {
  return [...d3.group(figures, (f) => stepAt(f.node).stage).entries()];
}

/* Where a run's measured figures come from. */
function originOf(run) {
  if (!run.measured.length) return "";
  const { step, split, images } = run.measured[0];
  const where = images === null ? split : `${count(images)} images${split ? ` (${split})` : ""}`;
  return run.measured_apart ? where : `${where}, while training, at update ${count(step)}`;
}

/* Runs whose figures are of a checkpoint on a data set, and those whose are of a training's last measured update, on
   images as they were augmented and weights as they moved: never in one chart. */
function kindsOf(among) {
  const apart = among.filter((run) => run.measured_apart), training = among.filter((run) => !run.measured_apart);
  return [{ among: apart, words: training.length ? "Of checkpoints, on a data set" : null },
    { among: training,
      words: "While training, on an update's own images (augmented); not comparable with a measurement" }]
    .filter((kind) => kind.among.length);
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
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) /* D3 5's "~e" turns 3.54e-10 into 3.54e-1 */
    return d3.format(`.${digits - 1}e`)(value).replace(/\.?0+e/, "e");
  return size >= 1000 ? d3.format(",.0f")(value) : d3.format(`.${digits}~r`)(value);
}
/* Two significant digits of the deviation, and the mean to the last of them. */
function plusMinus(mean, deviation) {
  if (!isNumber(mean) || !isNumber(deviation)) return number(mean);
  const spread = Number(deviation.toPrecision(2)), size = Math.max(Math.abs(mean), spread);
  if (!(spread > size * 1e-8)) return `${number(mean)} ± ${number(deviation, 2)}`;
  const power = size < 1e-4 || size >= 1e6 ? Math.floor(Math.log10(size)) : 0, unit = 10 ** power;
  const last = Math.floor(Math.log10(spread) + 1e-9) - 1 - power, step = 10 ** Math.max(0, last);
  const write = (value) => (last < 0 ? d3.format(`,.${-last}f`)(value / unit)
    : d3.format(",.0f")(Math.round(value / unit / step) * step));
  const text = `${write(mean)} ± ${write(spread)}`;
  return power ? `(${text})e${d3.format("d")(power)}` : text;
}
function millions(value) {
  const size = Number(value);
  if (!(size > 0)) return "–";
  return size < 1e6 ? count(size) : `${d3.format(".3~r")(size / 1e6)} M`;
}
function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
function plural(size, noun) {
  return `${count(size)} ${noun}${size === 1 ? "" : "s"}`;
}

/* --- scores and seeds --------------------------------------------------------------------------------------------- */

/* {name, best, metrics: [{name, label, unit}]}; of a task that is not known here with no best metric, and its metrics
   are called as in the records. */
function taskOf(run) {
  const named = (name) => ({ name, label: name, unit: "" });
  return tasks.get(run.facts.task) ?? { name: run.facts.task, metrics: [...new Set(run.epochs.flatMap(Object.keys))]
    .filter((key) => /^eval_(?!plain_|corrupt$)/.test(key)).map((key) => named(key.slice("eval_".length))) };
}
/* What an epoch's record calls a metric. */
function evaluatedAs(metric) {
  return `eval_${metric.name}`;
}
/* The metric that says how good the run's network is; undefined where its task is not known. */
function scoreMetric(run) {
  const { best, metrics } = taskOf(run);
  return metrics.find(({ name }) => name === best);
}
/* The run's scores on images it did not train on, each with what it is of: the measured one, then the last evaluation's.
   Only those that are of the same may be compared. */
function scoresOf(run) {
  const metric = scoreMetric(run);
  if (!metric) return [];
  const found = [], facts = measuredFacts(run), key = evaluatedAs(metric);
  const measured = run.measured_apart && SCORE?.statistic === metric.name
    ? figureNamed(run, SCORE.instrument, SCORE.statistic) : undefined;
  if (measured) {
    const where = `of ${plural(measured.n, "image")}`;
    found.push({ score: measured.mean, where, of: `measured, ${where}${facts.split ? ` (${facts.split})` : ""}`,
      key: JSON.stringify(["measured", facts.contents ?? facts.data, facts.split, measured.n, facts.precision]) });
  }
  const epoch = run.epochs.findLast((e) => isNumber(e[key]));
  if (epoch) {
    const where = `after epoch ${epoch.epoch + 1}`;
    found.push({ score: epoch[key], where, of: `evaluated ${where}`, key: where });
  }
  return found;
}
function scoreOf(run) {
  return scoresOf(run)[0] ?? { score: null, where: "" };
}

/* What tells two runs of one configuration apart without making it another one. */
const VOLATILE = new Set([
  "event", "epoch", "step", "seconds", "fingerprint", "output", "experiment", "resume", "threads", "workers",
  "lanes", "log_interval", "checkpoint_hist", "recovery_interval", "checkpoint", "weights", "status", "message",
  "measure", "measure_every", "measure_nodes", "entropy_bound", "tokens", "cache_bytes",
]);
const APART = new Set(["images", "split", "use_ema", "class_map", "contents"]);

/* What the training was told; where there is none, the measurement. Measuring one run of several changes nothing. */
function configurationOf(run) {
  const facts = run.begin ? run.trained : measuredFacts(run);
  const told = Object.entries(facts).filter(([key]) => key !== "seed" && !VOLATILE.has(key) && !APART.has(key));
  return JSON.stringify(told.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

const configurations = [...runs.reduce((groups, run) => {
  const key = configurationOf(run);
  return groups.set(key, [...(groups.get(key) ?? []), run]);
}, new Map()).values()];

/* Of one configuration: a run for each seed, the first that has it; weights tell apart where no seed is known. */
function seedOf(run) {
  return String(run.facts.seed ?? run.facts.weights ?? `run ${run.index}`);
}
function distinctSeeds(group) {
  return [...new Map([...group].reverse().map((run) => [seedOf(run), run])).values()].reverse();
}

/* The scores of one kind that most seeds have: {of, scores}, one a seed. */
function comparableScores(group) {
  const kinds = new Map();
  for (const run of distinctSeeds(group))
    for (const { key, of, score } of scoresOf(run).filter((s) => isNumber(s.score))) {
      if (!kinds.has(key)) kinds.set(key, { of, scores: [] });
      kinds.get(key).scores.push(score);
    }
  return least([...kinds.values()], (kind) => -kind.scores.length) ?? { of: "–", scores: [] };
}

/* [name, value of each run] for each key that any run has; a value is undefined where its run does not say. */
function rowsOf(factsOfRun, prefix = "") {
  const all = runs.map(factsOfRun);
  const keys = [...new Set(all.flatMap((facts) => Object.keys(facts)))].filter((key) => !VOLATILE.has(key));
  return keys.map((key) => [prefix + key, all.map((facts) => facts[key])]);
}
/* Among trainings a setting that one lacks is a difference: it was left at what it is. A run that was only measured
   says nothing of how it was trained. */
function differs([, values]) {
  const kept = values.filter((v, i) => v !== undefined || runs[i].begin);
  return values.some((v) => v !== undefined) && new Set(kept.map((v) => String(v ?? ""))).size > 1;
}
function differsWhereSaid([, values]) {
  return new Set(values.filter((v) => v !== undefined).map(String)).size > 1;
}

/* Settings in which those runs differ that have them; and how each checkpoint was measured: what differs, and what the
   figures mean nothing without. */
const TOLD = new Set(["data", "split", "images", "precision", "img_size"].map((key) => `measured: ${key}`));
function settingRows() {
  const trained = rowsOf((run) => (run.begin ? run.trained : run.facts)).filter(differs);
  const names = new Set(trained.map(([key]) => key));
  const measured = rowsOf(measuredFacts, "measured: ").filter((row) =>
    TOLD.has(row[0]) || (differsWhereSaid(row) && !names.has(row[0].slice("measured: ".length))));
  return [...trained.filter(([key]) => !APART.has(key)), ...measured];
}
