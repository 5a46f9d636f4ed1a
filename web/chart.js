"use strict";
/* Line charts with a cursor that follows pointer and keys, zoom, and showing and hiding runs in all charts. */

const MARGIN = { top: 14, right: 14, bottom: 36, left: 50 };
const HEIGHT = 270;

function extentOf(spec) {
  const values = [...spec.series, ...(spec.beside ?? [])].flatMap((s) => s.points.flatMap((p) => p.box ??
    (isNumber(p.deviation) && !s.heads ? [p.y, p.y - p.deviation, p.y + p.deviation] : [p.y])));
  const references = (spec.references ?? []).map((r) => r.y);
  const usable = [...values, ...references].filter((v) => isNumber(v) && (!spec.log || v > 0));
  const [low, high] = usable.length ? d3.extent(usable) : [spec.log ? 0.1 : 0, 1];
  /* The axis does not extend below 0 if no value is negative, nor above spec.max if no value exceeds it, even if error
     bars do. */
  const never = (outside) => spec.series.every((s) => s.points.every((p) => !outside(p.y)));
  const ceiling = never((y) => y > spec.max) ? spec.max ?? Infinity : Infinity;
  if (spec.log) return [low === high ? low / 2 : low * 0.94, Math.min(ceiling, high * (low === high ? 2 : 1.06))];
  const room = (high - low || Math.abs(high) || 1) * 0.06;
  const floor = never((y) => y < 0) ? 0 : -Infinity;
  return [spec.zero ? Math.min(0, low) : Math.max(floor, low - room), Math.min(ceiling, high + room)];
}

/* The ends of the x axis of a chart that is not zoomed. */
function domainOf(spec) {
  const xs = spec.xTicks ? d3.range(spec.xTicks.length) : spec.series.flatMap((s) => s.points.map((p) => p.x));
  const [lowest, last] = xs.length ? d3.extent(xs) : [0, 1];
  const first = spec.fromZero ? 0 : lowest;
  const pad = spec.pad ?? 0;
  if (spec.xLog) return [first * (first === last ? 0.5 : 0.9), last * (first === last ? 2 : 1.1)];
  return [first - pad, (first === last && !pad ? last + 1 : last) + pad];
}

function scalesOf(spec, width) {
  const x = (spec.xLog ? d3.scaleLog() : d3.scaleLinear()).domain(spec.zoom?.interval ?? domainOf(spec))
    .range([MARGIN.left, width - MARGIN.right]);
  const y = (spec.log ? d3.scaleLog() : d3.scaleLinear()).domain(extentOf(spec))
    .range([HEIGHT - MARGIN.bottom, MARGIN.top]);
  return { x, y: spec.log ? y : y.nice(5) };
}

/* Ticks of a logarithmic axis: powers of ten. Over few decades, also 2 and 5 times these, or all integer multiples. */
function logTicks(scale) {
  const [low, high] = scale.domain();
  const decades = Math.log10(high / low);
  const wanted = decades > 3 ? [1] : decades > 1 ? [1, 2, 5] : [1, 2, 3, 4, 5, 6, 7, 8, 9];
  const all = scale.ticks(decades > 6 ? 6 : 20);
  const chosen = all.filter((v) => wanted.includes(Math.round(v / 10 ** Math.floor(Math.log10(v) + 1e-9))));
  return chosen.length > 1 ? chosen : d3.ticks(low, high, 5).filter((v) => v > 0);
}

/* Ticks of an axis of seconds, at whole seconds, minutes, hours or days where they are far enough apart. */
const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200];
const DAY = 86400;
function timeTicks(scale, most) {
  const [low, high] = scale.domain();
  const step = high - low < most ? d3.tickStep(low, high, most) : TIME_STEPS.find((s) => (high - low) / s <= most) ??
    Math.max(1, d3.tickStep(low / DAY, high / DAY, most)) * DAY;
  return d3.range(Math.ceil(low / step) * step, high + step * 1e-6, step);
}
/* "1:30 h", "2:05 min", "12 s": in the unit of the largest tick, with as many places as neighbouring ticks need. */
function timeText(seconds, ticks) {
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : 1, last = ticks[ticks.length - 1];
  const two = (value) => String(value).padStart(2, "0");
  if (last < 60 || step < 1) return `${number(seconds)} s`;
  if (last >= 2 * DAY && step >= DAY) return `${number(seconds / DAY)} d`;
  const rest = Math.round(seconds), minutes = Math.floor(rest / 60), hours = Math.floor(rest / 3600);
  if (last < 3600) return step % 60 ? `${minutes}:${two(rest % 60)} min` : `${minutes} min`;
  return step % 60 ? `${hours}:${two(minutes % 60)}:${two(rest % 60)} h`
    : step % 3600 ? `${hours}:${two(minutes % 60)} h` : `${hours} h`;
}

