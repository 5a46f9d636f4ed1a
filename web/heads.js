"use strict";
/* Heads as functions of the shift from query to key: contours of the attention of the central query, and the centres of
   heads over a training run. */

/* The shares of a head's attention that contours hold. */
const HELD = [0.9, 0.5, 0.1];

/* --- contours ---------------------------------------------------------------------------------------------------- */

/* Decodes the mean weights of a node's central query on the patches of its grid or window, one array for each head. */
function centralMaps({ centre, heads, window_h, window_w }) {
  const all = new Float32Array(bytesOf(centre).buffer), cells = window_h * window_w;
  return d3.range(heads).map((head) => all.slice(head * cells, (head + 1) * cells));
}

/* The smallest set of cells that holds a share of the total weight: a boolean for each cell. Of equal weights the first
   is taken. */
function smallestSet(weights, share) {
  const held = new Array(weights.length).fill(false), enough = share * d3.sum(weights) * (1 - 1e-6);
  let sum = 0;
  for (const cell of d3.range(weights.length).sort((a, b) => weights[b] - weights[a] || a - b)) {
    if (sum >= enough) break;
    held[cell] = true;
    sum += weights[cell];
  }
  return held;
}

/* The border of a set of cells of a grid, as an SVG path whose unit is a cell. */
function outlineOf(held, width) {
  const height = held.length / width;
  const has = (y, x) => y >= 0 && y < height && x >= 0 && x < width && held[y * width + x];
  const sides = (y, x) => [[!has(y - 1, x), `M${x} ${y}h1`], [!has(y + 1, x), `M${x} ${y + 1}h1`],
    [!has(y, x - 1), `M${x} ${y}v1`], [!has(y, x + 1), `M${x + 1} ${y}v1`]];
  return d3.range(held.length).filter((cell) => held[cell])
    .flatMap((cell) => sides(Math.floor(cell / width), cell % width))
    .filter(([isBorder]) => isBorder).map(([, side]) => side).join("");
}

/* The mean shift [rows, columns] from the cell `query` to the cells of a grid, with their weights. */
function centreOf(weights, width, query) {
  const total = d3.sum(weights);
  const mean = (place) => d3.sum(weights, (weight, cell) => weight * place(cell)) / total;
  return [mean((cell) => Math.floor(cell / width)) - Math.floor(query / width),
    mean((cell) => cell % width) - (query % width)];
}

/* The heads of a node, {head, weights, centre}, sorted by the row of their centre to a whole token, then by column. */
function sortedHeads(node) {
  const query = Math.floor(node.window_h / 2) * node.window_w + Math.floor(node.window_w / 2);
  return centralMaps(node).map((weights, head) => ({ head, weights, centre: centreOf(weights, node.window_w, query) }))
    .sort((a, b) => Math.round(a.centre[0]) - Math.round(b.centre[0]) || a.centre[1] - b.centre[1]);
}

function colourOfHead(place, heads) {
  return `hsl(${Math.round((360 * place) / heads)} 65% 48%)`;
}
function shiftWords([row, column]) {
  return `row ${number(row, 3)}, column ${number(column, 3)}`;
}
function headKey(heads, words) {
  return element("div", { class: "key" }, ...heads.map((head, place) => {
    const mark = element("i", { class: "swatch" });
    mark.style.background = colourOfHead(place, heads.length);
    return element("span", { "data-head": head.head }, mark, words(head));
  }));
}

