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
/* Local time, "2026-11-30 14:05". */
function dateText(seconds) {
  return isNumber(seconds) ? d3.timeFormat("%Y-%m-%d %H:%M")(new Date(1000 * seconds)) : "–";
}
function dateCell({ started }) {
  return element("td", { class: "text", "data-value": whole(started) }, dateText(started));
}
function link(page, run, text) {
  return element("a", { href: runsAddress(page, [run.run]) }, text);
}
/* Links to the pages about a checkpoint. */
function modelLinks(name) {
  return ["explore", "ablate", "means", "network", "lessons"].flatMap((page, i) => [i ? " · " : "",
    element("a", { href: `/${page}#${new URLSearchParams({ model: name })}` }, page)]);
}
function linksOf(run) {
  if (run.problem) return [element("span", { class: "problem" }, run.problem)];
  const report = link("report", run, "report");
  const pages = run.trained ? [link("live", run, "live"), " · ", report] : run.measured ? [report] : [];
  return run.checkpoint ? [...pages, pages.length ? " · " : "", ...modelLinks(run.run)] : pages;
}

/* --- the chosen runs, which the URL keeps ------------------------------------------------------------------------- */

const MOST_CHOSEN = 32; /* that the server shows together */
const chosen = new Set();
function readChosen() {
  chosen.clear();
  for (const name of (fragment.get("chosen") ?? "").split(",").filter(Boolean)) chosen.add(decodeURIComponent(name));
}
function choose(names, on) {
  for (const name of names) if (on) chosen.add(name); else chosen.delete(name);
  fragment.set({ chosen: [...chosen].map(encodeURIComponent).join(",") });
  showChosen();
}
function runCell(run) {
  if (!run.trained || run.problem) return element("td", { class: "text" }, run.run);
  const box = element("input", { type: "checkbox", "aria-label": `Choose ${run.run}`, "data-choose": run.run,
    onchange: (event) => choose([run.run], event.target.checked) });
  return element("td", { class: "text" }, element("label", { class: "choose" }, box, run.run));
}

const together = {
  charts: element("a", { class: "quiet" }), reports: element("a", { class: "quiet" }),
  all: element("button", { type: "button", class: "quiet", onclick: () => choose(visibleBoxes(), true) },
    "Choose all rows"),
  none: element("button", { type: "button", class: "quiet", onclick: () => choose([...chosen], false) }, "Choose none"),
  words: element("span", { class: "reading", role: "status" }),
};
together.bar = element("div", { class: "tools", hidden: true }, together.charts, together.reports, together.all,
  together.none, together.words);
/* The runs in rows that the filter shows. */
function visibleBoxes() {
  return [...document.querySelectorAll("#runs tbody tr:not([hidden]) [data-choose]")].map((box) => box.dataset.choose);
}
/* Shows which runs are chosen, and links to their pages. */
function showChosen() {
  const boxes = [...document.querySelectorAll("#runs [data-choose]")];
  for (const box of boxes) box.checked = chosen.has(box.dataset.choose);
  const names = boxes.map((box) => box.dataset.choose).filter((name) => chosen.has(name));
  for (const [link_, page, text] of [[together.charts, "live", "Charts"], [together.reports, "report", "Report"]]) {
    link_.textContent = `${text} of ${plural(names.length, "run")}`;
    link_.hidden = !names.length || names.length > MOST_CHOSEN;
    link_.href = runsAddress(page, names);
  }
  together.none.hidden = !names.length;
  together.words.textContent = names.length > MOST_CHOSEN
    ? `${count(names.length)} runs are chosen; at most ${MOST_CHOSEN} can be shown together.`
    : names.length ? "" : "Choose training runs to see their charts together, also while they train.";
}

/* The options in which the runs differ. */
function variedOf(list) {
  return [...new Set(list.flatMap(({ settings }) => Object.keys(settings)))];
}
function runsTable(list, varied) {
  const cell = (...content) => element("td", { class: "text" }, ...content);
  const made = table(["run", "state", "started", "model", { text: "epochs", csv: ["epochs", "epochs planned"] },
    { text: "best", csv: ["best", "metric"] }, "pages", ...varied], list.map((run) =>
    [runCell(run), element("td", { class: "text", "data-state": run.state }, run.state), dateCell(run),
      cell(run.model ?? "–"), epochsCell(run), bestCell(run), cell(...linksOf(run)),
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
    element("li", {}, model.name, ": ", ...modelLinks(model.name)))));
  return part;
}

const places = { runs: element("section", { id: "runs", "aria-label": "Runs" }), models: element("div") };
function show(data) {
  const running = data.runs.filter((run) => run.state === "running").length;
  document.getElementById("subtitle").textContent =
    `${plural(data.runs.length, "run")}, ${count(running)} running`;
  const part = runsPart(data.runs);
  together.bar.hidden = !data.runs.some((run) => run.trained);
  if (part !== places.runs.lastElementChild) places.runs.replaceChildren(together.bar, part);
  showChosen();
  places.models.replaceChildren(...(data.models.length ? [modelsSection(data.models)] : []));
}
document.getElementById("sections").replaceChildren(places.runs, places.models);
showPages("runs");
readChosen();
fragment.listen(() => {
  readChosen();
  showChosen();
});

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
