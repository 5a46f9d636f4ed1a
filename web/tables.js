"use strict";
/* Figures of whole networks: accuracy and total neural stiffness; the runs themselves; what seeds say. */

function runCard(run) {
  const { top1, where } = accuracyOf(run);
  const done = run.epochs.at(-1)?.epoch;
  const facts = [["model", run.facts.model], ["parameters", millions(run.facts.parameters)],
    ["seed", run.facts.seed],
    ["epochs", run.begin ? `${isNumber(done) ? done + 1 : 0} of ${run.facts.epochs ?? "–"}` : undefined],
    ["measured on", originOf(run) || undefined],
    ["maps", run.maps_left_out ? `left out: ${run.maps_left_out}` : undefined],
    ["warnings", run.warning_count || undefined],
    ["ended", run.end && run.end.status !== "OK" ? run.end.message || "with a failure" : undefined]];
  return element("article", { class: `card ${classOf(run)}`, "data-card": run.index },
    element("div", { class: "name" }, emblem(run), run.name),
    element("p", { class: "big", "data-value": top1 ?? "" }, top1 === null ? "–" : `${number(top1)} %`,
      element("small", {}, ` top-1 ${where}`)),
    element("dl", {}, ...facts.filter(([, value]) => value !== undefined && value !== null)
      .flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, String(value))])));
}

function meanAndDeviation(values) {
  const mean = d3.mean(values);
  return { mean, deviation: values.length > 1 ? d3.deviation(values) : null };
}

/* What may be concluded, said plainly: nothing from one seed. */
function seedSentence() {
  if (runs.length === 1) return "One run: its figures describe this network, not its kind. n is the number of images.";
  const what = `${plural(runs.length, "run")} of ${plural(configurations.length, "configuration")}`;
  const alone = configurations.filter((group) => distinctSeeds(group).length < 2).length;
  if (alone === configurations.length)
    return `${what}, ${configurations.some((group) => group.length > 1) ? "none of more than one seed" : "one seed each"}. One seed cannot tell a difference from chance: this page sets the runs beside ` +
      "each other and gives no verdict.";
  const rest = alone
    ? ` ${plural(alone, "configuration")} with one seed only: no verdict on ${alone === 1 ? "it" : "them"}.` : "";
  return `${what}; the table below gives mean and deviation over seeds.${rest} ` +
    "Differences within a deviation or two may be chance; few seeds say little.";
}

/* Runs that repeat a seed: shown, but no further evidence. */
function repeatedNote() {
  const repeated = configurations.flatMap((group) => {
    const counted = distinctSeeds(group);
    return group.filter((run) => !counted.includes(run)).map((run) =>
      `${run.name} repeats the seed of ${counted.find((other) => seedOf(other) === seedOf(run)).name}`);
  });
  if (!repeated.length) return null;
  return element("p", { class: "note", id: "repeated" }, `${repeated.join("; ")}: shown, not averaged.`);
}

/* Runs of one setting are called by it. */
function nameOfGroup(group) {
  const { setting } = group[0];
  return setting !== null && group.every((run) => run.setting === setting) ? setting
    : group.map((run) => run.name).join(", ");
}

/* What a configuration is called where others differ from it: the settings in which they do. */
function configurationName(group) {
  const rows = settingRows().filter(([key, values]) => !key.startsWith("measured: ") && key !== "seed" &&
    new Set(group.map((run) => String(values[run.index] ?? ""))).size === 1);
  const said = rows.map(([key, values]) => `${key}=${values[group[0].index] ?? "–"}`);
  const data = group[0].facts.data;
  return [...said, data !== undefined && !rows.some(([key]) => key === "data") ? `data=${data}` : null]
    .filter(Boolean).join(", ");
}

function seedTable() {
  if (configurations.every((group) => distinctSeeds(group).length < 2)) return null;
  const rows = configurations.map((group) => {
    const { of, scores } = comparableScores(group);
    const { mean, deviation } = meanAndDeviation(scores);
    return [element("td", { class: "words" }, nameOfGroup(group)),
      element("td", { class: "text" }, distinctSeeds(group).map((run) => run.facts.seed ?? "–").join(", ")),
      numberCell(mean ?? null, deviation), countCell(scores.length),
      element("td", { class: "text words" }, of),
      element("td", { class: "text words" }, configurationName(group) || "–")];
  });
  return scrolling(table(["configuration", "seeds", "top-1 %, mean ± deviation over seeds", "seeds, n", "of",
    "settings"], rows, "headline"), "whole");
}

