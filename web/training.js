"use strict";
/* Training: loss, scores of evaluations and learning rate over updates. */

function tellValue(run, what, at, value) {
  return `${run.name}\n${what} ${number(value)}\n${at}`;
}
function stepSeries(run, name, what, faint) {
  const points = run.steps.step.map((step, i) => ({ x: step, y: run.steps[name][i] }));
  return { run, points, faint, bare: true,
    tell: (p) => tellValue(run, what, `update ${count(p.x)}`, p.y) };
}
function epochSeries(run, name, what) {
  const points = run.epochs.map((e) => ({ x: e.step, y: e[name] ?? null, epoch: e.epoch }));
  return { run, points, bare: run.epochs.length > 40,
    tell: (p) => tellValue(run, what, `after epoch ${p.epoch + 1}, update ${count(p.x)}`, p.y) };
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

/* Metrics of epochs other than the loss that the scoring instrument has, too: key, title, unit. */
function evaluatedScores(among) {
  const statistics = SCORE ? infoOf(SCORE.instrument).statistics ?? [] : [];
  return statistics.map(({ statistic }) => [evaluatedAs(statistic), statisticInfo(SCORE.instrument, statistic)])
    .filter(([key]) => key !== "eval_loss" && among.some((run) => hasEpochs(run, key)));
}

function trainingTable(among) {
  const columns = [["train_loss", "train loss, nats"], ["eval_loss", "eval loss, nats"],
    ...evaluatedScores(among).map(([key, { title, unit }]) => [key, withUnit(title, unit)]), ["lr", "learning rate"]];
  return table(["run", "epoch", "update", ...columns.map(([, title]) => title)],
    among.flatMap((run) => run.epochs.map((e) => [element("td", {}, run.name), countCell(e.epoch + 1), countCell(e.step),
      ...columns.map(([name]) => numberCell(e[name]))])));
}

function lossCharts(among, log) {
  const evaluated = among.filter((run) => hasEpochs(run, "eval_loss"));
  const strides = [...new Set(among.map((run) => run.steps.stride).filter((stride) => stride > 1))];
  const thinned = strides.length ? ` Of long trainings every ${strides.join("th or ")}th logged step is drawn.` : "";
  const charts = [chart({
    title: "Training loss, nats", xLabel: "update", fromZero: true, log,
    key: lineKey(["faint", "each step"], ["", "an epoch's mean"]),
    caption: `Of the training's own images, augmented, while the weights move.${thinned}`,
    series: among.flatMap((run) => [stepSeries(run, "loss", "train loss", true),
      epochSeries(run, "train_loss", "train loss, mean")]),
  })];
  if (evaluated.length)
    charts.push(chart({
      title: "Evaluation loss, nats", xLabel: "update", fromZero: true, log, key: lineKey(["", "after each epoch"]),
      caption: "Of evaluation images as they are, with the weights at rest.",
      series: evaluated.map((run) => epochSeries(run, "eval_loss", "evaluation loss")),
    }));
  return charts;
}

/* A training of fewer updates than it logs one of has epochs only. */
function rateSeries(run) {
  return run.steps.step.length > 1 || !hasEpochs(run, "lr") ? stepSeries(run, "lr", "learning rate", false)
    : epochSeries(run, "lr", "learning rate");
}

function trainingCharts(among, log) {
  const key = SCORE ? evaluatedAs(SCORE.statistic) : null;
  const scored = among.filter((run) => key && hasEpochs(run, key));
  const charts = lossCharts(among, log);
  if (scored.length)
    charts.push(chart({
      title: `${capital(SCORE.title)}, ${SCORE.unit} of evaluation images`, xLabel: "update", fromZero: true, log,
      most: mostOf(SCORE.unit), key: lineKey(["", "after each epoch"]),
      series: scored.map((run) => epochSeries(run, key, SCORE.title)),
    }));
  charts.push(chart({
    title: "Learning rate", xLabel: "update", fromZero: true, zero: true, log, key: lineKey(["", "of the update"]),
    series: among.map(rateSeries),
  }));
  return charts;
}

function trainingSection() {
  const among = runs.filter((run) => run.steps.step.length || run.epochs.length);
  const place = element("div", { class: "charts" });
  const show = (log) => place.replaceChildren(...trainingCharts(among, log));
  const part = section("training", "Training", "Loss, accuracy and learning rate over updates of the weights.",
    scaleChoice(false, show));
  show(false);
  part.append(place, valueTable(() => trainingTable(among)));
  return part;
}