/* Number of digits that makes the labels of neighbouring ticks differ. */
function tickDigits(ticks) {
  const steps = d3.pairs(ticks, (a, b) => Math.abs(b - a)), largest = d3.max(ticks, Math.abs);
  const step = d3.min(steps);
  return step > 0 && largest > 0 ? Math.max(4, Math.min(9, Math.ceil(Math.log10(largest / step)) + 1)) : 4;
}

function drawAxes(svg, spec, { x, y }, width) {
  const xAxis = d3.axisBottom(x).tickSizeOuter(0).tickSizeInner(4).tickPadding(6);
  const room = Math.max(2, Math.floor(width / 70));
  if (spec.xTicks) {
    const wide = 8 + 7 * d3.max(spec.xTicks, (text) => text.length); /* width of the longest label in pixels */
    const every = Math.ceil(spec.xTicks.length / Math.max(2, Math.floor((width - 64) / Math.max(26, wide))));
    xAxis.tickValues(spec.xTicks.map((_, i) => i).filter((i) => i % every === 0)).tickFormat((i) => spec.xTicks[i]);
  } else if (spec.xTime) {
    const ticks = timeTicks(x, Math.min(room, 8));
    xAxis.tickValues(ticks).tickFormat((v) => timeText(v, ticks));
  } else {
    const ticks = spec.xLog ? logTicks(x).filter((_, i, all) => i % Math.ceil(all.length / room) === 0)
      : x.ticks(Math.min(room, 8));
    xAxis.tickValues(spec.measured ? ticks : ticks.filter(Number.isInteger))
      .tickFormat(spec.measured ? (v) => number(v) : d3.format("~s"));
  }
  svg.append("g").attr("class", "axis x").attr("transform", `translate(0,${HEIGHT - MARGIN.bottom})`).call(xAxis);
  const ticks = spec.log ? logTicks(y) : spec.counts ? y.ticks(5).filter(Number.isInteger) : y.ticks(5);
  const yAxis = d3.axisLeft(y).tickValues(ticks).tickSize(-(width - MARGIN.left - MARGIN.right)).tickPadding(8)
    .tickFormat((v) => number(v, tickDigits(ticks)));
  svg.append("g").attr("class", "axis y").attr("transform", `translate(${MARGIN.left},0)`).call(yAxis)
    .call((g) => g.select(".domain").remove());
  svg.append("text").attr("class", "label").attr("x", width - MARGIN.right).attr("y", HEIGHT - 3)
    .attr("text-anchor", "end").text(spec.xLabel);
}

/* The baselines of the references' labels, from the top of the chart: above the own line, below it if another label is
   there, else below that label. spans: {left, right, y} in pixels of each. */
const ABOVE = -5, BELOW = 13, LABEL_HEIGHT = 14;
function labelPlaces(spans) {
  const placed = [];
  for (const span of [...spans].sort((a, b) => a.y - b.y)) {
    const near = placed.filter(({ left, right }) => left < span.right && span.left < right);
    const free = (at) => near.every((other) => Math.abs(other.at - at) >= LABEL_HEIGHT);
    const after = d3.max(near, (other) => other.at + LABEL_HEIGHT);
    placed.push({ ...span, at: [span.y + ABOVE, span.y + BELOW].find(free) ?? after });
  }
  return new Map(placed.map(({ of, at }) => [of, at]));
}