function valuesIn(group, values) {
  const said = group.map((run) => values[run.index]).map((v) => (v === undefined || v === "" ? "–" : String(v)));
  return [...new Set(said)].join(", ");
}

function settingTable() {
  const rows = settingRows();
  const columns = bySetting ? groupsOf(runs).map(({ group }) => group) : runs.map((run) => [run]);
  if (!rows.length) return null;
  return element("details", { open: rows.length < 12 },
    element("summary", {}, runs.length > 1 ? `Settings that differ, and how it was measured (${rows.length})`
      : "How it was measured"),
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
    element("summary", {}, `Warnings (${count(all)}${shown})`),
    scrolling(table(["run", "update", "images of", "message"],
      warnings.map(([run, w]) => [element("td", {}, run.name), countCell(w.step),
        element("td", { class: "text" }, w.set ?? "–"), element("td", { class: "text" }, w.message ?? "–")]))));
}

function overviewSection() {
  const part = section("overview", runs.length > 1 ? "The runs" : "The run", null);
  const cards = element("div", { class: "cards" }, ...runs.map(runCard));
  (runs.length === 1 ? cards : part).append(element("p", { class: "note", id: "verdict" }, seedSentence()));
  part.prepend(part.firstChild, cards);
  part.append(...[seedTable(), repeatedNote(), settingTable(), warningTable()].filter(Boolean));
  return part;
}

/* --- accuracy ----------------------------------------------------------------------------------------------------- */

/* Right or wrong has a deviation of its own; the standard error says how sure the mean is. */
function errorOf(figure) {
  return figure && isNumber(figure.deviation) && figure.n > 0 ? figure.deviation / Math.sqrt(figure.n) : null;
}
function accuracyTable({ words, among }) {
  const names = [["top1", "top-1, %"], ["top5", "top-5, %"], ["loss", "loss, nats"]];
  const rows = among.map((run) => {
    const figures = names.map(([name]) => figureNamed(run, "accuracy", name));
    return [element("td", {}, nameOf(run)), ...figures.map((f) => numberCell(f?.mean ?? null, errorOf(f))),
      countCell(figures[0].n), element("td", { class: "text" }, originOf(run))];
  });
  return [words ? element("h3", { class: "kind" }, words) : null, scrolling(
    table(["run", ...names.map(([, title]) => `${title} ± standard error`), "n", "measured on"], rows, "headline"),
    "whole")];
}
function accuracySection() {
  const part = section("accuracy", "Accuracy", instruments.get("accuracy")?.summary);
  const measured = runs.filter((run) => figureNamed(run, "accuracy", "top1"));
  part.append(...kindsOf(measured).flatMap(accuracyTable).filter(Boolean), method("accuracy"));
  return part;
}

/* --- total neural stiffness --------------------------------------------------------------------------------------- */

const STIFFNESS = [["tns", "TNS"], ["zeta*", "ζ*"], ["mu", "μ"], ["zeta*/mu", "ζ*/μ"]];
function stiffnessTable({ words, among }) {
  const values = (reading) => JSON.stringify(among.map((run) =>
    STIFFNESS.map(([name]) => figureNamed(run, "tns", `${name} ${reading}`)?.mean)));
  const readings = new Set(READINGS.map(values)).size > 1 ? READINGS.map((reading) => [reading, reading])
    : [["unit", "attention and unit: no gates here"]];
  const rows = among.flatMap((run) => readings.map(([reading, label]) => {
    const figures = STIFFNESS.map(([name]) => figureNamed(run, "tns", `${name} ${reading}`));
    return [element("td", {}, nameOf(run)), element("td", { class: "text" }, label),
      ...figures.map((f) => numberCell(f?.mean ?? null, f?.deviation)),
      countCell(figures[0]?.n)];
  }));
  return [words ? element("h3", { class: "kind" }, words) : null, scrolling(
    table(["run", "reading", ...STIFFNESS.map(([, title]) => title), "n"], rows, "headline"), "whole")];
}
function stiffnessSection() {
  const part = section("tns", "Total neural stiffness", instruments.get("tns")?.summary);
  const measured = runs.filter((run) => run.figures.some((f) => f.instrument === "tns"));
  part.append(...kindsOf(measured).flatMap(stiffnessTable).filter(Boolean), method("tns"));
  return part;
}
