"use strict";
/* The report's data, and functions on them that sections share. All texts in the data are untrusted: they are inserted
   into the page only as text nodes or attribute values. */

const report = (() => {
  const place = document.getElementById("data");
  const data = JSON.parse(place.textContent);
  place.remove();
  return data;
})();
/* Descriptions of the instruments (att_instrument_info in attscope/measure.h), from which sections are built. Only the
   appearance of charts may depend on the name of an instrument (DEPTHS, centrePaths()). Runs may have
   measurements of instruments that are not listed here. */
const instruments = new Map(report.instruments.map((info) => [info.name, info]));
function infoOf(instrument) {
  return instruments.get(instrument) ?? { name: instrument };
}
function titleOf(instrument) {
  return infoOf(instrument).title ?? instrument;
}
/* Splits "tns unit" into the statistic "tns" and the reading "unit". The name is "" if the statistic is called like its
   reading. */
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
/* A sentence that says that all readings have the same values. */
function agreeSentence(instrument) {
  const { readings, readings_agree: why } = infoOf(instrument);
  return `${readings.length === 2 ? "Both" : "All"} readings, ${readings.join(" and ")}, agree${why ? `: ${why}` : ""}`;
}
/* The instrument and the statistic that measure the quality of a network, or null. */
const SCORE = (() => {
  const info = report.instruments.find(({ score }) => score);
  return info ? { instrument: info.name, statistic: info.score } : null;
})();

/* Descriptions of the tasks and their metrics (att_task_info in attscope/task.h). Measurements do not name a task;
   without a training run, it is the first one. */
const tasks = new Map(report.tasks.map((task) => [task.name, task]));
const FIRST_TASK = report.tasks[0]?.name;

/* Merges objects, with dashes in keys replaced by underscores. */
function flat(...sources) {
  const facts = {};
  for (const source of sources)
    for (const [key, value] of Object.entries(source ?? {})) facts[key.replaceAll("-", "_")] = value;
  return facts;
}
/* The settings of a run's training and the fields of its run_begin. Precision and data get the keys that measurements
   use. */
function trainedFacts(run) {
  if (!run.begin) return {};
  const facts = flat(run.settings, run.begin);
  if (facts.amp !== undefined) facts.precision ??= String(facts.amp) === "true" ? "bf16" : "f32";
  if (facts.data_dir !== undefined) facts.data ??= facts.data_dir;
  delete facts.data_dir;
  return facts;
}
function measuredFacts(run) {
  return flat(run.measured_begin);
}

const FIGURE = ["instrument", "node", "head", "statistic", "mean", "deviation", "n", "excluded", "bound",
  "uniform", "samples"];
function figureOf(row) {
  return Object.fromEntries(FIGURE.map((name, i) => [name, row[i]]));
}

const runs = report.runs.map((run, index) => ({
  ...run,
  index,
  trained: trainedFacts(run),
  facts: { task: FIRST_TASK, ...measuredFacts(run), ...trainedFacts(run) },
  figures: run.measured.flatMap((event) => event.figures.map(figureOf)),
}));

/* The explanation of the mark on measurements that another instrument excludes. */
function excludedNote(instrument) {
  return infoOf(instrument).excluded ?? "excluded";
}

/* Groups runs by setting, in order. A run that does not belong to a sweep is a group of its own. */
function groupsOf(among) {
  return [...d3.group(among, (run) => run.setting ?? run.index).values()]
    .map((group) => ({ name: group[0].setting ?? group[0].name, group }));
}

/* Measurements of one instrument and statistic over all heads together, in the network's order. They need sorting if
   they come from several events. */
