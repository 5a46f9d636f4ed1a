"use strict";
/* The page "Network": the operations of a checkpoint as a graph. Blocks fold; nodes show shapes, parameters,
   operations, measured times and figures of instruments. */

const DEFAULTS = { model: "", image: "", with: "", open: null, node: "", tensor: "", find: "", zoom: "1" };
function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(Object.entries(DEFAULTS).map(([name, value]) => [name, given.get(name) ?? value]));
}

/* --- folding ----------------------------------------------------------------------------------------------------- */

/* The parts of the scopes of all nodes: "blocks", "blocks.3", "blocks.3.attn" with the nodes in them, in their order. A
   part with one node only is that node. */
function partsOf(nodes) {
  const parts = new Map();
  for (const node of nodes) {
    const words = node.scope.split(".");
    for (let depth = 1; depth <= words.length; depth++) {
      const name = words.slice(0, depth).join(".");
      if (!parts.has(name)) parts.set(name, []);
      parts.get(name).push(node);
    }
  }
  for (const [name, among] of parts) if (among.length < 2) parts.delete(name);
  return parts;
}
/* Open at first: parts that only count other parts, such as "blocks" and "layer1". */
function openAtFirst(parts) {
  return [...parts.keys()].filter((name) => {
    const inside = [...parts.get(name)].map(({ scope }) => scope.slice(name.length + 1).split(".")[0]);
    return inside.every((word) => /^\d+$/.test(word)) && new Set(inside).size > 1;
  });
}
/* The name of what stands for a node: the outermost closed part that it is in, else the node itself. */
function shownFor(node, parts, open) {
  const words = node.scope.split(".");
  for (let depth = 1; depth <= words.length; depth++) {
    const name = words.slice(0, depth).join(".");
    if (parts.has(name) && !open.has(name)) return name;
  }
  return `#${node.id}`;
}

/* Whether all words occur in the operation's scope, name or tensors. */
function isFound(node, words) {
  const text = [node.scope, node.op, ...node.tensors.map(({ name }) => name)].join(" ").toLowerCase();
  return words.length > 0 && words.every((word) => text.includes(word));
}

/* Boxes in order, and the edges between them. The image is a box of its own. */
function foldedGraph(nodes, parts, open) {
  const boxes = new Map([["image", { name: "image", title: "image", nodes: [] }]]), edges = new Map();
  const of = new Map(nodes.map((node) => [node.id, shownFor(node, parts, open)]));
  for (const node of nodes) {
    const name = of.get(node.id);
    const part = !name.startsWith("#");
    if (!boxes.has(name)) boxes.set(name, { name, title: part ? name : node.scope, part, nodes: [] });
    boxes.get(name).nodes.push(node);
    for (const input of node.in) {
      const from = input < 0 ? "image" : of.get(input);
      if (from !== undefined && from !== name) edges.set(`${from} ${name}`, { from, to: name });
    }
  }
  return { boxes: [...boxes.values()], edges: [...edges.values()] };
}

/* --- what a box says --------------------------------------------------------------------------------------------- */

function isIn(scope, part) {
  return scope === part || scope.startsWith(`${part}.`);
}
/* The seconds of a box: of its part, or of the operation with its scope and name. An operation that the compiled
   network has joined with another has none of its own. */
function secondsOf(box, times) {
  const own = box.part ? times.filter(({ scope }) => isIn(scope, box.name))
    : times.filter(({ scope, op }) => scope === box.nodes[0]?.scope && op === box.nodes[0]?.op);
  return own.length ? d3.sum(own, ({ seconds }) => seconds) : null;
}
function shapeOf(node) {
  return node.shape.join(" × ") || "1";
}
function milliseconds(seconds) {
  return `${number(1000 * seconds, 3)} ms`;
}
function linesOf(box, times, figures) {
  if (!box.nodes.length) return [];
  const parameters = d3.sum(box.nodes, (node) => node.parameters), macs = d3.sum(box.nodes, (node) => node.macs);
  const seconds = secondsOf(box, times);
  return [box.part ? plural(box.nodes.length, "operation") : box.nodes[0].op, `→ ${shapeOf(box.nodes.at(-1))}`,
    [parameters ? `${short(parameters)} parameters` : null, macs ? `${short(macs)} MACs` : null].filter(Boolean)
      .join(", "),
    seconds === null ? "" : milliseconds(seconds), ...figuresOf(box, figures).slice(0, 2)].filter(Boolean);
}
/* "1.2 k", "5.7 M" */
function short(value) {
  const [factor, letter] = value >= 1e9 ? [1e9, "G"] : value >= 1e6 ? [1e6, "M"] : value >= 1e3 ? [1e3, "k"] : [1, ""];
  return `${number(value / factor, 3)}${letter && ` ${letter}`}`;
}
/* Figures of the nodes in the box, over all heads; of a part with several nodes their mean. */
function figuresOf(box, figures) {
  const inside = figures.filter(({ node, head }) => head < 0 && node &&
    (box.part ? isIn(node, box.name) : isFigureOf(box.nodes[0], node)));
  return d3.groups(inside, ({ instrument, statistic }) => [instrument, statistic].filter(Boolean).join(" "))
    .map(([name, rows]) => `${name} ${number(d3.mean(rows, ({ mean }) => mean), 3)}` +
      (rows[0].unit && rows[0].unit !== "1" ? ` ${rows[0].unit}` : "") +
      (rows.length > 1 ? ` (mean of ${rows.length})` : ""));
}
/* Figures name attention layers and residual additions by their scopes. */
function isFigureOf(node, name) {
  return node.scope === name && (node.op === "add" || /attention|^mix_/.test(node.op));
}

