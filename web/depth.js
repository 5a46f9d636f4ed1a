"use strict";
/* Charts of measurements by depth: one chart per statistic, with all runs on an axis of blocks. */

/* Appearance of the charts of some instruments. OTHERS applies to all others. heads: also draw values of single heads.
   readingOf: a reading's name in titles. max: largest possible value. charts: function that draws all charts of an
   instrument, in place of one for each statistic. */

const ALIKE = "Smaller values: tokens are more alike.";
const textOfSwitches = (reading) => switchLook(reading).text;
const DEPTHS = [
  { instrument: "entropy", heads: true },
  { instrument: "distance", heads: true },
  { instrument: "jacobian", heads: true },
  { instrument: "nsi" },
  { instrument: "gate", max: 1 },
  { instrument: "skip_weight", heads: true },
  { instrument: "residual", log: true, caption: ALIKE },
  { instrument: "collapse", log: true, charts: switchCharts, readingOf: textOfSwitches, caption: ALIKE },
  { instrument: "similarity", max: 1, readingOf: textOfSwitches },
  { instrument: "rank", readingOf: textOfSwitches },
];

const OTHERS = { heads: true };

/* Whether an instrument has a section of its own, without charts by depth. */
function hasOwnSection(instrument) {
  return [...PATHS, ...EXPERIMENTS, CHAINS, SURFACES].includes(instrument);
}

/* The appearance of each instrument that has measurements of nodes. */
function depthSpecs() {
  const others = measuredInstruments().filter((name) =>
    !DEPTHS.some((spec) => spec.instrument === name) && !hasOwnSection(name));
  return [...DEPTHS.filter((spec) => hasInstrument(spec.instrument)),
    ...others.filter((name) => !isOfNetworks(name)).map((name) => ({ ...OTHERS, instrument: name }))];
}

/* The largest possible value of a figure, or 0 if unknown. Records of version 0.2 have none for entropy, but the number
   of tokens. */
function boundOf(run, figure) {
  return figure.bound || (figure.instrument === "entropy" && run.facts.tokens > 0 ? Math.log(run.facts.tokens) : 0);
}

/* The value of a figure under uniform attention, or 0 if unknown. The largest possible entropy is that value. */
function uniformOf(run, figure) {
  return figure.uniform || boundOf(run, figure);
}

/* "ln 49" of the logarithm of a whole number; else the number. */
function boundText(bound) {
  const keys = Math.round(Math.exp(bound));
  return Math.abs(Math.log(keys) - bound) < 1e-9 ? `ln ${count(keys)}` : number(bound);
}

/* Lines at the values of uniform attention: each as long as the layers that it holds for, with a label at the end. */
function uniformLines(lines, axis) {
  const found = lines.flatMap(({ run, means }) => {
    const place = placesOn(axis, means.map((f) => f.node));
    return means.map((f) => ({ y: uniformOf(run, f), x: place.get(f.node) })).filter(({ y }) => y > 0);
  });
  const groups = d3.groups(found, ({ y }) => y);
  return groups.map(([y, of]) => ({ y, label: `${boundText(y)}, uniform attention`,
    ...(groups.length > 1 ? { from: d3.min(of, ({ x }) => x) - 0.5, to: d3.max(of, ({ x }) => x) + 0.5 } : {}) }));
}

/* Horizontal offset of a run's marks in pixels, so that marks of several runs do not overlap. */
function shiftOf(run, among) {
  const step = Math.min(6, 24 / Math.max(1, among.length));
  return (among.indexOf(run) - (among.length - 1) / 2) * step;
}

function tooltipOf(run, figure, unit) {
  const head = figure.head < 0 ? "" : `, head ${figure.head}`;
  const value = `${plusMinus(figure.mean, figure.deviation)}${unit === "1" ? "" : ` ${unit}`}`;
  return `${run.name}\n${figure.node}${head}: ${value}\nn = ${plural(figure.n, "image")}` +
    (figure.excluded ? `\n${capital(excludedNote(figure.instrument))}.` : "");
}

/* The axis of a chart: all blocks in which anything was measured, so that all charts of a network have the same axis,
   and the nodes of this chart that are not in a block. Instruments with sections of their own do not count: the nodes
   of some are lengths of paths, not blocks. */
function depthAxis(spec, statistic, among) {
  const blocks = among.flatMap((run) => run.figures.filter((f) => !hasOwnSection(f.instrument)).map((f) => f.node)
    .filter((node) => stepAt(node).stage));
  return axisOf([...blocks, ...among.flatMap((run) => meansOf(run, spec.instrument, statistic).map((f) => f.node))]);
}

/* The lines of a chart, {run, means} each. If the instrument is by_block, nodes of one block measure different things,
   which must not be joined by a line; then the chart shows only the nodes at position `part` in their block. */
