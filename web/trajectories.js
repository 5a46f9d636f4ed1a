"use strict";
/* Sweeps: the table of settings, measurements of single images along the network, and rank correlations. */

/* Groups the runs of sweeps by setting. Other runs are omitted. */
function settingGroups() {
  return groupsOf(runs.filter((run) => run.setting !== null));
}

/* --- settings ---------------------------------------------------------------------------------------------------- */

/* A cell with a setting's measurement of the whole network. */
function settingFigure(setting, instrument, statistic) {
  const f = setting.figures.find((g) => g.instrument === instrument && g.node === "" && g.statistic === statistic);
  const cell = numberCell(f?.mean ?? null, f?.deviation, f && f.n !== setting.n ? f.n : undefined);
  const rank = rankClass(setting.setting, instrument, statistic);
  if (rank) cell.classList.add(rank);
  return cell;
}

/* A cell with the mean over layers of an instrument's first statistic: mean and deviation over the setting's runs. */
function layerCell(setting, instrument) {
  const statistic = statisticsOf(instrument)[0];
  const values = runs.filter((run) => run.setting === setting.setting && run.has_measure_file)
    .map((run) => d3.mean(meansOf(run, instrument, statistic), (f) => f.mean)).filter(isNumber);
  const { mean, deviation } = meanAndDeviation(values);
  return numberCell(values.length ? mean : null, deviation, values.length === setting.n ? undefined : values.length);
}

function isMeasured(settings, instrument) {
  return settings.some(({ figures }) => figures.some((f) => f.instrument === instrument));
}

/* Columns of an instrument that measures whole networks: its main statistic (score or brief), or all if it has none.
   Each is [title, function that makes the cell]. */
function networkColumns(instrument) {
  const { score, brief } = infoOf(instrument), only = score ?? brief;
  return statisticNames(instrument).filter((name) => !only || name === only).map((name) => {
    const { title, unit } = statisticInfo(instrument, name);
    return [withUnit(title, unit), (setting, reading) => settingFigure(setting, instrument,
      statisticIn(name, (infoOf(instrument).readings ?? []).includes(reading) ? reading : null))];
  });
}
/* The readings of instruments that measure whole networks, one row per setting each; [null] if there are none. */
function settingReadings(settings) {
  const found = networkInstruments().filter((name) => isMeasured(settings, name))
    .flatMap((name) => infoOf(name).readings ?? []);
  return found.length ? [...new Set(found)] : [null];
}
/* All measured columns, [title, function that makes the cell of a setting and reading] each. Columns that do not depend
   on the reading come first. */
function measuredColumns(settings) {
  const has = (instrument) => isMeasured(settings, instrument);
  const whole = networkInstruments().filter(has);
  const columnsOf = (read) => whole.filter((name) => Boolean(infoOf(name).readings) === read).flatMap(networkColumns);
  return [
    ...columnsOf(false),
    ...DEPTHS.filter(({ instrument, heads }) => heads && has(instrument)).map(({ instrument }) =>
      [withUnit(`${instrument}, mean over layers`, infoOf(instrument).unit),
        (setting) => layerCell(setting, instrument)]),
    ...whole.some((name) => infoOf(name).readings)
      ? [["reading", (_, reading) => element("td", { class: "text" }, reading)], ...columnsOf(true)] : [],
  ];
}

/* The metric by which a setting's task judges a network; undefined if no training evaluated it. */
function settingMetric({ task, metric }) {
  return tasks.get(task)?.metrics.find(({ name }) => name === metric);
}
/* Columns with the scores of the last evaluation, one per metric, and their differences from the first setting's, if a
   setting lacks a measured score. */
function scoreColumns(settings) {
  const isScored = (setting) => SCORE?.statistic === setting.metric &&
    setting.figures.some((f) => f.instrument === SCORE.instrument && f.statistic === SCORE.statistic && f.n > 0);
  if (!settings.some((setting) => settingMetric(setting) && !isScored(setting))) return [];
  const scores = [...new Set(settings.map(settingMetric).filter(Boolean))].map((metric) =>
    [`${withUnit(metric.label, metric.unit)}, last evaluation`, (setting) =>
      (settingMetric(setting) === metric ? numberCell(setting.score, setting.score_deviation) : numberCell(null))]);
  const paired = settings.find((setting) => setting.score_difference)?.score_difference;
  return paired ? [...scores, [`difference from ${paired.from}`, (setting) => differenceCell(setting.score_difference)]]
    : scores;
}