/* One layer: the contours of all its heads over its grid, with the query's cell. */
function contourFigure(node) {
  const { window_h, window_w } = node, heads = sortedHeads(node);
  const svg = d3.create("svg").attr("class", "shifts").attr("role", "img")
    .attr("viewBox", `-0.5 -0.5 ${window_w + 1} ${window_h + 1}`)
    .attr("aria-label", `${node.node}: contours of ${plural(heads.length, "head")}`);
  svg.append("rect").attr("class", "frame").attr("width", window_w).attr("height", window_h);
  svg.append("rect").attr("class", "query").attr("x", Math.floor(window_w / 2)).attr("y", Math.floor(window_h / 2))
    .attr("width", 1).attr("height", 1);
  for (const [place, { head, weights, centre }] of heads.entries()) {
    const group = svg.append("g").attr("data-head", head).attr("stroke", colourOfHead(place, heads.length));
    for (const share of HELD)
      group.append("path").attr("class", `held-${Math.round(100 * share)}`)
        .attr("d", outlineOf(smallestSet(weights, share), window_w));
    group.append("title").text(`head ${head}: centre ${shiftWords(centre)}`);
  }
  const key = headKey(heads, ({ head, centre }) => `head ${head}: ${shiftWords(centre)}`);
  return picture(node.node, svg.node(), key, null);
}

function contourPlace(run) {
  return element("div", { class: "charts close" }, ...run.maps.nodes.map(contourFigure));
}

/* --- centres and spreads over a training run -------------------------------------------------------------------------- */

const MOMENTS = ["row", "column", "row spread", "column spread", "correlation"];

/* The heads of one node, {head, moments}, sorted by their last centre. moments[k] is null or has the figures of
   MOMENTS at the k-th measured update, the centre at least. */
function movingHeads(run, node) {
  const own = run.development.series.filter((s) => s.instrument === "head_shape" && s.node === node && s.head >= 0);
  const found = d3.groups(own, (s) => s.head).map(([head, series]) => {
    const means = MOMENTS.map((name) => series.find((s) => s.statistic === name)?.mean);
    const moments = run.development.step.map((_, k) => means.map((mean) => mean?.[k]));
    return { head, moments: moments.map((at) => (at.slice(0, 2).every(isNumber) ? at : null)) };
  });
  const last = ({ moments }) => moments.filter(Boolean).at(-1);
  return found.filter(last).sort((a, b) => Math.round(last(a)[0]) - Math.round(last(b)[0]) || last(a)[1] - last(b)[1]);
}

/* The ellipse that holds a share of a normal distribution with these moments, as an SVG path: the points centre + L u
   with the Cholesky factor L of the covariance and |u|^2 = -2 ln(1 - share). */
function ellipseOf([row, column, rows, columns, correlation], share) {
  const radius = Math.sqrt(-2 * Math.log(1 - share)), r = isNumber(correlation) ? correlation : 0;
  const point = (angle) => {
    const [a, b] = [radius * Math.cos(angle), radius * Math.sin(angle)];
    const at = [column + columns * (r * a + Math.sqrt(Math.max(0, 1 - r * r)) * b), row + rows * a];
    return at.map((value) => Number(value.toFixed(4)));
  };
  return `${d3.line()(d3.range(64).map((i) => point((2 * Math.PI * i) / 64)))}Z`;
}
function hasSpread(moments) {
  return moments.slice(2, 4).every(isNumber);
}

/* How far the figure reaches from the query, the same at all updates: to all centres and half of the weight. */
function reachOf(heads) {
  const half = Math.sqrt(-2 * Math.log(1 - 0.5));
  const reaches = heads.flatMap(({ moments }) => moments.filter(Boolean).flatMap(([row, column, rows, columns]) =>
    [Math.abs(row) + half * (rows || 0), Math.abs(column) + half * (columns || 0)]));
  return Math.max(1, Math.ceil(d3.max(reaches)));
}

/* One head: the path of its centre up to update k, its centre there, and its ellipses. */
function drawMovingHead(svg, { head, moments }, k, colour, reach) {
  const path = moments.slice(0, k + 1).filter(Boolean);
  if (!path.length) return;
  const group = svg.append("g").attr("data-head", head).attr("stroke", colour);
  const now = path.at(-1), [y, x] = now;
  group.append("path").attr("class", "track").attr("d", d3.line().x(([, at]) => at).y(([at]) => at)(path));
  for (const share of hasSpread(now) ? HELD : [])
    group.append("path").attr("class", `held-${Math.round(100 * share)}`).attr("d", ellipseOf(now, share));
  group.append("circle").attr("r", reach / 40).attr("cx", x).attr("cy", y).attr("stroke", "none").attr("fill", colour);
  group.append("title").text(`head ${head}: from ${shiftWords(path[0])} to ${shiftWords(now)}`);
}