function drawReferences(svg, references, { x, y }, width) {
  const spans = references.map((of) => ({ of, y: y(of.y),
    left: of.from === undefined ? MARGIN.left : Math.max(MARGIN.left, x(of.from)),
    right: of.to === undefined ? width - MARGIN.right : Math.min(width - MARGIN.right, x(of.to)) }));
  const places = labelPlaces(spans);
  for (const span of spans) {
    const g = svg.append("g").attr("class", "reference").attr("transform", `translate(0,${span.y})`);
    g.append("line").attr("x1", span.left).attr("x2", span.right);
    g.append("text").attr("x", span.right).attr("y", places.get(span.of) - span.y).attr("text-anchor", "end")
      .text(span.of.label);
  }
}

function drawSeries(svg, series, { x, y }, log) {
  const seen = series.points.filter((p) => isNumber(p.y) && (!log || p.y > 0));
  const g = svg.append("g").attr("class", `series ${classOf(series.run)}`).attr("data-run", series.run.index);
  if (series.colour) g.style("--c", series.colour);
  const at = (p) => x(p.x) + (series.shift ?? 0);
  if (series.heads) {
    g.selectAll("circle").data(seen).join("circle").attr("class", "head-dot").attr("r", 2.6).attr("cx", at)
      .attr("cy", (p) => y(p.y)).attr("data-value", (p) => p.y);
    return;
  }
  const usable = (p) => isNumber(p.y) && (!log || p.y > 0);
  if (!series.apart) g.append("path").attr("class", `line${series.faint ? " faint" : ""}`)
    .attr("stroke-dasharray", series.dash ?? (series.solid ? null : dashOf(series.run)))
    .attr("d", d3.line().defined(usable).x(at).y((p) => y(p.y))(series.points));
  if (series.faint) return;
  const clamp = (v) => y(Math.max(y.domain()[0], Math.min(v, y.domain()[1])));
  /* On a logarithmic axis a bar whose lower end has no place ends at the mean. */
  const lowest = (p) => (log && p.y - p.deviation <= 0 ? p.y : p.y - p.deviation);
  if (series.band) g.insert("path", ":first-child").attr("class", "band").attr("d", d3.area()
    .defined((p) => usable(p) && isNumber(p.deviation)).x(at)
    .y0((p) => clamp(lowest(p))).y1((p) => clamp(p.y + p.deviation))(series.points));
  const marked = seen.filter((p) => !p.edge && (!series.bare || p.hollow));
  g.selectAll(".whisker").data(series.band ? [] : marked.filter((p) => isNumber(p.deviation))).join("line")
    .attr("class", "whisker").attr("x1", at).attr("x2", at)
    .attr("y1", (p) => clamp(lowest(p))).attr("y2", (p) => clamp(p.y + p.deviation));
  g.selectAll(".mark").data(marked).join("path").attr("class", (p) => `mark${p.hollow ? " hollow" : ""}`)
    .attr("d", symbolOf(series.run)).attr("transform", (p) => `translate(${at(p)},${y(p.y)})`)
    .attr("data-x", (p) => p.x).attr("data-value", (p) => p.y);
}

/* Boxes between the quartiles with the median, and lines to the extremes. */
function drawBoxes(svg, series, { x, y }) {
  const WIDTH = 9;
  const g = svg.append("g").attr("class", `series ${classOf(series.run)}`).attr("data-run", series.run.index);
  const place = (v) => y(Math.max(y.domain()[0], Math.min(v, y.domain()[1])));
  for (const { x: at, box } of series.points) {
    const [low, lower, median, upper, high] = box.map(place), middle = x(at) + (series.shift ?? 0);
    g.append("line").attr("class", "whisker").attr("x1", middle).attr("x2", middle).attr("y1", low).attr("y2", high);
    g.append("rect").attr("class", "box").attr("x", middle - WIDTH / 2).attr("width", WIDTH).attr("y", upper)
      .attr("height", Math.max(1, lower - upper)).attr("data-x", at).attr("data-box", box.join(" "));
    g.append("line").attr("class", "median").attr("x1", middle - WIDTH / 2).attr("x2", middle + WIDTH / 2)
      .attr("y1", median).attr("y2", median);
  }
}