function settingRow(setting, reading, columns) {
  return [element("td", {}, setting.setting), element("td", { class: "text" }, setting.seeds.join(", ")),
    countCell(setting.n), countCell(setting.parameters, millions),
    numberCell(setting.seconds, setting.seconds_deviation), ...columns.map(([, cell]) => cell(setting, reading))];
}

/* One sentence per setting with failed runs, which are in no table or chart. */
function failedNotes() {
  return [...d3.group(report.failed, (run) => run.setting)].map(([setting, failed]) => {
    const reason = failed.find((run) => run.reason)?.reason;
    return element("p", { class: "note failed" },
      `${setting}: ${plural(failed.length, "run")} failed${reason ? `: ${reason}` : ""}`);
  });
}

function settingsSection() {
  const names = new Set(settingGroups().map(({ name }) => name));
  const settings = report.sweep.settings.filter(({ setting }) => names.has(setting));
  const part = section("settings", "Settings",
    "Mean ± standard deviation (n − 1) over the n runs of a setting, which differ only in the seed. The value of a " +
    "run is its mean over images.");
  const columns = [...scoreColumns(settings), ...measuredColumns(settings)], readings = settingReadings(settings);
  part.append(...[arranged("settings", "setting", table(["setting", "seeds", "runs, n", "parameters",
    "training time, s", ...columns.map(([title]) => title)],
  settings.flatMap((setting) => readings.map((reading) => settingRow(setting, reading, columns))),
  "headline"), "whole").node,
  ...failedNotes(),
  ...networkInstruments().filter((name) => infoOf(name).readings && isMeasured(settings, name)).map(method)]
    .filter(Boolean));
  return part;
}

/* --- along the network ------------------------------------------------------------------------------------------- */

const MOST_LINES = 32;

/* The figures of nodes that have values of single images; one of the whole network is no trajectory. */
function samplesOf(run, instrument, statistic) {
  return meansOf(run, instrument, statistic).filter((f) => f.node !== "" && f.samples?.length);
}
function sampledRuns(instrument) {
  return runs.filter((run) => run.has_measure_file &&
    statisticsOf(instrument).some((s) => samplesOf(run, instrument, s).length));
}
/* Instruments for which values of single images were recorded along the network. */
function sampledInstruments() {
  return measuredInstruments().filter((name) => !EXPERIMENTS.includes(name) && sampledRuns(name).length);
}

const ENVELOPE_DASH = "5 4";

/* The series of one run in one stage: a line for each image, and dashed lines for the minimum and the maximum over all
   recorded images at each node. */
function trajectorySeries({ run, figures }, axis) {
  const place = placesOn(axis, figures.map((f) => f.node));
  const kept = d3.min(figures, (f) => f.samples.length);
  const line = (values, more) => ({ run, bare: true, ...more,
    points: figures.map((f) => ({ x: place.get(f.node), y: values(f.samples), figure: f, hollow: f.excluded })) });
  const tooltip = (words) => (p) => `${run.name}\n${p.figure.node}, ${words}: ${number(p.y)}` +
    (p.figure.excluded ? `\n${capital(excludedNote(p.figure.instrument))}.` : "");
  return [...d3.range(Math.min(kept, MOST_LINES)).map((k) =>
    line((samples) => samples[k], { faint: true, solid: true, tooltip: tooltip(`image ${k}`) })),
  line((samples) => d3.min(samples), { dash: ENVELOPE_DASH, tooltip: tooltip(`minimum of ${plural(kept, "image")}`) }),
  line((samples) => d3.max(samples), { dash: ENVELOPE_DASH, tooltip: tooltip(`maximum of ${plural(kept, "image")}`) })];
}

/* One row of charts for a stage, one chart per setting. All have the same y axis. */
function stageRow(title, columns, log) {
  const axis = axisOf(columns.flatMap(({ figures }) => figures.map((f) => f.node)));
  const all = columns.map((column) => trajectorySeries(column, axis));
  return [element("h3", { class: "kind" }, title),
    element("div", { class: "charts close" }, ...columns.map(({ name, run, figures }, i) => chart({
      title: name === run.name ? name : `${name}, seed ${run.facts.seed ?? "–"}`, pad: 0.5, log,
      xLabel: "block", xTicks: ticksOf(axis), series: all[i], beside: all.flat(),
      caption: `Thin lines: ${plural(all[i].length - 2, "image")}, one line each. Dashed lines: minimum and maximum ` +
        `at each node over the ${count(d3.min(figures, (f) => f.samples.length))} recorded images; they are not the ` +
        "lines of single images." +
        (figures.some((f) => f.excluded) ? ` Hollow: ${excludedNote(figures[0].instrument)}.` : ""),
    })))];
}