/* One layer at the k-th measured update. */
function movingFigure(run, node, k) {
  const heads = movingHeads(run, node), reach = reachOf(heads);
  const svg = d3.create("svg").attr("class", "shifts").attr("role", "img")
    .attr("viewBox", `${-reach} ${-reach} ${2 * reach} ${2 * reach}`)
    .attr("aria-label", `${node}: centres and contours of ${plural(heads.length, "head")}`);
  svg.append("rect").attr("class", "frame").attr("x", -reach).attr("y", -reach).attr("width", 2 * reach)
    .attr("height", 2 * reach);
  svg.append("path").attr("class", "cross").attr("d", `M${-reach} 0H${reach}M0 ${-reach}V${reach}`);
  for (const [place, head] of heads.entries()) drawMovingHead(svg, head, k, colourOfHead(place, heads.length), reach);
  const words = ({ head, moments }) => {
    const now = moments.slice(0, k + 1).filter(Boolean).at(-1);
    return `head ${head}: ${now ? shiftWords(now) : "–"}`;
  };
  return picture(node, svg.node(), headKey(heads, words), `From ${-reach} to ${reach} tokens on both axes.`);
}

function nodesOfPaths(run) {
  return [...new Set(run.development.series.filter((s) => s.instrument === "head_shape" && s.head >= 0)
    .map((s) => s.node))];
}

/* A slider over the measured updates, and one figure per layer at the chosen one; at first the last. */
function movingPlace(run) {
  const { step, epoch } = run.development, last = step.length - 1;
  const figures = element("div", { class: "charts close" }), at = element("output");
  const show = (k) => {
    at.textContent = `update ${count(step[k])}, epoch ${count(epoch[k])}`;
    figures.replaceChildren(...nodesOfPaths(run).map((node) => movingFigure(run, node, k)));
  };
  const slider = element("input", { type: "range", min: 0, max: last, value: last, "aria-label": "measured update",
    oninput: () => show(Number(slider.value)) });
  show(last);
  return element("div", {}, element("label", { class: "slider" }, slider, at), figures);
}

/* --- sections ---------------------------------------------------------------------------------------------------- */

/* A section with one picture per layer of one run. */
function headSection(id, title, about, among, place) {
  const shown = element("div");
  const show = (run) => shown.replaceChildren(place(run));
  const part = section(id, title, about,
    among.length > 1 ? choice("Run", among.map((run) => [run, run.name]), among[0], show) : null);
  part.append(shown);
  show(among[0]);
  return part;
}

function runsWithContours() {
  return runs.filter((run) => run.maps?.nodes?.length);
}
function contourSection() {
  return headSection("contours", "Contours of heads",
    "The smallest sets of patches that hold 90 % (thin line), 50 % and 10 % (thick) of each head's attention on " +
      "patches, for the query in the middle of the grid (dark), or of the first window. The attention is the " +
      "mean over all images whose maps were written. Heads are sorted by their centre here, the mean shift from the " +
      "query in rows and columns. (Cordonnier et al., ICLR 2020)", runsWithContours(), contourPlace);
}

function runsWithPaths() {
  return runs.filter((run) => nodesOfPaths(run).length);
}
function pathSection() {
  const part = headSection("centres", "Centres and contours of heads over the training",
    "The mean shift from query to key of each head, over all queries of the images of single updates: rows " +
      "downwards, columns to the right. The faint line is the path of the centre up to the chosen update, where its " +
      "dot is. The ellipses hold 90 % (thin), 50 % and 10 % (thick) of a normal distribution with the centre, the " +
      "spreads and the correlation of the head. They are its contours if its scores are quadratic in the shift and " +
      "the border of the grid cuts off nothing, else an approximation. Heads are sorted by their last centre. " +
      "(Cordonnier et al., ICLR 2020)",
    runsWithPaths(), movingPlace);
  part.append(...[method("head_shape")].filter(Boolean));
  return part;
}
