"use strict";
/* The page "Explore": where a place of an image, or a word of a text, attends to, in every layer and head of one or two
   checkpoints, and what changes without some of their parts. The engine computes all numbers; the page draws them. */

/* What the URL holds: shared by both sides, and of each side. The second side's names end in 2. */
const SHARED = { image: "", at: "", way: "row", terms: "both", raw: "", apart: "" };
const OF_SIDE = { model: "", layer: "", head: "-1", minus: "", changes: "", score: "0.5", method: "", class: "",
  near: "" };

function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  const read = (names, suffix) => Object.fromEntries(Object.entries(names).map(([name, value]) =>
    [name, given.get(name + suffix) ?? value]));
  return { shared: read(SHARED, ""), sides: ["", "2"].filter((suffix) => !suffix || given.has(`model${suffix}`))
    .map((suffix) => read(OF_SIDE, suffix)) };
}
function writeHash({ shared, sides }) {
  const pairs = (values, defaults, suffix) => Object.entries(values)
    .filter(([name, value]) => String(value) !== defaults[name]).map(([name, value]) => [name + suffix, value]);
  const text = new URLSearchParams([...pairs(shared, SHARED, ""),
    ...sides.flatMap((side, i) => pairs(side, OF_SIDE, i ? "2" : ""))]).toString();
  history.replaceState(null, "", text ? `#${text}` : location.pathname);
}

/* --- drawing ----------------------------------------------------------------------------------------------------- */

const WAYS = [["row", "this query"], ["mean", "mean over queries"], ["rollout", "rollout"]];
const WEIGHT_WORDS = { row: "of this query's attention", mean: "of the queries' attention", rollout: "of the rollout" };
const STRENGTH = 0.6; /* the opacity of maps at first */
const TERMS = [["both", "all"], ["content", "content"], ["positions", "positions"]];

/* Draws the borders of the windows among which the layer's grid is divided. */
function drawWindows(canvas, node) {
  if (!node.window_h) return;
  const context = canvas.getContext("2d");
  context.strokeStyle = "#ffffffa0";
  context.lineWidth = 1;
  context.beginPath();
  for (let y = node.shift_h || node.window_h; y < node.grid_h; y += node.window_h) {
    context.moveTo(0, (y / node.grid_h) * canvas.height);
    context.lineTo(canvas.width, (y / node.grid_h) * canvas.height);
  }
  for (let x = node.shift_w || node.window_w; x < node.grid_w; x += node.window_w) {
    context.moveTo((x / node.grid_w) * canvas.width, 0);
    context.lineTo((x / node.grid_w) * canvas.width, canvas.height);
  }
  context.stroke();
}

/* --- one checkpoint ---------------------------------------------------------------------------------------------- */

/* The layer of one network at the place of a layer of another one: the same one of equally many, else that with the same
   name, else that at the same share of the depth. */
function linkedLayer(layer, from, to) {
  if (from.length === to.length) return layer;
  const named = to.findIndex(({ node }) => node === from[layer].node);
  return named >= 0 ? named : Math.round((layer / Math.max(1, from.length - 1)) * (to.length - 1));
}

/* page: {shared, models, changed(rerun), hover(place), place(), other(side)}. side: its values in the URL. Returns
   {panel, run, follow, ...}. */