/* Bars from 0, and vertical lines. */
function drawBars(svg, series, { x, y }) {
  const g = svg.append("g").attr("class", `series ${classOf(series.run)}`).attr("data-run", series.run.index);
  g.selectAll("rect").data(series.points).join("rect").attr("class", "bin").attr("x", (p) => x(p.from) + 0.5)
    .attr("width", (p) => Math.max(1, x(p.to) - x(p.from) - 1)).attr("y", (p) => y(p.y))
    .attr("height", (p) => y(0) - y(p.y)).attr("data-from", (p) => p.from).attr("data-value", (p) => p.y);
}
function drawVertical(svg, { x: at, label }, { x }, width) {
  const place = x(at), right = place < width / 2;
  const g = svg.append("g").attr("class", "reference").attr("transform", `translate(${place},0)`).attr("data-x", at);
  g.append("line").attr("y1", MARGIN.top).attr("y2", HEIGHT - MARGIN.bottom);
  g.append("text").attr("x", right ? 5 : -5).attr("y", MARGIN.top - 4).attr("text-anchor", right ? "start" : "end")
    .text(label);
}

/* All points that the cursor can select, from left to right. */
function stopsOf(spec, { x, y }) {
  return spec.series.flatMap((s) => s.points
    .filter((p) => isNumber(p.y) && !p.edge && (!spec.log || p.y > 0))
    .map((p) => ({ x: x(p.x) + (s.shift ?? 0), y: y(p.y), text: s.tooltip(p), run: s.run })))
    .sort((a, b) => a.x - b.x || a.y - b.y);
}

/* The chart whose tooltip is shown: {node, leave, follow}. */
let watched = null;
document.addEventListener("pointerdown", (event) => {
  if (watched && !watched.node.contains(event.target)) watched.leave();
});
document.addEventListener("scroll", () => watched?.follow(), { passive: true, capture: true });

/* Shows the tooltip of the point nearest to the mouse or finger, or of the point selected with the arrow keys. When a
   finger is lifted, the tooltip stays until the user touches something else. stops(): returns the result of stopsOf()
   for the chart as last drawn. Returns restore(), to be called when a chart was drawn anew that had a cursor. */
function watchCursor(svg, stops) {
  const node = svg.node();
  let at = -1, selected = null;
  const shown = () => stops().filter((s) => !hidden.has(s.run.index));
  const ring = () => {
    const found = svg.select(".spot");
    return found.empty() ? svg.append("circle").attr("class", "spot").attr("r", 7) : found;
  };
  function follow() {
    const box = node.getBoundingClientRect(), scale = box.width / node.viewBox.baseVal.width;
    tip.show(selected.text, box.left + selected.x * scale, box.top + selected.y * scale);
  }
  function select(stop) {
    if (watched?.node !== node) watched?.leave();
    selected = stop;
    watched = { node, leave, follow };
    ring().attr("cx", stop.x).attr("cy", stop.y);
    follow();
  }
  function leave() {
    svg.select(".spot").remove();
    if (watched?.node !== node) return;
    watched = null;
    tip.hide();
  }
  function point(event) {
    const [px, py] = placeIn(node, event);
    /* Horizontal distance has a larger weight, so that the cursor stays in a column of marks. */
    const near = minBy(shown(), (s) => Math.hypot((s.x - px) * 1.6, s.y - py));
    if (near) select(near);
  }
  node.addEventListener("pointerdown", point);
  node.addEventListener("pointermove", point);
  /* Ignored for touch, because lifting a finger also sends this event. */
  node.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && leave());
  node.addEventListener("pointercancel", leave); /* sent when the finger begins to scroll the page */
  node.addEventListener("blur", leave);
  node.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key], list = shown();
    if (event.key === "Escape") leave();
    if (!move || !list.length) return;
    event.preventDefault();
    at = Math.max(0, Math.min(list.length - 1, at + move));
    select(list[at]);
  });
  return function restore() {
    const list = shown(), same = list.findIndex((s) => s.text === selected.text);
    if (same < 0) return leave();
    at = same;
    select(list[at]);
  };
}

/* --- zoom -------------------------------------------------------------------------------------------------------- */

const DRAGGED = 5; /* pixels from which on a movement of the pressed pointer is no click */

/* The part of a line in an interval of the x axis. Where the line crosses an end of the interval, it gets a point with
   `edge`, which is neither marked nor selected. */
