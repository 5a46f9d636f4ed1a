"use strict";
/* What the pages of `attscope serve` ask the engine, and how they read its numbers. */

/* A request that was answered by a sentence. */
class Refusal extends Error {}

/* The answer of a route; throws a Refusal with the server's sentence. */
async function ask(path, query = {}, options = {}) {
  let answer;
  try {
    answer = await fetch(`api/${path}?${new URLSearchParams(query)}`, options);
  } catch {
    throw new Refusal("The server does not answer. Is attscope serve still running?");
  }
  if (answer.ok) return answer;
  const text = await answer.text();
  let sentence = text;
  try {
    sentence = JSON.parse(text).error;
  } catch { /* not JSON: the text itself */ }
  throw new Refusal(sentence || `${path}: the server answered with status ${answer.status}`);
}
async function askJson(path, query, options) {
  return (await ask(path, query, options)).json();
}

/* The figures of an instrument for an image; throws a Refusal with the reason if it has nothing to measure in the
   network. instruments: of the answer of api/model. A request whose answer is known to be a refusal is not made,
   because browsers log it as an error. */
async function askFigures(instruments, { model, image }, name) {
  const reason = instruments.find((one) => one.name === name)?.reason;
  if (reason) throw new Refusal(reason);
  return (await askJson("figures", { model, image, with: name })).figures;
}

/* Shows the page's title, and links to the other pages. */
function showTitle(current, title, about) {
  document.title = `${title} – attscope`;
  document.getElementById("title").textContent = title;
  document.getElementById("subtitle").textContent = about;
  showPages(current);
}

/* All images and texts that can be chosen, {id, name}: uploads, the newest first, then those of the folder, then the
   texts of the file, 1024 of each at most, and the one that the page's address names if it is another text. */
async function askImages() {
  const { images, uploads, texts } = await askJson("images", { first: 0, count: 1024 });
  const named = new URLSearchParams(location.hash.slice(1)).get("image") ?? "";
  const typed = named.startsWith("text:") ? [{ id: named, name: named.slice("text:".length) }] : [];
  return [...uploads, ...images, ...typed, ...texts];
}
/* Whether an identifier is that of a text. */
function isText(id) {
  return /^t(\d|ext:)/.test(id);
}
/* Of images and texts those that a network reads. model: the answer of api/model. */
function readable(all, model) {
  return all.filter(({ id }) => isText(id) === (model.reads === "texts"));
}
/* The chosen image or text if the network reads it, or else the first one that it reads. */
function fitting(all, model, image) {
  const own = readable(all, model);
  return own.some(({ id }) => id === image) ? image : firstImage(own);
}
/* The image that is shown first: the folder's first one, or else an upload. */
function firstImage(images) {
  return (images.find(({ id }) => id.startsWith("d")) ?? images[0])?.id ?? "";
}

/* Runs one request at a time. Of those that are asked for meanwhile only the last one is run. */
function latest(run) {
  let running = null, waiting = null;
  async function work() {
    try {
      while (waiting) {
        const now = waiting;
        waiting = null;
        await run(...now);
      }
    } finally {
      running = null;
    }
  }
  return function start(...values) {
    waiting = values;
    running ??= work();
    return running;
  };
}

/* Describes the layers of a network for drawing. names: of the tokens before the patches; words: of wordsOfText(), if the
   tokens are those of a text. A layer that pools all tokens has no grid of its own and takes that of the last layer with
   the same tokens. Layers without any grid are not drawn. */
function drawnLayers(layers, names, words) {
  let last = null;
  return layers.map((layer) => {
    if (layer.grid_h) last = layer;
    const grid = layer.grid_h ? layer : last && last.tokens === layer.tokens ? last : null;
    return { ...layer, names, words, grid_h: grid?.grid_h ?? 0, grid_w: grid?.grid_w ?? 0, prefix: grid?.prefix ?? 0,
      patches: grid ? grid.grid_h * grid.grid_w : 0 };
  });
}

/* The token of a layer at a place of the image: "p0" is prefix token 0, "0.25,0.5" a point, in shares of height and
   width. Where the layer has no such prefix token it is the middle of the image. */