function makeSide(page, side, index) {
  const at = {
    view: element("canvas", { tabindex: 0, role: "img", "aria-label": "The network's input overlaid with attention. " +
      "The arrow keys move the query, C selects the class token." }),
    grid: roving(element("div", { class: "grid" })), words: element("p", { class: "readout", "aria-live": "polite" }),
    ramp: element("div", { class: "ramp" }), ends: element("div", { class: "ramp-ends" }),
    answer: element("div", { class: "answer", "aria-live": "polite" }), changes: element("div", { class: "tools" }),
    tools: element("div", { class: "tools" }), branches: element("details", { class: "branches" }),
    problem: element("p", { class: "note problem", role: "alert", hidden: true }),
    title: element("p", { class: "reading" }), scores: element("div", { class: "scores", hidden: true }),
  };
  const nearest = nearestView(side, () => page.changed(), (image) => page.chooseImage(image));
  const line = textLine({ hover: (token) => photo?.words && hasMaps() && page.hover(token === null ? null : placeAt(token, node())),
    keep: (token) => hasMaps() && page.keep(placeAt(token, node())) });
  const thumbs = [], relevance = relevanceView(side, () => page.changed(), () => page.strength);
  let drawing = null; /* the view of answers that are drawn: boxes, or the class of each pixel */
  let model = null, weights = null, photo = null, plain = null, gridWay = null, asked = "";

  const shownLayer = () => Math.min(Number(side.layer), model.layers.length - 1);
  const head = () => (hasHeads(page.shared.way) ? Math.min(Number(side.head), node().heads - 1) : -1);
  const raw = () => page.shared.raw === "1" && page.shared.way === "row";
  const node = () => model.layers[shownLayer()];
  const hasMaps = () => model && model.layers.some(({ patches }) => patches);
  /* What shows the image or the text, and what shows neither. */
  const shownView = () => (photo?.words ? line.panel : at.view);

  /* Does a kind of work. If it is refused, shows why, until work of the kind is done, and clears what it would have
     changed. */
  const problems = {};
  async function guarded(kind, work, clear) {
    try {
      await work();
      delete problems[kind];
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      problems[kind] = error.message;
      clear();
    }
    at.problem.textContent = Object.values(problems).join(" ");
    at.problem.hidden = !at.problem.textContent;
  }
  function change(values, rerun = false) {
    Object.assign(side, values);
    if ("layer" in values && !page.shared.apart) page.other(index)?.takeLayer(model.layers, side);
    page.changed();
    showTools();
    if (rerun) run();
    else page.follow();
  }

  /* --- what is drawn --- */

  /* What is subtracted from the shown numbers: another head of the layer, or the same head of the other checkpoint, if
     its grid is the same; null: nothing. */
  function subtrahend(layer, which) {
    if (side.minus.startsWith("h")) {
      if (!hasHeads(weights.way)) return null;
      const other = Number(side.minus.slice(1));
      return other < model.layers[layer].heads ? weights.patches(layer, other) : null;
    }
    return side.minus === "other" ? page.other(index)?.patchesLike(model.layers[layer], layer, which) ?? null : null;
  }
  function valuesOf(layer, which) {
    const own = weights.patches(layer, which), less = subtrahend(layer, which);
    return less ? { values: own.map((value, p) => value - less[p]), signed: true }
      : { values: raw() ? stretched(own) : own, signed: false };
  }
  function drawThumb({ canvas, layer, which }) {
    const { values, signed } = valuesOf(layer, which);
    if (photo.words) drawTokens(canvas, values);
    else if (signed) drawDifference(canvas, model.layers[layer], values);
    else drawWeights(canvas, model.layers[layer], values);
  }

  const unit = () => (photo.words ? "token" : "patch");
  function describe(query, { values, signed }) {
    const name = head() < 0 ? "mean of all heads" : `head ${head()}`;
    const from = { row: `From ${placeOf(node(), query)}`, mean: "Mean over all queries",
      rollout: `Rollout from ${placeOf(node(), query)} to the input` }[page.shared.way];
    const title = [element("b", {}, from), ` · ${node().node}, ${name}.`, element("br")];
    const best = d3.greatestIndex(values), place = placeOf(node(), node().prefix + best).replace("the patch in ", "");
    const keys = weights.keys(shownLayer(), head());
    const range = (numbers) => `from ${number(d3.min(numbers), 3)} to ${number(d3.max(numbers), 3)}`;
    if (signed) return [...title, `Difference: ${range(values)}; largest at ${place}.`];
    if (raw()) return [...title, `Scores ${range(keys)} nats; highest ${unit()}: ${place}.`];
    const { prefix } = node(), seen = keys.filter((a) => !Number.isNaN(a)).length;
    return [...title, `Strongest ${unit()}: ${place} (${percent(values[best])}). `,
      prefix ? `On ${prefixWords(node())}: ` +
        `${percent(d3.sum(keys.subarray(0, prefix)))}. ` : "",
      `Entropy${head() < 0 && hasHeads(weights.way) ? " of the mean map" : ""}: ` +
        `${number(entropyOf(keys), 3)} of at most ${number(Math.log(seen), 3)} nats.`];
  }
  function drawImage(query, { values, signed }) {
    const atlas = { maps: { image: photo.image }, pixels: photo.pixels, nodes: model.layers };
    drawView(at.view, atlas, { image: 0, layer: shownLayer(), strength: signed ? 0 : page.strength }, values, query);
    if (signed && page.strength > 0) coverView(values);
    drawWindows(at.view, node());
  }
  function draw(query) {
    const shown = valuesOf(shownLayer(), head());
    if (photo.words) line.shade(shown.values, page.strength / STRENGTH, query);
    else drawImage(query, shown);
    at.words.replaceChildren(...describe(query, shown));
    at.ramp.style.background = rampOf(photo.words ? shades(shown.signed) : shown.signed ? opposite : heat);
    const largest = d3.max(shown.values, Math.abs) ?? 0;
    at.ends.replaceChildren(...(shown.signed ? [`−${number(largest, 3)}`, `+${number(largest, 3)}`]
      : raw() ? ["lowest score", "highest score"]
        : ["0", `${percent(largest)} ${WEIGHT_WORDS[page.shared.way]} on one ${unit()}`])
      .map((text) => element("span", {}, text)));
    for (const thumb of thumbs) {
      drawThumb(thumb);
      thumb.button.setAttribute("aria-pressed", String(thumb.layer === shownLayer() && thumb.which === head()));
    }
    at.maps.hidden = false;
    Object.assign(shownView().dataset, { query, prefix: node().prefix, place: page.place(), asked, shown: photo.of });
  }
  /* The image or the text without weights. */
  function showPhoto() {
    if (photo.words) line.shade(new Float32Array(photo.words.length), 1, -1);
    else drawPhoto(at.view, { maps: { image: photo.image }, pixels: photo.pixels }, 0);
  }
  /* A difference over the whole view. */
  function coverView(values) {
    const cover = document.createElement("canvas"), context = at.view.getContext("2d");
    drawDifference(cover, node(), values);
    context.imageSmoothingEnabled = false;
    context.globalAlpha = page.strength;
    context.drawImage(cover, 0, 0, at.view.width, at.view.height);
    context.globalAlpha = 1;
  }

  /* --- what is cleared --- */

  /* Hides the maps; the image stays. */
  function clearMaps() {
    weights = null;
    asked = "";
    at.maps.hidden = true;
    for (const view of [at.view, line.panel])
      for (const name of ["query", "place", "asked"]) delete view.dataset[name];
    if (photo) showPhoto();
    page.drawn(index);
  }
  function clearScores() {
    at.scores.hidden = true;
    at.scores.replaceChildren();
    for (const name of ["row", "column", "changes", "shown"]) delete at.scores.dataset[name];
  }
  /* Hides the image, too, and its prediction. */
  function clearImage() {
    photo = plain = null;
    delete problems.maps;
    delete problems.scores;
    clearScores();
    for (const view of [at.view, line.panel]) delete view.dataset.shown;
    delete at.answer.dataset.changes;
    at.answer.replaceChildren();
    at.title.textContent = model ? model.network : "";
    at.picture.hidden = at.drawing.hidden = at.boxes.hidden = true;
    relevance.show(null, null, null, null);
    nearest.show("");
    clearMaps();
  }
  /* Hides everything about the checkpoint. */
  function clearModel() {
    model = gridWay = drawing = null;
    delete problems.image;
    clearImage();
    for (const part of [at.tools, at.changes]) part.replaceChildren();
    at.none.hidden = at.branches.hidden = true;
  }

  /* --- requests --- */

  const view = () => ({ model: side.model, image: page.shared.image, changes: side.changes });
  const followMaps = latest((place) => guarded("maps", async () => {
    if (!photo || !hasMaps()) return;
    const mine = photo, { layers } = model, { way, terms } = page.shared;
    const queries = layers.map((one) => tokenAt(place, one)).join(",");
    const key = [photo.of, side.model, side.changes, way, terms, raw(), way === "mean" ? "" : queries].join(";");
    if (key === asked && weights) { /* means over queries are the same for each query */
      draw(tokenAt(place, node()));
      page.drawn(index);
      return;
    }
    const answer = await ask("weights", { ...view(), image: mine.of, way, queries, terms, scores: raw() ? 1 : 0 });
    const numbers = new Float32Array(await answer.arrayBuffer());
    if (photo !== mine) return; /* another image or checkpoint is shown meanwhile */
    weights = weightsOf(layers, way, numbers);
    asked = key;
    if (gridWay !== way) buildGrid();
    draw(tokenAt(place, node()));
    page.drawn(index);
  }, clearMaps));
  const followScores = latest((place) => guarded("scores", async () => {
    const mine = photo, { changes } = side, pixel = mine?.map && pixelAt(place, mine.image);
    if (!pixel) {
      clearScores();
      return;
    }
    async function logitsWith(some) {
      const answer = await ask("logits", { ...view(), image: mine.of, changes: some, ...pixel });
      return [...new Float32Array(await answer.arrayBuffer())];
    }
    const [logits, before] = await Promise.all([logitsWith(changes), changes ? logitsWith("") : null]);
    if (photo !== mine) return; /* another image or checkpoint is shown meanwhile */
    at.scores.replaceChildren(element("h3", {}, "Class scores of the pixel"), element("p", { class: "reading" },
      `Row ${pixel.row + 1}, column ${pixel.column + 1}. Softmax over ${logits.length} classes of the logits that ` +
      "are interpolated to this pixel."), scoreList(model.drawn, logits, before), ...(before
      ? [element("figcaption", {}, "The marks show the scores without changes.")] : []));
    at.scores.hidden = false;
    Object.assign(at.scores.dataset, { ...pixel, changes, shown: mine.of });
  }, clearScores));
  const follow = (place) => Promise.all([followMaps(place), followScores(place)]);
  /* Makes the view of answers like this one, unless there is one or they cannot be drawn. */
  function prepareDrawing(answer) {
    if (!model.drawn || drawing) return;
    const placeOfPixel = ({ row, column }) => placeOfCell(row, column, photo.image.h, photo.image.w);
    const events = { hover: (pixel) => page.hover(pixel && placeOfPixel(pixel)),
      keep: (pixel) => page.keep(placeOfPixel(pixel)) };
    drawing = answer.boxes ? boxView(model.drawn, Number(side.score), { ...events, choose: (score) => {
      side.score = String(score);
      page.changed();
    } }) : classView(model.drawn, events);
    at.drawing.replaceChildren(drawing.panel);
    at.boxes.replaceChildren(...[drawing.scores].filter(Boolean));
  }
  /* Takes the layers of the last run: their grids can depend on the image. */
  function takeLayers(answer) {
    const layers = drawnLayers(answer.layers, model.prefix, photo.words);
    if (JSON.stringify(layers) === JSON.stringify(model.layers)) return;
    Object.assign(model, { layers, tokens: answer.tokens });
    weights = null;
    showTools();
  }
  /* The pixels of an answer's image, or the words of its text. */
  async function imageOf(answer, input) {
    if (answer.text) return { words: wordsOfText(answer.text) };
    const [h, w, c] = answer.input;
    return { image: { h, w, c }, pixels: new Uint8Array(await input.arrayBuffer()) };
  }
  function sizeOf({ text }) {
    if (!text) return `${photo.image.w} × ${photo.image.h} pixels`;
    return plural(photo.words.length, "token") + (text.shortened ? ", to which the text was shortened" : "");
  }
  /* Shows the parts that belong to an image or to a text. */
  function showKind() {
    const { image, words } = photo;
    at.photo.hidden = Boolean(words);
    line.panel.hidden = !words;
    at.about.textContent = `Columns are layers and rows are heads, both numbered from 0 as in the checkpoint. ${words
      ? "The cells of a map are the tokens, read like lines, and numbered from 0." : "Rows and columns of patches are " +
        "numbered from 1."} Each map is scaled to its own largest value. Click a map to enlarge it.`;
    if (words) line.show(words);
    at.panel.style.setProperty("--aspect", words ? 2.5 : image.w / image.h);
    if (image) at.view.style.imageRendering = Math.max(image.h, image.w) < 672 ? "" : "auto"; /* shown smaller */
  }
  const run = latest(() => guarded("image", async () => {
    const mine = model, wanted = view();
    if (!mine) return;
    if (!wanted.image) {
      clearImage();
      return;
    }
    const [answer, input] = await Promise.all([askJson("run", wanted), isText(wanted.image) ? null : ask("input", wanted)]);
    const seen = await imageOf(answer, input);
    const map = mine.drawn && !answer.boxes
      ? new Uint16Array(await (await ask("classes", wanted)).arrayBuffer()) : null;
    const before = !wanted.changes ? answer
      : plain?.image === wanted.image ? plain : await askJson("run", { ...wanted, changes: "" });
    if (model !== mine) return;
    photo = { of: wanted.image, map, ...seen };
    takeLayers(answer);
    prepareDrawing(answer);
    showKind();
    plain = { ...before, image: wanted.image };
    at.answer.replaceChildren(...answerList(answer, wanted.changes ? plain : null));
    at.answer.dataset.changes = wanted.changes;
    at.title.textContent = `${model.network} · ${sizeOf(answer)} · ${number(answer.milliseconds, 3)} ms`;
    at.drawing.hidden = at.boxes.hidden = !drawing;
    at.picture.hidden = Boolean(drawing) && !hasMaps(); /* the drawing has the image, too */
    if (map) drawing.show(photo, map);
    else drawing?.show(photo, answer, wanted.changes ? plain : null);
    if (!hasMaps()) showPhoto();
    nearest.show(photo.words ? "" : wanted.image);
    await Promise.all([follow(page.place()), relevance.show(model, wanted, photo, answer)]);
  }, clearImage));

  /* --- tools --- */

  function button(text, pressed, click, more = {}) {
    return element("button", { type: "button", class: "quiet", "aria-pressed": String(pressed), onclick: click,
      ...more }, text);
  }
  function headTools() {
    if (head() < 0)
      return [element("span", { class: "reading" }, hasHeads(page.shared.way)
        ? "Click a map of one head to remove the head or to make it uniform."
        : "A rollout has no heads. To remove a head, choose the weights of this query and click the head's map.")];
    const has = (how) => wordsOf(side.changes).includes(`h${shownLayer()}.${head()}${how}`);
    const set = (how) => change({ changes: toggledHead(side.changes, shownLayer(), head(), how) }, true);
    return [button(`Remove head ${head()} of ${node().node}`, has("r"), () => set("r")),
      button("Make it uniform", has("u"), () => set("u"))];
  }
  function tokenTool() {
    const query = tokenAt(page.shared.at, node()), word = `t${query}`;
    return model.tokens && node().tokens === model.tokens
      ? [button(`Remove ${placeOf(node(), query)}`, wordsOf(side.changes).includes(word),
        () => change({ changes: toggled(side.changes, word) }, true),
        { title: "No other token attends to it, in any layer" })]
      : [];
  }
  function differenceTool() {
    const others = d3.range(hasHeads(page.shared.way) ? node().heads : 0).filter((h) => h !== head());
    const options = [["", "nothing"], ...others.map((h) => [`h${h}`, `head ${h}`]),
      ...(page.other(index) ? [["other", "the other checkpoint"]] : [])];
    return element("label", { class: "slider" }, "Subtract", element("select", { "aria-label": "Subtract",
      onchange: (event) => change({ minus: event.target.value }) }, ...options.map(([value, label]) =>
      element("option", { value, selected: value === side.minus }, label))));
  }
  function showBranches() {
    const words = wordsOf(side.changes), { open } = at.branches;
    at.branches.hidden = !model.branches.length;
    at.branches.replaceChildren(element("summary", {}, "Residual branches"), element("div", { class: "tools" },
      ...model.branches.map((branch, i) => button(branchName(branch), words.includes(`b${i}`),
        () => change({ changes: toggled(side.changes, `b${i}`) }, true),
        { title: `Remove the branch that ${branch.scope} adds` }))));
    at.branches.open = open || !hasMaps() || words.some((word) => word.startsWith("b"));
  }
  function showTools() {
    if (!model) return;
    const words = wordsOf(side.changes);
    at.tools.replaceChildren(...(hasMaps() ? [...headTools(), ...tokenTool(), differenceTool()] : []));
    showBranches();
    at.changes.replaceChildren(...words.map((word) => element("button", { type: "button", class: "chip",
      "aria-label": `Undo: ${describeChange(model, word)}`, title: "Undo this change",
      onclick: () => change({ changes: toggled(side.changes, word) }, true) }, `${describeChange(model, word)} ×`)),
    ...(words.length > 1 ? [button("Undo all", false, () => change({ changes: "" }, true))] : []));
  }

  function buildGrid() {
    gridWay = weights.way;
    const columns = [...model.layers.entries()].filter(([, { patches }]) => patches);
    const size = Math.max(30, Math.min(76, Math.floor(620 / columns.length)));
    thumbs.length = 0;
    at.grid.style.gridTemplateColumns = `max-content repeat(${columns.length}, minmax(30px, ${size}px))`;
    at.grid.replaceChildren(element("span"), ...columns.map(([, one]) =>
      element("span", { title: one.node }, blockName(one.node))));
    const heads = hasHeads(gridWay) ? d3.max(columns, ([, one]) => one.heads) : 0;
    const all = hasHeads(gridWay) ? ["all", "all heads"] : ["rollout", "rollout"];
    for (const which of d3.range(-1, heads)) {
      at.grid.append(element("span", {}, which < 0 ? all[0] : `head ${which}`));
      for (const [layer, one] of columns) {
        if (which >= one.heads) {
          at.grid.append(element("span"));
          continue;
        }
        const canvas = element("canvas"), label = `${one.node}, ${which < 0 ? all[1] : `head ${which}`}`;
        const press = element("button", { type: "button", title: label, "aria-label": label,
          onclick: () => change({ layer: String(layer), head: String(which) }) }, canvas);
        thumbs.push({ canvas, layer, which, button: press });
        at.grid.append(press);
      }
    }
  }

  /* --- the panel --- */

  const open = latest(() => {
    clearModel();
    at.title.textContent = "Opening the checkpoint …";
    return guarded("model", async () => {
      const answer = await askJson("model", { model: side.model });
      model = { ...answer, layers: drawnLayers(answer.layers, answer.prefix) };
      const drawn = model.layers.map(({ patches }, i) => (patches ? i : -1)).filter((i) => i >= 0);
      if (!drawn.includes(Number(side.layer)) || side.layer === "")
        side.layer = String(drawn[Math.round(0.6 * (drawn.length - 1))] ?? 0);
      page.opened(index);
      if (!page.shared.at)
        page.shared.at = model.layers[shownLayer()]?.prefix ? "p0" : model.reads === "texts" ? "0.5,0" : "0.5,0.5";
      page.fit(index, model.reads);
      at.none.hidden = hasMaps();
      showTools();
      await run();
    }, clearModel);
  });
  function queryOf(event) {
    const box = at.view.getBoundingClientRect();
    return placeAt(tokenAt(`${(event.clientY - box.top) / box.height},${(event.clientX - box.left) / box.width}`,
      { ...node(), queries: Infinity }), node());
  }
  function listen() {
    at.view.addEventListener("pointermove", (event) => hasMaps() && photo && page.hover(queryOf(event)));
    at.view.addEventListener("pointerleave", () => page.hover(null));
    at.view.addEventListener("click", (event) => hasMaps() && page.keep(queryOf(event)));
    at.view.addEventListener("keydown", (event) => {
      if (!hasMaps()) return;
      const { prefix, grid_w, patches } = node(), query = tokenAt(page.shared.at, { ...node(), queries: Infinity });
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid_w, ArrowDown: grid_w }[event.key];
      if (event.key === "c" && prefix) page.keep("p0");
      if (!step) return;
      event.preventDefault();
      const wanted = query < prefix ? prefix : query + step;
      if (wanted >= prefix && wanted < prefix + patches) page.keep(placeAt(wanted, node()));
    });
  }
  function modelChoice() {
    return element("label", { class: "slider" }, "Checkpoint", element("select", { "aria-label": "Checkpoint",
      onchange: (event) => {
        Object.assign(side, { model: event.target.value, changes: "", minus: "", class: "" });
        page.changed();
        open();
      } }, ...page.offered(index).map(({ id, name }) =>
      element("option", { value: id, selected: id === side.model }, name))));
  }
  function csv() {
    const token = (key) => (photo.words ? [photo.words[key].name] : []);
    const rows = thumbs.flatMap(({ layer, which }) => [...weights.keys(layer, which)].map((value, key) =>
      [model.layers[layer].node, which >= 0 ? which : hasHeads(gridWay) ? "mean" : "", key, ...token(key), value]));
    return [["node", "head", "key", ...(photo.words ? ["token"] : []), raw() ? "score" : "weight"], ...rows]
      .map((row) => `${row.map(csvField).join(",")}\r\n`).join("");
  }
  at.about = element("figcaption");
  at.maps = element("div", { hidden: true }, element("h3", {}, "All layers and heads"),
    at.about, at.grid, at.words, at.ramp, at.ends, element("div", { class: "tools" }, exportButton("CSV", "weights", csv)));
  at.none = element("p", { class: "reading", hidden: true }, "This network has no attention among tokens. Its " +
    "residual branches can be removed.");
  at.photo = element("div", {}, element("div", { class: "view" }, at.view),
    element("div", { class: "tools" }, exportButton("PNG", "map", () => new Promise((done) => at.view.toBlob(done)))));
  at.picture = element("div", { hidden: true }, at.photo, line.panel);
  at.drawing = element("div", { hidden: true });
  at.boxes = element("div", { hidden: true });
  at.panel = element("div", { class: "panel maps", "data-side": index },
    element("div", {}, modelChoice(), at.title, at.problem, at.picture, at.drawing, at.answer),
    element("div", {}, at.boxes, at.scores, at.maps, at.none, relevance.panel, nearest.panel, element("h3", {}, "What if"), at.tools,
      at.branches, at.changes));
  listen();
  return { panel: at.panel, open, run, follow, showTools,
    /* Shows the layer and the head at the place of those of the other side. */
    takeLayer(layers, { layer, head: which }) {
      if (!model) return;
      const linked = linkedLayer(Number(layer), layers, model.layers);
      if (!model.layers[linked]?.patches) return;
      Object.assign(side, { layer: String(linked), head: which });
      showTools();
    },
    /* Lets the other side show the layer and the head at the place of this one's. */
    giveLayer: () => model && page.other(index)?.takeLayer(model.layers, side),
    hasMaps: () => Boolean(hasMaps()),
    reads: () => model?.reads,
    prefixNames: () => model?.prefix,
    prefix: () => d3.max(model?.layers ?? [], ({ prefix }) => prefix) ?? 0,
    /* Whether scores are sums of content and positions. */
    hasTerms: () => model?.layers.some(({ content, positions }) => content && positions) ?? false,
    /* The numbers of a layer with the same grid; null if there is none. */
    patchesLike(like, layer, which) {
      const own = weights && model.layers[layer];
      const fits = own && own.grid_h === like.grid_h && own.grid_w === like.grid_w && which < own.heads;
      return fits ? weights.patches(layer, which) : null;
    },
    redraw: () => {
      relevance.redraw();
      if (weights && photo) draw(tokenAt(page.place(), node()));
    } };
}

