"use strict";
/* Charts of a training: loss, evaluation metrics and learning rate over updates. */

function tooltipOfValue(run, what, at, value) {
  return `${run.name}\n${what} ${number(value)}\n${at}`;
}
function stepSeries(run, name, what, faint) {
  const points = run.steps.step.map((step, i) => ({ x: step, y: run.steps[name][i] }));
  return { run, points, faint, bare: true,
    tooltip: (p) => tooltipOfValue(run, what, `update ${count(p.x)}`, p.y) };
}
function epochSeries(run, name, what) {
  const points = run.epochs.map((e) => ({ x: e.step, y: e[name] ?? null, epoch: e.epoch }));
  return { run, points, bare: run.epochs.length > 40,
    tooltip: (p) => tooltipOfValue(run, what, `after epoch ${p.epoch + 1}, update ${count(p.x)}`, p.y) };
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
    [element("td", {}, run.name), countCell(e.epoch + 1), countCell(e.step), numberCell(e.train_loss),
      ...metrics.map((metric) => numberCell(hasMetric(run, metric) ? e[evaluatedAs(metric)] : undefined)),
      numberCell(e.lr)])));
}

function lossChart(among, task, own, log) {
  const strides = [...new Set(own.map((run) => run.steps.stride).filter((stride) => stride > 1))];
  const thinned = strides.length ? ` Long trainings show every ${strides.join("th or ")}th logged step.` : "";
  return chart({
    title: lossTitle(among, "Training loss", lossUnit(own[0]), task), xLabel: "update", fromZero: true, log,
    key: lineKey(["faint", "each step"], ["", "mean of each epoch"]),
    caption: `On the augmented training images, with the weights of each step.${thinned}`,
    series: own.flatMap((run) => [stepSeries(run, "loss", "train loss", true),
      epochSeries(run, "train_loss", "train loss, mean")]),
  });
}
function metricChart(among, metric, log) {
  const { task, label, unit } = metric;
  return chart({
    title: task ? lossTitle(among, "Evaluation loss", unit, task)
      : withUnit(`${capital(label)} on evaluation images`, unit),
    xLabel: "update", fromZero: true, log, max: maximumOf(unit), key: lineKey(["", "after each epoch"]),
    caption: task ? "On evaluation images, without augmentation and with fixed weights." : null,
    series: among.filter((run) => hasMetric(run, metric))
      .map((run) => epochSeries(run, evaluatedAs(metric), task ? "evaluation loss" : label)),
  });
}

/* The learning rate over logged steps, or over epochs if the training was too short to log steps. */
function rateSeries(run) {
  return run.steps.step.length > 1 || !hasEpochs(run, "lr") ? stepSeries(run, "lr", "learning rate", false)
    : epochSeries(run, "lr", "learning rate");
}

function trainingCharts(among, log) {
  return [...d3.groups(among, (run) => taskOf(run).name).map(([task, own]) => lossChart(among, task, own, log)),
    ...metricsAmong(among).map((metric) => metricChart(among, metric, log)),
    chart({ title: "Learning rate", xLabel: "update", fromZero: true, zero: true, log,
      key: lineKey(["", "at each update"]), series: among.map(rateSeries) })];
}

function trainingSection() {
  const among = runs.filter((run) => run.steps.step.length || run.epochs.length);
  const place = element("div", { class: "charts" });
  const show = (log) => place.replaceChildren(...trainingCharts(among, log));
  const part = section("training", "Training", "Loss, evaluation metrics and learning rate over weight updates.",
    scaleChoice(false, show));
  show(false);
  part.append(place, valueTable(() => trainingTable(among)));
  return part;
}
