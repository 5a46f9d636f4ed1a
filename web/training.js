"use strict";
/* Charts of a training run: loss, evaluation metrics and learning rate over updates. */

/* --- the x axis -------------------------------------------------------------------------------------------------- */

const AXES = { update: { xLabel: "update" }, epoch: { xLabel: "epoch", measured: true },
  time: { xLabel: "training time", xTime: true } };

/* Why records have no place on an axis. */
const PLACELESS = { epoch: "No epoch has ended yet, so that its number of updates is unknown.",
  time: "The records have no times." };

/* Interpolates between knots [update, value] in ascending order; null beyond the last one. */
function between(knots, update) {
  const after = d3.bisector(([at]) => at).left(knots, update);
  if (after === knots.length) return null;
  const [b, y] = knots[after];
  if (b === update || after === 0) return y;
  const [a, x] = knots[after - 1];
  return x + (y - x) * (update - a) / (b - a);
}

/* The number of epochs done at an update; null if the run does not say how many updates an epoch has. */
function epochAt(run) {
  const ended = run.epochs.map((e) => [e.step, epochsDone(run, e)]), last = ended.at(-1);
  const pace = last ? last[0] / last[1] : run.updates / run.facts.epochs;
  const [update, epoch] = last ?? [0, 0];
  return (at) => (at <= update ? between([[0, 0], ...ended], at) : isNumber(pace) && pace > 0
    ? epoch + (at - update) / pace : null);
}

/* The time in seconds that the training took until each record, without pauses between its processes: every process
   counts its seconds from its own start. Null where the records have no time. */
function timesOf(run) {
  const records = [
    ...run.steps.step.map((step, i) => ({ step, seconds: run.steps.seconds?.[i], kind: "steps", i })),
    ...run.epochs.map(({ step, seconds }, i) => ({ step, seconds, kind: "epochs", i }))]
    .sort((a, b) => a.step - b.step);
  const times = { steps: [], epochs: [] }, knots = [[0, 0]];
  let elapsed = 0, last = 0;
  for (const { step, seconds, kind, i } of records) {
    if (isNumber(seconds)) {
      elapsed += seconds >= last ? seconds - last : Math.max(0, seconds);
      last = seconds;
      knots.push([step, elapsed]);
    }
    times[kind][i] = isNumber(seconds) ? elapsed : null;
  }
  return { ...times, at: (update) => (knots.length > 1 ? between(knots, update) : null) };
}

/* Places on the x axis: of the records of steps and of epochs, and of any update. */
function placesOf(run, axis) {
  if (axis === "time") return timesOf(run);
  const at = axis === "epoch" ? epochAt(run) : (update) => update;
  return { steps: run.steps.step.map(at), epochs: run.epochs.map(({ step }) => at(step)), at };
}

/* --- smoothing --------------------------------------------------------------------------------------------------- */

const MOST_SMOOTH = 0.99;
const SMOOTHING = "Smoothing β: sₜ = β sₜ₋₁ + (1 − β) yₜ, s₀ = 0; the line shows sₜ / (1 − βᵗ) at the t-th point, as " +
  "in TensorBoard. It lags behind the values yₜ, which are faint. The learning rate is not smoothed.";

function smoothed(points, weight) {
  let sum = 0, seen = 0;
  return points.map((p) => {
    if (!isNumber(p.y)) return p;
    sum = weight * sum + (1 - weight) * p.y;
    seen++;
    return { ...p, y: sum / (1 - weight ** seen), raw: p };
  });
}
/* The values of a series, faint, and their smoothed line; without smoothing only the series. */
function withSmoothing(series, weight) {
  return weight > 0 ? [{ ...series, faint: true }, { ...series, faint: false, bare: true,
    points: smoothed(series.points, weight),
    tooltip: (p) => `${series.tooltip(p.raw)}\nsmoothed ${number(p.y)}` }] : [series];
}
/* Faint lines lie behind the others. */
function faintFirst(series) {
  return [...series.filter(({ faint }) => faint), ...series.filter(({ faint }) => !faint)];
}

