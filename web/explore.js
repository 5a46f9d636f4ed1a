"use strict";
/* The view "Explore": where a place of an image attends to, in every layer and head of an open network, and what
   changes without some of its parts. The engine computes all numbers; the page draws them. Used by the live page only. */

/* --- the engine --------------------------------------------------------------------------------------------------- */

class Refusal extends Error {}

/* The answer of a route; throws a Refusal with the server's sentence. */
async function ask(path, query = {}, options = {}) {
  const answer = await fetch(`api/${path}?${new URLSearchParams(query)}`, options);
  if (!answer.ok) throw new Refusal((await answer.text()).trim());
  return answer;
}
async function askJson(path, query, options) {
  return (await ask(path, query, options)).json();
}

/* Runs one request at a time. Of those that are asked for meanwhile only the last one is run. */
function latest(run) {
  let running = false, waiting = null;
  return async function start(...values) {
    waiting = values;
    if (running) return;
    running = true;
    while (waiting) {
      const now = waiting;
      waiting = null;
      await run(...now);
    }
    running = false;
  };
}

/* --- weights of a query ------------------------------------------------------------------------------------------- */

/* The numbers of one query, [heads, keys] for each layer. Head -1 is the mean of the heads. */
function weightsOf(model, numbers) {
  const first = [];
  let at = 0;
  for (const layer of model.layers) {
    first.push(at);
    at += layer.heads * layer.keys;
  }
  function keysOf(layer, head) {
    const { heads, keys } = model.layers[layer], from = first[layer];
    if (head >= 0) return numbers.subarray(from + head * keys, from + (head + 1) * keys);
    const mean = new Float32Array(keys);
    for (let h = 0; h < heads; h++)
      for (let j = 0; j < keys; j++) mean[j] += numbers[from + h * keys + j] / heads;
    return mean;
  }
  /* By patch of the layer's grid; NaN outside of the query's window. */
  function row(layer, head, query) {
    const node = model.layers[layer], keys = keysOf(layer, head), out = new Float32Array(node.patches).fill(NaN);
    for (const [i, patch] of patchesSeen(node, query).entries()) out[patch] = keys[node.prefix + i];
    return out;
  }
  return { keysOf, row };
}

