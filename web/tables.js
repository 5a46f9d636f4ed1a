"use strict";
/* The overview of the runs, the comparison over seeds, and measurements of whole networks. */

function runCard(run) {
  const { score, where } = scoreOf(run), metric = scoreMetric(run);
  const last = run.epochs.at(-1);
  const facts = [["model", run.facts.model],
    ["parameters", run.facts.parameters > 0 ? millions(run.facts.parameters) : undefined],
    [networksOf(run) > 1 ? "seeds" : "seed", seedTextOf(run)],
    ["epochs", run.begin ? `${last ? number(epochsDone(run, last)) : 0} of ${run.facts.epochs ?? "–"}` : undefined],
    ["measured on", originOf(run) || undefined],
    ["maps", run.maps_left_out ? `not shown: ${run.maps_left_out}` : undefined],
    ["warnings", run.warning_count || undefined],
    ["ended", run.end && run.end.status !== "OK" ? run.end.message || "with an error" : undefined]];
  return element("article", { class: `card ${classOf(run)}`, "data-card": run.index },
    element("div", { class: "name" }, markerOf(run), run.name),
    metric && (score !== null || run.begin) ? element("p", { class: "big", "data-value": score ?? "" },
      score === null ? "–" : `${number(score)} ${metric.unit}`.trim(),
      element("small", {}, ` ${metric.label} ${where}`)) : null,
    element("dl", {}, ...facts.filter(([, value]) => value !== undefined && value !== null)
      .flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, String(value))])));
}

/* With more runs, the table of runs takes the place of their cards. */
const MOST_CARDS = 8;

/* The columns of the table of runs: [title, cell of a run], with one column for each score. */
function runColumns() {
  const text = (value) => element("td", { class: "text" }, value === undefined || value === "" ? "–" : String(value));
  const scored = (title) => (run) => {
    const own = scoreMetric(run) && scoreTitle(run) === title;
    return numberCell(own ? scoreOf(run).score : null);
  };
  const scores = [...new Set(runs.filter(scoreMetric).map(scoreTitle))].map((title) => [title, scored(title)]);
  return [["run", (run) => element("td", { class: classOf(run) }, nameOf(run))], ...scores,
    ["scored", (run) => text(scoreOf(run).where)], ["model", (run) => text(run.facts.model)],
    ["parameters", (run) => countCell(run.facts.parameters, millions)], ["seed", (run) => text(seedTextOf(run))],
    [{ text: "epochs", csv: ["epochs", "epochs planned"] }, (run) => {
      const last = run.epochs.at(-1), planned = Number(run.facts.epochs);
      const done = run.begin ? (last ? epochsDone(run, last) : 0) : NaN;
      return element("td", { "data-value": whole(done), "data-more": JSON.stringify([whole(planned)]) },
        isNumber(done) ? `${number(done)} of ${count(planned)}` : "–");
    }],
    ["measured on", (run) => text(originOf(run))], ["warnings", (run) => countCell(run.warning_count || undefined)],
    ["ended", (run) => text(!run.begin ? undefined : !run.end ? "no end recorded"
      : run.end.status === "OK" ? "finished" : run.end.message || "with an error")]];
}
/* Columns without any value are left out. */
function runTable() {
  const columns = runColumns().map(([title, cell]) => ({ title, cells: runs.map(cell) }))
    .filter(({ cells }) => cells.some((cell) => sortValue(cell) !== null));
  return arranged("runs", "run", table(columns.map(({ title }) => title),
    runs.map((_, i) => columns.map(({ cells }) => cells[i])), "runs")).node;
}

function meanAndDeviation(values) {
  const mean = d3.mean(values);
  return { mean, deviation: values.length > 1 ? d3.deviation(values) : null };
}

