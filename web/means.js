"use strict";
/* The page "Means": maps of attention and relevance, as means over images or over those of each class. The engine computes
   all numbers, some images in each answer; the page draws them. */

const DEFAULTS = { model: "", show: "attention", over: "all", images: "32", map: "" };
function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(Object.entries(DEFAULTS).map(([name, value]) => [name, given.get(name) ?? value]));
}
function writeHash(state) {
  const text = new URLSearchParams(Object.entries(state).filter(([name, value]) => value !== DEFAULTS[name]));
  history.replaceState(null, "", `${text}` ? `#${text}` : location.pathname);
}

const OVER = [["all", "all images"], ["class", "each class"]];
const IMAGES = [["16", "16"], ["32", "32"], ["64", "64"], ["200", "200"], ["1000", "1,000"]];
const ATTENTION = [["attention", "attention of the class token"], ["mean", "attention, mean over queries"]];

/* All maps of an answer, each with its place: heads by layer, or one map for each class in a line of its own kind. */
function placedMaps({ means }, byClass) {
  return means.flatMap(({ class: number_, label, images, maps }) => maps.map((map) => {
    const [, layer, head] = /^[^.]+\.(.+?)(?:\.head(\d+))?$/.exec(map.name) ?? [];
    const name = label ?? `class ${number_}`;
    const place = layer ? `${layer}, ${head ? `head ${head}` : "mean of heads"}` : "all images";
    return { ...map, images, title: byClass ? name : place,
      column: byClass ? "" : layer ?? "", row: byClass ? name : head ? `head ${head}` : "" };
  }));
}
/* Negative values are drawn in purple, as on the page Explore. */
function drawMap(canvas, { height, width, values }) {
  const cells = { grid_h: height, grid_w: width }, signed = values.some((value) => value < 0);
  if (signed) drawDifference(canvas, cells, values);
  else drawWeights(canvas, cells, values);
  canvas.style.setProperty("--aspect", width / height);
  return signed;
}
function describeMap({ title, height, width, values, images }) {
  const best = d3.greatestIndex(values), [low, high] = d3.extent(values);
  return [element("b", {}, title), `: mean over ${count(images)} ${images === 1 ? "image" : "images"}. Largest: ` +
    `${number(high, 3)} in row ${Math.floor(best / width) + 1}, column ${(best % width) + 1} of ${height} × ${width}; ` +
    `smallest: ${number(low, 3)}.`];
}

/* --- the page ---------------------------------------------------------------------------------------------------- */

