"use strict";
/* Attention maps: shows, for a query in an image, the attention weights of each layer and head. */

function bytesOf(text) {
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/* The patches of a query's window, in the order of its keys; those of the whole grid if the query is a prefix token. */
function patchesSeen({ prefix, grid_h, grid_w, window_h, window_w, shift_h, shift_w }, query) {
  const patch = Math.max(0, query - prefix);
  const top = Math.floor(((Math.floor(patch / grid_w) - shift_h + grid_h) % grid_h) / window_h) * window_h + shift_h;
  const left = Math.floor((((patch % grid_w) - shift_w + grid_w) % grid_w) / window_w) * window_w + shift_w;
  return d3.range(window_h * window_w).map((i) =>
    ((top + Math.floor(i / window_w)) % grid_h) * grid_w + ((left + (i % window_w)) % grid_w));
}
/* The token of node `to` at the place of a token of node `from`, whose grid may be another. */
function sameToken(query, from, to) {
  if (query < from.prefix) return query < to.prefix ? query : 0;
  const patch = query - from.prefix, y = Math.floor(patch / from.grid_w), x = patch % from.grid_w;
  const place = (at, of, among) => Math.floor(((at + 0.5) / of) * among);
  return to.prefix + place(y, from.grid_h, to.grid_h) * to.grid_w + place(x, from.grid_w, to.grid_w);
}

/* Decodes a run's maps. Head -1 is the mean of the maps of all heads. */
function atlasOf(run) {
  const { maps } = run, pixels = bytesOf(maps.image.data);
  const classes = maps.classes && new Uint16Array(bytesOf(maps.classes.data).buffer);
  const names = prefixNames(run.facts);
  const nodes = maps.nodes.map((node) => ({ ...node, names, name: node.node, patches: node.grid_h * node.grid_w,
    seen: node.window_h * node.window_w, tokens: node.prefix + node.grid_h * node.grid_w,
    levels: bytesOf(node.levels), figures: new Float32Array(bytesOf(node.figures).buffer),
    place: new Int32Array(bytesOf(node.place).buffer) }));
  /* Values of a query, computed from unrounded weights: entropy in nats; the weights on the query itself (self), on all
     prefix tokens (prefix) and on the patch with the largest weight (largest); and that patch's token (best). */
  function figures(image, layer, head, query) {
    const node = nodes[layer];
    const row = (image * (node.heads + 1) + (head < 0 ? node.heads : head)) * node.tokens + query;
    const names = maps.figure_names, first = row * names.length;
    return { ...Object.fromEntries(names.map((name, i) => [name, node.figures[first + i]])),
      best: node.prefix + node.place[row] };
  }
  /* A query's weights on the patches, for drawing; NaN outside of its window. The weights of each head are rounded to
     multiples of 1/255 of the largest. */
  function row(image, layer, head, query) {
    const node = nodes[layer], out = new Float32Array(node.patches).fill(NaN), seen = patchesSeen(node, query);
    const heads = head < 0 ? d3.range(node.heads) : [head];
    for (const p of seen) out[p] = 0;
    for (const h of heads) {
      const at = ((image * node.heads + h) * node.tokens + query) * node.seen;
      const scale = figures(image, layer, h, query).largest / 255 / heads.length;
      for (const [i, p] of seen.entries()) out[p] += node.levels[at + i] * scale;
    }
    return out;
  }
  /* A picture, and the class of each of its pixels, as a view of classes shows it. */
  function classified(image) {
    const { h, w, c } = maps.image, size = h * w;
    return [{ image: maps.image, pixels: pixels.subarray(image * size * c, (image + 1) * size * c) },
      classes.subarray(image * size, (image + 1) * size)];
  }
  return { maps, pixels, nodes, figures, row, classified };
}

const heat = d3.range(256).map((i) => d3.rgb(d3.interpolateInferno(i / 255)));
/* Red, green and blue of each colour of `heat`, one after the other. */
const heatBytes = Uint8ClampedArray.from(heat.flatMap(({ r, g, b }) => [r, g, b]));

function drawPhoto(canvas, atlas, image) {
  const { h, w, c } = atlas.maps.image;
  canvas.width = w;
  canvas.height = h;
  const data = new ImageData(w, h), base = image * h * w * c;
  for (let p = 0; p < h * w; p++) {
    for (let channel = 0; channel < 3; channel++)
      data.data[4 * p + channel] = atlas.pixels[base + p * c + (c === 3 ? channel : 0)];
    data.data[4 * p + 3] = 255;
  }
  canvas.getContext("2d").putImageData(data, 0, 0);
}

/* Draws a query's weights on the patches as colours; patches outside of its window stay transparent. strength: opacity
   at the largest weight, 0 to 1; smaller weights are more transparent, so that an image below stays visible. If
   undefined, colours are opaque. */
function drawWeights(canvas, { grid_h, grid_w }, row, strength) {
  const largest = d3.max(row) || 1;
  canvas.width = grid_w;
  canvas.height = grid_h;
  const data = new ImageData(grid_w, grid_h);
  for (let p = 0; p < grid_h * grid_w; p++) {
    if (Number.isNaN(row[p])) continue;
    const share = row[p] / largest, colour = 3 * Math.round(255 * share);
    const cover = strength === undefined ? 1 : strength * (0.2 + 0.8 * Math.sqrt(share));
    for (let channel = 0; channel < 3; channel++) data.data[4 * p + channel] = heatBytes[colour + channel];
    data.data[4 * p + 3] = Math.round(255 * cover);
  }
  canvas.getContext("2d").putImageData(data, 0, 0);
}

const opposite = d3.range(256).map((i) => d3.rgb(d3.interpolatePuOr(1 - i / 255)));

/* Draws differences: one colour for more, one for less, the same scale for both. */
function drawDifference(canvas, { grid_h, grid_w }, values) {
  const largest = d3.max(values, Math.abs) || 1;
  canvas.width = grid_w;
  canvas.height = grid_h;
  const data = new ImageData(grid_w, grid_h);
  for (let p = 0; p < grid_h * grid_w; p++) {
    if (Number.isNaN(values[p])) continue;
    const colour = opposite[Math.round(127.5 + 127.5 * (values[p] / largest))];
    data.data.set([colour.r, colour.g, colour.b, 255], 4 * p);
  }
  canvas.getContext("2d").putImageData(data, 0, 0);
}

function rampOf(colours) {
  return `linear-gradient(to right, ${d3.range(0, 256, 17).map((i) => colours[i].toString()).join(",")})`;
}

function drawView(canvas, atlas, state, row, query) {
  const { image } = atlas.maps, node = atlas.nodes[state.layer], { grid_h, grid_w, prefix } = node;
  const longer = Math.max(image.w, image.h), scale = Math.max(1, Math.floor(672 / longer));
  canvas.width = image.w * scale;
  canvas.height = image.h * scale;
  const context = canvas.getContext("2d");
  const photo = document.createElement("canvas"), weights = document.createElement("canvas");
  drawPhoto(photo, atlas, state.image);
  context.imageSmoothingEnabled = longer >= 100;
  context.filter = `grayscale(${Math.min(1, 2 * state.strength)})`;
  context.drawImage(photo, 0, 0, canvas.width, canvas.height);
  context.filter = "none";
  const cell = { w: canvas.width / grid_w, h: canvas.height / grid_h };
  if (state.strength > 0) {
    drawWeights(weights, node, row, state.strength);
    context.imageSmoothingEnabled = false;
    context.drawImage(weights, 0, 0, canvas.width, canvas.height);
  }
  if (query < prefix) return;
  const x = (query - prefix) % grid_w, y = Math.floor((query - prefix) / grid_w);
  for (const [colour, width] of [["#000", 6], ["#fff", 3]]) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.strokeRect(x * cell.w, y * cell.h, cell.w, cell.h);
  }
}