/* A sentence about which conclusions the number of seeds allows. */
function seedSentence() {
  if (runs.length === 1 && EXPERIMENTS.some(hasInstrument))
    return "One experiment: the charts say over what their deviations are.";
  if (runs.length === 1)
    return "One run: the measurements describe this network only, not its architecture. n is the number of images.";
  const what = `${plural(runs.length, "run")} of ${plural(configurations.length, "configuration")}`;
  const several = configurations.filter((group) => networksOf(group[0]) > 1).length;
  const alone = configurations.filter((group) => networksOf(group[0]) < 2 && distinctSeeds(group).length < 2).length;
  const within = several ? ` ${several === configurations.length ? "Each is an experiment"
    : `${plural(several, "configuration")} ${several === 1 ? "is an experiment" : "are experiments"}`} with several ` +
    "seeds of its own; the deviations in its charts are over these." : "";
  if (alone === configurations.length)
    return `${what}, ${configurations.some((group) => group.length > 1) ? "none with more than one seed"
      : "one seed each"}. With one seed, a difference cannot be distinguished from chance: this page shows the runs ` +
      "side by side and gives no verdict.";
  const rest = alone ? ` ${plural(alone, "configuration")} ${alone === 1 ? "has" : "have"} only one seed: no verdict ` +
    `on ${alone === 1 ? "it" : "them"}.` : "";
  const tabled = configurations.some((group) => distinctSeeds(group).length > 1);
  return `${what}${tabled ? "; the table below gives mean and deviation over seeds" : ""}.${within}${rest} ` +
    "Differences within one or two deviations may be chance, especially with few seeds.";
}

/* A note about runs that repeat a seed. They are shown, but not included in means. */
function repeatedNote() {
  const repeated = configurations.flatMap((group) => {
    const counted = distinctSeeds(group);
    return group.filter((run) => !counted.includes(run)).map((run) =>
      `${run.name} repeats the seed of ${counted.find((other) => seedOf(other) === seedOf(run)).name}`);
  });
  if (!repeated.length) return null;
  return element("p", { class: "note", id: "repeated" }, `${repeated.join("; ")}: shown, not averaged.`);
}

/* The name of a group of runs: their setting or, if they have none, the names of the runs. */
function nameOfGroup(group) {
  const { setting } = group[0];
  return setting !== null && group.every((run) => run.setting === setting) ? setting
    : group.map((run) => run.name).join(", ");
}

/* Describes a configuration by the settings in which configurations differ, and its data set. */
function configurationName(group) {
  const rows = settingRows().filter(([key, values]) => !key.startsWith("measured: ") && key !== "seed" &&
    new Set(group.map((run) => String(values[run.index] ?? ""))).size === 1);
  const parts = rows.map(([key, values]) => `${key}=${values[group[0].index] ?? "–"}`);
  const data = group[0].facts.data;
  return [...parts, data !== undefined && !rows.some(([key]) => key === "data") ? `data=${data}` : null]
    .filter(Boolean).join(", ");
}

/* Label and unit of a run's score: "top-1 %". */
function scoreTitle(run) {
  const metric = scoreMetric(run);
  return metric ? `${metric.label} ${metric.unit}`.trim() : "score";
}

/* The table of scores over seeds, or null if no configuration has two seeds. If tasks differ, each row names its
   metric. */
function seedTable() {
  if (configurations.every((group) => distinctSeeds(group).length < 2)) return null;
  const titles = [...new Set(runs.map(scoreTitle))], [score] = titles.length > 1 ? ["score"] : titles;
  const rows = configurations.map((group) => {
    const { of, scores } = comparableScores(group);
    const { mean, deviation } = meanAndDeviation(scores);
    return [element("td", { class: "words" }, nameOfGroup(group)),
      element("td", { class: "text" }, distinctSeeds(group).map((run) => seedTextOf(run) ?? "–").join(", ")),
      numberCell(mean ?? null, deviation), countCell(scores.length),
      element("td", { class: "text words" }, titles.length > 1 ? `${scoreTitle(group[0])}: ${of}` : of),
      element("td", { class: "text words" }, configurationName(group) || "–")];
  });
  return arranged("configurations", "configuration", table(["configuration", "seeds",
    `${score}, mean ± deviation over seeds`, "seeds, n", "source", "settings"], rows, "headline"), "whole").node;
}

function valuesIn(group, values) {
  const parts = group.map((run) => values[run.index]).map((v) => ((v ?? "") === "" ? "–" : String(v)));
  return [...new Set(parts)].join(", ");
}

