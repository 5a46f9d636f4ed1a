"use strict";
/* Charts of `attscope ode`: step size and stiffness index of a system. Each method is a run. */

/* Points of a run from its steps [t, h, SI, SAI, NSI]. Values that a logarithmic axis cannot show are left out. */
function odePoints(run, x, y) {
  return run.trajectory.steps.map(([t, h, si, sai, nsi]) => ({ t, h, si, sai, nsi }))
    .map((step) => ({ x: x(step), y: y(step), step }));
}
function odeTooltip(run) {
  return ({ step }) => `${run.name}, t = ${number(step.t)}\nh ${number(step.h)}\nSI ${number(step.si)}\n` +
    `h SI ${number(step.h * step.si)}\nSAI ${number(step.sai)}`;
}
function odeSeries(x, y, more) {
  return runs.map((run) => ({ run, points: odePoints(run, x, y), tooltip: odeTooltip(run), ...more }));
}

/* h = limit / SI, the largest stable step on a negative eigenvalue, over the range of SI in all runs. */
function limitSeries() {
  const all = runs.flatMap((run) => run.trajectory.steps.map((step) => step[2])).filter((si) => si > 0);
  if (!all.length) return [];
  return runs.filter((run) => isNumber(run.trajectory.limit)).map((run) => ({
    run, faint: true, tooltip: ({ step }) => `${run.name}: limit h = ${number(run.trajectory.limit)} / SI\n` +
      `SI ${number(step.si)}: h ${number(step.h)}`,
    points: d3.extent(all).map((si) => ({ si, h: run.trajectory.limit / si }))
      .map((step) => ({ x: step.si, y: step.h, step })),
  }));
}

function odeTable() {
  return table(["method", "steps", "rejected", "f calls", "steps above the limit"],
    runs.map(({ name, trajectory: t }) => [element("td", {}, t.diverged ? `${name} (diverged)` : name),
      countCell(t.count), countCell(t.rejected), countCell(t.rate_calls), countCell(t.above_limit)]));
}

function odeSection() {
  const thinned = runs.filter((run) => run.trajectory.stride > 1)
    .map((run) => `${run.name}: every ${run.trajectory.stride}th step.`).join(" ");
  const part = section("ode", "Step size and stiffness index",
    `The system: ${report.ode.formula}. Source: ${report.ode.source}.`);
  const positive = (series) => series.map((s) => ({ ...s, points: s.points.filter((p) => p.x > 0) }));
  part.append(element("div", { class: "charts" },
    chart({ title: "Step size against stiffness index", xLabel: "stiffness index SI", log: true, xLog: true,
      measured: true, caption: `Each dot is a step. Thin lines: h = limit / SI. ${thinned}`.trim(),
      series: positive([...odeSeries(({ si }) => si, ({ h }) => h, { heads: true }), ...limitSeries()]) }),
    chart({ title: "Step size over time", xLabel: "t", log: true, measured: true,
      series: odeSeries(({ t }) => t, ({ h }) => h, { bare: true }) }),
    chart({ title: "Stiffness index over time", xLabel: "t", log: true, measured: true,
      caption: "max |Re λ| of the Jacobian at the beginning of each step.",
      series: odeSeries(({ t }) => t, ({ si }) => si, { bare: true }) }),
    chart({ title: "Stiffness-aware index over time", xLabel: "t", log: true, measured: true,
      caption: "|u(t + h) − u(t)| / (h |u(t)|).",
      series: odeSeries(({ t }) => t, ({ sai }) => sai, { bare: true }) })),
  scrolling(odeTable()));
  return part;
}
