"use strict";
/* Charts of rank collapse: for each run the residual by depth, with one line for each set of switches. */

const NO_NORM = "_no_norm";
const SWITCH_NAMES = { attention: "attention only", skip: "attention + skip", mlp: "attention + MLP",
  both: "attention + skip + MLP" };

/* The colour stands for skip and MLP; dashed lines are without norms. */
function switchLook(reading) {
  const bare = reading.endsWith(NO_NORM), name = bare ? reading.slice(0, -NO_NORM.length) : reading;
  const index = Object.keys(SWITCH_NAMES).indexOf(name);
  return { colour: `var(--run-${Math.max(0, index)})`, dash: bare ? "5 3" : "none",
    text: `${SWITCH_NAMES[name] ?? name}${bare ? ", without norms" : ""}` };
}

function switchLines(run, spec, name, axis) {
  const unit = infoOf(spec.instrument).unit;
  return infoOf(spec.instrument).readings
    .map((reading) => [reading, meansOf(run, spec.instrument, statisticIn(name, reading))])
    .filter(([, means]) => means.length)
    .map(([reading, means]) => {
      const place = placesOn(axis, means.map((f) => f.node)), look = switchLook(reading);
      return { run, ...look, tooltip: (p) => `${look.text}\n${tooltipOf(run, p.figure, unit)}`,
        points: means.map((f) => ({ x: place.get(f.node), y: f.mean, deviation: f.deviation, figure: f })) };
    });
}

/* The key of lines: {colour, dash, text} each. */
function keyOfLines(lines) {
  return element("div", { class: "key", "aria-hidden": "true" }, ...lines.map(({ colour, dash, text }) => {
    const svg = d3.create("svg").attr("viewBox", "0 0 22 10").attr("class", "any").style("--c", colour);
    svg.append("line").attr("class", "line").attr("x1", 0).attr("x2", 22).attr("y1", 5).attr("y2", 5)
      .attr("stroke-dasharray", dash);
    return element("span", {}, svg.node(), text);
  }));
}

/* Figures of runs in f32 end in rounding noise, those of f64 do not get there. A measurement may have another precision
   than the training. */
function captionOf(run, spec) {
  const { precision } = { ...run.facts, ...measuredFacts(run) };
  return precision === "f64" ? spec.caption : `${spec.caption} Values near 1e-6 are rounding noise of f32.`;
}

/* One chart for each run and norm of the residual. */
function switchCharts(spec, among, log) {
  return among.flatMap((run) => statisticNames(spec.instrument).map((name) => {
    const nodes = infoOf(spec.instrument).readings.flatMap((reading) =>
      meansOf(run, spec.instrument, statisticIn(name, reading)).map((f) => f.node)).filter(Boolean);
    const axis = axisOf([...new Set(nodes)]), series = switchLines(run, spec, name, axis), title = labelOf(spec, name);
    return nodes.length === 0 ? null : chart({
      title: runs.length > 1 ? `${run.name}: ${title}` : title,
      xLabel: "block", xTicks: ticksOf(axis), pad: 0.5, log, caption: captionOf(run, spec), key: keyOfLines(series),
      series,
    });
  }));
}