function linesOfPart(spec, statistic, among, part) {
  return among.flatMap((run) => {
    const means = meansOf(run, spec.instrument, statistic);
    if (!infoOf(spec.instrument).by_block) return [{ run, means }];
    return [...orderOfParts(means.map((f) => f.node))].filter(([, place]) => place === part)
      .map(([name]) => ({ run, name, means: means.filter((f) => partOf(f.node) === name) }));
  });
}

function depthSeries(spec, statistic, lines, axis) {
  const unit = unitOf(spec.instrument, statistic);
  const among = [...new Set(lines.map(({ run }) => run))];
  return lines.flatMap(({ run, means }) => {
    const place = placesOn(axis, means.map((f) => f.node));
    const point = (f) => ({ x: place.get(f.node), y: f.mean, deviation: f.deviation, figure: f, hollow: f.excluded });
    const common = { run, shift: shiftOf(run, among), tooltip: (p) => tooltipOf(run, p.figure, unit) };
    const heads = headsOf(run, spec.instrument, statistic).filter((f) => place.has(f.node)).map(point);
    return [...(heads.length ? [{ ...common, points: heads, heads: true }] : []),
      { ...common, points: means.map(point) }];
  });
}

/* The key of a chart. hollow: explanation of hollow marks; null if there are none. */
function keyOf(heads, hollow) {
  const item = (draw, text) => {
    const svg = d3.create("svg").attr("viewBox", "0 0 22 10").attr("class", runs.length === 1 ? "run-0" : "any");
    draw(svg);
    return element("span", {}, svg.node(), text);
  };
  return element("div", { class: "key", "aria-hidden": "true" },
    item((svg) => {
      svg.append("line").attr("class", "whisker").attr("x1", 11).attr("x2", 11).attr("y1", -1).attr("y2", 11);
      svg.append("path").attr("class", "mark").attr("d", d3.symbol().size(40)()).attr("transform", "translate(11,5)");
    }, "mean ± deviation over images"),
    hollow ? item((svg) => svg.append("path").attr("class", "mark hollow").attr("d", d3.symbol().size(40)())
      .attr("transform", "translate(11,5)"), hollow) : null,
    heads ? item((svg) => {
      for (const x of [5, 11, 17])
        svg.append("circle").attr("class", "head-dot").attr("r", 2.6).attr("cx", x).attr("cy", 5);
    }, "single heads") : null);
}

/* The unit of a statistic, with or without its reading. */
function unitOf(instrument, statistic) {
  return statisticInfo(instrument, splitStatistic(instrument, statistic).name).unit;
}

/* The title of a statistic: the instrument's, if it has only a mean. */
function labelOf(spec, statistic) {
  const { instrument } = spec, { name, reading } = splitStatistic(instrument, statistic);
  const words = reading && (spec.readingOf?.(reading) ?? reading);
  if (!name) return `${titleOf(instrument)}, reading ${words}`;
  if (name === "mean" && statisticsOf(instrument).length === 1) return titleOf(instrument);
  return capital([statisticInfo(instrument, name).title, words].filter(Boolean).join(", "));
}

/* The charts to draw, [statistic, title] each. Readings that agree on all runs share a chart. */
function drawnOf(spec, statistics, among) {
  const readings = infoOf(spec.instrument).readings ?? [];
  const values = (statistic) =>
    JSON.stringify(among.map((run) => meansOf(run, spec.instrument, statistic).map((f) => f.mean)));
  const titles = statistics.map((statistic) => [statistic, labelOf(spec, statistic)]);
  if (!readings.length || !readings.every((r) => statistics.includes(r)) || new Set(readings.map(values)).size > 1)
    return titles;
  return [[readings[0], agreeSentence(spec.instrument)], ...titles.filter(([name]) => !readings.includes(name))];
}

/* The charts of a statistic: one, or one per position in a block (see linesOfPart()). */
function depthCharts(spec, statistic, title, measured, log) {
  const among = measured.filter((run) => meansOf(run, spec.instrument, statistic).length);
  const places = infoOf(spec.instrument).by_block ? d3.max(among, (run) =>
    d3.max(orderOfParts(meansOf(run, spec.instrument, statistic).map((f) => f.node)).values())) + 1 : 1;
  return d3.range(places).map((part) => {
    const lines = linesOfPart(spec, statistic, among, part);
    const names = [...new Set(lines.map(({ name }) => name))].join(", ");
    return depthChart(spec, statistic, places > 1 ? `${title}: ${names}` : title, among, lines, log);
  });
}