function trajectoryRows(instrument, groups, statistic, seed, log) {
  const columns = groups.map(({ name, group }) => {
    const run = group.find((r) => String(r.facts.seed) === seed) ?? group[0];
    return { name, run, stages: new Map(stagesOf(samplesOf(run, instrument, statistic))) };
  });
  const stages = [...new Set(columns.flatMap(({ stages: own }) => [...own.keys()]))];
  return stages.flatMap((stage) => stageRow(stages.length > 1 ? `Stage ${stage}` : "One stage",
    columns.filter(({ stages: own }) => own.has(stage))
      .map(({ stages: own, ...column }) => ({ ...column, figures: own.get(stage) })), log));
}

/* The series of one setting in one stage, for charts of all runs: a line for the mean over images of each run, and
   dashed lines for the minimum and the maximum over all runs and recorded images of the setting. */
function envelopeSeries(runsOf, axis) {
  const tooltip = (run, words) => (p) => `${run.name}\n${p.figure.node}, ${words}: ${number(p.y)}` +
    (p.figure.excluded ? `\n${capital(excludedNote(p.figure.instrument))}.` : "");
  const pointsOf = (figures, value) => {
    const place = placesOn(axis, figures.map((f) => f.node));
    return figures.map((f) => ({ x: place.get(f.node), y: value(f), figure: f, hollow: f.excluded }));
  };
  const first = runsOf[0], of = d3.group(runsOf.flatMap(({ figures }) => figures), (f) => f.node);
  const extreme = (least, words) => ({ run: first.run, bare: true, dash: ENVELOPE_DASH,
    tooltip: tooltip(first.run, words),
    points: pointsOf(first.figures, (f) => least(of.get(f.node).flatMap(({ samples }) => [...samples]))) });
  return [...runsOf.map(({ run, figures }) => ({ run, bare: true, solid: true,
    tooltip: tooltip(run, "mean over images"), points: pointsOf(figures, (f) => f.mean) })),
  extreme(d3.min, "minimum"), extreme(d3.max, "maximum")];
}

/* One chart for each stage, with all runs of all settings. */
function togetherCharts(instrument, groups, statistic, log) {
  const all = groups.map(({ group }) => group.map((run) =>
    ({ run, stages: new Map(stagesOf(samplesOf(run, instrument, statistic))) })));
  const stages = [...new Set(all.flat().flatMap(({ stages: own }) => [...own.keys()]))];
  return [element("div", { class: "charts" }, ...stages.map((stage) => {
    const here = all.map((runsOf) => runsOf.filter(({ stages: own }) => own.has(stage))
      .map(({ run, stages: own }) => ({ run, figures: own.get(stage) }))).filter((runsOf) => runsOf.length);
    const figures = here.flat().flatMap((own) => own.figures), axis = axisOf(figures.map((f) => f.node));
    return chart({ title: stages.length > 1 ? `Stage ${stage}` : "One stage", pad: 0.5, log, xLabel: "block",
      xTicks: ticksOf(axis), series: here.flatMap((runsOf) => envelopeSeries(runsOf, axis)),
      caption: "Solid lines: mean over images, one line per run. Dashed lines: minimum and maximum at each node over " +
        "all seeds and recorded images of a setting." +
        (figures.some((f) => f.excluded) ? ` Hollow: ${excludedNote(instrument)}.` : "") });
  }))];
}