function makePage(models) {
  const state = readHash();
  const problem = element("p", { class: "note problem", role: "alert", hidden: true });
  const tools = element("div", { class: "tools" }), progress = element("p", { class: "readout", "aria-live": "polite" });
  const grid = element("div", { class: "grid" }), words = element("p", { class: "readout", "aria-live": "polite" });
  const large = element("canvas", { role: "img", "aria-label": "The chosen map" });
  const ramp = element("div", { class: "ramp" }), ends = element("div", { class: "ramp-ends" });
  const result = element("div", { class: "panel mean-maps", hidden: true }, grid, words,
    element("div", { class: "view" }, large), ramp, ends,
    element("div", { class: "tools" }, exportButton("CSV", "means", csv)));
  let found = null, maps = [], methods = [], round = 0;

  const query = () => ({ model: state.model, show: state.show, over: state.over, images: state.images });
  const chosen = () => Math.max(0, maps.findIndex(({ title }) => title === state.map));

  function csv() {
    const rows = maps.flatMap(({ title, width, values }) => values.map((value, i) =>
      [title, Math.floor(i / width) + 1, (i % width) + 1, value]));
    return [["map", "row", "column", "value"], ...rows].map((row) => `${row.map(csvField).join(",")}\r\n`).join("");
  }
  function showLarge() {
    const map = maps[chosen()], signed = drawMap(large, map), largest = d3.max(map.values, Math.abs);
    words.replaceChildren(...describeMap(map));
    ramp.style.background = rampOf(signed ? opposite : heat);
    ends.replaceChildren(...(signed ? [`−${number(largest, 3)}`, `+${number(largest, 3)}`] : ["0", number(largest, 3)])
      .map((text) => element("span", {}, text)));
    large.setAttribute("aria-label", words.textContent);
    large.dataset.map = map.title;
    for (const press of grid.querySelectorAll("button"))
      press.setAttribute("aria-pressed", String(press.title === map.title));
  }
  function choose(title) {
    state.map = title;
    writeHash(state);
    showLarge();
  }
  function thumb(map) {
    const canvas = element("canvas");
    drawMap(canvas, map);
    return element("button", { type: "button", title: map.title, "aria-label": map.title, "aria-pressed": "false",
      "data-largest": whole(d3.max(map.values)), "data-images": map.images, onclick: () => choose(map.title) }, canvas);
  }
  /* Rows of heads and columns of layers, or a map for each class. */
  function showGrid() {
    const byClass = state.over === "class";
    maps = placedMaps(found, byClass);
    const columns = [...new Set(maps.map(({ column }) => column))], rows = [...new Set(maps.map(({ row }) => row))];
    grid.classList.toggle("classes", byClass);
    if (byClass) {
      grid.style.gridTemplateColumns = "";
      grid.replaceChildren(...maps.map((map) => element("div", {}, thumb(map),
        element("p", { class: "class-name" }, `${map.title} (${count(map.images)})`))));
    } else {
      grid.style.gridTemplateColumns = `max-content repeat(${columns.length}, minmax(30px, 76px))`;
      grid.replaceChildren(element("span"),
        ...columns.map((column) => element("span", { title: column }, blockName(column))),
        ...rows.flatMap((row) => [element("span", {}, row), ...columns.map((column) => {
          const map = maps.find((one) => one.column === column && one.row === row);
          return map ? thumb(map) : element("span");
        })]));
    }
    result.hidden = false;
    showLarge();
  }

  /* Does the work; if it is refused, shows why. */
  async function guarded(work) {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      problem.textContent = error.message;
      problem.hidden = false;
    }
  }
  /* Asks until all images are seen, or other settings are chosen. */
  async function run() {
    const own = ++round;
    problem.hidden = result.hidden = true;
    delete result.dataset.seen;
    found = null;
    progress.textContent = "Running the network …";
    await guarded(async () => {
      do {
        const answer = await askJson("means", query());
        if (own !== round) return;
        found = answer;
        progress.textContent = `${count(found.seen)} of ${count(found.total)} images.`;
        showGrid();
        Object.assign(result.dataset, { seen: found.seen, total: found.total });
      } while (found.seen < found.total);
    });
    if (!found && own === round) progress.textContent = "";
  }
  /* The methods of relevance are those of the checkpoint. */
  const open = latest(() => guarded(async () => {
    const model = await askJson("model", { model: state.model });
    methods = model.relevance.map(({ name, title }) => [name, `relevance: ${title}`]);
    showTools();
    await run();
  }));
  function change(values) {
    Object.assign(state, { map: "" }, values);
    writeHash(state);
    showTools();
    if ("model" in values) open();
    else run();
  }
  function showTools() {
    const kinds = [...ATTENTION, ...methods];
    if (!kinds.some(([value]) => value === state.show)) kinds.push([state.show, state.show]);
    tools.replaceChildren(
      dropdown("Checkpoint", models.map(({ id, name }) => [id, name]), state.model, (model) => change({ model })),
      dropdown("Maps", kinds, state.show, (show) => change({ show })),
      choice("Mean over", OVER, state.over, (over) => change({ over })),
      dropdown("Images", IMAGES.some(([value]) => value === state.images) ? IMAGES
        : [[state.images, count(Number(state.images))], ...IMAGES], state.images, (images) => change({ images })));
  }
  function takeHash() {
    Object.assign(state, readHash());
    if (!models.some(({ id }) => id === state.model)) state.model = models[0].id;
    if (!(Number(state.images) >= 1)) state.images = DEFAULTS.images;
    if (!OVER.some(([over]) => over === state.over)) state.over = DEFAULTS.over;
    showTools();
    open();
  }
  addEventListener("hashchange", takeHash);
  takeHash();
  const meaning = element("dl", { class: "method" }, ...[
    ["Mean map", "m_p = 1/n Σ_i a_ip over the n images i, for each cell p of the map"],
    ["Attention", "of all images: each layer and head; of a class: the mean over the heads of the last layer"],
    ["Relevance", "for the most probable class of each image; the header attscope/relevance.h has the formulas"]]
    .flatMap(([term, text]) => [element("dt", {}, term), element("dd", {}, text)]));
  return [problem, tools, progress, result, meaning];
}

(async () => {
  const about = "What a network looks at on average: means of its maps over images, or over those of each class. The " +
    "images are evenly spaced through those of the server.";
  const part = element("section", { id: "means", "aria-labelledby": "title" });
  showTitle("means", "Mean maps", about);
  document.getElementById("sections").replaceChildren(part);
  try {
    const { models } = await askJson("models");
    part.append(...(models.length ? makePage(models)
      : [element("p", { class: "note" }, "No checkpoint was named: attscope serve CHECKPOINT --images FOLDER")]));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    part.append(element("p", { class: "note problem", role: "alert" }, error.message));
  }
  document.documentElement.dataset.ready = "true";
})();
