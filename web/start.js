"use strict";
/* The start page of `attscope serve`: lists runs and models, and asks for changes every few seconds. */

const REFRESH = 3000; /* milliseconds */

/* Epochs done and planned. */
function epochsCell({ epochs, epochs_wanted: planned }) {
  return element("td", { "data-value": whole(epochs), "data-more": JSON.stringify([whole(planned)]) },
    !isNumber(epochs) ? "–" : isNumber(planned) ? `${number(epochs)} of ${count(planned)}` : number(epochs));
}
function bestCell({ best }) {
  return element("td", { "data-value": whole(best?.value), "data-more": JSON.stringify([best?.metric ?? ""]) },
    best ? `${number(best.value)}${best.unit === "%" ? " %" : ""} ${best.metric}` : "–");
}
function link(page, run, text) {
  return element("a", { href: `/${page}?run=${run.run}` }, text);
}
/* Links to the pages about a checkpoint. */
function modelLinks(id) {
  return ["explore", "ablate", "network", "lessons"].flatMap((page, i) => [i ? " · " : "",
    element("a", { href: `/${page}#model=${id}` }, page)]);
}
function linksOf(run) {
  if (run.problem) return [element("span", { class: "problem" }, run.problem)];
  const report = link("report", run, "report");
  const pages = run.trained ? [link("live", run, "live"), " · ", report] : run.measured ? [report] : [];
  return run.checkpoint ? [...pages, pages.length ? " · " : "", ...modelLinks(`r${run.run}`)] : pages;
}

/* The options in which the runs differ. */
function variedOf(list) {
  return [...new Set(list.flatMap(({ settings }) => Object.keys(settings)))];
}
function runsTable(list, varied) {
  const cell = (...content) => element("td", { class: "text" }, ...content);
  const made = table(["run", "state", "model", { text: "epochs", csv: ["epochs", "epochs planned"] },
    { text: "best", csv: ["best", "metric"] }, "pages", ...varied], list.map((run) =>
    [cell(run.name), element("td", { class: "text", "data-state": run.state }, run.state), cell(run.model ?? "–"),
      epochsCell(run), bestCell(run), cell(...linksOf(run)),
      ...varied.map((option) => cell(run.settings[option] ?? "–"))]));
  [...made.tBodies[0].rows].forEach((row, i) => { row.dataset.row = list[i].run; });
  return made;
}

/* The table stays when the list changes, so that the focus and what the user types stay, unless it gets other columns.
*/
let listed = null, columns = "";
function runsPart(list) {
  if (!list.length) return element("p", {}, "There are no runs yet. A run that starts appears here.");
  const varied = variedOf(list), made = runsTable(list, varied);
  if (listed && columns === varied.join()) listed.show([...made.tBodies[0].rows]);
  else listed = arranged("runs", "run", made, "whole");
  columns = varied.join();
  return listed.node;
}
function modelsSection(list) {
  const part = section("models", "Checkpoints", null);
  part.append(element("ul", {}, ...list.map((model) =>
    element("li", {}, model.name, ": ", ...modelLinks(`m${model.model}`)))));
  return part;
}

const places = { runs: element("section", { id: "runs", "aria-label": "Runs" }), models: element("div") };
function show(data) {
  const running = data.runs.filter((run) => run.state === "running").length;
  document.getElementById("subtitle").textContent =
    `${plural(data.runs.length, "run")}, ${count(running)} running`;
  const part = runsPart(data.runs);
  if (part !== places.runs.firstElementChild) places.runs.replaceChildren(part);
  places.models.replaceChildren(...(data.models.length ? [modelsSection(data.models)] : []));
}
document.getElementById("sections").replaceChildren(places.runs, places.models);
showPages("runs");

/* Shows the list again only if it has changed. */
let shown = "";
async function refresh() {
  try {
    const answer = await fetch("/api/runs");
    const text = await answer.text();
    if (!answer.ok) throw new Error(JSON.parse(text).error);
    if (text !== shown) show(JSON.parse(text));
    shown = text;
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    shown = "";
    document.getElementById("subtitle").textContent = error instanceof TypeError
      ? "The server does not answer: it was ended, or the connection is lost." : error.message;
  }
  setTimeout(refresh, REFRESH);
}
refresh();
