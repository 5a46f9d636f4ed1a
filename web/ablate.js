"use strict";
/* The page "Ablate": what heads, residual branches and tokens do, by the network's answers without them. The engine
   computes all numbers, a few images in each answer; the page draws them as a heat map or a list, and shows the images
   that change most. */

const DEFAULTS = { model: "", parts: "heads", heads: "", branches: "", tokens: "", uniform: "0", greedy: "0",
  bound: "0", images: "32", figure: "loss", part: "" };
function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(Object.entries(DEFAULTS).map(([name, value]) => [name, given.get(name) ?? value]));
}
function writeHash(state) {
  const text = new URLSearchParams(Object.entries(state).filter(([name, value]) => value !== DEFAULTS[name]));
  history.replaceState(null, "", `${text}` ? `#${text}` : location.pathname);
}

const FIGURES = [["loss", "loss"], ["accuracy", "accuracy"], ["p_class", "p of the class"]];
const TITLES = { loss: "Change of the loss, in nats", accuracy: "Change of the accuracy, in percentage points",
  p_class: "Change of the probability of the right class" };
const PARTS = [["heads", "heads"], ["branches", "residual branches"], ["tokens", "tokens"], ["lists", "groups"]];
/* The lists of groups, with an example of each. */
const LISTS = [["heads", "blocks.3:0,2;blocks.4:*"], ["branches", "blocks.*.add2"], ["tokens", "1-4;5,7"]];
const ORDERS = [["0", "one by one"], ["1", "greedily"]];
const CHANGES = [["0", "removed"], ["1", "uniform"]];
const IMAGES = [["16", "16"], ["32", "32"], ["64", "64"], ["200", "200"], ["1000", "1,000"]];

/* Whether the network is worse without the part: the colour of this direction is the same for all figures. */
const WORSE = { loss: 1, accuracy: -1, p_class: -1 };
const colourOf = (share) => d3.interpolatePuOr(0.5 + 0.5 * share);

function signed(value) {
  return isNumber(value) ? `${value < 0 ? "−" : "+"}${number(Math.abs(value), 3)}` : "–";
}
function intervalText({ mean, low, high }) {
  return isNumber(low) && isNumber(high) ? `${signed(mean)} [${signed(low)}, ${signed(high)}]` : signed(mean);
}
/* The lists of parts that the settings mean, as the server reads them. */
function listsOf(state) {
  const none = { heads: "", branches: "", tokens: "" };
  return state.parts === "lists" ? { heads: state.heads, branches: state.branches, tokens: state.tokens }
    : { ...none, [state.parts]: "all" };
}

/* --- drawing ----------------------------------------------------------------------------------------------------- */

/* Parts that are drawn as a heat map have a place in it: heads by layer, branches by block, tokens by their place in the
   grid. null: the parts are shown as a list, such as groups, parts of several kinds, and the steps of a greedy
   ablation. */
function placesOf({ parts, layers, greedy }) {
  const kind = parts[0]?.kind, { prefix, grid_w } = layers[0] ?? {};
  if (greedy || parts.some((part) => part.kind !== kind || part.branch === undefined && part.head === undefined &&
    part.token === undefined)) return null;
  if (kind === "token" && !grid_w) return null;
  return parts.map(({ name, head, token }) => {
    const cut = name.lastIndexOf(kind === "head" ? ":" : "."), patch = token - prefix;
    if (kind === "token") return patch < 0 ? { column: `${token + 1}`, row: "no patch" }
      : { column: `${(patch % grid_w) + 1}`, row: `row ${Math.floor(patch / grid_w) + 1}` };
    return { column: name.slice(0, cut), row: kind === "head" ? `head ${head}` : name.slice(cut + 1) };
  });
}

