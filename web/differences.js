"use strict";
/* Sweeps: differences of settings from the first one, paired by seed, and the best and the second-best setting. */

/* Rankings of settings by figures of the whole network that rate it. */
function rankingOf(instrument, statistic) {
  return report.sweep.rankings.find((r) => r.instrument === instrument && r.statistic === statistic && r.node === "");
}
/* "best" or "second" for a setting that is so in a ranked figure; else undefined. */
function rankClass(setting, instrument, statistic) {
  const ranking = rankingOf(instrument, statistic);
  return ["best", "second"].find((place) => ranking?.[place] === setting);
}

/* "+2.50 [-10.2, 15.2]": three significant digits of half the interval, ties rounded away from zero, as the table of
   attscope sweep (cli/cells.c). */
function intervalText({ mean, low, high }) {
  const sign = mean > 0 ? "+" : "";
  if (!isNumber(low) || !isNumber(high)) return sign + number(mean);
  const half = (high - low) / 2, decimals = half > 0 ? Math.max(0, 2 - Math.floor(Math.log10(half))) : 4;
  const scale = 10 ** decimals, round = (value) => Math.sign(value) * Math.round(Math.abs(value) * scale) / scale;
  const write = (value) => (half >= 1e6 || decimals > 8 ? number(value, 3)
    : d3.format(`,.${decimals}f`)(round(value)));
  return `${sign}${write(mean)} [${write(low)}, ${write(high)}]`;
}

/* One sentence for each ranked figure: the best and the second-best setting, and whether the interval of their
   difference separates them. */
function rankingNotes() {
  return report.sweep.rankings.filter(({ best, second }) => isSetting(best) && isSetting(second)).map((r) => {
    const { title, unit } = statisticInfo(r.instrument, r.statistic);
    const verdict = r.n < 2 ? "no interval without two common seeds"
      : `the 95 % interval ${r.separated ? "separates them" : "does not separate them"}`;
    return element("p", { class: "note ranking" }, `${withUnit(title, unit)}: best `, element("b", {}, r.best),
      ", second ", element("u", {}, r.second),
      `, difference ${r.n ? intervalText(r) : "unknown"}, n ${count(r.n)}: ${verdict}.`);
  });
}

function isSetting(name) {
  return settingGroups().some((group) => group.name === name);
}
function differencesOf() {
  return report.sweep.differences.filter(({ setting, from }) => isSetting(setting) && isSetting(from));
}

function differenceCell(difference) {
  if (!difference) return numberCell(null);
  return element("td", { "data-value": whole(difference.mean),
    "data-more": JSON.stringify([difference.low, difference.high, difference.n].map(whole)) },
  intervalText(difference), element("small", {}, ` n ${count(difference.n)}`));
}

/* The table of figures of the whole network: a row for each figure, a column for each setting but the first. */
function differenceTable(differences, settings) {
  const whole = differences.filter(({ node }) => node === "");
  const rows = [...d3.group(whole, (d) => JSON.stringify([d.instrument, d.statistic])).values()].map((own) => {
    const { instrument, statistic } = own[0], { name, reading } = splitStatistic(instrument, statistic);
    const { title, unit } = statisticInfo(instrument, name);
    return [element("td", {}, instrument),
      element("td", { class: "text" }, statisticIn(withUnit(title, unit), reading)),
      ...settings.map((setting) => differenceCell(own.find((d) => d.setting === setting)))];
  });
  return rows.length ? scrolling(table(["instrument", "figure",
    ...settings.map((setting) => ({ text: setting, csv: [setting, `${setting}, from`, `${setting}, to`,
      `${setting}, n`] }))], rows, "headline"), "whole") : null;
}

/* One chart for a statistic: differences by block, with their intervals. */
function differenceChart(instrument, statistic, own, settings) {
  const axis = axisOf(own.map(({ node }) => node)), unit = unitOf(instrument, statistic);
  const groups = settingGroups(), shown = settings.filter((setting) => own.some((d) => d.setting === setting));
  const series = shown.map((setting, i) => {
    const run = groups.find(({ name }) => name === setting).group[0], found = own.filter((d) => d.setting === setting);
    const place = placesOn(axis, found.map(({ node }) => node));
    return { run, solid: true, shift: (i - (shown.length - 1) / 2) * 5,
      points: found.map((d) => ({ x: place.get(d.node), y: d.mean, difference: d,
        deviation: isNumber(d.high) ? (d.high - d.low) / 2 : undefined })),
      tooltip: ({ difference: d }) => `${setting} − ${d.from}\n${d.node}: ${intervalText(d)}` +
        `${unit === "1" ? "" : ` ${unit}`}\nn = ${plural(d.n, "seed")}` };
  });
  return chart({ title: withUnit(`${titleOf(instrument)}, ${statistic}`, unit), xLabel: "block", xTicks: ticksOf(axis),
    pad: 0.5, references: [{ y: 0, label: own[0].from }], series,
    key: element("div", { class: "key" }, ...series.map(({ run }, i) =>
      element("span", {}, markerOf(run), shown[i]))) });
}

function differenceCharts(instrument, differences, settings) {
  const own = differences.filter((d) => d.instrument === instrument && d.node !== "");
  return [...d3.group(own, ({ statistic }) => statistic)].map(([statistic, of]) =>
    differenceChart(instrument, statistic, of, settings));
}

function differenceSection() {
  const differences = differencesOf();
  const settings = [...new Set(differences.map(({ setting }) => setting))];
  const found = new Set(differences.filter(({ node }) => node !== "").map(({ instrument }) => instrument));
  const instrumentsOf = measuredInstruments().filter((name) => found.has(name));
  const place = element("div", { class: "charts" });
  const show = (instrument) => place.replaceChildren(...differenceCharts(instrument, differences, settings));
  const part = section("differences", `Differences from ${differences[0].from}`,
    "Each setting minus the first one, paired by seed. Marks are means over the seeds that both settings have; bars " +
    "are 95 % intervals.",
    instrumentsOf.length > 1 ? choice("Instrument", instrumentsOf.map((name) => [name, name]), instrumentsOf[0], show)
      : null);
  if (instrumentsOf.length) show(instrumentsOf[0]);
  part.append(...[...rankingNotes(), differenceTable(differences, settings), instrumentsOf.length ? place : null,
    element("p", { class: "about" }, `${capital(report.sweep.differences_are)}.`)].filter(Boolean));
  return part;
}