function meansOf(run, instrument, statistic) {
  const found = run.figures.filter((f) => f.instrument === instrument && f.statistic === statistic && f.head < 0);
  if (run.measured.length < 2) return found;
  return found.sort((a, b) => compareNodes(a.node, b.node));
}
/* The same of single heads. */
function headsOf(run, instrument, statistic) {
  return run.figures.filter((f) => f.instrument === instrument && f.statistic === statistic && f.head >= 0);
}
function figureNamed(run, instrument, statistic) {
  return run.figures.find((f) => f.instrument === instrument && f.statistic === statistic && f.head < 0);
}
/* The measurement with a name such as "tns/tns unit" or "entropy/blocks.3.attn/mean". */
function figureCalled(run, name) {
  return run.figures.find((f) =>
    f.head < 0 && [f.instrument, f.node, f.statistic].filter((part) => part !== "").join("/") === name);
}
/* Names of the instruments that have measurements: first those of the library, in its order, then the others. */
function measuredInstruments() {
  const found = new Set(runs.flatMap((run) => run.figures.map((f) => f.instrument)));
  return [...report.instruments.map(({ name }) => name).filter((name) => found.has(name)),
    ...[...found].filter((name) => !instruments.has(name))];
}
/* Whether all measurements of an instrument are of whole networks, not of nodes. */
function isOfNetworks(instrument) {
  return runs.every((run) => run.figures.every((f) => f.instrument !== instrument || f.node === ""));
}
/* Names of an instrument's statistics, without their readings. */
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

/* Stage and block number of a node: "layer2" and "5" of "layer2.5.add", "blocks" and "7" of "blocks.7.add1". The stage
   is the part before the last number, or "" if there is no number. */
function stepAt(node) {
  const found = node.match(/^(.*)\.(\d+)(\..*)?$/);
  return { stage: found?.[1] ?? "", block: found?.[2] ?? node };
}
/* The block of a node: "layer2.5" of "layer2.5.se.gate". The node itself if it is not in a block. */
function blockOf(node) {
  const { stage, block } = stepAt(node);
  return stage ? `${stage}.${block}` : node;
}
/* A node's name in its block, without ".gate": "se.channel" of "layer2.5.se.channel.gate". */
function partOf(node) {
  return node.slice(blockOf(node).length + 1).replace(/\.gate$/, "");
}
/* Maps each part (see partOf()) to the lowest position, 0, 1 ..., that it has in a block. */
function orderOfParts(nodes) {
  const order = new Map();
  for (const own of d3.group(nodes, blockOf).values())
    own.map(partOf).forEach((part, i) => order.set(part, Math.min(i, order.get(part) ?? i)));
  return order;
}
/* A short label of a node's block: "2.5" of "layer2.5.add" and "layers.2.blocks.5.attn", "7" of "blocks.7.attn". */
function blockName(node) {
  const { stage, block } = stepAt(node);
  return [stage.match(/\d+(?=\D*$)/)?.[0], block === "input" ? "in" : block].filter(Boolean).join(".");
}

/* Compares nodes by their order in the network. */
function compareNodes(a, b) {
  const place = (node) => (node === "input" ? "" : node);
  return place(a).localeCompare(place(b), "en", { numeric: true });
}
/* An axis of blocks: maps each block of the nodes to its position 0, 1 ..., in the network's order. */
function axisOf(nodes) {
  return new Map([...new Set(nodes.map(blockOf))].sort(compareNodes).map((block, i) => [block, i]));
}
function ticksOf(axis) {
  return [...axis.keys()].map(blockName);
}
/* Maps each node of one run to its position on the axis. Nodes of one block are placed side by side. */
function placesOn(axis, nodes) {
  return new Map([...d3.group(nodes, blockOf)].flatMap(([block, own]) =>
    own.map((node, i) => [node, axis.get(block) + (i - (own.length - 1) / 2) / own.length])));
}
/* Groups measurements by stage: [[stage, measurements in the network's order]]. */
function stagesOf(figures) {
  return [...d3.group(figures, (f) => stepAt(f.node).stage).entries()];
}

/* Describes the images on which a run was measured. */
function originOf(run) {
  if (!run.measured.length) return "";
  const { step, split, images } = run.measured[0];
  const where = images === null ? split : `${plural(images, "image")}${split ? ` (${split})` : ""}`;
  return run.has_measure_file ? where : `${where}, during training, at update ${count(step)}`;
}

/* Splits runs into those measured at a checkpoint on a data set and those measured during training (at the last
   measured update, on augmented images). The two kinds are not comparable, so they never share a chart. */
function kindsOf(among) {
  const apart = among.filter((run) => run.has_measure_file), training = among.filter((run) => !run.has_measure_file);
  return [{ among: apart, words: training.length ? "Checkpoints, measured on a data set" : null },
    { among: training,
      words: "Measured during training, on the augmented images of one update; not comparable with checkpoints" }]
    .filter((kind) => kind.among.length);
}