function settingTable() {
  const rows = settingRows();
  const columns = bySetting ? groupsOf(runs).map(({ group }) => group) : runs.map((run) => [run]);
  if (!rows.length) return null;
  return element("details", { open: rows.length < 12 },
    element("summary", {}, runs.length > 1 ? `Different settings, and conditions of the measurements (${rows.length})`
      : "Conditions of the measurement"),
    scrolling(table(["setting", ...columns.map(nameOfGroup).map((text) => ({ text, csv: [text] }))],
      rows.map(([key, values]) => [element("td", {}, key),
        ...columns.map((group) => element("td", {}, valuesIn(group, values)))]))));
}

function warningTable() {
  const warnings = runs.flatMap((run) => run.warnings.map((warning) => [run, warning]));
  if (!warnings.length) return null;
  const all = d3.sum(runs, (run) => run.warning_count);
  const shown = warnings.length < all ? `, ${count(warnings.length)} of them shown` : "";
  return element("details", { id: "warnings", open: warnings.length < 6 },
    element("summary", {}, `Warnings and alerts (${count(all)}${shown})`),
    scrolling(table(["run", "update", "split", "message"],
      warnings.map(([run, w]) => [element("td", {}, run.name), countCell(w.step),
        element("td", { class: "text" }, w.set ?? "–"), element("td", { class: "text" }, w.message ?? "–")]))));
}

function overviewSection() {
  const part = section("overview", runs.length > 1 ? "Runs" : "Run", null);
  const cards = element("div", { class: "cards" }, ...(runs.length > MOST_CARDS ? [] : runs.map(runCard)));
  (runs.length === 1 ? cards : part).append(element("p", { class: "note", id: "verdict" }, seedSentence()));
  part.prepend(part.firstChild, cards);
  part.append(...[runs.length > 1 ? runTable() : null, seedTable(), repeatedNote(), settingTable(), warningTable()]
    .filter(Boolean));
  return part;
}

/* --- measurements of whole networks ------------------------------------------------------------------------------ */

function networkInstruments() {
  return measuredInstruments().filter((name) => isOfNetworks(name) &&
    !DEPTHS.some((spec) => spec.instrument === name));
}

/* The standard error of a mean. For scores, it is shown in place of the deviation, because the deviation of right or
   wrong answers follows from their mean. */
function errorOf(figure) {
  return figure && isNumber(figure.deviation) && figure.n > 0 ? figure.deviation / Math.sqrt(figure.n) : null;
}
/* The rows for an instrument's readings, [reading, label] each. One row if all readings agree on these runs; [[null]]
   if the instrument has no readings. */
function readingRows(instrument, among) {
  const { readings, readings_agree: why } = infoOf(instrument);
  if (!readings) return [[null]];
  const values = (reading) => JSON.stringify(among.map((run) =>
    statisticNames(instrument).map((name) => figureNamed(run, instrument, statisticIn(name, reading))?.mean)));
  if (new Set(readings.map(values)).size > 1) return readings.map((reading) => [reading, reading]);
  return [[readings[0], `${readings.join(" and ")}${why ? `: ${why}` : ""}`]];
}
/* One row per run and reading, one column per statistic. */
function networkTable(instrument, { words, among }) {
  const { scores } = infoOf(instrument), names = statisticNames(instrument), readings = readingRows(instrument, among);
  const rows = among.flatMap((run) => readings.map(([reading, label]) => {
    const figures = names.map((name) => figureNamed(run, instrument, statisticIn(name, reading)));
    return [element("td", {}, nameOf(run)), ...(reading ? [element("td", { class: "text" }, label)] : []),
      ...figures.map((f) => numberCell(f?.mean ?? null, scores ? errorOf(f) : f?.deviation)),
      countCell(figures.find(Boolean)?.n), element("td", { class: "text" }, originOf(run))];
  }));
  const titles = names.map((name) => {
    const { title, unit } = statisticInfo(instrument, name);
    return `${withUnit(title, unit)}${scores ? " ± standard error" : ""}`;
  });
  return [words ? element("h3", { class: "kind" }, words) : null, scrolling(table(
    ["run", ...(readings[0][0] ? ["reading"] : []), ...titles, "n", "measured on"], rows, "headline"), "whole")];
}
function networkSection(instrument) {
  const part = section(instrument, titleOf(instrument), infoOf(instrument).summary);
  const measured = runs.filter((run) => run.figures.some((f) => f.instrument === instrument));
  part.append(...[...kindsOf(measured).flatMap((kind) => networkTable(instrument, kind)), method(instrument)]
    .filter(Boolean));
  return part;
}
