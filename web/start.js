"use strict";
/* The start page of `attscope serve`: lists runs and models, and asks for changes every few seconds. */

const REFRESH = 3000; /* milliseconds */

function epochsOf(run) {
  if (!isNumber(run.epochs)) return "–";
  return isNumber(run.epochs_wanted) ? `${count(run.epochs)} of ${count(run.epochs_wanted)}` : count(run.epochs);
}
function bestOf(run) {
  return run.best ? `${number(run.best.value)}${run.best.unit === "%" ? " %" : ""} ${run.best.metric}` : "–";
}
function link(page, run, text) {
  return element("a", { href: `/${page}?run=${run.run}` }, text);
}
function linksOf(run) {
  if (run.problem) return [element("span", { class: "problem" }, run.problem)];
  const report = link("report", run, "Report");
  if (run.trained) return [link("live", run, "Live charts"), " · ", report];
  return run.measured ? [report] : [];
}

function runsTable(list) {
  const text = (...content) => element("td", { class: "text" }, ...content);
  const figure = (content) => element("td", {}, content);
  return table(["run", "state", "model", "epochs", "best", "pages"], list.map((run) =>
    [text(run.name), element("td", { class: "text", "data-state": run.state }, run.state), text(run.model ?? "–"),
      figure(epochsOf(run)), figure(bestOf(run)), text(...linksOf(run))]));
}

function runsSection(list) {
  const part = section("runs", "Trainings and measurements",
    list.length ? null : "There are no runs yet. A run appears here when it starts.");
  if (list.length) part.append(element("div", { class: "scroll", tabindex: 0 }, runsTable(list)));
  return part;
}
function modelsSection(list) {
  const part = section("models", "Models", null);
  const link = (page, model) => element("a", { href: `/${page}#model=m${model.model}` }, page);
  part.append(element("ul", {}, ...list.map((model) => element("li", {}, model.name, ": ", link("explore", model), " · ",
    link("network", model), " · ", link("lessons", model)))));
  return part;
}

function show(data) {
  const running = data.runs.filter((run) => run.state === "running").length;
  document.getElementById("subtitle").textContent =
    `${plural(data.runs.length, "run")}, ${count(running)} running`;
  document.getElementById("sections").replaceChildren(runsSection(data.runs),
    ...(data.models.length ? [modelsSection(data.models)] : []));
}

/* Shows the list again only if it has changed, so that a selection or the focus stays. */
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
