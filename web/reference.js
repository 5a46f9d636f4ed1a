"use strict";
/* Deviations from the trajectory of a reference run (report --reference), node by node and accumulated. */

/* Instruments with a trajectory along the network that the reference and another run have. */
function referenceInstruments() {
  if (report.reference === null) return [];
  const has = (run, name) => run.has_measure_file && run.figures.some((f) => f.instrument === name && f.node !== "");
  return measuredInstruments().filter((name) => infoOf(name).by_sample && has(runs[report.reference], name) &&
    runs.some((run) => run.index !== report.reference && has(run, name)));
}

/* Whether two runs were certainly measured on the same images in the same order, so that their values of single images
   can be compared. */
function wereMeasuredAlike(one, other) {
  const a = measuredFacts(one), b = measuredFacts(other);
  return a.contents !== undefined && a.contents === b.contents && a.split === b.split;
}

/* The deviations of a run: for each node that it shares with the reference, the difference of the means, the mean of
   the absolute differences of single images (of the means, if no images are recorded for both runs), and the sum of the
   latter up to this node. Nodes that another instrument excludes do not add to the sum. */
function deviationsOf(run, instrument, statistic) {
  const reference = runs[report.reference];
  const theirs = new Map(meansOf(reference, instrument, statistic).map((f) => [f.node, f]));
  const shared = meansOf(run, instrument, statistic).filter((f) => theirs.has(f.node));
  const paired = wereMeasuredAlike(run, reference);
  let sum = 0;
  return shared.map((figure) => {
    const other = theirs.get(figure.node), both = paired
      ? d3.zip(figure.samples ?? [], other.samples ?? []).filter((pair) => pair.every(isNumber)) : [];
    const mean = figure.mean - other.mean, images = both.length;
    const size = images ? d3.mean(both, ([a, b]) => Math.abs(a - b)) : Math.abs(mean);
    if (!figure.excluded && isNumber(size)) sum += size;
    return { figure, mean, size, images, sum };
  });
}

/* What the mean |difference| of a node compares. */
function comparisonOf({ images }) {
  return images ? `${plural(images, "image")}, one by one` : "means over all images";
}

function deviationChart(title, among, value, axis, caption) {
  const series = among.map(({ run, deviations }) => {
    const place = placesOn(axis, deviations.map(({ figure }) => figure.node));
    return { run, points: deviations.map((d) => ({ x: place.get(d.figure.node), y: value(d), d,
      hollow: d.figure.excluded })),
    tooltip: ({ y, d }) => `${run.name}\n${d.figure.node}: ${number(y)}\n` +
      comparisonOf(d) +
      (d.figure.excluded ? `\n${capital(excludedNote(d.figure.instrument))}.` : "") };
  });
  return chart({ title, xLabel: "block", xTicks: ticksOf(axis), pad: 0.5, series, caption,
    references: [{ y: 0, label: runs[report.reference].name }] });
}

function referenceTable(among) {
  return table(["run", "node", "difference of means", "mean |difference|", "accumulated", "compared by"],
    among.flatMap(({ run, deviations }) => deviations.map((d) => [element("td", {}, run.name),
      element("td", { class: "text" }, d.figure.node), numberCell(d.mean), numberCell(d.size), numberCell(d.sum),
      element("td", { class: "text" }, comparisonOf(d))])));
}

function referenceCharts(instrument, statistic) {
  const among = runs.filter((run) => run.index !== report.reference && run.has_measure_file)
    .map((run) => ({ run, deviations: deviationsOf(run, instrument, statistic) }))
    .filter(({ deviations }) => deviations.length);
  const axis = axisOf(among.flatMap(({ deviations }) => deviations.map(({ figure }) => figure.node)));
  const single = among.every(({ deviations }) => deviations.every(({ images }) => images));
  const of = single ? "image by image" : "image by image if both runs kept figures of the same images";
  return [element("div", { class: "charts" },
    deviationChart("Difference by block", among, (d) => d.mean, axis,
      "Mean of the run minus mean of the reference, at each node that both have."),
    deviationChart("Accumulated deviation", among, (d) => d.sum, axis,
      `Running sum, from the first node, of |difference of the two means|; ${of}` +
      (infoOf(instrument).excluded ? `. Hollow nodes (${excludedNote(instrument)}) do not add to it.` : "."))),
  scrolling(referenceTable(among), "whole")];
}

function referenceSection(instrument, index) {
  const statistics = statisticsOf(instrument), place = element("div", { class: "kinds" });
  const show = (statistic) => place.replaceChildren(...referenceCharts(instrument, statistic));
  const part = section(index ? `reference-${instrument}` : "reference",
    `${titleOf(instrument)}: deviation from ${runs[report.reference].name}`,
    "How far each run is from the trajectory of the reference run, node by node, and how this accumulates along the " +
    "network.",
    statistics.length > 1 ? choice(infoOf(instrument).readings ? "Reading" : "Statistic",
      statistics.map((s) => [s, s]), statistics[0], show) : null);
  part.append(place);
  show(statistics[0]);
  return part;
}