/* --- words ------------------------------------------------------------------------------------------------------- */

/* The names of the tokens before the patches, by the network's options; [] if these do not say it. */
function prefixNames({ class_token: cls, distilled, reg_tokens: registers }) {
  return [...(Number(cls) > 0 ? ["class token"] : []), ...(Number(distilled) > 0 ? ["distillation token"] : []),
    ...d3.range(Number(registers) || 0).map((i) => `register ${i}`)];
}
/* "class token", "register 0"; node.names: those of all tokens before the patches. */
function prefixName(node, token) {
  if (node.names?.length === node.prefix) return node.names[token];
  return node.prefix === 1 ? "class token" : `prefix token ${token}`;
}
/* "the class token and 4 registers" */
function prefixWords(node) {
  const names = d3.range(node.prefix).map((token) => prefixName(node, token));
  const registers = names.filter((name) => name.startsWith("register")).length;
  if (names.some((name) => name.startsWith("prefix"))) return "the prefix tokens";
  return [...names.filter((name) => !name.startsWith("register")).map((name) => `the ${name}`),
    ...(registers ? [plural(registers, "register")] : [])].join(" and ");
}
/* node.words: those of a text; else the tokens are patches. */
function placeOf(node, token) {
  if (node.words) return `“${node.words[token]?.name}” (token ${token})`;
  if (token < node.prefix) {
    const name = prefixName(node, token);
    return name.endsWith("token") ? `the ${name}` : name;
  }
  const p = token - node.prefix;
  return `the patch in row ${Math.floor(p / node.grid_w) + 1}, column ${(p % node.grid_w) + 1}`;
}
/* A share in per cent: "12.3 %". No share is 0 or 100 % that is not. */
function percent(value) {
  const share = 100 * value;
  return share > 0 && share < 0.001 ? "< 0.001 %" : share < 100 && share >= 99.95 ? "> 99.9 %"
    : `${number(share, 3)} %`;
}
/* The image's name and caption, both untrusted. */
function pictureWords({ name, caption }) {
  return [element("b", {}, name), caption ? ` · ${caption}` : ""];
}
function describeRow(atlas, state, head, figures, query) {
  const node = atlas.nodes[state.layer], { entropy, self, prefix, largest, best } = figures;
  return [
    element("b", {}, `From ${placeOf(node, query)}`),
    ` · ${node.name}, ${head < 0 ? "mean of all heads" : `head ${head}`}.`, element("br"),
    `Strongest patch: ${placeOf(node, best).replace("the patch in ", "")} (${percent(largest)}). `,
    node.prefix ? `On ${prefixWords(node)}: ${percent(prefix)}. ` : "", `On itself: ${percent(self)}. `,
    `${head < 0 ? "Entropy of the mean map" : "Entropy"}: ${number(entropy, 3)} of at most ` +
      `${number(Math.log(node.prefix + node.seen), 3)} nats` + (head < 0 ? ` (mean of the heads' entropies: ` +
      `${number(d3.mean(d3.range(node.heads),
        (h) => atlas.figures(state.image, state.layer, h, query).entropy), 3)}).` : ".")];
}