function lineWithin(points, [from, to], log) {
  const drawn = (p) => p && isNumber(p.y) && (!log || p.y > 0);
  const crossing = (a, b, x) => {
    const share = (x - a.x) / (b.x - a.x);
    return { ...a, x, y: log ? a.y * (b.y / a.y) ** share : a.y + share * (b.y - a.y), deviation: null, hollow: false,
      edge: true };
  };
  return points.flatMap((p, i) => {
    const before = points[i - 1];
    const ends = drawn(before) && drawn(p) ? [from, to].filter((x) => before.x < x && x < p.x) : [];
    return [...ends.map((x) => crossing(before, p, x)), ...(from <= p.x && p.x <= to ? [p] : [])];
  });
}
function zoomed(spec) {
  if (!spec.zoom?.interval) return spec;
  const cut = (list) => list?.map((series) =>
    ({ ...series, points: lineWithin(series.points, spec.zoom.interval, spec.log) }));
  return { ...spec, series: cut(spec.series), beside: cut(spec.beside) };
}

/* An interval within the whole axis, null if it is the whole axis. An axis of counts keeps at least two of them. */
function fittingInterval([from, to], spec) {
  const [first, last] = domainOf(spec), least = spec.measured || spec.xTime ? (last - first) * 1e-4 : 2;
  const middle = (from + to) / 2, half = Math.max(to - from, least) / 2;
  if (2 * half >= last - first) return null;
  const low = Math.max(first, Math.min(middle - half, last - 2 * half));
  return [low, low + 2 * half];
}

/* The place of a pointer in the units of an SVG element. */
function placeIn(node, event) {
  const box = node.getBoundingClientRect(), scale = box.width / node.viewBox.baseVal.width;
  return [(event.clientX - box.left) / scale, (event.clientY - box.top) / scale];
}

/* The interval after two fingers have moved: the point of the x axis in their middle stays there. x: the scale at the
   start; before, after: the two places. */
function pinched(x, before, after) {
  const distance = ([a, b]) => Math.max(1, Math.hypot(a[0] - b[0], a[1] - b[1]));
  const middle = ([a, b]) => (a[0] + b[0]) / 2, factor = distance(before) / distance(after);
  return x.range().map((end) => x.invert(middle(before) + (end - middle(after)) * factor));
}
/* Two fingers zoom. While they move, preview(interval) draws this chart; when one is lifted, choose() takes the
   interval that is shown. One finger scrolls the page. now(): as in watchZoom(). */
function watchPinch(node, now, preview, choose) {
  const fingers = new Map();
  let pinch = null;
  node.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" || !now().spec.zoom) return;
    if (event.isPrimary) fingers.clear(); /* the first finger: others are forgotten if their end was missed */
    fingers.set(event.pointerId, placeIn(node, event));
    if (fingers.size !== 2) return;
    pinch = { x: now().x, before: [...fingers.values()] };
    for (const id of fingers.keys()) node.setPointerCapture(id);
    event.stopImmediatePropagation(); /* no tooltip meanwhile */
    if (watched?.node === node) watched.leave();
  });
  node.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, placeIn(node, event));
    if (!pinch) return;
    event.stopImmediatePropagation();
    preview(fittingInterval(pinched(pinch.x, pinch.before, [...fingers.values()]), now().spec));
  });
  for (const end of ["pointerup", "pointercancel"])
    node.addEventListener(end, (event) => {
      if (!fingers.delete(event.pointerId) || !pinch) return;
      pinch = null;
      choose();
    });
}

/* The interval is selected with mouse or pen, or with two fingers; one finger scrolls the page. now(): {spec, x}, the
   chart as last drawn. preview(interval): draws this chart alone with another interval. */
