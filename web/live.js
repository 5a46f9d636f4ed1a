"use strict";
/* The live page of `attscope serve`: the charts of one run, which grow as records arrive from /api/events. */

const REDRAW = 500; /* milliseconds between two drawings */
const RETRY = 3000; /* milliseconds until a refused request is repeated, as after a lost connection */
const MOST_STEPS = 2000, MOST_MEASURES = 200; /* a chart has no more pixels */
const live = runs[0];
const seen = { speed: null, left: null, updates: null, epochs: null, ended: null, problem: null, step: null };

/* --- records ----------------------------------------------------------------------------------------------------- */

function forget() {
  live.epochs = [];
  live.steps = { stride: 1, step: [], epoch: [], seconds: [], loss: [], lr: [], grad_norm: [], images_per_second: [] };
  live.development = { stride: 1, step: [], epoch: [], images: [], series: [] };
  Object.assign(seen, { speed: null, left: null, updates: null, ended: null, problem: null, step: null });
}

/* Drops every second entry of the columns. */
function halve(columns) {
  for (const [name, list] of Object.entries(columns))
    if (Array.isArray(list) && name !== "series") columns[name] = list.filter((_, i) => i % 2 === 0);
  columns.stride *= 2;
}

let stepsSeen = 0;
function addStep(record) {
  if (stepsSeen++ % live.steps.stride) return;
  for (const [name, list] of Object.entries(live.steps))
    if (Array.isArray(list)) list.push(record[name] ?? null);
  if (live.steps.step.length > MOST_STEPS) halve(live.steps);
}

function addEpoch(record) {
  live.epochs = [...live.epochs.filter((e) => e.step < record.step), record];
}

function sameFigure(series, m) {
  return series.instrument === m.instrument && series.node === m.node && series.statistic === m.statistic;
}
/* Adds the measurements of all heads together. A measurement that is new has no earlier values. */
function addMeasure(record) {
  const { development: d } = live, at = d.step.length;
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

function addRecord({ record, images_per_second: speed, seconds_left: left, updates }) {
  Object.assign(seen, { speed, left, updates, step: record.step, ended: null });
  live.updates = updates;
  if (record.event === "step") addStep(record);
  if (record.event === "epoch") addEpoch(record);
  if (record.event === "measure") addMeasure(record);
  if (record.event === "run_begin") seen.epochs = Number(record.epochs);
  if (record.event === "run_end") seen.ended = record;
}

/* --- the page ---------------------------------------------------------------------------------------------------- */

function updatesDone() {
  if (!isNumber(seen.step)) return "no records yet";
  return `update ${count(seen.step)}${isNumber(seen.updates) ? ` of ${count(Math.round(seen.updates))}` : ""}`;
}
function epochsWords() {
  const done = live.epochs.length ? epochsDone(live, live.epochs.at(-1)) : 0;
  return isNumber(seen.epochs) ? `epoch ${number(done)} of ${count(seen.epochs)} done` : null;
}
function rest() {
  if (seen.ended) return seen.ended.status === "OK" ? "finished" : seen.ended.message || `ended: ${seen.ended.status}`;
  return isNumber(seen.left) ? `${duration(seen.left)} left` : null;
}
function progressWords() {
  const speed = isNumber(seen.speed) ? `${number(seen.speed, 3)} images per second` : null;
  return seen.problem ?? [updatesDone(), epochsWords(), speed, rest()].filter(Boolean).join(" · ");
}

function speedChart({ axis, log }) {
  return valueChart([live], "images_per_second", "images per second", axis,
    { title: "Throughput, images per second", zero: !log });
}
forget();
const training = trainingView((view) => (live.steps.step.length || live.epochs.length
  ? trainingCharts([live], view, speedChart(view)) : []));
const empty = element("p", {}, "Curves appear with the first record of a step.");

/* The choice of a measurement is made anew only if other measurements are offered. */
const measured = { kind: 0, log: false, offered: "", choices: element("div", { class: "tools" }),
  place: element("div", { class: "charts" }) };
function drawMeasured(changes) {
  Object.assign(measured, changes);
  const offered = offeredDevelopments([live]), names = JSON.stringify(offered);
  const kind = offered[Math.min(measured.kind, offered.length - 1)];
  if (names !== measured.offered) {
    measured.offered = names;
    measured.choices.replaceChildren(...(kind ? [element("h3", {}, "Measurements"),
      choice("Measurement", offered.map((entry, i) => [i, entry[2]]), offered.indexOf(kind),
        (i) => drawMeasured({ kind: i })),
      scaleChoice(measured.log, (log) => drawMeasured({ log }))] : []));
  }
  showCharts(measured.place, kind ? developmentSpecs([live], kind, measured.log) : []);
}

function draw() {
  document.getElementById("subtitle").textContent = progressWords();
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
  const stream = new EventSource(`/api/events${location.search}`);
  const on = (kind, act) => stream.addEventListener(kind, (event) => {
    act(JSON.parse(event.data));
    drawSoon();
  });
  on("restart", () => {
    stepsSeen = 0;
    forget();
  });
  on("record", addRecord);
  on("problem", ({ error }) => {
    seen.problem = error;
    stream.close();
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
  document.title = `${live.name} – attscope`;
  document.getElementById("title").textContent = live.name;
  showPages("live");
  const part = section("training", "Training", null);
  part.append(training.tools, training.note, empty, training.place, measured.choices, measured.place);
  document.getElementById("sections").replaceChildren(part);
  draw();
  follow();
  document.documentElement.dataset.ready = "true";
})();
