"use strict";
/* Figures of whole networks: accuracy and total neural stiffness; the runs themselves; what seeds say. */

function runCard(run) {
  const { top1, where } = accuracyOf(run);
  const done = run.epochs.at(-1)?.epoch;
  const facts = [["model", run.facts.model], ["parameters", millions(run.facts.parameters)],
    ["seed", run.facts.seed],
    ["epochs", run.begin ? `${isNumber(done) ? done + 1 : 0} of ${run.facts.epochs ?? "–"}` : undefined],
    ["measured on", originOf(run) || undefined],
    ["ended", run.end && run.end.status !== "OK" ? `${run.end.status}: ${run.end.message}` : undefined]];
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
  const alone = configurations.filter((group) => group.length < 2).length;
  if (alone === configurations.length)
    return `${what}, one seed each. One seed cannot tell a difference from chance: this page sets the runs beside ` +
      "each other and gives no verdict.";
  const rest = alone
    ? ` ${plural(alone, "configuration")} with one seed only: no verdict on ${alone === 1 ? "it" : "them"}.` : "";
  return `${what}; the table below gives mean and deviation over seeds.${rest} ` +
    "Differences within a deviation or two may be chance; few seeds say little.";
}

function seedTable() {
  if (configurations.every((group) => group.length < 2)) return null;
  const rows = configurations.map((group) => {
    const scores = group.map((run) => accuracyOf(run).top1).filter(isNumber);
    const { mean, deviation } = meanAndDeviation(scores);
    return [element("td", {}, group.map((run) => run.name).join(", ")),
      element("td", { class: "text" }, group.map((run) => run.facts.seed ?? "–").join(", ")),
      numberCell(mean ?? null, deviation), element("td", {}, count(scores.length))];
  });
  return element("div", { class: "scroll whole" },
    table(["configuration", "seeds", "top-1 %, mean ± deviation over seeds", "seeds, n"], rows, "headline"));
}

function differenceTable() {
  const rows = differences();
  if (runs.length < 2 || !rows.length) return null;
  return element("details", { open: rows.length < 5 }, element("summary", {}, `Settings that differ (${rows.length})`),
    element("div", { class: "scroll", tabindex: 0 }, table(["setting", ...runs.map((run) => run.name)],
      rows.map(([key, values]) => [element("td", {}, key), ...values.map((v) => element("td", {}, String(v)))]))));
}

function overviewSection() {
  const part = section("overview", runs.length > 1 ? "The runs" : "The run", null);
  const cards = element("div", { class: "cards" }, ...runs.map(runCard));
  (runs.length === 1 ? cards : part).append(element("p", { class: "note", id: "verdict" }, seedSentence()));
  part.prepend(part.firstChild, cards);
  part.append(...[seedTable(), differenceTable()].filter(Boolean));
  return part;
}

/* --- accuracy ----------------------------------------------------------------------------------------------------- */

/* Right or wrong has a deviation of its own; the standard error says how sure the mean is. */
function errorOf(figure) {
  return figure && isNumber(figure.deviation) && figure.n > 0 ? figure.deviation / Math.sqrt(figure.n) : null;
}
function accuracySection() {
  const part = section("accuracy", "Accuracy", instruments.get("accuracy")?.summary);
  const names = [["top1", "top-1, %"], ["top5", "top-5, %"], ["loss", "loss, nats"]];
  const rows = runs.filter((run) => figureNamed(run, "accuracy", "top1")).map((run) => {
    const figures = names.map(([name]) => figureNamed(run, "accuracy", name));
    return [element("td", {}, nameOf(run)), ...figures.map((f) => numberCell(f?.mean ?? null, errorOf(f))),
      element("td", {}, count(figures[0].n)), element("td", { class: "text" }, originOf(run))];
  });
  part.append(element("div", { class: "scroll whole" },
    table(["run", ...names.map(([, title]) => `${title} ± standard error`), "n", "measured on"], rows, "headline")),
  method("accuracy"));
  return part;
}

/* --- total neural stiffness --------------------------------------------------------------------------------------- */

const STIFFNESS = [["tns", "TNS"], ["zeta*", "ζ*"], ["mu", "μ"], ["zeta*/mu", "ζ*/μ"]];
function stiffnessSection() {
  const part = section("tns", "Total neural stiffness", instruments.get("tns")?.summary);
  const readings = [["attention", "dt is the gate"], ["unit", "dt = 1"]];
  const rows = runs.filter((run) => run.figures.some((f) => f.instrument === "tns")).flatMap((run) =>
    readings.map(([reading, label]) => {
      const figures = STIFFNESS.map(([name]) => figureNamed(run, "tns", `${name} ${reading}`));
      return [element("td", {}, nameOf(run)), element("td", { class: "text" }, label),
        ...figures.map((f) => numberCell(f?.mean ?? null, f?.deviation)),
        element("td", {}, count(figures[0]?.n ?? null))];
    }));
  part.append(element("div", { class: "scroll whole" },
    table(["run", "reading", ...STIFFNESS.map(([, title]) => title), "n"], rows, "headline")), method("tns"));
  return part;
}
