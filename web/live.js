"use strict";
/* The live page of `attscope serve`: the charts of one or several runs, which grow as records arrive from /api/events.
   Fewer points of each run are kept if there are several, because a chart has no more pixels. */

const REDRAW = 500; /* milliseconds between two drawings */
const RETRY = 3000; /* milliseconds until a refused request is repeated, as after a lost connection */
const MOST_STEPS = Math.max(300, Math.round(2000 / runs.length)), MOST_MEASURES = 200;
const followed = new Map(runs.map((run) => [run.served, run]));

/* --- records ----------------------------------------------------------------------------------------------------- */

/* Forgets what the page knows of a run's records. run.seen: what its last records say. */
function forget(run) {
  run.epochs = [];
  run.steps = { stride: 1, step: [], epoch: [], seconds: [], loss: [], lr: [], grad_norm: [], images_per_second: [] };
  run.development = { stride: 1, step: [], epoch: [], images: [], series: [] };
  run.stepsSeen = 0;
  run.seen = { speed: null, left: null, updates: null, epochs: null, ended: null, problem: null, step: null };
}

/* Drops every second entry of the columns. */
function halve(columns) {
  for (const [name, list] of Object.entries(columns))
    if (Array.isArray(list) && name !== "series") columns[name] = list.filter((_, i) => i % 2 === 0);
  columns.stride *= 2;
}

function addStep(run, record) {
  if (run.stepsSeen++ % run.steps.stride) return;
  for (const [name, list] of Object.entries(run.steps))
    if (Array.isArray(list)) list.push(record[name] ?? null);
  if (run.steps.step.length > MOST_STEPS) halve(run.steps);
}

function addEpoch(run, record) {
  run.epochs = [...run.epochs.filter((e) => e.step < record.step), record];
}

function sameFigure(series, m) {
  return series.instrument === m.instrument && series.node === m.node && series.statistic === m.statistic;
}
/* Adds the measurements of all heads together. A measurement that is new has no earlier values. */
function addMeasure(run, record) {
  const { development: d } = run, at = d.step.length;
  for (const name of ["step", "epoch", "images"]) d[name].push(record[name] ?? null);
  for (const m of (record.measurements ?? []).filter(({ head }) => head === undefined)) {
    let series = d.series.find((s) => sameFigure(s, m));
    if (!series) {
      const { instrument, node, statistic } = m;
      d.series.push(series = { instrument, node, statistic, head: -1, excluded: Boolean(m.excluded_from_tns),
        mean: [], deviation: [], n: [] });
    }
    for (const name of ["mean", "deviation", "n"]) {
      while (series[name].length < at) series[name].push(null);
      series[name].push(m[name] ?? null);
    }
  }
  if (d.step.length > MOST_MEASURES) {
    d.series.forEach(halve);
    halve(d);
  }
}

function addRecord(run, { record, images_per_second: speed, seconds_left: left, updates }) {
  Object.assign(run.seen, { speed, left, updates, step: record.step, ended: null });
  run.updates = updates;
  if (record.event === "step") addStep(run, record);
  if (record.event === "epoch") addEpoch(run, record);
  if (record.event === "measure") addMeasure(run, record);
  if (record.event === "run_begin") run.seen.epochs = Number(record.epochs);
  if (record.event === "run_end") run.seen.ended = record;
}

/* --- the page ---------------------------------------------------------------------------------------------------- */

function updatesDone({ seen }) {
  if (!isNumber(seen.step)) return "no records yet";
  return `update ${count(seen.step)}${isNumber(seen.updates) ? ` of ${count(Math.round(seen.updates))}` : ""}`;
}
function epochsWords(run) {
  const done = run.epochs.length ? epochsDone(run, run.epochs.at(-1)) : 0;
  return isNumber(run.seen.epochs) ? `epoch ${number(done)} of ${count(run.seen.epochs)} done` : null;
}
function rest({ seen }) {
  if (seen.ended) return seen.ended.status === "OK" ? "finished" : seen.ended.message || `ended: ${seen.ended.status}`;
  return isNumber(seen.left) ? `${duration(seen.left)} left` : null;
}
function progressWords(run) {
  const speed = isNumber(run.seen.speed) ? `${number(run.seen.speed, 3)} images per second` : null;
  return run.seen.problem ?? [updatesDone(run), epochsWords(run), speed, rest(run)].filter(Boolean).join(" · ");
}