const EXCLUDED = -1e29;
/* Scores as heights from 0 to 1, for drawing. Excluded keys have no colour. */
function heights(scores) {
  const seen = scores.filter((score) => score > EXCLUDED), [low, high] = d3.extent(seen);
  return scores.map((score) => (score > EXCLUDED ? (score - low) / (high - low || 1) : NaN));
}
function entropyOf(keys) {
  return -d3.sum(keys, (a) => (a > 0 ? a * Math.log(a) : 0));
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

/* Changes are a list of words, the same as in the URL: "h3.1r" (head 1 of layer 3 removed), "h3.1u" (uniform), "b5"
   (branch 5 removed), "t17" (token 17 removed). */
function describeChange(model, word) {
  const [, kind, first, , head, how] = /^([hbt])(\d+)(\.(\d+)([ru]))?$/.exec(word) ?? [];
  if (kind === "h") return `${model.layers[first]?.node} head ${head} ${how === "r" ? "removed" : "uniform"}`;
  if (kind === "b") return `branch ${model.branches[first]} removed`;
  return `${placeOf(model.layers[0], Number(first))} removed`;
}
function withoutHead(words, layer, head) {
  return words.filter((word) => !word.startsWith(`h${layer}.${head}r`) && !word.startsWith(`h${layer}.${head}u`));
}
function toggled(words, word) {
  return words.includes(word) ? words.filter((other) => other !== word) : [...words, word];
}

/* --- the view ----------------------------------------------------------------------------------------------------- */

const SCORES = [["all", "all"], ["content", "content"], ["position", "position"]];
const DEFAULTS = { model: "0", image: "", at: "", layer: "", head: "-1", scores: "all", raw: "", changes: "" };

function readState(fragment) {
  const given = new URLSearchParams(fragment.split("?")[1] ?? "");
  return Object.fromEntries(Object.entries(DEFAULTS).map(([key, value]) => [key, given.get(key) ?? value]));
}
function writeState(state) {
  const kept = Object.entries(state).filter(([key, value]) => String(value) !== DEFAULTS[key]);
  const text = new URLSearchParams(kept).toString();
  history.replaceState(null, "", `#explore${text && `?${text}`}`);
}

/* The parts of the panel that are filled again and again. */
function explorePlaces() {
  return {
    view: element("canvas", { tabindex: 0, role: "img", "aria-label": "The network's input overlaid with attention. " +
      "The arrow keys move the query, C selects the class token." }),
    strip: element("div", { class: "strip" }), grid: element("div", { class: "grid" }),
    words: element("p", { class: "readout", "aria-live": "polite" }),
    ends: element("div", { class: "ramp-ends" }), answer: element("div", { class: "answer", "aria-live": "polite" }),
    changes: element("div", { class: "chips changes" }), tools: element("div", { class: "tools" }),
    heads: element("div", { class: "tools" }), branches: element("details", { class: "branches" }),
    problem: element("p", { class: "note problem", role: "alert", hidden: true }),
  };
}

function makeExplorer(models, images) {
  const at = explorePlaces(), thumbs = [];
  let state = readState(location.hash), model, weights, photo, plain, strength = 0.6, hovered = null;
  const uploads = [];

  const words = () => state.changes.split("-").filter(Boolean);
  const layer = () => Number(state.layer), head = () => Math.min(Number(state.head), model.layers[layer()].heads - 1);
  const raw = () => state.raw === "1";

  function complain(error) {
    if (!(error instanceof Refusal)) throw error;
    at.problem.textContent = error.message;
    at.problem.hidden = false;
  }
  async function guarded(work) {
    try {
      await work();
      at.problem.hidden = true;
    } catch (error) {
      complain(error);
    }
  }

  /* A token of the enlarged layer at the kept place. */
  function keptQuery() {
    const node = model.layers[layer()];
    if (state.at.startsWith("p")) return Math.min(Number(state.at.slice(1)), node.prefix - 1);
    const [y, x] = state.at.split(",").map(Number);
    return node.prefix + Math.floor(y * node.grid_h) * node.grid_w + Math.floor(x * node.grid_w);
  }
  function placeText(query) {
    const node = model.layers[layer()], patch = query - node.prefix;
    if (patch < 0) return `p${query}`;
    const middle = (cell, cells) => ((cell + 0.5) / cells).toFixed(4);
    return `${middle(Math.floor(patch / node.grid_w), node.grid_h)},${middle(patch % node.grid_w, node.grid_w)}`;
  }

  /* --- drawing --- */

  function rowFor(index, which, query) {
    const row = weights.row(index, which, sameToken(query, model.layers[layer()], model.layers[index]));
    return raw() ? heights(row) : row;
  }
  function describe(query) {
    const node = model.layers[layer()], keys = weights.keysOf(layer(), head());
    const name = head() < 0 ? "mean of all heads" : `head ${head()}`;
    const title = [element("b", {}, `From ${placeOf(node, query)}`), ` · ${node.node}, ${name}.`, element("br")];
    const row = weights.row(layer(), head(), query), best = d3.greatestIndex(row);
    if (raw()) {
      const [low, high] = d3.extent([...keys].filter((score) => score > EXCLUDED));
      return [...title, `Scores from ${number(low, 3)} to ${number(high, 3)} nats; highest patch: ` +
        `${placeOf(node, node.prefix + best).replace("the patch in ", "")}.`];
    }
    const onPrefix = d3.sum(keys.subarray(0, node.prefix));
    return [...title,
      `Strongest patch: ${placeOf(node, node.prefix + best).replace("the patch in ", "")} (${percent(row[best])}). `,
      node.prefix ? `On ${node.prefix === 1 ? "the class token" : "the prefix tokens"}: ${percent(onPrefix)}. ` : "",
      `${head() < 0 ? "Entropy of the mean map" : "Entropy"}: ${number(entropyOf(keys), 3)} of at most ` +
        `${number(Math.log(node.keys), 3)} nats.`];
  }
  function drawWindows(canvas, node) {
    if (node.keys === node.tokens) return;
    const context = canvas.getContext("2d");
    context.strokeStyle = "#ffffff90";
    context.lineWidth = 1;
    for (let y = node.shift_h || node.window_h; y < node.grid_h; y += node.window_h)
      context.strokeRect(-1, (y / node.grid_h) * canvas.height, canvas.width + 2, 0);
    for (let x = node.shift_w || node.window_w; x < node.grid_w; x += node.window_w)
      context.strokeRect((x / node.grid_w) * canvas.width, -1, 0, canvas.height + 2);
  }
  function draw(query) {
    const node = model.layers[layer()], atlas = { maps: { image: photo.image }, pixels: photo.pixels,
      nodes: model.layers };
    const row = rowFor(layer(), head(), query);
    drawView(at.view, atlas, { image: 0, layer: layer(), strength }, row, query);
    drawWindows(at.view, node);
    at.view.dataset.query = query;
    at.words.replaceChildren(...describe(query));
    at.ends.replaceChildren(...(raw() ? ["lowest score", "highest score"]
      : ["0", `${percent(d3.max(row) ?? 0)} of this query's attention on one patch`])
      .map((text) => element("span", {}, text)));
    for (const { canvas, index, which, button } of thumbs) {
      drawWeights(canvas, model.layers[index], rowFor(index, which, query));
      button.setAttribute("aria-pressed", String(index === layer() && which === head()));
    }
    at.view.dataset.drawn = state.at;
  }

  /* --- asking --- */

  const runQuery = () => ({ model: state.model, image: state.image, changes: state.changes });
  const follow = latest((query) => guarded(async () => {
    const answer = await ask("weights", { ...runQuery(), at: placeText(query), scores: state.scores,
      raw: raw() ? 1 : 0 });
    weights = weightsOf(model, new Float32Array(await answer.arrayBuffer()));
    draw(query);
  }));
  const run = latest(() => guarded(async () => {
    const [answer, input] = await Promise.all([askJson("run", runQuery()), ask("input", runQuery())]);
    const [h, w, c] = answer.input;
    photo = { image: { h, w, c }, pixels: new Uint8Array(await input.arrayBuffer()) };
    if (!state.changes) plain = { ...answer, image: state.image };
    else if (plain?.image !== state.image) plain = { ...await askJson("run", { ...runQuery(), changes: "" }),
      image: state.image };
    showAnswer(answer);
    if (model.layers.length) await follow(keptQuery());
    else drawPhoto(at.view, { maps: { image: photo.image }, pixels: photo.pixels }, 0);
  }));

  function change(changed, rerun = false) {
    state = { ...state, ...changed };
    writeState(state);
    showTools();
    if (rerun) run();
    else if (model.layers.length) follow(keptQuery());
  }

  /* --- the answer --- */

  function bar({ name, probability }, before) {
    const parts = [element("span", { class: "bar-name" }, name),
      element("span", { class: "bar-track" }, element("span", { class: "bar-fill" })),
      element("span", { class: "bar-number", "data-value": probability }, percent(probability))];
    parts[1].firstChild.style.width = `${100 * probability}%`;
    if (before !== undefined) {
      const mark = element("span", { class: "bar-before", title: `${percent(before)} without changes` });
      mark.style.left = `${100 * before}%`;
      parts[1].append(mark);
    }
    return element("li", {}, ...parts);
  }
  function showAnswer(answer) {
    const classes = answer.classes ?? [], before = new Map((plain?.all ?? []).map((p, i) => [i, p]));
    at.answer.replaceChildren(
      classes.length ? element("ol", { class: "bars" }, ...classes.map((entry) =>
        bar(entry, state.changes ? before.get(entry.class) : undefined)))
        : element("p", {}, "This network has no classes."),
      state.changes && classes.length ? element("figcaption", {}, "Marks: the probability without changes.") : "");
  }

  /* --- tools --- */

  function showChanges() {
    at.changes.replaceChildren(...words().map((word) => element("button", { type: "button", class: "chip",
      "aria-label": `Undo: ${describeChange(model, word)}`, title: "Undo this change",
      onclick: () => change({ changes: toggled(words(), word).join("-") }, true) }, `${describeChange(model, word)} ×`)),
    ...(words().length > 1 ? [element("button", { type: "button", class: "quiet",
      onclick: () => change({ changes: "" }, true) }, "Undo all")] : []));
  }
  function headButton(text, how) {
    const index = layer(), which = head(), word = `h${index}.${which}${how}`;
    return element("button", { type: "button", class: "quiet", "aria-pressed": String(words().includes(word)),
      onclick: () => change({ changes: words().includes(word) ? withoutHead(words(), index, which).join("-")
        : [...withoutHead(words(), index, which), word].join("-") }, true) }, text);
  }
  function showHeadTools() {
    const query = keptQuery(), token = `t${query}`;
    at.heads.replaceChildren(...(head() < 0 ? [element("span", { class: "reading" },
      "Choose a head to remove it or to make it uniform.")]
      : [headButton(`Remove head ${head()} of ${model.layers[layer()].node}`, "r"), headButton("Make it uniform", "u")]),
    ...(model.tokens && model.layers[layer()].tokens === model.tokens ? [element("button", { type: "button",
      class: "quiet", "aria-pressed": String(words().includes(token)), title: "No token attends to it, in any layer",
      onclick: () => change({ changes: toggled(words(), token).join("-") }, true) }, "Remove the kept token")] : []));
  }
  function showBranches() {
    const removed = words().filter((word) => word.startsWith("b")).length;
    const open = at.branches.open;
    at.branches.replaceChildren(element("summary", {}, `Branches (${removed} of ${model.branches.length} removed)`),
      element("div", { class: "chips" }, ...model.branches.map((name, i) => element("button", { type: "button",
        class: "quiet", "aria-pressed": String(words().includes(`b${i}`)), title: `Remove the branch added by ${name}`,
        onclick: () => change({ changes: toggled(words(), `b${i}`).join("-") }, true) }, name))));
    at.branches.open = open;
  }
  function showTools() {
    showChanges();
    showBranches();
    if (!model.layers.length) return;
    showHeadTools();
    const prefix = model.layers[layer()].prefix, { content, position } = model.layers[layer()];
    at.tools.replaceChildren(...[
      ...d3.range(prefix).map((i) => element("button", { type: "button", class: "quiet",
        "aria-pressed": String(state.at === `p${i}`), onclick: () => change({ at: `p${i}` }) },
      prefix === 1 ? "Class token" : `Prefix token ${i}`)),
      content && position ? choice("Scores", SCORES, state.scores, (scores) => change({ scores })) : null,
      choice("Show", [["", "weights"], ["1", "scores"]], state.raw, (value) => change({ raw: value })),
      element("label", { class: "slider" }, "Image", element("input", { type: "range", min: 0, max: 100,
        value: 100 * strength, "aria-label": "Opacity of the attention map, per cent", oninput: (event) => {
          strength = event.target.value / 100;
          draw(hovered ?? keptQuery());
        } }), "attention")].filter(Boolean));
  }

  /* --- the grid of layers and heads --- */

  function buildGrid() {
    const count = model.layers.length, side = Math.max(30, Math.min(76, Math.floor(620 / count)));
    thumbs.length = 0;
    at.grid.style.gridTemplateColumns = `max-content repeat(${count}, minmax(30px, ${side}px))`;
    at.grid.replaceChildren(element("span"),
      ...model.layers.map((node) => element("span", { title: node.node }, blockName(node.node))));
    for (const which of d3.range(-1, d3.max(model.layers, (node) => node.heads) ?? -1)) {
      at.grid.append(element("span", {}, which < 0 ? "all" : `head ${which}`));
      for (const [index, node] of model.layers.entries()) {
        if (which >= node.heads) {
          at.grid.append(element("span"));
          continue;
        }
        const canvas = element("canvas"), label = `${node.node}, ${which < 0 ? "all heads" : `head ${which}`}`;
        const button = element("button", { type: "button", title: label, "aria-label": label,
          onclick: () => change({ layer: String(index), head: String(which) }) }, canvas);
        thumbs.push({ canvas, index, which, button });
        at.grid.append(button);
      }
    }
  }

  /* --- choosing --- */

  function chooseImage(image) {
    change({ image }, true);
    showStrip();
  }
  function showStrip() {
    at.strip.replaceChildren(...[...uploads, ...images].map(({ id, name }) => element("button", { type: "button",
      "aria-pressed": String(id === state.image), title: name, "aria-label": name, onclick: () => chooseImage(id) },
    element("img", { src: `api/thumbnail?image=${encodeURIComponent(id)}`, alt: "", loading: "lazy" }))));
  }
  async function upload(file) {
    await guarded(async () => {
      const { image } = await askJson("upload", {}, { method: "POST", body: file });
      if (!uploads.some(({ id }) => id === image)) uploads.unshift({ id: image, name: file.name });
      chooseImage(image);
    });
  }
  function chooseModel(index) {
    model = models[index];
    const fits = Number(state.layer) < model.layers.length && state.layer !== "";
    state = { ...state, model: String(index), layer: fits ? state.layer : String(Math.round(0.6 * Math.max(0,
      model.layers.length - 1))) };
    const prefix = model.layers[0]?.prefix ?? 0;
    if (!state.at || (state.at.startsWith("p") && Number(state.at.slice(1)) >= prefix))
      state.at = prefix ? "p0" : "0.5,0.5";
    plain = undefined;
    buildGrid();
    showTools();
  }

  /* --- pointer and keys --- */

  function queryAt(event) {
    const box = at.view.getBoundingClientRect(), { prefix, grid_h, grid_w } = model.layers[layer()];
    const cell = (share, cells) => Math.max(0, Math.min(cells - 1, Math.floor(share * cells)));
    return prefix + cell((event.clientY - box.top) / box.height, grid_h) * grid_w +
      cell((event.clientX - box.left) / box.width, grid_w);
  }
  function listen() {
    at.view.addEventListener("pointermove", (event) => {
      if (!model.layers.length || !weights) return;
      const query = queryAt(event);
      if (query !== hovered) follow((hovered = query));
    });
    at.view.addEventListener("pointerleave", () => {
      hovered = null;
      if (model.layers.length && weights) follow(keptQuery());
    });
    at.view.addEventListener("click", (event) => {
      if (model.layers.length) change({ at: placeText(queryAt(event)) });
    });
    at.view.addEventListener("keydown", (event) => {
      if (!model.layers.length) return;
      const { prefix, grid_w, patches } = model.layers[layer()], query = keptQuery();
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid_w, ArrowDown: grid_w }[event.key];
      if (event.key === "c" && prefix) change({ at: "p0" });
      if (!step) return;
      event.preventDefault();
      const wanted = query < prefix ? prefix : query + step;
      if (wanted >= prefix && wanted < prefix + patches) change({ at: placeText(wanted) });
    });
  }

  /* --- the panel --- */

  function dropZone() {
    const input = element("input", { type: "file", accept: "image/jpeg,image/png,image/webp", "aria-label": "An image",
      onchange: (event) => event.target.files[0] && upload(event.target.files[0]) });
    const zone = element("label", { class: "drop" }, input, "Drop an image here, or choose a file");
    zone.addEventListener("dragover", (event) => event.preventDefault());
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
    });
    return zone;
  }
  function modelChoice() {
    if (models.length < 2) return null;
    return element("label", { class: "slider" }, "Checkpoint", element("select", { onchange: (event) => {
      chooseModel(Number(event.target.value));
      change({ changes: "" }, true);
    } }, ...models.map(({ name }, i) => element("option", { value: i, selected: String(i) === state.model }, name))));
  }
  const ramp = element("div", { class: "ramp" });
  ramp.style.background = `linear-gradient(to right, ${d3.range(0, 256, 17).map((i) => heat[i].toString()).join(",")})`;
  const panel = element("div", { class: "panel maps explorer" },
    element("div", {}, at.problem, modelChoice(), dropZone(), at.strip, element("div", { class: "view" }, at.view),
      at.tools, at.answer),
    element("div", {}, element("h3", {}, "All layers and heads for this query"),
      element("figcaption", {}, "Columns are layers and rows are heads, both numbered from 0 as in the checkpoint. Rows " +
        "and columns of patches are numbered from 1. Each map is scaled to its own largest value. Click a map to " +
        "enlarge it."),
      at.grid, at.words, ramp, at.ends, element("h3", {}, "What if"), at.heads, at.branches, at.changes));

  listen();
  addEventListener("hashchange", () => {
    if (!location.hash.startsWith("#explore")) return;
    state = readState(location.hash);
    chooseModel(Number(state.model) < models.length ? Number(state.model) : 0);
    if (state.image) change({}, true);
    showStrip();
  });
  chooseModel(Number(state.model) < models.length ? Number(state.model) : 0);
  showStrip();
  if (!state.image && images.length) state.image = images[0].id;
  if (state.image) chooseImage(state.image);
  return panel;
}

async function exploreSection() {
  const part = section("explore", "Explore", "Hover over the image to see where a patch attends to, in every layer and " +
    "head; click to keep the query. Below the maps, parts of the network can be left out.");
  try {
    const [{ models }, { images }] = await Promise.all([askJson("models"), askJson("images")]);
    if (!models.length) part.append(element("p", { class: "note" }, "No checkpoint was named: attscope serve CHECKPOINT"));
    else part.append(makeExplorer(models.map((model) => ({ ...model, layers: model.layers.map((layer) => ({ ...layer,
      patches: layer.grid_h * layer.grid_w, tokens: layer.prefix + layer.grid_h * layer.grid_w })) })), images));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    part.append(element("p", { class: "note problem", role: "alert" }, error.message));
  }
  return part;
}