function depthChart(spec, statistic, title, among, lines, log) {
  const axis = depthAxis(spec, statistic, among);
  const series = depthSeries(spec, statistic, lines, axis);
  const several = series.some((s) => s.points.some((p) => !Number.isInteger(p.x)));
  const unit = unitOf(spec.instrument, statistic);
  const hollow = series.some((s) => s.points.some((p) => p.hollow)) ? excludedNote(spec.instrument) : null;
  const heads = spec.heads && among.some((run) => headsOf(run, spec.instrument, statistic).length);
  return chart({
    title: withUnit(title, unit),
    xLabel: "block",
    xTicks: ticksOf(axis),
    pad: 0.5,
    max: spec.max,
    log,
    references: uniformLines(lines, axis),
    caption: [several ? "Nodes of one block are drawn side by side, in the order of execution." : null,
      infoOf(spec.instrument).excluded ? `Hollow: ${excludedNote(spec.instrument)}.` : null,
      spec.caption].filter(Boolean).join(" "),
    key: keyOf(heads, hollow),
    series,
  });
}

function depthTable(spec, statistics) {
  const marks = infoOf(spec.instrument).excluded;
  const hasAny = (test) => runs.some((run) =>
    run.figures.some((f) => f.instrument === spec.instrument && test(run, f)));
  const bounded = hasAny((run, f) => boundOf(run, f) > 0), scaled = !bounded && hasAny((run, f) => f.uniform > 0);
  const units = statistics.map((statistic) => unitOf(spec.instrument, statistic));
  const several = new Set(units).size > 1, unit = several ? "" : units[0];
  const rows = runs.flatMap((run) => statistics.flatMap((statistic, i) =>
    run.figures.filter((f) => f.instrument === spec.instrument && f.statistic === statistic).map((f) => [
      element("td", {}, run.name),
      element("td", { class: "text" }, several ? withUnit(statistic, units[i]) : statistic),
      element("td", { class: "text" }, f.node),
      element("td", {}, f.head < 0 ? "all" : String(f.head)), numberCell(f.mean), numberCell(f.deviation),
      countCell(f.n), ...(bounded ? [numberCell(boundOf(run, f) || null)] : []),
      ...(scaled ? [numberCell(f.uniform || null)] : []),
      ...(marks ? [element("td", { class: "text" }, f.excluded ? "yes *" : "no")] : [])])));
  return table(["run", "statistic", "node", "head", withUnit("mean", unit), withUnit("deviation", unit), "n",
    ...(bounded ? [withUnit("bound", unit)] : []), ...(scaled ? [withUnit("uniform", unit)] : []),
    ...(marks ? ["excluded"] : [])], rows);
}

/* A table of measurements of whole networks, with one row per run. */
function wholeTable(spec, statistics, among) {
  const rows = among.map((run) => [run, statistics.map((name) => figureNamed(run, spec.instrument, name))])
    .filter(([, figures]) => figures.some(Boolean));
  if (!rows.length) return null;
  return scrolling(table(
    ["run", ...statistics.map((name) => `${labelOf(spec, name)}, mean ± deviation over images`), "n"],
    rows.map(([run, figures]) => [element("td", {}, nameOf(run)),
      ...figures.map((f) => numberCell(f?.mean ?? null, f?.deviation)),
      countCell(figures.find(Boolean).n)]), "headline"), "whole");
}

/* The charts of runs of one kind (see kindsOf()), and a note about the images on which they were measured. */
function depthGroup(spec, { words, among }, log) {
  const isOfNetwork = (statistic) => among.every((run) =>
    meansOf(run, spec.instrument, statistic).every((f) => f.node === ""));
  const measured = statisticsOf(spec.instrument).filter((statistic) =>
    among.some((run) => meansOf(run, spec.instrument, statistic).length));
  const statistics = measured.filter((statistic) => !isOfNetwork(statistic));
  const origins = new Set(among.map(originOf)).size === 1 ? [originOf(among[0])]
    : among.map((run) => `${run.name}: ${originOf(run)}`);
  return [words ? element("h3", { class: "kind" }, words) : null,
    element("div", { class: "charts" }, ...(spec.charts ? spec.charts(spec, among, log)
      : drawnOf(spec, statistics, among).flatMap(([statistic, title]) =>
        depthCharts(spec, statistic, title, among, log)))),
    wholeTable(spec, measured.filter(isOfNetwork), among),
    element("figcaption", {}, `Measured on ${origins.join("; ")}.`)].filter(Boolean);
}

function depthSection(spec) {
  const measured = runs.filter((run) => run.figures.some((f) => f.instrument === spec.instrument));
  const place = element("div", { class: "kinds" });
  const show = (log) => place.replaceChildren(...kindsOf(measured).flatMap((kind) => depthGroup(spec, kind, log)));
  const title = titleOf(spec.instrument), { excluded } = infoOf(spec.instrument);
  const part = section(spec.instrument, title, summaryOf(spec.instrument, title),
    scaleChoice(spec.log ?? false, show));
  show(spec.log ?? false);
  part.append(...[place, method(spec.instrument),
    valueTable(() => depthTable(spec, statisticsOf(spec.instrument)), excluded ? `* ${capital(excluded)}.` : null)]
    .filter(Boolean));
  return part;
}