/* The place of the row whose entropy, as a share of the largest possible one, is at `fraction` (0: lowest, 1: highest)
   among the rows of all layers, heads and queries of an image: {layer, head, query}. */
function rowByEntropy(atlas, image, fraction) {
  const rows = atlas.nodes.flatMap((node, layer) => d3.cross(d3.range(node.heads), d3.range(node.tokens),
    (head, query) => ({ layer, head, query,
      share: atlas.figures(image, layer, head, query).entropy / Math.log(node.prefix + node.seen) })));
  return rows.sort((a, b) => a.share - b.share)[Math.round(fraction * (rows.length - 1))];
}

/* --- the explorer of one run ------------------------------------------------------------------------------------- */

/* Whether images with the same name in both runs are the same image. */
function haveSameImages(a, b) {
  const one = measuredFacts(a), other = measuredFacts(b);
  return one.data === other.data || (one.contents !== undefined && one.contents === other.contents);
}

/* Makes the panel of one run. chosen: run and name of the selected image, shared by all panels. Returns {panel,
   follow}; follow() selects that image if the run has it. */
function explorer(run, chosen) {
  const atlas = atlasOf(run), { maps } = atlas;
  const first = Math.round(0.6 * (atlas.nodes.length - 1)), shown = () => atlas.nodes[state.layer];
  /* query: a token of the enlarged layer. */
  const state = { image: 0, layer: first, head: -1, strength: 0.6,
    query: sameToken(0, { prefix: 0, grid_h: 1, grid_w: 1 }, atlas.nodes[first]) };
  const view = element("canvas", { tabindex: 0, role: "img",
    "aria-label": "The image overlaid with attention. The arrow keys move the query, C selects the class token." });
  const words = element("p", { class: "readout", "aria-live": "polite" }), caption = element("figcaption");
  const ends = element("div", { class: "ramp-ends" });
  const classes = maps.classes && classView(maps.classes.list);
  const strip = roving(element("div", { class: "strip" })), grid = roving(element("div", { class: "grid" }));
  const heads = d3.max(atlas.nodes, (node) => node.heads);
  const thumbs = [];

  function show(query = state.query) {
    const head = Math.min(state.head, atlas.nodes[state.layer].heads - 1);
    const figures = atlas.figures(state.image, state.layer, head, query);
    drawView(view, atlas, state, atlas.row(state.image, state.layer, head, query), query);
    words.replaceChildren(...describeRow(atlas, state, head, figures, query));
    ends.replaceChildren(element("span", {}, "0"),
      element("span", {}, `${percent(figures.largest)} of this query's attention on one patch`));
    view.dataset.query = query;
    for (const { canvas, layer, head, button } of thumbs) {
      const node = atlas.nodes[layer];
      drawWeights(canvas, node, atlas.row(state.image, layer, head, sameToken(query, shown(), node)));
      button.setAttribute("aria-pressed", String(layer === state.layer && head === state.head));
    }
  }
  function queryAt(event) {
    const box = view.getBoundingClientRect();
    const { prefix, grid_h, grid_w } = shown();
    const x = cellAt((event.clientX - box.left) / box.width, grid_w);
    const y = cellAt((event.clientY - box.top) / box.height, grid_h);
    return prefix + y * grid_w + x;
  }
  let hovered = -1;
  view.addEventListener("pointermove", (event) => {
    const query = queryAt(event);
    if (query !== hovered) show((hovered = query));
  });
  view.addEventListener("pointerleave", () => {
    hovered = -1;
    show();
  });
  view.addEventListener("click", (event) => show((state.query = queryAt(event))));
  view.addEventListener("keydown", (event) => {
    const { prefix, grid_w, tokens } = shown();
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid_w, ArrowDown: grid_w }[event.key];
    if (event.key === "c" && prefix) show((state.query = 0));
    if (!step) return;
    event.preventDefault();
    const wanted = state.query < prefix ? prefix : state.query + step;
    if (wanted >= prefix && wanted < tokens) show((state.query = wanted));
  });
  function enlarge(layer, head) {
    state.query = sameToken(state.query, shown(), atlas.nodes[layer]);
    Object.assign(state, { layer, head });
    show();
  }

  function chooseByEntropy(fraction) {
    const { layer, head, query } = rowByEntropy(atlas, state.image, fraction);
    Object.assign(state, { layer, head, query });
    show();
  }

  function chooseImage(image) {
    state.image = image;
    Object.assign(chosen, { run, name: maps.pictures[image].name });
    for (const [i, button] of [...strip.children].entries()) button.setAttribute("aria-pressed", String(i === image));
    caption.replaceChildren(...pictureWords(maps.pictures[image]));
    if (classes) classes.show(...atlas.classified(image));
    show();
  }
  strip.append(...d3.range(maps.count).map((i) => {
    const canvas = element("canvas");
    drawPhoto(canvas, atlas, i);
    const picture = maps.pictures[i], suffix = picture.caption && `: ${picture.caption}`;
    return element("button", { type: "button", "aria-pressed": "false", onclick: () => chooseImage(i),
      title: picture.name, "aria-label": `Image ${i + 1}, ${picture.name}${suffix}` }, canvas);
  }));

  /* One column per layer, from left to right as in the charts. The first row shows all heads together. */
  const side = Math.max(30, Math.min(76, Math.floor(620 / atlas.nodes.length)));
  grid.style.gridTemplateColumns = `max-content repeat(${atlas.nodes.length}, minmax(30px, ${side}px))`;
  grid.append(element("span"),
    ...atlas.nodes.map((node) => element("span", { title: node.name }, blockName(node.name))));
  for (const head of d3.range(-1, heads)) {
    grid.append(element("span", {}, head < 0 ? "all" : `head ${head}`));
    for (const [layer, node] of atlas.nodes.entries()) {
      if (head >= node.heads) {
        grid.append(element("span"));
        continue;
      }
      const canvas = element("canvas"), label = `${node.name}, ${head < 0 ? "all heads" : `head ${head}`}`;
      const button = element("button", { type: "button", title: label, "aria-label": label,
        onclick: () => enlarge(layer, head) }, canvas);
      thumbs.push({ canvas, layer, head, button });
      grid.append(button);
    }
  }

  const tools = element("div", { class: "tools" },
    shown().prefix ? element("button", { type: "button", class: "quiet", onclick: () => show((state.query = 0)) },
      `Query: ${prefixName(shown(), 0)}`) : null,
    ...[["lowest", 0], ["median", 0.5], ["highest", 1]].map(([name, fraction]) => element("button", { type: "button",
      class: "quiet", title: `The query, head and layer of this image with the ${name} entropy, as a share of the ` +
        "largest possible one", onclick: () => chooseByEntropy(fraction) }, `Entropy: ${name}`)),
    element("label", { class: "slider" }, "Image", element("input", { type: "range", min: 0, max: 100,
      value: 100 * state.strength, "aria-label": "Opacity of the attention map, per cent",
      oninput: (event) => {
        state.strength = event.target.value / 100;
        show();
      } }), "attention"));
  const ramp = element("div", { class: "ramp" });
  ramp.style.background = `linear-gradient(to right, ${d3.range(0, 256, 17).map((i) => heat[i].toString()).join(",")})`;
  const left = element("div", {}, strip, element("div", { class: "view" }, view), caption, tools, classes?.panel);
  const right = element("div", {},
    element("h3", {}, runs.length > 1 ? `All layers and heads of ${run.name} for this query` :
      "All layers and heads for this query"),
    element("figcaption", {}, "Columns are layers and rows are heads, both numbered from 0 as in the " +
      "checkpoint. Rows and columns of patches are numbered from 1. Each map is scaled to its own largest weight on " +
      "a patch. Click a map to enlarge it." +
      (atlas.nodes.some((node) => node.seen < node.patches) ? " Patches outside of the query's window have no colour." :
        "")),
    grid, words, ramp, ends);
  function follow() {
    const others = chosen.run && chosen.run !== run && haveSameImages(run, chosen.run);
    const image = others ? maps.pictures.findIndex((picture) => picture.name === chosen.name) : -1;
    chooseImage(image < 0 ? state.image : image);
  }
  const panel = element("div", { class: "panel maps", "data-maps": run.index }, left, right);
  panel.style.setProperty("--aspect", maps.image.w / maps.image.h);
  return { panel, follow };
}

/* A note about images that are not shown because of the page's size limit. */
function leftOut(run) {
  const { maps } = run;
  if (maps.count === maps.images) return null;
  return element("p", { class: "note" }, maps.count
    ? `${run.name}: ${count(maps.count)} of ${plural(maps.images, "image")} shown; the rest would exceed the page's ` +
      "limit (--map-bytes)."
    : `${run.name}: the attention maps of one image exceed the page's limit (--map-bytes), so none are shown.`);
}

function mapSection() {
  const having = runs.filter((run) => run.maps), shown = having.filter((run) => run.maps.count);
  const place = element("div"), made = new Map(), chosen = {};
  function show(run) {
    if (!made.has(run)) made.set(run, explorer(run, chosen));
    made.get(run).follow();
    place.replaceChildren(made.get(run).panel);
  }
  const part = section("maps", "Attention maps",
    "Hover over a patch to see which patches its query attends to; click to keep the query. Colours show weights in " +
      "steps of 1/255 of the query's largest weight on a patch; the numbers are exact.",
    shown.length > 1 ? choice("Run", shown.map((run) => [run, run.name]), shown[0], show) : null);
  part.append(place, ...having.map(leftOut).filter(Boolean));
  if (shown.length) show(shown[0]);
  return part;
}