/* --- series ------------------------------------------------------------------------------------------------------ */

function tooltipOfValue(run, what, at, p) {
  return [run.name, `${what} ${number(p.y)}`, at, isNumber(p.time) ? `after ${duration(p.time)}` : null]
    .filter(Boolean).join("\n");
}
/* A series of values over records, with their places on the x axis. Records that have no place are left out. */
function pointsOver(places, axis, values) {
  return values.map((value, i) => ({ ...value, x: places[i], time: axis === "time" ? places[i] : null }))
    .filter(({ x }) => isNumber(x));
}
function stepSeries(run, name, what, faint, axis) {
  const points = pointsOver(placesOf(run, axis).steps, axis,
    run.steps.step.map((step, i) => ({ step, y: run.steps[name][i] })));
  return { run, points, faint, bare: true,
    tooltip: (p) => tooltipOfValue(run, what, `update ${count(p.step)}`, p) };
}
function epochSeries(run, name, what, axis) {
  const points = pointsOver(placesOf(run, axis).epochs, axis,
    run.epochs.map((e) => ({ step: e.step, y: e[name] ?? null, epochs: epochsDone(run, e) })));
  return { run, points, bare: run.epochs.length > 40,
    tooltip: (p) => tooltipOfValue(run, what, `after epoch ${number(p.epochs)}, update ${count(p.step)}`, p) };
}
/* When the runs are evaluated. */
function rhythmOf(among) {
  return among.some((run) => run.facts.eval_every > 0) ? "at each evaluation" : "after each epoch";
}
function hasEpochs(run, name) {
  return run.epochs.some((e) => isNumber(e[name]));
}

function lineKey(...entries) {
  return element("div", { class: "key", "aria-hidden": "true" }, ...entries.map(([className, text]) => {
    const svg = d3.create("svg").attr("viewBox", "0 0 22 10").attr("class", runs.length === 1 ? "run-0" : "any");
    svg.append("line").attr("class", `line ${className}`).attr("x1", 0).attr("x2", 22).attr("y1", 5).attr("y2", 5);
    return element("span", {}, svg.node(), text);
  }));
}

/* The unit of the training loss, which is that of the task's metric "loss". */
function lossUnit(run) {
  return taskOf(run).metrics.find(({ name }) => name === "loss")?.unit ?? "";
}
/* The metrics of a run's evaluations. Metrics of two tasks with the same description share a chart; losses of two tasks
   do not. */
function metricsOf(run) {
  const { name: task, metrics } = taskOf(run);
  return metrics.filter((metric) => hasEpochs(run, evaluatedAs(metric)))
    .map((metric) => (metric.name === "loss" ? { ...metric, task } : metric));
}
function hasMetric(run, metric) {
  return metricsOf(run).some((own) => JSON.stringify(own) === JSON.stringify(metric));
}
/* The metrics of all runs, with losses first. */
function metricsAmong(among) {
  const found = new Map(among.flatMap(metricsOf).map((metric) => [JSON.stringify(metric), metric]));
  return [...found.values()].sort((a, b) => (b.name === "loss") - (a.name === "loss"));
}
/* A title such as "Training loss, nats", with the task's name if the runs have several tasks. */
function lossTitle(among, text, unit, task) {
  return withUnit(text, unit) + (among.some((run) => taskOf(run).name !== task) ? ` (${task})` : "");
}

function trainingTable(among) {
  const metrics = metricsAmong(among), units = new Set(among.map(lossUnit));
  const titles = [withUnit("train loss", units.size === 1 ? [...units][0] : ""),
    ...metrics.map(({ task, label, unit }) =>
      (task ? lossTitle(among, "eval loss", unit, task) : withUnit(label, unit))), "learning rate"];
  return table(["run", "epoch", "update", ...titles], among.flatMap((run) => run.epochs.map((e) =>
    [element("td", {}, run.name), countCell(epochsDone(run, e), number), countCell(e.step), numberCell(e.train_loss),
      ...metrics.map((metric) => numberCell(hasMetric(run, metric) ? e[evaluatedAs(metric)] : undefined)),
      numberCell(e.lr)])));
}