/* --- numbers ----------------------------------------------------------------------------------------------------- */

/* Returns the item with the least score, or undefined if there are no items. */
function minBy(items, score) {
  const scores = Array.from(items, score);
  return items[scores.reduce((best, s, i) => (best < 0 || s < scores[best] ? i : best), -1)];
}
function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}
function count(value) {
  return isNumber(Number(value)) ? d3.format(",")(Number(value)) : "–";
}
/* Formats a number with `digits` significant digits. */
function number(value, digits = 4) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) /* D3 5's "~e" turns 3.54e-10 into 3.54e-1 */
    return d3.format(`.${digits - 1}e`)(value).replace(/\.?0+e/, "e");
  return size >= 1000 ? d3.format(",.0f")(value) : d3.format(`.${digits}~r`)(value);
}
/* Formats "mean ± deviation": the deviation has two significant digits, and the mean is rounded to the same place. */
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
/* "1 h 5 min", "2 min 3 s", "4.2 s" */
function duration(seconds) {
  if (seconds < 10) return `${number(seconds, 2)} s`;
  const whole = Math.round(seconds), hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  return hours ? `${hours} h ${minutes} min` : minutes ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}
function millions(value) {
  const size = Number(value);
  if (!(size > 0)) return "–";
  return size < 1e6 ? count(size) : `${d3.format(".3~r")(size / 1e6)} M`;
}
/* Symbols, such as s_1 and ζ, are no words. */
function capital(text) {
  return /^[a-z][a-z -]/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}
function plural(size, noun, nouns = `${noun}s`) {
  return `${count(size)} ${size === 1 ? noun : nouns}`;
}

/* --- scores and seeds -------------------------------------------------------------------------------------------- */

/* The description of a run's task: {name, best, metrics: [{name, label, unit}]}. For an unknown task, `best` is
   undefined and the metrics have the names in the records. */
function taskOf(run) {
  const named = (name) => ({ name, label: name, unit: "" });
  return tasks.get(run.facts.task) ?? { name: run.facts.task, metrics: [...new Set(run.epochs.flatMap(Object.keys))]
    .filter((key) => /^eval_(?!plain_|corrupt$)/.test(key)).map((key) => named(key.slice("eval_".length))) };
}
/* The number of epochs done at the record of an evaluation. With --eval-every, evaluations lie within epochs. */
function epochsDone(run, { step, epoch }) {
  return run.facts.eval_every > 0 ? step / run.facts.epoch_updates : epoch + 1;
}
/* The key of a metric in the record of an evaluation. */
function evaluatedAs(metric) {
  return `eval_${metric.name}`;
}
/* The metric by which the run's task judges a network; undefined if the task is unknown. */
function scoreMetric(run) {
  const { best, metrics } = taskOf(run);
  return metrics.find(({ name }) => name === best);
}
/* The run's scores on images that it did not train on: first the measured one, then that of the last evaluation. `of`
   describes the images. Only scores with the same `key` are comparable. */
function scoresOf(run) {
  const metric = scoreMetric(run);
  if (!metric) return [];
  const found = [], facts = measuredFacts(run), key = evaluatedAs(metric);
  const measured = run.has_measure_file && SCORE?.statistic === metric.name
    ? figureNamed(run, SCORE.instrument, SCORE.statistic) : undefined;
  if (measured) {
    const where = `on ${plural(measured.n, "image")}`;
    found.push({ score: measured.mean, where, of: `measured ${where}${facts.split ? ` (${facts.split})` : ""}`,
      key: JSON.stringify(["measured", facts.contents ?? facts.data, facts.split, measured.n, facts.precision]) });
  }
  const epoch = run.epochs.findLast((e) => isNumber(e[key]));
  if (epoch) {
    const where = run.facts.eval_every > 0 ? `after update ${count(epoch.step)}` : `after epoch ${epoch.epoch + 1}`;
    found.push({ score: epoch[key], where, of: `evaluated ${where}`, key: where });
  }
  return found;
}
function scoreOf(run) {
  return scoresOf(run)[0] ?? { score: null, where: "" };
}