function watchZoom(svg, now, preview) {
  const node = svg.node();
  let from = null, dragged = false;
  const place = (event) => {
    const [left, right] = now().x.range();
    return Math.max(left, Math.min(right, placeIn(node, event)[0]));
  };
  const change = (interval) => now().spec.zoom.change(interval && fittingInterval(interval, now().spec));
  function end() {
    svg.selectAll(".selection").remove();
    from = null;
    dragged = false;
  }
  function select(to) {
    const found = svg.select(".selection");
    const mark = found.empty() ? svg.append("rect").attr("class", "selection") : found;
    mark.attr("x", Math.min(from, to)).attr("width", Math.abs(to - from)).attr("y", MARGIN.top)
      .attr("height", HEIGHT - MARGIN.top - MARGIN.bottom);
  }
  function zoomBy(factor) {
    const { x, spec } = now(), [low, high] = x.domain(), spot = svg.select(".spot");
    const middle = spot.empty() ? (low + high) / 2 : x.invert(Number(spot.attr("cx")));
    spec.zoom.change(fittingInterval([middle - (middle - low) * factor, middle + (high - middle) * factor], spec));
  }
  watchPinch(node, now, preview, () => now().spec.zoom.change(now().spec.zoom.interval));
  node.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" && event.button === 0 && now().spec.zoom) from = place(event);
  });
  node.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const to = place(event);
    if (!dragged && Math.abs(to - from) < DRAGGED) return;
    if (!dragged) node.setPointerCapture(event.pointerId);
    dragged = true;
    event.stopImmediatePropagation(); /* no tooltip meanwhile */
    if (watched?.node === node) watched.leave();
    select(to);
  });
  node.addEventListener("pointerup", (event) => {
    const ends = [from, place(event)].sort(d3.ascending), selected = dragged;
    end();
    if (selected) change(ends.map((at) => now().x.invert(at)));
  });
  node.addEventListener("pointercancel", end);
  node.addEventListener("dblclick", () => now().spec.zoom?.interval && change(null));
  node.addEventListener("keydown", (event) => {
    if (event.key === "Escape") end();
    const factor = { "+": 0.5, "=": 0.5, "-": 2 }[event.key];
    if (!factor || !now().spec.zoom || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    zoomBy(factor);
  });
  return zoomBy;
}

/* --- charts ------------------------------------------------------------------------------------------------------ */

/* Why a chart shows nothing; null if it shows something. */
function emptyWords({ series, log, empty }) {
  const points = series.flatMap((s) => s.points), values = points.map(({ y }) => y).filter(isNumber);
  if (!values.length) return (points.length ? null : empty) ?? "There are no values.";
  return log && !values.some((y) => y > 0) ? "A logarithmic scale shows positive values, and there are none." : null;
}

/* What a figure made by chart() offers: {show(spec), zoomBy(factor)}. */
const drawings = new WeakMap();

/* Shows charts of the specs in an element. If it has charts with these titles, they stay and change, so that focus,
   cursor and a selection stay, too. */
function showCharts(place, specs) {
  const figures = [...place.children], titles = figures.map((figure) => figure.querySelector("h3")?.textContent);
  if (figures.length === specs.length && specs.every((spec, i) => spec.title === titles[i]))
    specs.forEach((spec, i) => drawings.get(figures[i]).show(spec));
  else place.replaceChildren(...specs.map(chart));
}

/* Returns a figure element with one chart. spec:
 *   title, xLabel
 *   series       [{run, points: [{x, y, deviation, hollow}], tooltip(point), ...}], see below
 *   xTicks       labels of x = 0, 1, ...
 *   pad          room on both sides of the x axis, in units of x
 *   fromZero     the x axis begins at 0
 *   zero         the y axis includes 0
 *   log          the y axis is logarithmic
 *   xLog         the x axis is logarithmic; all x are positive
 *   max          largest possible y
 *   measured     x is a measured value, not a count
 *   xTime        x is a time in seconds
 *   zoom         {interval, change(interval)}: the part of the x axis that is shown, or null, and what to do if the
 *                user chooses another one; only for charts with lines
 *   references   horizontal lines [{y, label, from, to}]; from and to, if given, are places on the x axis
 *   verticals    vertical lines [{x, label}]
 *   counts       y are counts
 *   beside       series of other charts that share the y axis
 *   empty        why no series has points, if so
 *   caption, key
 * All but title, xLabel and series are optional. A series has also, optionally: heads (points are values of single
 * heads), faint (thin line without marks), bare (marks only for hollow points), solid (not dashed, even if the run is),
 * band (deviations are a band), dash (replaces the run's dashes), apart (no line between the points), shift (in pixels,
 * to the right), colour, boxes (box plots: each point has box, [minimum, lower quartile, median, upper quartile,
 * maximum], and y is the median), bars (bars from 0 to y: each point has from and to, its ends on the x axis). */