/* --- charts ------------------------------------------------------------------------------------------------------ */

/* The training loss: of each step and the mean up to each evaluation; with smoothing, of each step and smoothed. Steps
   are faint beside another line. */
function lossSeries(run, { axis, smooth }) {
  const steps = stepSeries(run, "loss", "train loss", hasEpochs(run, "train_loss"), axis);
  const epochs = epochSeries(run, "train_loss", "train loss, mean", axis);
  if (!(smooth > 0)) return [steps, epochs];
  return withSmoothing(steps.points.length > 1 ? steps : epochs, smooth);
}
function lossChart(among, task, own, view) {
  const strides = [...new Set(own.map((run) => run.steps.stride).filter((stride) => stride > 1))];
  const thinned = strides.length ? ` Long training runs show every ${strides.join("th or ")}th logged step.` : "";
  return {
    title: lossTitle(among, "Training loss", lossUnit(own[0]), task),
    key: view.smooth > 0 ? lineKey(["faint", "each step"], ["", "smoothed"])
      : own.some((run) => hasEpochs(run, "train_loss")) ? lineKey(["faint", "each step"], ["", `mean, ${rhythmOf(own)}`])
        : lineKey(["", "each step"]),
    caption: `On the augmented training images, with the weights of each step.${thinned}`,
    series: faintFirst(own.flatMap((run) => lossSeries(run, view))),
  };
}
function metricChart(among, metric, { axis, smooth }) {
  const { task, label, unit } = metric;
  return {
    title: task ? lossTitle(among, "Evaluation loss", unit, task)
      : withUnit(`${capital(label)} on evaluation images`, unit),
    max: maximumOf(unit),
    key: smooth > 0 ? lineKey(["faint", rhythmOf(among)], ["", "smoothed"]) : lineKey(["", rhythmOf(among)]),
    caption: task ? "On evaluation images, without augmentation and with fixed weights." : null,
    series: faintFirst(among.filter((run) => hasMetric(run, metric)).flatMap((run) =>
      withSmoothing(epochSeries(run, evaluatedAs(metric), task ? "evaluation loss" : label, axis), smooth))),
  };
}

/* A chart of a value over logged steps, or over epochs of training runs that were too short to log steps; null if no run
   has the value. */
function valueChart(among, name, what, axis, more) {
  const stepsOf = (run) => (run.steps[name] ?? []).filter(isNumber).length;
  const isOfSteps = (run) => stepsOf(run) > 1 || !hasEpochs(run, name);
  const own = among.filter((run) => stepsOf(run) || hasEpochs(run, name));
  const texts = new Set(own.map((run) => (isOfSteps(run) ? "at each logged update" : rhythmOf([run]))));
  return own.length ? { ...more, key: lineKey(...[...texts].map((text) => ["", text])),
    series: own.map((run) => (isOfSteps(run) ? stepSeries(run, name, what, false, axis)
      : epochSeries(run, name, what, axis))) } : null;
}
function rateChart(among, { axis }) {
  return valueChart(among, "lr", "learning rate", axis, { title: "Learning rate", zero: true,
    caption: "The factor of each update of the weights. It follows the schedule (--sched)." });
}

/* The specs of all charts of a training run, as trainingView() wants them. more: further ones, or null. */
function trainingCharts(among, view, ...more) {
  const zoom = { interval: view.zoom, change: view.changeZoom };
  return [...d3.groups(among, (run) => taskOf(run).name).map(([task, own]) => lossChart(among, task, own, view)),
    ...metricsAmong(among).map((metric) => metricChart(among, metric, view)), rateChart(among, view), ...more]
    .filter(Boolean)
    .map((spec) => ({ fromZero: true, log: view.log, ...AXES[view.axis], empty: PLACELESS[view.axis], ...spec, zoom }));
}