/* --- drawing ----------------------------------------------------------------------------------------------------- */

const BOX = { width: 216, line: 15, head: 24 };

const GAP = 56; /* between two columns */

function layout({ boxes, edges }, text) {
  const graph = new dagre.graphlib.Graph().setGraph({ ranksep: 26, nodesep: 22, marginx: 8, marginy: 8 })
    .setDefaultEdgeLabel(() => ({}));
  for (const box of boxes)
    graph.setNode(box.name, { width: box.nodes.length ? BOX.width : 80,
      height: BOX.head + BOX.line * text.get(box).length + 4 });
  for (const { from, to } of edges) graph.setEdge(from, to);
  dagre.layout(graph);
  return graph;
}

/* The y at which to cut a drawing in two: no box is there, few edges are, and it is near the middle; null: there is
   none. */
function cutOf(graph) {
  const nodes = graph.nodes().map((name) => graph.node(name)), { height } = graph.graph();
  const crossing = (y) => graph.edges().filter((edge) => {
    const { points } = graph.edge(edge);
    return points[0].y < y && points.at(-1).y > y;
  }).length;
  const places = nodes.map((node) => node.y - node.height / 2 - 13).filter((y) => y > 0.35 * height && y < 0.65 * height &&
    nodes.every((node) => Math.abs(node.y - y) > node.height / 2));
  return minBy(places, (y) => 2 * crossing(y) + 8 * Math.abs(y / height - 0.5)) ?? null;
}
/* Moves what lies below the cut to the right of the rest. An edge between the two halves goes around. */
function cutInTwo(graph, cut) {
  const { width, height } = graph.graph(), top = 8;
  const moved = ({ x, y, ...more }) => ({ ...more, x: x + width + GAP, y: y - cut + top });
  let lanes = 0;
  for (const edge of graph.edges()) {
    const own = graph.edge(edge), above = own.points.filter(({ y }) => y <= cut), below = own.points.filter(({ y }) => y > cut);
    if (!below.length) continue;
    if (above.length) {
      const lane = width + GAP / 2 + 5 * (lanes++ - 1);
      const last = above.at(-1), first = moved(below[0]);
      above.push({ x: last.x, y: cut }, { x: last.x, y: cut + 10 }, { x: lane, y: cut + 10 }, { x: lane, y: cut - 10 },
        { x: lane, y: top }, { x: lane, y: 2 }, { x: first.x, y: 2 }, { x: first.x, y: top });
    }
    own.points = [...above, ...below.map(moved)];
  }
  for (const name of graph.nodes()) {
    const node = graph.node(name);
    if (node.y > cut) Object.assign(node, moved(node));
  }
  Object.assign(graph.graph(), { width: 2 * width + GAP, height: Math.max(cut + 16, height - cut + top) });
}