function chart(given) {
  let spec = given, stops = null, scales = null, drawn = 0;
  const svg = d3.create("svg").attr("class", "chart").attr("tabindex", 0).attr("role", "img")
    .attr("aria-label", `${spec.title}: chart. The left and right arrow keys move between points.` +
      (spec.zoom ? " Plus and minus zoom." : "")).classed("zoomable", Boolean(spec.zoom));
  const figure = element("figure", {}, element("div", { class: "figure-head" }, element("h3", {}, spec.title),
    exportButton("SVG", spec.title, () => svgOf(figure, spec))), svg.node());
  const zoomBy = watchZoom(svg, () => ({ spec, x: scales.x }),
    (interval) => show({ ...spec, zoom: { ...spec.zoom, interval } }));
  const restore = watchCursor(svg, () => { /* found only if the cursor is used: they are many */
    stops ??= scales ? stopsOf(zoomed(spec), scales) : [];
    return stops;
  });
  let below = [];
  function write() {
    for (const part of below) part.remove();
    const words = emptyWords(spec) ?? spec.caption;
    below = [spec.key, words && element("figcaption", {}, words)].filter(Boolean);
    figure.append(...below);
  }
  function draw(width) {
    const shown = zoomed(spec);
    scales = scalesOf(visibleIn(shown), width);
    svg.selectAll("*").remove();
    svg.attr("viewBox", `0 0 ${width} ${HEIGHT}`);
    drawAxes(svg, spec, scales, width);
    for (const series of shown.series)
      if (series.boxes) drawBoxes(svg, series, scales);
      else if (series.bars) drawBars(svg, series, scales);
      else drawSeries(svg, series, scales, spec.log);
    /* Above the series, so that labels can be read. */
    drawReferences(svg, spec.references ?? [], scales, width);
    for (const vertical of spec.verticals ?? []) drawVertical(svg, vertical, scales, width);
    stops = null;
    applyHidden(svg.node());
  }
  function show(next) {
    const pointed = watched?.node === svg.node();
    spec = next;
    write();
    if (drawn) draw(drawn);
    if (pointed) restore();
  }
  function redraw() {
    if (watched?.node === svg.node()) watched.leave();
    draw(drawn);
  }
  write();
  new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width - 2);
    if (width <= 60 || width === drawn) return;
    drawn = width;
    redraw();
  }).observe(figure);
  figure.addEventListener("runs", () => drawn && redraw());
  drawings.set(figure, { show, zoomBy: (factor) => drawn && zoomBy(factor) });
  return figure;
}

/* --- showing and hiding runs ------------------------------------------------------------------------------------- */

const hidden = new Set();
/* The spec without hidden runs, for scaling the axes. Unchanged if all runs are hidden. */
function visibleIn(spec) {
  const shown = (list) => list?.filter((series) => !hidden.has(series.run.index));
  const series = shown(spec.series);
  return series.length ? { ...spec, series, beside: shown(spec.beside) } : spec;
}
function redrawCharts() {
  for (const figure of document.querySelectorAll("figure")) figure.dispatchEvent(new Event("runs"));
}
function applyHidden(root) {
  for (const node of root.querySelectorAll("[data-run]"))
    node.classList.toggle("off", hidden.has(Number(node.dataset.run)));
}
function focusRun(index) {
  for (const node of document.querySelectorAll(".series"))
    node.classList.toggle("dim", index !== null && Number(node.dataset.run) !== index);
}

/* A button with the run's marker, which highlights the run in all charts, and hides or shows it. */
function legendChip(run, text = run.name) {
  const chip = element("button", { type: "button", class: `chip ${classOf(run)}`, "aria-pressed": "true",
    "aria-label": run.name, title: `${run.name}. Hover to highlight, click to hide or show.` },
  lineSampleOf(run), text);
  chip.addEventListener("pointerenter", () => focusRun(run.index));
  chip.addEventListener("pointerleave", () => focusRun(null));
  chip.addEventListener("focus", () => focusRun(run.index));
  chip.addEventListener("blur", () => focusRun(null));
  chip.addEventListener("click", () => {
    if (!hidden.delete(run.index)) hidden.add(run.index);
    chip.setAttribute("aria-pressed", String(!hidden.has(run.index)));
    applyHidden(document);
    redrawCharts();
  });
  return chip;
}