/* --- the page ---------------------------------------------------------------------------------------------------- */

function makePage(models, { images, count, uploads, texts, text_count: textCount }) {
  const state = readHash(), sides = [];
  const strip = roving(element("div", { class: "strip" })), list = roving(element("div", { class: "text-list" })), place = element("div", { class: "sides" });
  const tools = element("div", { class: "tools" }), meaning = scaleOfWeights();
  const problem = element("p", { class: "note problem", role: "alert", hidden: true });
  const zone = dropZone(), form = textForm(typeText), typed = [], hint = element("p", { class: "reading" });
  let hovered = null;

  const page = {
    shared: state.shared, models, strength: STRENGTH,
    place: () => hovered ?? page.shared.at,
    other: (index) => sides[1 - index],
    chooseImage: (image) => chooseImage(image),
    /* The first side's network reads images or texts: one of these is chosen, unless one is. */
    fit(index, reads) {
      if (index === 0 && isText(page.shared.image) !== (reads === "texts")) {
        page.shared.image = reads === "texts" ? texts[0]?.id ?? "" : firstImage([...uploads, ...images]);
        page.changed();
      }
      showChoices();
    },
    /* The checkpoints in the order in which a side offers them: beside another one first those of its network. */
    offered(index) {
      const first = index === 1 && models.find(({ id }) => id === state.sides[0].model);
      return first ? d3.sort(models, (model) => (model.network === first.network ? 0 : 1)) : models;
    },
    /* A side was opened: the second one shows the layer of the first. */
    opened(index) {
      if (page.shared.apart || sides.length < 2) return;
      sides[0].giveLayer();
      if (index === 0) sides[1].follow(page.place());
    },
    changed: () => writeHash(state),
    follow: () => sides.forEach((side) => side.follow(page.place())),
    hover(at) {
      if (at === hovered) return;
      hovered = at;
      page.follow();
    },
    keep(at) {
      page.shared.at = at;
      page.changed();
      sides.forEach((side) => side.showTools());
      page.follow();
    },
    /* A difference shows the numbers of the other side, too. */
    drawn(index) {
      if (state.sides[1 - index]?.minus === "other") sides[1 - index]?.redraw();
    },
  };

  function change(values) {
    Object.assign(page.shared, values);
    page.changed();
    showTools();
    sides.forEach((side) => side.showTools());
    page.follow();
  }
  /* Does the work; if it is refused, calls undo() and shows why. */
  async function guarded(work, undo = () => {}) {
    try {
      await work();
      problem.hidden = true;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      undo();
      problem.textContent = error.message;
      problem.hidden = false;
    }
  }
  function chooseImage(image) {
    problem.hidden = true;
    if (isText(image)) forgetTokens();
    page.shared.image = image;
    page.changed();
    showStrip();
    showTexts();
    sides.forEach((side) => side.run());
  }
  /* Another text has other tokens. */
  function forgetTokens() {
    for (const side of state.sides)
      side.changes = wordsOf(side.changes).filter((word) => !word.startsWith("t")).join("-");
  }
  /* What can be chosen: images, texts, or both. */
  function showChoices() {
    const reads = new Set(sides.map((side) => side.reads() ?? "images"));
    for (const part of [zone, strip]) part.hidden = !reads.has("images");
    for (const part of [form, list]) part.hidden = !reads.has("texts");
    hint.textContent = reads.has("texts") ? (texts.length ? "" : "No texts were named (--texts FILE).")
      : images.length ? "" : "No images were named (--images DIR).";
    hint.hidden = !hint.textContent;
    showStrip();
    showTexts();
  }
  function showTexts() {
    const focused = list.contains(document.activeElement), { image } = page.shared;
    const known = [...typed, ...texts], own = known.some(({ id }) => id === image) || !isText(image) ? []
      : [{ id: image, name: image.replace("text:", "") }];
    list.replaceChildren(...[...own, ...known].map(({ id, name }) => element("button", { type: "button",
      "aria-pressed": String(id === image), title: name, onclick: () => chooseImage(id) }, name || "(an empty text)")),
    ...(texts.length < textCount ? [element("button", { type: "button", class: "quiet more-images", onclick: moreTexts },
      `More (${texts.length} of ${textCount} shown)`)] : []));
    if (focused) list.querySelector("[aria-pressed='true']")?.focus();
  }
  function moreTexts() {
    return guarded(async () => {
      texts.push(...(await askJson("images", { first: texts.length, count: 64 })).texts);
      showTexts();
    });
  }
  function typeText(id) {
    if (!typed.some((other) => other.id === id)) typed.unshift({ id, name: id.replace("text:", "") });
    chooseImage(id);
  }
  function showStrip() {
    const focused = strip.contains(document.activeElement);
    strip.replaceChildren(...[...uploads, ...images].map(({ id, name }) => element("button", { type: "button",
      "aria-pressed": String(id === page.shared.image), title: name, "aria-label": name,
      onclick: () => chooseImage(id) },
    element("img", { src: `api/thumbnail?image=${encodeURIComponent(id)}`, alt: "", width: 58, height: 58,
      loading: "lazy" }))), ...(images.length < count ? [element("button", { type: "button", class: "quiet more-images",
      onclick: more }, `More (${images.length} of ${count} shown)`)] : []));
    if (focused) strip.querySelector("[aria-pressed='true']")?.focus();
  }
  function more() {
    return guarded(async () => {
      const next = await askJson("images", { first: images.length, count: 64 });
      images.push(...next.images);
      showStrip();
    });
  }
  /* After an upload that is refused no image is shown, because the last one could be taken for it. */
  function upload(file) {
    return guarded(async () => {
      const { image } = await askJson("upload", { name: file.name }, { method: "POST", body: file });
      uploads.unshift({ id: image, name: file.name });
      chooseImage(image);
    }, () => chooseImage(""));
  }
  function dropZone() {
    const input = element("input", { type: "file", accept: "image/jpeg,image/png,image/webp", "aria-label": "An image",
      onchange: (event) => event.target.files[0] && upload(event.target.files[0]) });
    const zone = element("label", { class: "drop" }, "Drop an image here, or choose a file: ", input);
    zone.addEventListener("dragover", (event) => event.preventDefault());
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
    });
    return zone;
  }
  function showTools() {
    const { way, terms, raw } = page.shared, compared = element("button", { type: "button", class: "quiet",
      onclick: () => compare(state.sides.length < 2) },
    state.sides.length < 2 ? "Compare with another checkpoint" : "Close the comparison");
    const drawn = sides.some((side) => side.hasMaps()), longest = d3.greatest(sides, (side) => side.prefix());
    meaning.hidden = !drawn;
    if (!drawn) {
      tools.replaceChildren(compared);
      return;
    }
    tools.replaceChildren(choice("Weights of", WAYS, way, (value) => change({ way: value })),
      ...(way === "row" ? [...(sides.some((side) => side.hasTerms())
        ? [choice("Scores by", TERMS, terms, (value) => change({ terms: value }))] : []),
        choice("Softmax", [["", "on"], ["1", "off"]], raw, (value) => change({ raw: value }))] : []),
      ...d3.range(d3.max(sides, (side) => side.prefix()) ?? 0).map((i, _, all) => element("button", { type: "button",
        class: "quiet", onclick: () => page.keep(`p${i}`) },
      `Query: ${prefixName({ prefix: all.length, names: longest?.prefixNames() }, i)}`)),
      ...(sides.length > 1 ? [choice("Layers and heads", [["", "linked"], ["1", "apart"]], page.shared.apart, (value) => {
        page.shared.apart = value;
        if (!value) sides[0].giveLayer();
        change({});
      })] : []),
      element("label", { class: "slider" }, sides.every((side) => side.reads() === "texts") ? "Text" : "Image", element("input", { type: "range", min: 0, max: 100,
        value: 100 * page.strength, "aria-label": "Opacity of the attention map, per cent", oninput: (event) => {
          page.strength = event.target.value / 100;
          sides.forEach((side) => side.redraw());
        } }), "attention"), compared);
  }
  /* The checkpoint to compare the first side's with: another one of the same network, else another one. */
  function partner() {
    const others = page.offered(1).filter(({ id }) => id !== state.sides[0].model);
    return others[0] ?? models[0];
  }
  function build() {
    sides.length = 0;
    state.sides.forEach((side, i) => {
      if (!models.some(({ id }) => id === side.model)) side.model = (i ? partner() : models[0]).id;
      sides.push(makeSide(page, side, i));
    });
    place.replaceChildren(...sides.map(({ panel }) => panel));
    place.classList.toggle("two", sides.length > 1);
    showChoices();
    showTools();
    sides.forEach((side) => side.open().then(() => {
      page.changed();
      showTools();
    }));
  }
  function compare(open) {
    if (open) state.sides.push({ ...OF_SIDE });
    else state.sides.length = 1;
    if (!open && state.sides[0].minus === "other") state.sides[0].minus = "";
    page.changed();
    build();
  }

  addEventListener("hashchange", () => {
    const wanted = readHash();
    Object.assign(page.shared, wanted.shared);
    state.sides = wanted.sides;
    build();
  });
  document.querySelector(".skip").after(skipTo(element("a", { class: "skip", href: "#sections" }, "Skip to the maps"),
    () => place.querySelector(".grid [tabindex='0']")));
  page.shared.image ||= firstImage([...uploads, ...images]);
  build();
  return [problem, zone, form, hint, strip, list, tools, place, meaning];
}