const largestOf = (parts, figure) => d3.max(parts, (part) => Math.abs(part[figure].mean)) || 1;
/* The button of a part, in the colour of its figure. */
function cellOf(part, index, figure, largest, pressed, choose, text) {
  const share = (WORSE[figure] * part[figure].mean) / largest;
  const press = element("button", { type: "button", "data-part": index, "data-value": whole(part[figure].mean),
    "aria-pressed": String(pressed), title: `${part.name}: ${intervalText(part[figure])}`,
    "aria-label": `${part.name}: ${intervalText(part[figure])}`, onclick: () => choose(index) }, text);
  press.style.background = colourOf(share);
  press.style.color = Math.abs(share) > 0.65 ? "#ffffff" : "#1c1d20";
  return press;
}
function heatMap(parts, places, figure, chosen, choose) {
  const columns = [...new Set(places.map(({ column }) => column))];
  const rows = [...new Set(places.map(({ row }) => row))], tokens = parts[0].kind === "token";
  const largest = largestOf(parts, figure);
  const at = new Map(places.map(({ column, row }, i) => [`${column} ${row}`, i]));
  function cell(column, row) {
    const index = at.get(`${column} ${row}`);
    if (index === undefined) return element("td");
    const { mean } = parts[index][figure];
    return element("td", { "data-value": whole(mean) }, cellOf(parts[index], index, figure, largest, index === chosen,
      choose, tokens ? "" : signed(mean)));
  }
  return scrolling(element("table", { class: tokens ? "heat tokens" : "heat" },
    element("thead", {}, element("tr", {}, element("th"),
      ...columns.map((column) => element("th", { scope: "col", title: column }, blockName(column))))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, element("th", { scope: "row" }, row),
      ...columns.map((column) => cell(column, row)))))));
}
/* A row for each part: groups in the order of the lists, steps of a greedy ablation in their order. */
function partList({ parts, greedy, unchanged }, figure, chosen, choose) {
  const largest = largestOf(parts, figure);
  const after = (part) => number(unchanged.accuracy + part.accuracy.mean, 4);
  const ends = ({ low, high }) => (isNumber(low) ? `${signed(low)} to ${signed(high)}` : "–");
  return scrolling(element("table", { class: "heat" },
    element("thead", {}, element("tr", {}, ...[greedy ? "removed so far" : "without", "change", "95 % interval",
      "accuracy, %"].map((text) => element("th", { scope: "col" }, text)))),
    element("tbody", {}, ...parts.map((part, i) => element("tr", {},
      element("th", { scope: "row", class: "part-name" }, greedy && i > 0 ? `+ ${part.name}` : part.name),
      element("td", { "data-value": whole(part[figure].mean) },
        cellOf(part, i, figure, largest, i === chosen, choose, signed(part[figure].mean))),
      element("td", { class: "interval" }, ends(part[figure])),
      element("td", {}, after(part)))))));
}
function scaleOf(parts, figure) {
  const largest = largestOf(parts, figure);
  const ramp = element("div", { class: "ramp" });
  ramp.style.background = `linear-gradient(to right, ${d3.range(-1, 1.01, 0.125).map(colourOf).join(",")})`;
  return [ramp, element("div", { class: "ramp-ends" },
    element("span", {}, `${signed(-WORSE[figure] * largest)}: better without it`),
    element("span", {}, `${signed(WORSE[figure] * largest)}: needed`))];
}

/* --- words ------------------------------------------------------------------------------------------------------- */

