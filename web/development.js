"use strict";
/* Charts of measurements during training, with one line per layer. */

/* The charts of an instrument, as [instrument, statistic, title]: its main statistic (predictor, score or brief), else
   all. The only statistic of an instrument is not named. */
function developmentsOf(instrument, statistics) {
  const { predictor, score, brief, readings } = infoOf(instrument);
  const wanted = predictor ? [statisticIn(predictor, readings?.[0])] : score ? [score] : brief ? [brief] : statistics;
  return wanted.filter((statistic) => statistics.includes(statistic)).map((statistic) => {
    const { name, reading } = splitStatistic(instrument, statistic), { title, unit } = statisticInfo(instrument, name);
    const whole = predictor || score ? title : statistics.length === 1 ? titleOf(instrument) :
      `${titleOf(instrument)}, ${statisticIn(title, reading)}`;
    return [instrument, statistic, withUnit(score ? `${capital(title)} on training images` : whole, unit)];
  });
}
function offeredDevelopments(among) {
  const found = d3.group(among.flatMap((run) => run.development.series), (s) => s.instrument);
  const order = new Set([...report.instruments.map(({ name }) => name), ...found.keys()]);
  return [...order].filter((name) => found.has(name)).flatMap((name) =>
    developmentsOf(name, [...new Set(found.get(name).map((s) => s.statistic))]));
}

function seriesOf(run, instrument, statistic) {
  return run.development.series.filter((s) =>
    s.instrument === instrument && s.statistic === statistic && !(s.head >= 0));
}

function linesOf(run, instrument, statistic) {
  const list = seriesOf(run, instrument, statistic);
  const share = (i) => (list.length > 1 ? Math.round((100 * i) / (list.length - 1)) : 100);
  return list.map((s, i) => ({
    run, bare: true, solid: true, dash: s.excluded ? "2 4" : null,
    colour: `color-mix(in oklab, var(--deep) ${share(i)}%, var(--shallow))`,
    points: run.development.step.map((step, k) => ({ x: step, y: s.mean[k], k })),
    tooltip: (p) => `${run.name}\n${s.node || "whole network"}: ${plusMinus(s.mean[p.k], s.deviation[p.k])}\n` +
      `n = ${plural(s.n[p.k], "image")}\nupdate ${count(p.x)}` +
      (s.excluded ? `\n${capital(excludedNote(instrument))}.` : ""),
  }));
}

/* One chart per run. All have the same y axis. */
function developmentSpecs(among, [instrument, statistic, title], log) {
  const lines = among.map((run) => linesOf(run, instrument, statistic));
  return among.map((run, i) => ({
    title: runs.length > 1 ? `${run.name}: ${title}` : title, xLabel: "update", log,
    series: lines[i], beside: lines.flat(),
    caption: lines[i].some((line) => line.dash) ? `Dashed: ${excludedNote(instrument)}.` : null,
  }));
}

function developmentSection() {
  const among = runs.filter((run) => run.development.series.length);
  const offered = offeredDevelopments(among);
  const place = element("div", { class: "charts" });
  const methodPlace = element("div");
  const shown = { kind: offered[0], log: false };
  function show(change) {
    Object.assign(shown, change);
    const [instrument, statistic] = shown.kind;
    showCharts(place, developmentSpecs(
      among.filter((run) => seriesOf(run, instrument, statistic).length), shown.kind, shown.log));
    methodPlace.replaceChildren(method(instrument) ?? "");
  }
  const part = section("development", "Development",
    "Measurements during training, on the augmented images of single updates, not on a data set. " +
    "One line per layer: faint near the input, strong near the output.",
    element("div", { class: "tools" },
      choice("Measurement", offered.map((kind) => [kind, kind[2]]), offered[0], (kind) => show({ kind })),
      scaleChoice(false, (log) => show({ log }))));
  part.append(place, methodPlace);
  show({});
  return part;
}
