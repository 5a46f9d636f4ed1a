"use strict";
/* The page "Ablate": what heads and residual branches do, by the network's answers without them. The engine computes all
   numbers, a few images in each answer; the page draws them as a heat map, and the images that change most. */

const DEFAULTS = { model: "", parts: "heads", uniform: "0", images: "32", figure: "loss", part: "" };
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
const PARTS = [["heads", "heads"], ["branches", "residual branches"]];
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
/* The place of a part in the heat map: heads by layer, branches by block. */
function placeOfPart({ name, kind, head }) {
  const cut = name.lastIndexOf(kind === "head" ? ":" : ".");
  return { column: name.slice(0, cut), row: kind === "head" ? `head ${head}` : name.slice(cut + 1) };
}

/* --- the heat map ------------------------------------------------------------------------------------------------ */

function heatMap(parts, figure, chosen, choose) {
  const places = parts.map(placeOfPart), columns = [...new Set(places.map(({ column }) => column))];
  const rows = [...new Set(places.map(({ row }) => row))];
  const largest = d3.max(parts, (part) => Math.abs(part[figure].mean)) || 1;
  const at = new Map(places.map(({ column, row }, i) => [`${column} ${row}`, i]));
  function cell(column, row) {
    const index = at.get(`${column} ${row}`);
    if (index === undefined) return element("td");
    const part = parts[index], share = (WORSE[figure] * part[figure].mean) / largest;
    const press = element("button", { type: "button", "data-part": index, "data-value": whole(part[figure].mean),
      "aria-pressed": String(index === chosen), title: `${part.name}: ${intervalText(part[figure])}`,
      "aria-label": `${part.name}: ${intervalText(part[figure])}`, onclick: () => choose(index) },
    signed(part[figure].mean));
    press.style.background = colourOf(share);
    press.style.color = Math.abs(share) > 0.65 ? "#ffffff" : "#1c1d20";
    return element("td", { "data-value": whole(part[figure].mean) }, press);
  }
  return scrolling(element("table", { class: "heat" },
    element("thead", {}, element("tr", {}, element("th"),
      ...columns.map((column) => element("th", { scope: "col", title: column }, blockName(column))))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, element("th", { scope: "row" }, row),
      ...columns.map((column) => cell(column, row)))))));
}
function scaleOf(parts, figure) {
  const largest = d3.max(parts, (part) => Math.abs(part[figure].mean)) || 1;
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
/* The change in words of the page Explore. */
function wordOf({ kind, layer, head, branch }, uniform) {
  return kind === "head" ? `h${layer}.${head}${uniform ? "u" : "r"}` : `b${branch}`;
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

/* --- the page ---------------------------------------------------------------------------------------------------- */

function makePage(models) {
  const state = readHash();
  const problem = element("p", { class: "note problem", role: "alert", hidden: true });
  const tools = element("div", { class: "tools" }), progress = element("p", { class: "readout", "aria-live": "polite" });
  const map = element("div"), words = element("p", { class: "readout", "aria-live": "polite" });
  const images = element("ul", { class: "changed" }), rows = element("details"), meaning = element("dl", { class: "method" });
  const result = element("div", { class: "panel", hidden: true }, element("h3", {}), map, words, images, rows);
  let found = null, round = 0;

  const query = () => ({ model: state.model, parts: state.parts, uniform: state.uniform, images: state.images });
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
    const { figure } = state;
    result.firstChild.textContent = TITLES[figure];
    map.replaceChildren(heatMap(found.parts, figure, chosen(), choosePart), ...scaleOf(found.parts, figure));
    words.replaceChildren(...(chosen() < 0 ? ["Click a cell to see the images that change most without the part."]
      : describe(found.parts[chosen()])));
    result.hidden = false;
  }
  function showProgress() {
    const { unchanged, total } = found, classes = found.unlabelled
      ? " Images without classes count by what the unchanged network predicts." : "";
    progress.textContent = `${count(found.images)} of ${count(total)} images. Unchanged: accuracy ` +
      `${number(unchanged.accuracy, 4)} %, loss ${number(unchanged.loss, 4)}, p of the class ` +
      `${number(unchanged.p_class, 4)}.${classes}`;
    Object.assign(result.dataset, { images: found.images, total });
  }
  function showTable() {
    rows.replaceChildren(element("summary", {}, "All parts as a table"), scrolling(tableOf(found.parts)));
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
      imageCard(image, state.model, wordOf(found.parts[part], state.uniform === "1"))));
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
    result.hidden = true;
    images.replaceChildren();
    progress.textContent = "Running the network …";
    await guarded(async () => {
      do {
        const answer = await askJson("ablation", query());
        if (own !== round) return;
        found = answer;
        showProgress();
        showMap();
      } while (found.images < found.total);
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
  function showTools() {
    tools.replaceChildren(
      dropdown("Checkpoint", models.map(({ id, name }) => [id, name]), state.model,
        (model) => change({ model, part: "" })),
      choice("Without", PARTS, state.parts, (parts) => change({ parts, part: "" })),
      ...(state.parts === "heads" ? [choice("Heads are", CHANGES, state.uniform, (uniform) => change({ uniform }))] : []),
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
  const about = "Each head or residual branch is left out on its own: how do the network's answers to the images " +
    "change? Orange: the network needs the part. Purple: it is better without it.";
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