function trajectorySection(instrument, index) {
  const among = sampledRuns(instrument), groups = groupsOf(among), { readings } = infoOf(instrument);
  const statistics = statisticsOf(instrument).filter((s) => among.some((run) => samplesOf(run, instrument, s).length));
  const seeds = [...new Set(among.map((run) => String(run.facts.seed)))];
  const place = element("div", { class: "kinds" });
  const shown = { statistic: statistics[0], seed: seeds[0], log: false, together: false };
  function show(change) {
    Object.assign(shown, change);
    place.replaceChildren(...(shown.together ? togetherCharts(instrument, groups, shown.statistic, shown.log)
      : trajectoryRows(instrument, groups, shown.statistic, shown.seed, shown.log)));
  }
  const several = groups.some(({ group }) => group.length > 1);
  const part = section(index ? `trajectories-${instrument}` : "trajectories",
    `${titleOf(instrument)} along the network`,
    "From node to node, with one line for each image. Each row of charts shows one stage, with the settings side by " +
    "side on one scale.",
    element("div", { class: "tools" },
      statistics.length > 1 ? choice(readings ? "Reading" : "Statistic", statistics.map((s) => [s, s]), shown.statistic,
        (statistic) => show({ statistic })) : null,
      among.length > 1 ? choice("Lines", [[false, "single images"], [true, "all runs in one chart"]], false,
        (together) => show({ together })) : null,
      several ? choice("Seed", seeds.map((seed) => [seed, seed]), shown.seed, (seed) => show({ seed })) : null,
      scaleChoice(false, (log) => show({ log }))));
  part.append(place, method(instrument) ?? "");
  show({});
  return part;
}

/* --- rank correlations ------------------------------------------------------------------------------------------- */

const LEVEL = 0.05;

/* Whether a correlation is over all runs. */
function isOverall({ setting, model }) {
  return setting === null && model === null;
}
function correlationsOf() {
  return report.sweep.correlations.some((c) => isOverall(c) && c.n >= 3)
    ? report.sweep.correlations.filter((c) => c.n >= 2) : [];
}
/* The pairs [x, y] of correlated measurements, without duplicates. */
function correlatedPairs() {
  return [...new Map(correlationsOf().map(({ x, y }) => [JSON.stringify([x, y]), [x, y]])).values()];
}
/* Describes a measurement: {instrument, title, unit, reading}, with a title such as "ζ*" or "entropy mean of
   blocks.3.attn". */
function describeFigure(called) {
  const figure = runs.map((run) => figureCalled(run, called)).find(Boolean);
  const { instrument, node } = figure, { name, reading } = splitStatistic(instrument, figure.statistic);
  const { title, unit } = statisticInfo(instrument, name);
  const own = infoOf(instrument).statistics?.some(({ statistic }) => statistic === name);
  return { instrument, reading, unit: unit === "1" ? "" : unit,
    title: `${own ? title : statisticIn(instrument, name)}${node ? ` of ${node}` : ""}` };
}

/* The point of a run that has both measurements; null for other runs. */
function pointOf(run, [xName, yName]) {
  const x = figureCalled(run, xName)?.mean, y = figureCalled(run, yName)?.mean;
  return run.has_measure_file && isNumber(x) && isNumber(y) ? { x, y } : null;
}

function ranksText({ value, p, adjusted_p: corrected }) {
  return `${number(value, 3)} (p ${number(p, 2)}, corrected ${number(corrected, 2)})`;
}

function scatter(pair, title) {
  const groups = groupsOf(runs.filter((run) => pointOf(run, pair))), [x, y] = pair.map(describeFigure);
  const overall = report.sweep.correlations.find((c) => isOverall(c) && c.x === pair[0] && c.y === pair[1]);
  const points = groups.flatMap(({ group }) => group.map((run) => pointOf(run, pair).x));
  const valueText = ({ title: name, unit }, value) => `${name} ${number(value)}${unit ? ` ${unit}` : ""}`;
  return chart({
    title, xLabel: withUnit(x.title, x.unit), measured: true, max: maximumOf(y.unit),
    pad: (d3.max(points) - d3.min(points)) * 0.05 || 0.01,
    key: element("div", { class: "key" }, ...groups.map(({ name, group }) =>
      element("span", {}, ...group.map(markerOf), name))),
    caption: `One point per run; τ-b ${ranksText(overall.kendall)}, ρ ${ranksText(overall.spearman)}, n = ` +
      `${plural(overall.n, "run")} of ${plural(overall.groups, "setting")}.` + (overall.groups < 2 ? "" : " Means of " +
      `settings: τ-b ${ranksText(overall.means.kendall)}, ρ ${ranksText(overall.means.spearman)}.`),
    series: groups.flatMap(({ name, group }) => group.map((run) => ({
      run, apart: true, points: [pointOf(run, pair)],
      tooltip: (p) => `${run.name}\n${name}\n${valueText(x, p.x)}, ${valueText(y, p.y)}`,
    }))),
  });
}