/* room: the width in pixels that the drawing may fill, zoom: its scale, found: whether a box is marked. */
const TALL = 900; /* a drawing of this height is drawn in two columns if there is room */
function drawGraph(folded, text, act, { room, zoom, found }) {
  const graph = layout(folded, text), cut = graph.graph().height > TALL && (2 * graph.graph().width + GAP) * zoom <= room
    ? cutOf(graph) : null;
  if (cut !== null) cutInTwo(graph, cut);
  const { width, height } = graph.graph();
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).style("width", `${width * zoom}px`)
    .style("height", `${height * zoom}px`).attr("class", "network").attr("role", "group")
    .attr("data-columns", cut === null ? 1 : 2).attr("aria-label", "The operations of the network");
  const line = d3.line().x(({ x }) => x).y(({ y }) => y).curve(d3.curveBasis);
  svg.append("g").selectAll("path").data(graph.edges()).join("path").attr("class", "edge")
    .attr("d", (edge) => line(graph.edge(edge).points));
  const box = svg.append("g").selectAll("g").data(folded.boxes).join("g").attr("role", "button")
    .attr("data-box", ({ name }) => name)
    .attr("class", (one) => `operation${one.part ? " part" : ""}${one.nodes.length ? "" : " input"}` +
      `${found(one) ? " found" : ""}`)
    .attr("aria-label", (one) => [one.title, ...text.get(one)].join(", "))
    .attr("transform", ({ name }) => {
      const at = graph.node(name);
      return `translate(${at.x - at.width / 2},${at.y - at.height / 2})`;
    });
  box.append("rect").attr("width", ({ name }) => graph.node(name).width)
    .attr("height", ({ name }) => graph.node(name).height).attr("rx", 8);
  box.append("text").attr("class", "box-title").attr("x", 10).attr("y", 17)
    .text(({ title, part }) => `${part ? "▸ " : ""}${title}`);
  box.each(function lines(one) {
    text.get(one).forEach((words, i) => d3.select(this).append("text").attr("x", 10)
      .attr("y", BOX.head + 9 + BOX.line * i).text(words));
  });
  box.each(function listen(one) {
    this.addEventListener("click", () => act(one));
    this.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      act(one);
    });
  });
  return roving(svg.node(), ".operation");
}

/* --- the page ---------------------------------------------------------------------------------------------------- */

/* Options of a dropdown; instruments with nothing to measure in the network come last and cannot be chosen. */
function instrumentOptions(instruments) {
  return d3.sort(instruments, ({ reason }) => Boolean(reason)).map(({ name, title, reason }) => [name, title, reason]);
}