function tokenAt(place, { prefix, grid_h, grid_w, queries }) {
  const of = Number(place.slice(1)), [y, x] = place.startsWith("p") ? [0.5, 0.5] : place.split(",").map(Number);
  const token = place.startsWith("p") && of < prefix ? of
    : prefix + cellAt(y || 0, grid_h) * grid_w + cellAt(x || 0, grid_w);
  return Math.min(token, queries - 1);
}
/* The place of a token, as tokenAt() reads it. */
function placeAt(token, { prefix, grid_h, grid_w }) {
  const patch = token - prefix;
  return token < prefix ? `p${token}` : placeOfCell(Math.floor(patch / grid_w), patch % grid_w, grid_h, grid_w);
}
/* The place in the middle of a cell of a grid, such as a pixel. */
function placeOfCell(row, column, rows, columns) {
  return `${((row + 0.5) / rows).toFixed(4)},${((column + 0.5) / columns).toFixed(4)}`;
}
/* The pixel at a place of an image, {row, column}; null if the place is a prefix token. */
function pixelAt(place, { h, w }) {
  const [y, x] = place.split(",").map(Number);
  return place.startsWith("p") ? null : { row: cellAt(y || 0, h), column: cellAt(x || 0, w) };
}

/* Whether weights have heads. A rollout goes through the means of all heads. */
function hasHeads(way) {
  return way !== "rollout";
}
/* The numbers of an answer of api/weights: [heads, tokens] for each layer, or [tokens] for a rollout; NaN where the
   query does not see a key. Head -1 is the mean of the heads, and the only one of a rollout. */
function weightsOf(layers, way, numbers) {
  const heads = (layer) => (hasHeads(way) ? layer.heads : 1), first = [];
  let at = 0;
  for (const layer of layers) {
    first.push(at);
    at += heads(layer) * layer.tokens;
  }
  function keys(index, head) {
    const { tokens } = layers[index], all = heads(layers[index]), from = first[index];
    if (head >= 0 && hasHeads(way)) return numbers.subarray(from + head * tokens, from + (head + 1) * tokens);
    const mean = new Float32Array(tokens);
    for (let h = 0; h < all; h++)
      for (let j = 0; j < tokens; j++) mean[j] += numbers[from + h * tokens + j] / all;
    return mean;
  }
  return { way, keys, patches: (index, head) => keys(index, head).subarray(layers[index].prefix) };
}

/* Numbers from 0 to 1 for drawing, from the lowest to the highest; NaN stays. */
function stretched(values) {
  const [low, high] = d3.extent(values);
  return values.map((value) => (value - low) / (high - low || 1));
}
function entropyOf(weights) {
  return -d3.sum(weights, (a) => (a > 0 ? a * Math.log(a) : 0));
}

function softmax(logits) {
  const largest = d3.max(logits), all = logits.map((logit) => Math.exp(logit - largest)), sum = d3.sum(all);
  return all.map((value) => value / sum);
}

/* --- changes of a network ----------------------------------------------------------------------------------------- */

/* Changes are words joined by dashes, as the server reads them: "h3.1r" (head 1 of layer 3 removed), "h3.1u" (made
   uniform), "b5" (branch 5 removed), "t17" (token 17 removed). */
function wordsOf(changes) {
  return changes.split("-").filter(Boolean);
}
function toggled(changes, word) {
  const words = wordsOf(changes);
  return (words.includes(word) ? words.filter((other) => other !== word) : [...words, word]).join("-");
}
/* A head is removed or uniform, not both. */
function toggledHead(changes, layer, head, how) {
  const word = `h${layer}.${head}${how}`, other = `h${layer}.${head}${how === "r" ? "u" : "r"}`;
  return toggled(wordsOf(changes).filter((w) => w !== other).join("-"), word);
}
/* "blocks.3 attention" of the addition "blocks.3.add1". */
function branchName({ scope, content } = { scope: "?", content: "" }) {
  return content ? `${scope.split(".").slice(0, -1).join(".")} ${content}` : scope;
}
function describeChange(model, word) {
  const [, kind, first, , head, how] = /^([hbt])(\d+)(\.(\d+)([ru]))?$/.exec(word) ?? [];
  if (kind === "h") return `${model.layers[first]?.node} head ${head} ${how === "r" ? "removed" : "uniform"}`;
  if (kind === "b") return `${branchName(model.branches[first])} removed`;
  return kind === "t" ? `${placeOf(model.layers[0], Number(first))} removed` : word;
}
