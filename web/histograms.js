"use strict";
/* Histograms of the values that an instrument has for single images. */

/* Bounds of bins of equal width, at round numbers, for all lists of values: about log2(n) + 1 bins (Sturges), n being
   the length of the longest list. Bin i holds values from bound i up to, without, bound i + 1; the last one holds both.
*/
function binBounds(lists) {
  const [low, high] = d3.extent(lists.flat());
  if (low === high) {
    const half = Math.abs(low) * 0.05 || 0.5;
    return [low - half, low + half];
  }
  const step = d3.tickStep(low, high, Math.ceil(Math.log2(d3.max(lists, (list) => list.length))) + 1);
  const first = Math.floor(low / step), last = Math.max(first + 1, Math.ceil(high / step));
  return d3.range(first, last + 1).map((k) => k * step);
}
function countsIn(bounds, values) {
  const counts = d3.range(bounds.length - 1).map(() => 0);
  for (const value of values)
    counts[Math.max(0, Math.min(counts.length - 1, d3.bisectRight(bounds, value) - 1))]++;
  return counts;
}

function barSeries(run, bounds, values) {
  return { run, bars: true,
    tooltip: (p) => `${run.name}\n${number(p.from)} … ${number(p.to)}: ${plural(p.y, "image")}`,
    points: countsIn(bounds, values).map((y, i) =>
      ({ x: (bounds[i] + bounds[i + 1]) / 2, from: bounds[i], to: bounds[i + 1], y })) };
}

/* Specs of the histograms of one figure, one per run. All have the same axes. */
function histogramSpecs(kind, title) {
  const found = runs.map((run) => ({ run, figure: sampleFigures(run).find((f) => kindOf(f) === kind) }))
    .filter(({ figure }) => figure)
    .map(({ run, figure }) => ({ run, figure, values: [...figure.samples].filter(isNumber) }))
    .filter(({ values }) => values.length);
  const bounds = binBounds(found.map(({ values }) => values));
  const series = found.map(({ run, values }) => barSeries(run, bounds, values));
  return found.map(({ run, figure, values }, i) => {
    const { mean, deviation } = meanAndDeviation(values), missing = figure.samples.length - values.length;
    return { title: run.name, xLabel: title, measured: true, zero: true, counts: true, series: [series[i]],
      beside: series, pad: (bounds[1] - bounds[0]) / 2, verticals: [{ x: mean, label: `mean ${number(mean)}` }],
      caption: `Mean ${plusMinus(mean, deviation)}, n = ${plural(values.length, "recorded image")}` +
        `${figure.n > values.length ? ` of ${count(figure.n)}, whose mean is ${number(figure.mean)}` : ""}.` +
        (missing ? ` ${plural(missing, "image")} without a value.` : "") };
  });
}

/* --- the section ------------------------------------------------------------------------------------------------- */

/* All figures of a run that have values of single images. */
function sampleFigures(run) {
  return run.has_measure_file ? run.figures.filter((f) => f.head < 0 && f.samples?.length &&
    !EXPERIMENTS.includes(f.instrument)) : [];
}
function statisticOf({ instrument, statistic }) {
  return JSON.stringify([instrument, statistic]);
}
function kindOf({ instrument, statistic, node }) {
  return JSON.stringify([instrument, statistic, node]);
}
function statisticWords({ instrument, statistic }) {
  const { name, reading } = splitStatistic(instrument, statistic), { title, unit } = statisticInfo(instrument, name);
  return withUnit(`${titleOf(instrument)}, ${statisticIn(title, reading)}`, unit);
}
function hasSamples() {
  return runs.some((run) => sampleFigures(run).length);
}

function sampleTable(kind, title) {
  return table(["run", "image", title], runs.flatMap((run) =>
    [...(sampleFigures(run).find((f) => kindOf(f) === kind)?.samples ?? [])].map((value, i) =>
      [element("td", {}, run.name), countCell(i), numberCell(value)])));
}

function histogramSection() {
  const all = runs.flatMap(sampleFigures), statistics = new Map(all.map((f) => [statisticOf(f), f]));
  const nodesOf = (statistic) => [...new Set(all.filter((f) => statisticOf(f) === statistic).map(({ node }) => node))]
    .sort(compareNodes);
  const shown = { statistic: statisticOf(all[0]), node: null };
  const places = { nodes: element("span"), charts: element("div", { class: "charts close" }), values: element("div") };
  function showNode(node) {
    shown.node = node;
    const figure = statistics.get(shown.statistic), title = statisticWords(figure), kind = kindOf({ ...figure, node });
    places.charts.replaceChildren(...histogramSpecs(kind, title).map(chart));
    places.values.replaceChildren(valueTable(() => sampleTable(kind, title)));
  }
  function showStatistic(statistic) {
    shown.statistic = statistic;
    const nodes = nodesOf(statistic), node = nodes.includes(shown.node) ? shown.node : nodes[nodes.length - 1];
    const options = nodes.map((name) => [name, name || "whole network"]);
    places.nodes.replaceChildren(dropdown("Node", options, node, showNode));
    showNode(node);
  }
  const part = section("histograms", "Distribution over images",
    "How many of the recorded images have which value. All runs have the same bins and axes; the dashed line is the " +
    "mean.");
  part.append(element("div", { class: "tools" },
    dropdown("Figure", [...statistics].map(([key, figure]) => [key, statisticWords(figure)]), shown.statistic,
      showStatistic), places.nodes), places.charts, places.values);
  showStatistic(shown.statistic);
  return part;
}
