"use strict";
/* How measured figures developed while training: one line a layer. */

const DEVELOPMENTS = [
  ["entropy", "mean", "Entropy, nats"], ["distance", "mean", "Distance, image sides"],
  ["jacobian", "nuclear", "Jacobian, nuclear"], ["jacobian", "frobenius", "Jacobian, Frobenius"],
  ["nsi", "attention", "NSI"], ["residual", "composite", "Rank residual"],
  ["tns", "tns attention", "TNS"], ["accuracy", "top1", "Top-1 of training images, %"]];

function seriesOf(run, instrument, statistic) {
  return run.development.series.filter((s) => s.instrument === instrument && s.statistic === statistic);
}

function linesOf(run, instrument, statistic) {
  const list = seriesOf(run, instrument, statistic);
  const share = (i) => (list.length > 1 ? Math.round((100 * i) / (list.length - 1)) : 100);
  return list.map((s, i) => ({
    run, bare: true, colour: `color-mix(in oklab, var(--deep) ${share(i)}%, var(--shallow))`,
    points: run.development.step.map((step, k) => ({ x: step, y: s.mean[k], k })),
    tell: (p) => `${run.name}\n${s.node || "whole network"}: ${plusMinus(s.mean[p.k], s.deviation[p.k])}\n` +
      `n = ${count(s.n[p.k])} images\nupdate ${count(p.x)}`,
  }));
}

/* One chart a run, on one scale. */
function developmentCharts(among, [instrument, statistic, title]) {
  const lines = among.map((run) => linesOf(run, instrument, statistic));
  return among.map((run, i) => chart({
    title: runs.length > 1 ? `${run.name}: ${title}` : title, xLabel: "update", log: instrument === "residual",
    series: lines[i], beside: lines.flat(),
  }));
}

function developmentSection() {
  const among = runs.filter((run) => run.development.series.length);
  const offered = DEVELOPMENTS.filter(([instrument, statistic]) =>
    among.some((run) => seriesOf(run, instrument, statistic).length));
  const place = element("div", { class: "charts" });
  const methodPlace = element("div");
  function show(index) {
    const kind = offered[index];
    place.replaceChildren(...developmentCharts(among.filter((run) => seriesOf(run, kind[0], kind[1]).length), kind));
    methodPlace.replaceChildren(method(kind[0]) ?? "");
  }
  const part = section("development", "Development",
    "How the figures moved while training, on the batches of the training itself. " +
    "One line a layer: faint near the input, strong near the output.",
    choice("Figure", offered.map(([, , title], i) => [i, title]), 0, show));
  part.append(place, methodPlace);
  show(0);
  return part;
}
