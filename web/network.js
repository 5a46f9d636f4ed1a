"use strict";
/* The page "Network": the operations of a checkpoint as a graph. Blocks fold; nodes show shapes, parameters,
   operations, measured times and figures of instruments. */

const DEFAULTS = { model: "", image: "", with: "", open: null, node: "" };
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

function drawGraph(folded, text, act) {
  const graph = layout(folded, text), { width, height } = graph.graph();
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).style("width", `${width}px`)
    .style("height", `${height}px`).attr("class", "network").attr("role", "group")
    .attr("aria-label", "The operations of the network");
  const line = d3.line().x(({ x }) => x).y(({ y }) => y).curve(d3.curveBasis);
  svg.append("g").selectAll("path").data(graph.edges()).join("path").attr("class", "edge")
    .attr("d", (edge) => line(graph.edge(edge).points));
  const box = svg.append("g").selectAll("g").data(folded.boxes).join("g").attr("tabindex", 0).attr("role", "button")
    .attr("data-box", ({ name }) => name)
    .attr("class", ({ part, nodes }) => `operation${part ? " part" : ""}${nodes.length ? "" : " input"}`)
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
  return svg.node();
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
  let nodes = [], times = [], figures = [], model = null, parts = new Map(), open = new Set();
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
    detail.replaceChildren(element("h3", {}, node.scope), element("dl", { class: "method" }, ...[["Operation", node.op],
      ["Result", shapeOf(node)], ["Parameters", count(node.parameters)],
      ["Multiply-adds", count(Math.round(node.macs))],
      ["Time", seconds === null ? "none of its own: it is fused into another operation"
        : `${milliseconds(seconds)} (${own.map(({ kernel }) => kernel).join(", ")}; one image, mean of 10 runs)`],
      ...figuresOf(box, figures).map((text) => ["Figure", text])]
      .flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)])),
    layer < 0 ? "" : element("p", {}, element("a", { href: `/explore#${new URLSearchParams({ model: state.model, layer,
      ...(state.image ? { image: state.image } : {}) })}` }, "Show its maps of attention")));
  }
  function act(box) {
    if (box.part) {
      open.add(box.name);
      state.node = "";
      show();
      place.querySelector(`[data-box="${CSS.escape(shownFor(box.nodes[0], parts, open))}"]`)?.focus();
    } else {
      state.node = box.name;
      showDetail(box);
    }
    changed();
  }

  function show() {
    const folded = foldedGraph(nodes, parts, open);
    const text = new Map(folded.boxes.map((box) => [box, linesOf(box, times, figures)]));
    const all = { operations: nodes.length, parameters: d3.sum(nodes, (node) => node.parameters),
      macs: d3.sum(nodes, (node) => node.macs), seconds: d3.sum(times, ({ seconds }) => seconds) };
    const caption = `${model.network}: ${plural(all.operations, "operation")}, ${short(all.parameters)} parameters, ` +
      `${short(all.macs)} multiply-adds` + (times.length ? `, ${milliseconds(all.seconds)} for an image` : "") +
      ". Times are those of the compiled network on this machine, mean of 10 runs of one image.";
    const whole = figures.filter(({ node, head }) => !node && head < 0).map(({ instrument, statistic, mean, unit }) =>
      [instrument, statistic, number(mean, 4), unit !== "1" && unit].filter(Boolean).join(" "));
    summary.textContent = whole.length ? `Of the whole network: ${whole.join("; ")}.` : "";
    const figure = picture(model.network, drawGraph(folded, text, act), null, caption, "network-figure");
    place.replaceChildren(figure);
    const chosen = folded.boxes.find(({ name }) => name === state.node);
    if (chosen) showDetail(chosen);
    else detail.hidden = true;
    showTools();
  }

  /* --- tools --- */

  function showTools() {
    tools.replaceChildren(...[
      dropdown("Checkpoint", models.map(({ id, name }) => [id, name]), state.model, (id) => {
        Object.assign(state, { model: id, node: "", open: null });
        load();
      }),
      model && images.length ? dropdown("Figures", [["", "none"], ...instrumentOptions(model.instruments)], state.with,
        (name) => {
          state.with = name;
          loadFigures();
        }) : null,
      model && images.length && state.with ? dropdown("of image", images.map(({ id, name }) => [id, name]), state.image,
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
    ({ nodes } = graph);
    parts = partsOf(nodes);
    open = new Set(state.open === null ? openAtFirst(parts) : state.open.split(",").filter((name) => parts.has(name)));
    times = figures = [];
    changed();
    show();
    const timed = await askJson("times", { model: state.model });
    if (mine !== asked) return;
    ({ times } = timed);
    show();
  }
  async function load() {
    const mine = ++asked, loaded = await guarded(() => loadNetwork(mine), () => mine === asked);
    if (mine === asked && !loaded) showChoice();
    else if (mine === asked && state.with) await loadFigures();
    document.documentElement.dataset.times = String(times.length);
  }

  if (!models.some(({ id }) => id === state.model)) state.model = models[0].id;
  if (!images.some(({ id }) => id === state.image)) state.image = firstImage(images);
  addEventListener("hashchange", () => {
    Object.assign(state, readHash());
    load();
  });
  load();
  return [problem, tools, summary, element("div", { class: "network-view" }, place, detail)];
}

(async () => {
  const part = element("section", { id: "network", "aria-labelledby": "title" });
  showTitle("network", "Network", "Click a part to unfold it, an operation to see its details.");
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