function describe(part) {
  return [element("b", {}, part.name), `: loss ${intervalText(part.loss)}, accuracy ${intervalText(part.accuracy)} ` +
    `points, p of the class ${intervalText(part.p_class)}. Images from right to wrong: ${count(part.lost)}, from wrong ` +
    `to right: ${count(part.gained)}.`];
}
function tableOf(parts) {
  const cells = (part, figure) => ["mean", "low", "high"].map((end) => element("td",
    { "data-value": whole(part[figure][end]) }, signed(part[figure][end])));
  const heads = (text) => [text, `${text} low`, `${text} high`];
  return table(["part", ...heads("loss"), ...heads("accuracy"), ...heads("p of the class"), "lost", "gained"],
    d3.sort(parts, ({ rank }) => rank).map((part) => [element("td", { class: "text" }, part.name),
      ...cells(part, "loss"), ...cells(part, "accuracy"), ...cells(part, "p_class"), countCell(part.lost),
      countCell(part.gained)]));
}
function correlationTable(correlations) {
  const cells = ({ figure, kind, count: over, rho, low, high, p }) => [
    element("td", { class: "text" }, figure), element("td", { "data-value": whole(rho) }, signed(rho)),
    element("td", { "data-value": whole(low) }, signed(low)), element("td", { "data-value": whole(high) }, signed(high)),
    element("td", { "data-value": whole(p) }, isNumber(p) ? number(p, 2) : "–"),
    element("td", { class: "text" }, `${count(over)} ${kind === "branch" ? "branches" : `${kind}s`}`)];
  return table(["change of the loss with", "rho", "low", "high", "p", "over"], correlations.map(cells), "correlations");
}
/* model, changes: for the page Explore. */
function imageCard({ id, name, class: number_, label, unchanged, changed }, model, changes) {
  const answer = ({ p_class, right }) => `${number(p_class, 3)}${right ? "" : " (wrong)"}`;
  const picture_ = id === null ? null : element("a", { href: `/explore#${new URLSearchParams({ model, image: id, changes })}` },
    element("img", { src: `api/thumbnail?image=${encodeURIComponent(id)}`, alt: "", width: 58, height: 58 }));
  return element("li", { "data-before": whole(unchanged.loss), "data-after": whole(changed.loss) }, picture_,
    element("div", {}, element("b", {}, label ?? `class ${number_}`), element("br"),
      `p ${answer(unchanged)} → ${answer(changed)}`, element("br"),
      `loss ${number(unchanged.loss, 3)} → ${number(changed.loss, 3)}`, element("br"),
      element("span", { class: "reading" }, name)));
}

/* How far the work is. */
function stageOf({ done, greedy, seen, total, parts }) {
  if (greedy) return done ? `${count(parts.length)} ${parts.length === 1 ? "step" : "steps"} over ${count(total)} images.`
    : `Step ${parts.length + 1}: ${count(seen)} of ${count(total)} images.`;
  return done || seen < total ? `${count(seen)} of ${count(total)} images.`
    : `${count(total)} images. Measuring what the changes are correlated with …`;
}

/* --- the page ---------------------------------------------------------------------------------------------------- */