/* Of several runs: a row for each, with the switch that hides it in the charts, its progress, and a link to the page
   without it. */
const rows = runs.map((run) => {
  const words = element("span", { class: "reading" });
  const others = runs.filter((other) => other !== run).map(({ served }) => served);
  return { run, words, node: element("li", {}, legendChip(run), words, element("a", { href: runsAddress("live", others),
    "aria-label": `Show the others without ${run.name}` }, "leave out")) };
});

function speedChart({ axis, log }) {
  return valueChart(runs, "images_per_second", "images per second", axis,
    { title: "Throughput, images per second", zero: !log });
}
runs.forEach(forget);
const training = trainingView((view) => (runs.some((run) => run.steps.step.length || run.epochs.length)
  ? trainingCharts(runs, view, speedChart(view)) : []));
const empty = element("p", {}, "Curves appear with the first record of a step.");

/* The choice of a measurement is made anew only if other measurements are offered. */
const measured = { kind: 0, log: false, offered: "", choices: element("div", { class: "tools" }),
  place: element("div", { class: "charts" }) };
function drawMeasured(changes) {
  Object.assign(measured, changes);
  const offered = offeredDevelopments(runs), names = JSON.stringify(offered);
  const kind = offered[Math.min(measured.kind, offered.length - 1)];
  if (names !== measured.offered) {
    measured.offered = names;
    measured.choices.replaceChildren(...(kind ? [element("h3", {}, "Measurements"),
      choice("Measurement", offered.map((entry, i) => [i, entry[2]]), offered.indexOf(kind),
        (i) => drawMeasured({ kind: i })),
      scaleChoice(measured.log, (log) => drawMeasured({ log }))] : []));
  }
  const having = kind ? runs.filter((run) => seriesOf(run, kind[0], kind[1]).length) : [];
  showCharts(measured.place, kind ? developmentSpecs(having, kind, measured.log) : []);
}

function draw() {
  const ended = runs.filter(({ seen }) => seen.ended).length;
  document.getElementById("subtitle").textContent = runs.length === 1 ? progressWords(runs[0])
    : `${plural(runs.length, "run")}, ${count(ended)} ended`;
  for (const { run, words } of rows) words.textContent = progressWords(run);
  training.redraw();
  empty.hidden = training.place.childElementCount > 0;
  drawMeasured({});
}
/* Drawing would take away the tooltip that the reader looks at. */
let waiting = null;
function drawSoon() {
  waiting ??= setTimeout(() => {
    waiting = null;
    if (watched) drawSoon();
    else draw();
  }, REDRAW);
}

function follow() {
  const stream = new EventSource(`/api/events?${new URLSearchParams([...followed.keys()].map((name) => ["run", name]))}`);
  const on = (kind, act) => stream.addEventListener(kind, (event) => {
    const data = JSON.parse(event.data);
    act(followed.get(data.run), data);
    drawSoon();
  });
  on("restart", forget);
  on("record", addRecord);
  on("problem", (run, { error }) => {
    run.seen.problem = error;
    if (runs.every(({ seen }) => seen.problem)) stream.close();
  });
  stream.addEventListener("open", drawSoon); /* replaces the sentence about an error */
  stream.addEventListener("error", () => {
    const refused = stream.readyState === EventSource.CLOSED;
    document.getElementById("subtitle").textContent = refused
      ? "The server refuses this page; trying again. If this stays so, open the address that attscope serve printed last."
      : "The server does not answer; trying again.";
    if (refused) setTimeout(follow, RETRY); /* the browser repeats other requests itself */
  });
}

(() => {
  const title = runs.length < 4 ? runs.map(({ name }) => name).join(" · ") : `${runs.length} runs`;
  const names = [...followed.keys()];
  document.title = `${title} – attscope`;
  document.getElementById("title").textContent = title;
  showPages("live", element("a", { href: runsAddress("report", names) },
    runs.length > 1 ? "Report of these runs" : "Report of this run"),
  element("a", { href: `/#${new URLSearchParams({ chosen: names.map(encodeURIComponent).join(",") })}` },
    "Choose runs"));
  const part = section("training", "Training", null);
  if (runs.length > 1) part.append(element("ul", { class: "followed" }, ...rows.map(({ node }) => node)));
  part.append(training.tools, training.note, empty, training.place, measured.choices, measured.place);
  document.getElementById("sections").replaceChildren(part);
  draw();
  follow();
  document.documentElement.dataset.ready = "true";
})();