/* One chart per pair. Readings of x that agree on all runs share a chart. */
function scatters() {
  const alike = d3.group(correlatedPairs(), (pair) => {
    const { instrument, title, reading } = describeFigure(pair[0]);
    return JSON.stringify([reading && [instrument, title], pair[reading ? 1 : 0], reading ? null : pair[1],
      runs.map((run) => pointOf(run, pair))]);
  });
  return [...alike.values()].map(([pair, ...others]) => {
    const [x, y] = pair.map(describeFigure);
    const against = `${capital(y.title)}${y.unit ? ` ${y.unit}` : ""} against ${x.title}`;
    return scatter(pair, others.length ? `${against}. ${agreeSentence(x.instrument)}`
      : x.reading ? `${against}, reading ${x.reading}` : against);
  });
}

function intervalCell({ low, high }) {
  return element("td", { class: "text", "data-value": whole(low), "data-more": JSON.stringify([whole(high)]) },
    isNumber(low) ? `${number(low, 3)} … ${number(high, 3)}` : "–");
}
function scopeOf({ setting, model }) {
  return setting ?? model ?? "all runs";
}
function correlationTable() {
  const text = (words) => element("td", { class: "text" }, words);
  const named = (called) => {
    const { title, reading } = describeFigure(called);
    return text(reading ? `${title}, ${reading}` : title);
  };
  const cells = (c, points) => [text(plural(c.n, points)),
    ...[c.kendall, c.spearman].flatMap((ranks) => [numberCell(ranks.value), numberCell(ranks.p),
      numberCell(ranks.adjusted_p), numberCell(ranks.least_p), intervalCell(ranks)])];
  const rows = correlationsOf().flatMap((c) => [
    [element("td", {}, scopeOf(c)), named(c.x), named(c.y), ...cells(c, "run")],
    ...(c.means?.n > 1 ? [[element("td", {}, `${scopeOf(c)}: means of settings`), named(c.x), named(c.y),
      ...cells(c.means, "setting")]] : [])]);
  const ranks = (name) => [name, { text: "p", csv: [`${name}, p`] },
    { text: "p, corrected", csv: [`${name}, p corrected`] },
    { text: "least possible p", csv: [`${name}, least possible p`] },
    { text: "95 %", csv: [`${name}, 95 % from`, `${name}, 95 % to`] }];
  return scrolling(table(["runs of", "x", "y", "points, n", ...ranks("τ-b"), ...ranks("ρ")], rows, "headline"),
    "whole");
}
function methodOfCorrelations() {
  return element("dl", { class: "method" }, ...report.sweep.methods.flatMap(({ name, formula, source }) =>
    [element("dt", {}, name), element("dd", {}, element("code", {}, formula), ` (${source})`)]));
}

/* A note about the scopes in which no order of the figures has a small p. */
function powerNote() {
  const first = [...d3.group(correlationsOf(), (c) => JSON.stringify([c.setting, c.model])).values()]
    .map(([c]) => c);
  const sentences = first.map((c) => {
    const least = d3.min([c.kendall.least_p, c.spearman.least_p].filter(isNumber));
    const points = plural(c.groups, c.setting === null ? "setting" : "run");
    if (least <= LEVEL) return null;
    return isNumber(least) ? `${scopeOf(c)}: with ${points} no order of the figures has p below ${number(least, 2)}`
      : `${scopeOf(c)}: no test with ${points}`;
  }).filter(Boolean);
  return sentences.length ? element("p", { class: "note", id: "power" },
    `${sentences.join("; ")}. These tests cannot show a correlation: at least 5 settings (within a setting: 5 runs) ` +
    "are needed.") : null;
}

/* The section's title: "Accuracy against total neural stiffness" if all pairs are of these two instruments. */
function correlationTitle() {
  const titles = new Set(correlatedPairs().map((pair) => {
    const [x, y] = pair.map((called) => titleOf(describeFigure(called).instrument));
    return `${y} against ${x.charAt(0).toLowerCase()}${x.slice(1)}`;
  }));
  return titles.size === 1 ? [...titles][0] : "Rank correlations";
}
function correlationSection() {
  const part = section("correlation", correlationTitle(),
    "Does one measurement increase with the other? One point per run. The table has the correlations over all runs, " +
    "then within each architecture and each setting, whose runs differ only in the seed.");
  part.append(...[element("div", { class: "charts" }, ...scatters()), correlationTable(), powerNote(),
    methodOfCorrelations()].filter(Boolean));
  return part;
}