function makePage(models) {
  const state = readHash();
  const problem = element("p", { class: "note problem", role: "alert", hidden: true });
  const tools = element("div", { class: "tools" }), progress = element("p", { class: "readout", "aria-live": "polite" });
  const map = element("div"), words = element("p", { class: "readout", "aria-live": "polite" });
  const images = element("ul", { class: "changed" }), rows = element("details"), meaning = element("dl", { class: "method" });
  const correlations = element("div", { hidden: true });
  const result = element("div", { class: "panel", hidden: true }, element("h3", {}), map, words, images, correlations,
    rows);
  let found = null, round = 0;

  const changesHeads = () => state.parts === "heads" || (state.parts === "lists" &&
    (state.heads || !(state.branches || state.tokens)));
  const query = () => ({ model: state.model, ...listsOf(state), uniform: changesHeads() ? state.uniform : "0",
    greedy: state.greedy, bound: state.bound, images: state.images });
  const chosen = () => (state.part === "" || !found?.parts[Number(state.part)] ? -1 : Number(state.part));

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
  function showMap() {
    const { figure } = state, { parts } = found, places = placesOf(found);
    result.firstChild.textContent = TITLES[figure];
    map.replaceChildren(...(parts.length ? [places ? heatMap(parts, places, figure, chosen(), choosePart)
      : partList(found, figure, chosen(), choosePart), ...scaleOf(parts, figure)] : []));
    words.replaceChildren(...(!parts.length ? [found.done ? "Without any of the parts, accuracy is below the bound."
      : "The first step is not found yet."]
      : chosen() < 0 ? ["Click a cell to see the images that change most without the part."]
        : describe(parts[chosen()])));
    result.hidden = false;
  }
  function showProgress() {
    const { unchanged, total } = found, classes = found.unlabelled
      ? " Images without classes count by what the unchanged network predicts." : "";
    progress.textContent = `${stageOf(found)} Unchanged: accuracy ` +
      `${number(unchanged.accuracy, 4)} %, loss ${number(unchanged.loss, 4)}, p of the class ` +
      `${number(unchanged.p_class, 4)}.${classes}`;
    Object.assign(result.dataset, { images: found.images, total, done: found.done, steps: found.parts.length });
  }
  function showTable() {
    rows.hidden = !found.parts.length;
    if (found.parts.length)
      rows.replaceChildren(element("summary", {}, "All parts as a table"), scrolling(tableOf(found.parts)));
    correlations.hidden = !found.correlations.length;
    if (found.correlations.length)
      correlations.replaceChildren(element("h3", {}, "Rank correlations"), scrolling(correlationTable(found.correlations)));
  }
  function showMeaning() {
    const shown = found.methods.filter(({ name }) => name !== "rho" || found.correlations.length);
    meaning.replaceChildren(...shown.flatMap(({ name, formula, reading }) =>
      [element("dt", {}, name), element("dd", {}, element("code", {}, formula), element("br"), reading)]));
  }
  const showImages = latest(() => guarded(async () => {
    const part = chosen();
    if (part < 0) {
      images.replaceChildren();
      return;
    }
    const answer = await askJson("changed", { ...query(), part });
    images.replaceChildren(...answer.images.map((image) =>
      imageCard(image, state.model, answer.changes)));
    images.dataset.part = part;
  }));
  function choosePart(part) {
    state.part = String(part);
    writeHash(state);
    showMap();
    showImages();
  }

  /* Asks until all images are seen, or other settings are chosen. */
  async function run() {
    const own = ++round;
    problem.hidden = true;
    found = null;
    result.hidden = correlations.hidden = rows.hidden = true;
    images.replaceChildren();
    delete result.dataset.done;
    progress.textContent = "Running the network …";
    await guarded(async () => {
      do {
        const answer = await askJson("ablation", query());
        if (own !== round) return;
        found = answer;
        showProgress();
        showMap();
      } while (!found.done);
      showTable();
      showMeaning();
      showImages();
    });
    if (!found && own === round) progress.textContent = "";
  }
  function change(values, again = true) {
    Object.assign(state, values);
    writeHash(state);
    showTools();
    if (again) run();
    else if (found) showMap();
  }
  const field = (label, attributes, set) => element("label", { class: "slider" }, label, element("input",
    { "aria-label": label, ...attributes, onchange: (event) => set(event.target.value.trim()) }));
  function listField(name, example) {
    return field(capital(name), { type: "text", value: state[name], placeholder: example, size: 24, spellcheck: "false" },
      (value) => change({ [name]: value, part: "" }));
  }
  function boundField() {
    return field("Down to an accuracy of, %", { type: "number", min: 0, max: 100, step: "any", value: state.bound },
      (value) => change({ bound: value || "0", part: "" }));
  }
  function showTools() {
    tools.replaceChildren(
      dropdown("Checkpoint", models.map(({ id, name }) => [id, name]), state.model,
        (model) => change({ model, part: "" })),
      choice("Without", PARTS, state.parts, (parts) => change({ parts, part: "" })),
      ...(state.parts === "lists" ? LISTS.map(([name, example]) => listField(name, example)) : []),
      ...(changesHeads() ? [choice("Heads are", CHANGES, state.uniform, (uniform) => change({ uniform }))] : []),
      choice("Order", ORDERS, state.greedy, (greedy) => change({ greedy, part: "" })),
      ...(state.greedy === "1" ? [boundField()] : []),
      dropdown("Images", IMAGES.some(([value]) => value === state.images) ? IMAGES
        : [[state.images, count(Number(state.images))], ...IMAGES], state.images, (value) => change({ images: value })),
      choice("Show", FIGURES, state.figure, (figure) => change({ figure }, false)));
  }

  if (!models.some(({ id }) => id === state.model)) state.model = models[0].id;
  if (!(Number(state.images) >= 1)) state.images = DEFAULTS.images;
  if (!FIGURES.some(([figure]) => figure === state.figure)) state.figure = DEFAULTS.figure;
  addEventListener("hashchange", () => {
    Object.assign(state, readHash());
    if (!models.some(({ id }) => id === state.model)) state.model = models[0].id;
    showTools();
    run();
  });
  showTools();
  run();
  return [problem, tools, progress, result, meaning];
}

(async () => {
  const about = "Heads, residual branches or tokens are left out: how do the network's answers to the images change? " +
    "Orange: the network needs the part. Purple: it is better without it.";
  const part = element("section", { id: "ablate", "aria-labelledby": "title" });
  showTitle("ablate", "Ablate", about);
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