function makePage(models, images) {
  const state = readHash(), place = element("div"), detail = element("div", { class: "panel", hidden: true });
  const tools = element("div", { class: "tools" }), summary = element("p", { class: "reading", "aria-live": "polite" });
  const problem = element("p", { class: "note problem", role: "alert", hidden: true });
  const search = element("input", { type: "search", "aria-label": "Find operations", placeholder: "Find operations",
    oninput: () => find(search.value), onkeydown: (event) => event.key === "Enter" && showFound(event.shiftKey ? -1 : 1) });
  const told = element("span", { class: "reading", role: "status" });
  const next = element("button", { type: "button", class: "quiet", hidden: true, onclick: () => showFound(1) }, "Next");
  const scale = element("output", {}, "100 %");
  const views = element("div", { class: "tools" }, search, next, told, element("span", { class: "buttons" },
    ...[["−", "Zoom out", 0.8], ["+", "Zoom in", 1.25]].map(([sign, label, factor]) => element("button",
      { type: "button", class: "quiet", "aria-label": label, title: label, onclick: () => zoomTo(zoom() * factor) }, sign)),
    element("button", { type: "button", class: "quiet", onclick: fit }, "Fit"),
    element("button", { type: "button", class: "quiet", onclick: () => zoomTo(1) }, scale)));
  let at = -1; /* the found operation that was shown last */
  let nodes = [], times = [], timed = 0, figures = [], model = null, parts = new Map(), open = new Set();
  let asked = 0, figuresAsked = 0;

  function changed() {
    const pairs = Object.entries({ ...state, open: [...open].join(",") })
      .filter(([name, value]) => name === "open" || value !== DEFAULTS[name]);
    history.replaceState(null, "", `#${new URLSearchParams(pairs)}`);
  }
  /* Does the work and shows why it was refused, if so, and if isWanted() still. Returns whether it was done. */
  async function guarded(work, isWanted) {
    let refusal = null;
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refusal = error;
    }
    if (isWanted()) {
      problem.textContent = refusal?.message ?? "";
      problem.hidden = !refusal;
    }
    return !refusal;
  }

  /* --- details --- */

  function closable() {
    return [...open].filter((name) => nodes.some(({ scope }) => isIn(scope, name))).sort();
  }
  function showDetail(box) {
    const [node] = box.nodes, layer = model.layers.findIndex((one) => one.node === node?.scope);
    detail.hidden = !node;
    if (!node) return;
    const seconds = secondsOf(box, times);
    const own = times.filter(({ scope, op }) => scope === node.scope && op === node.op);
    if (!node.tensors.some(({ name }) => name === state.tensor)) state.tensor = "";
    detail.replaceChildren(element("h3", {}, node.scope), element("dl", { class: "method" }, ...[["Operation", node.op],
      ["Result", shapeOf(node)], ["Parameters", count(node.parameters)],
      ["Multiply-adds", count(Math.round(node.macs))],
      ["Time", seconds === null ? "none of its own: it is fused into another operation"
        : `${milliseconds(seconds)} (${own.map(({ kernel }) => kernel).join(", ")}; one ${unit()}, ${mediansOf()})`],
      ...figuresOf(box, figures).map((text) => ["Figure", text])]
      .flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)])),
    layer < 0 ? "" : element("p", {}, element("a", { href: `/explore#${new URLSearchParams({ model: state.model, layer,
      ...(state.image ? { image: state.image } : {}) })}` }, "Show its maps of attention")),
    node.tensors.length ? tensorView(state.model, node.tensors, state.tensor, (name) => {
      state.tensor = name;
      changed();
    }) : "");
  }
  const unit = () => (model.reads === "texts" ? "text" : "image");
  const mediansOf = () => `median of ${plural(timed, "run")}`;

  /* --- search and zoom --- */

  const zoom = () => Math.max(0.2, Math.min(3, Number(state.zoom) || 1));
  const words = () => state.find.toLowerCase().split(/\s+/).filter(Boolean);
  const foundNodes = () => nodes.filter((node) => isFound(node, words()));
  function showSearch() {
    const all = foundNodes().length;
    told.textContent = !words().length ? "" : all ? `${at >= 0 ? `${at + 1} of ` : ""}${plural(all, "operation")}`
      : "no operation with these words";
    next.hidden = !all;
    scale.textContent = `${Math.round(100 * zoom())} %`;
  }
  function find(text) {
    state.find = text.trim();
    at = -1;
    changed();
    show();
  }
  /* Unfolds what the next found operation is in, and shows it. */
  function showFound(step) {
    const list = foundNodes();
    if (!list.length) return;
    at = (at + step + list.length) % list.length;
    const node = list[at], parents = node.scope.split(".");
    for (let depth = 1; depth <= parents.length; depth++) {
      const name = parents.slice(0, depth).join(".");
      if (parts.has(name)) open.add(name);
    }
    state.node = shownFor(node, parts, open);
    changed();
    show();
    place.querySelector(`[data-box="${CSS.escape(state.node)}"]`)
      ?.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  }
  /* Keeps the place of the drawing that is at `point`, in pixels of the window; without one its middle. */
  function zoomTo(wanted, point = null) {
    const before = place.querySelector("svg.network").getBoundingClientRect();
    const [x, y] = point ?? [innerWidth / 2, innerHeight / 2];
    const share = [(x - before.left) / before.width, (y - before.top) / before.height];
    state.zoom = String(Number(Math.max(0.2, Math.min(3, wanted)).toFixed(3)));
    changed();
    show();
    const after = place.querySelector("svg.network").getBoundingClientRect();
    place.firstChild.scrollLeft += after.left + share[0] * after.width - x;
    scrollBy({ top: after.top + share[1] * after.height - y, behavior: "instant" });
  }
  /* The whole drawing in the window. */
  function fit() {
    const svg = place.querySelector("svg.network"), { width, height } = svg.viewBox.baseVal;
    zoomTo(Math.min(1, (place.clientWidth - 36) / width, (innerHeight - 80) / height));
    place.scrollIntoView({ block: "start", behavior: "instant" });
  }
  function act(box) {
    if (box.part) {
      open.add(box.name);
      state.node = "";
      show();
      place.querySelector(`[data-box="${CSS.escape(shownFor(box.nodes[0], parts, open))}"]`)?.focus();
    } else {
      state.node = box.name;
      state.tensor = "";
      showDetail(box);
      if (detail.getBoundingClientRect().top > innerHeight) detail.scrollIntoView(); /* below the graph, on a phone */
    }
    changed();
  }

  function show() {
    const folded = foldedGraph(nodes, parts, open);
    folded.boxes[0].title = unit();
    const text = new Map(folded.boxes.map((box) => [box, linesOf(box, times, figures)]));
    const all = { operations: nodes.length, parameters: d3.sum(nodes, (node) => node.parameters),
      macs: d3.sum(nodes, (node) => node.macs), seconds: d3.sum(times, ({ seconds }) => seconds) };
    const caption = `${model.network}: ${plural(all.operations, "operation")}, ${short(all.parameters)} parameters, ` +
      `${short(all.macs)} multiply-adds` + (times.length ? `, ${milliseconds(all.seconds)} for ${unit() === "text" ? "a text" : "an image"}` : "") +
      (times.length ? `. Times are those of the compiled network on this machine, ${mediansOf()} of one ${unit()}.` : ".");
    const whole = figures.filter(({ node, head }) => !node && head < 0).map(({ instrument, statistic, mean, unit }) =>
      [instrument, statistic, number(mean, 4), unit !== "1" && unit].filter(Boolean).join(" "));
    summary.textContent = whole.length ? `Of the whole network: ${whole.join("; ")}.` : "";
    const figure = picture(model.network, drawGraph(folded, text, act, { room: place.clientWidth - 36,
      zoom: zoom(), found: (box) => box.nodes.some((node) => isFound(node, words())) }), null, caption, "network-figure");
    place.replaceChildren(figure);
    const chosen = folded.boxes.find(({ name }) => name === state.node);
    if (chosen) showDetail(chosen);
    else detail.hidden = true;
    showTools();
    showSearch();
  }

  /* --- tools --- */

  function showTools() {
    tools.replaceChildren(...[
      dropdown("Checkpoint", models.map(({ id, name }) => [id, name]), state.model, (id) => {
        Object.assign(state, { model: id, node: "", open: null, tensor: "" });
        load();
      }),
      model && readable(images, model).length ? dropdown("Figures", [["", "none"], ...instrumentOptions(model.instruments)], state.with,
        (name) => {
          state.with = name;
          loadFigures();
        }) : null,
      model && state.image && state.with ? dropdown(`of ${unit()}`, readable(images, model).map(({ id, name }) => [id, name]), state.image,
        (id) => {
          state.image = id;
          loadFigures();
        }) : null,
      ...closable().map((name) => element("button", { type: "button", class: "chip", "aria-label": `Fold ${name}`,
        onclick: () => {
          for (const one of [...open]) if (isIn(one, name)) open.delete(one);
          changed();
          show();
        } }, `▾ ${name}`))].filter(Boolean));
  }

  /* After a checkpoint that cannot be opened: nothing but the choice of another one. */
  function showChoice() {
    model = null;
    nodes = times = figures = [];
    place.replaceChildren();
    detail.hidden = true;
    summary.textContent = "";
    showTools();
  }

  /* --- loading --- */

  async function loadFigures() {
    const mine = ++figuresAsked;
    changed();
    figures = [];
    await guarded(async () => {
      const answer = state.with ? await askFigures(model.instruments, state, state.with) : [];
      if (mine === figuresAsked) figures = answer;
    }, () => mine === figuresAsked);
    show();
  }
  async function loadNetwork(mine) {
    const [description, graph] = await Promise.all([askJson("model", { model: state.model }),
      askJson("graph", { model: state.model })]);
    if (mine !== asked) return;
    model = description;
    state.image = fitting(images, model, state.image);
    ({ nodes } = graph);
    parts = partsOf(nodes);
    open = new Set(state.open === null ? openAtFirst(parts) : state.open.split(",").filter((name) => parts.has(name)));
    times = figures = [];
    changed();
    show();
    const measured = await askJson("times", { model: state.model });
    if (mine !== asked) return;
    ({ times, runs: timed } = measured);
    show();
  }
  async function load() {
    const mine = ++asked, loaded = await guarded(() => loadNetwork(mine), () => mine === asked);
    if (mine === asked && !loaded) showChoice();
    else if (mine === asked && state.with) await loadFigures();
    document.documentElement.dataset.times = String(times.length);
  }

  if (!models.some(({ id }) => id === state.model)) state.model = models[0].id;
  addEventListener("hashchange", () => {
    Object.assign(state, readHash());
    search.value = state.find;
    load();
  });
  search.value = state.find;
  place.addEventListener("wheel", (event) => {
    if (!event.ctrlKey || !place.firstChild) return;
    event.preventDefault();
    zoomTo(zoom() * 1.0015 ** -event.deltaY, [event.clientX, event.clientY]);
  }, { passive: false });
  /* Another width may have room for another number of columns. */
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    const before = width;
    width = contentRect.width;
    if (before && width !== before && model) requestAnimationFrame(show);
  }).observe(place);
  load();
  return [problem, tools, views, summary, element("div", { class: "network-view" }, place, detail)];
}

(async () => {
  const part = element("section", { id: "network", "aria-labelledby": "title" });
  showTitle("network", "Network", "Click a part to unfold it, an operation to see its details and the values of its tensors.");
  document.getElementById("sections").replaceChildren(part);
  try {
    const [{ models }, images] = await Promise.all([askJson("models"), askImages()]);
    part.append(...(models.length ? makePage(models, images)
      : [element("p", { class: "note" }, "No checkpoint was named: attscope serve CHECKPOINT")]));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    part.append(element("p", { class: "note problem", role: "alert" }, error.message));
  }
  document.documentElement.dataset.ready = "true";
})();