/* Keys that do not belong to a run's configuration. */
const VOLATILE = new Set([
  "event", "epoch", "step", "seconds", "fingerprint", "output", "experiment", "resume", "threads", "workers",
  "lanes", "log_interval", "checkpoint_hist", "recovery_interval", "checkpoint", "weights", "status", "message",
  "measure", "measure_every", "measure_nodes", "entropy_bound", "tokens", "cache_bytes", "epoch_images",
  "epoch_updates",
]);
const MEASUREMENT_KEYS = new Set(["images", "split", "use_ema", "class_map", "contents"]);

/* Identifies the configuration of a run: the settings of its training or, if there was none, of its measurement. A
   measurement of a trained run does not change its configuration. */
function configurationOf(run) {
  const facts = run.begin ? run.trained : measuredFacts(run);
  const settings = Object.entries(facts)
    .filter(([key]) => key !== "seed" && !VOLATILE.has(key) && !MEASUREMENT_KEYS.has(key));
  return JSON.stringify(settings.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

const configurations = [...runs.reduce((groups, run) => {
  const key = configurationOf(run);
  return groups.set(key, [...(groups.get(key) ?? []), run]);
}, new Map()).values()];

/* The number of networks, each with its own seed, that the run itself covers: an experiment's may be several. */
function networksOf(run) {
  return Number(run.facts.networks ?? 1);
}
/* The seed of a run, or "0 to 4" if it covers several networks; undefined: unknown. */
function seedTextOf(run) {
  const { seed } = run.facts, networks = networksOf(run);
  return seed === undefined || networks < 2 ? seed : `${seed} to ${Number(seed) + networks - 1}`;
}
/* The seed of a run. If it is unknown, the digest of the weights stands for it. */
function seedOf(run) {
  return String(run.facts.seed ?? run.facts.weights ?? `run ${run.index}`);
}
/* Returns the first run of each seed in a group of runs. */
function distinctSeeds(group) {
  return [...new Map([...group].reverse().map((run) => [seedOf(run), run])).values()].reverse();
}

/* Returns comparable scores, {of, scores} with one score per seed, of the kind that most seeds have. */
function comparableScores(group) {
  const kinds = new Map();
  for (const run of distinctSeeds(group))
    for (const { key, of, score } of scoresOf(run).filter((s) => isNumber(s.score))) {
      if (!kinds.has(key)) kinds.set(key, { of, scores: [] });
      kinds.get(key).scores.push(score);
    }
  return minBy([...kinds.values()], (kind) => -kind.scores.length) ?? { of: "–", scores: [] };
}

/* Returns [name, value of each run] for each key that any run has. A value is undefined if its run lacks the key. */
function rowsOf(factsOfRun, prefix = "") {
  const all = runs.map(factsOfRun);
  const keys = [...new Set(all.flatMap((facts) => Object.keys(facts)))].filter((key) => !VOLATILE.has(key));
  return keys.map((key) => [prefix + key, all.map((facts) => facts[key])]);
}
/* Whether the values of a row differ. A training run that lacks a setting used its default, which counts as a different
   value. A run that trained nothing is ignored if it lacks the setting. */
function differs([, values]) {
  const kept = values.filter((v, i) => v !== undefined || runs[i].begin);
  return values.some((v) => v !== undefined) && new Set(kept.map((v) => String(v ?? ""))).size > 1;
}
/* The same, but runs that lack the value are always ignored. */
function differsWhereKnown([, values]) {
  return new Set(values.filter((v) => v !== undefined).map(String)).size > 1;
}

/* The rows of the table of settings: settings of training runs that differ; facts about measurements that differ; and the
   facts in ALWAYS_SHOWN, which are always shown, because measurements are meaningless without them. */
const ALWAYS_SHOWN = new Set(["data", "split", "images", "precision", "img_size"].map((key) => `measured: ${key}`));
function settingRows() {
  const trained = rowsOf((run) => (run.begin ? run.trained : run.facts)).filter(differs);
  const names = new Set(trained.map(([key]) => key));
  const measured = rowsOf(measuredFacts, "measured: ").filter((row) =>
    ALWAYS_SHOWN.has(row[0]) || (differsWhereKnown(row) && !names.has(row[0].slice("measured: ".length))));
  return [...trained.filter(([key]) => !MEASUREMENT_KEYS.has(key)), ...measured];
}