/* --- what the user chooses --------------------------------------------------------------------------------------- */

function chosenView() {
  const axis = fragment.get("x"), smooth = Number(fragment.get("smooth"));
  const zoom = (fragment.get("zoom") ?? "").split(",").map(Number);
  return {
    axis: Object.keys(AXES).includes(axis) ? axis : "update",
    log: fragment.get("scale") === "log",
    smooth: smooth > 0 && smooth <= MOST_SMOOTH ? smooth : 0,
    zoom: zoom.length === 2 && zoom.every(isNumber) && zoom[0] < zoom[1] ? zoom : null,
  };
}
function keepView({ axis, log, smooth, zoom }) {
  fragment.set({ x: axis === "update" ? null : axis, scale: log ? "log" : null, smooth: smooth || null,
    zoom: zoom && zoom.join(",") });
}

function smoothSlider(view, change) {
  const output = element("output", {}, view.smooth.toFixed(2));
  const input = element("input", { type: "range", min: 0, max: MOST_SMOOTH, step: 0.01, value: view.smooth,
    oninput: () => {
      output.textContent = Number(input.value).toFixed(2);
      change({ smooth: Number(input.value) });
    } });
  return element("label", { class: "slider" }, "Smoothing β", input, output);
}
function zoomButtons(place) {
  const zoomBy = (factor) => drawings.get(place.querySelector("figure"))?.zoomBy(factor);
  const button = (text, label, act) => element("button", { type: "button", class: "quiet", "aria-label": label,
    title: label, onclick: act }, text);
  return [button("+", "Zoom in", () => zoomBy(0.5)), button("−", "Zoom out", () => zoomBy(2))];
}

/* The choices of the charts of a training run and the place of the charts: {tools, note, place, redraw}. specs(view):
   the specs of the charts, [] if there is nothing to draw yet. What the user chooses is kept in the URL. */
function trainingView(specs) {
  const rounded = (zoom) => zoom && zoom.map((x) => Number(x.toPrecision(8)));
  const view = { changeZoom: (zoom) => change({ zoom: rounded(zoom) }) };
  const tools = element("div", { class: "tools" }), place = element("div", { class: "charts" });
  const reset = element("button", { type: "button", class: "quiet", onclick: () => change({ zoom: null }) },
    "Reset zoom");
  const note = element("p", { class: "note-below" }, "Drag over an interval of the x axis, or spread two fingers, to " +
    `zoom; double click, or “Reset zoom”, shows all. Keys in a chart: + and −. ${SMOOTHING}`);
  function redraw() {
    showCharts(place, specs(view));
    reset.disabled = !view.zoom;
  }
  function change(changes) {
    Object.assign(view, "axis" in changes ? { zoom: null } : {}, changes);
    keepView(view);
    redraw();
  }
  function begin() {
    Object.assign(view, chosenView());
    tools.replaceChildren(
      choice("x axis", Object.keys(AXES).map((name) => [name, name]), view.axis, (axis) => change({ axis })),
      scaleChoice(view.log, (log) => change({ log })), smoothSlider(view, change),
      element("span", { class: "buttons" }, ...zoomButtons(place), reset));
    redraw();
  }
  begin();
  fragment.listen(begin);
  return { tools, note, place, redraw };
}

function trainingSection() {
  const among = runs.filter((run) => run.steps.step.length || run.epochs.length);
  const { tools, note, place } = trainingView((view) => trainingCharts(among, view));
  const part = section("training", "Training", "Loss, evaluation metrics and learning rate.");
  part.append(tools, note, place, valueTable(() => trainingTable(among), "Values are never smoothed."));
  return part;
}