/* What the numbers mean. */
function scaleOfWeights() {
  return element("dl", { class: "method" }, ...[
    ["Weights", "a_ij = softmax over keys j of s_ij, s_ij = scale q_i · k_j + t_ij (content + positions)"],
    ["Mean over queries", "1/N sum_i a_ij"],
    ["Rollout", "e_i B_l … B_0 with B = (mean over heads of A + identity) / 2 (Abnar and Zuidema, ACL 2020)"],
    ["Relevance", "which parts of the image or text make the network give it the class; the header attscope/relevance.h has " +
      "the formulas, and attscope explain measures which method is faithful"],
    ["Removed head", "its output is 0"], ["Uniform head", "a_ij is the same for all keys that query i may see"],
    ["Removed branch", "x_{t+1} = x_t"],
    ["Removed token", "no other token attends to it in any layer; it is still processed itself"]]
    .flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)]));
}

(async () => {
  const about = "Hover over the image, or over a word of the text, to see where it attends to, in every layer and head; " +
    "click to keep the query. Below the maps, parts of the network can be left out.";
  const part = element("section", { id: "explore", "aria-labelledby": "title" });
  showTitle("explore", "Explore attention", about);
  document.getElementById("sections").replaceChildren(part);
  try {
    const [{ models }, pictures] = await Promise.all([askJson("models"), askJson("images", { first: 0, count: 64 })]);
    part.append(...(models.length ? makePage(models, pictures)
      : [element("p", { class: "note" }, "No checkpoint was named: attscope serve CHECKPOINT --images FOLDER, or --texts FILE")]));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    part.append(element("p", { class: "note problem", role: "alert" }, error.message));
  }
  document.documentElement.dataset.ready = "true";
})();
