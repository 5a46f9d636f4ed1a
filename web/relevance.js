"use strict";
/* Which parts of an image or a text make the network give it a class: a block of the page "Explore". */

/* Draws a map of relevance over the image: positive values in the colours of weights, negative ones in purple. */
function drawRelevance(canvas, photo, { height, width, values }, strength) {
  const { w, h } = photo.image, scale = Math.max(1, Math.floor(448 / Math.max(w, h)));
  const below = document.createElement("canvas"), map = document.createElement("canvas");
  drawPhoto(below, { maps: { image: photo.image }, pixels: photo.pixels }, 0);
  const signed = values.some((value) => value < 0), cells = { grid_h: height, grid_w: width };
  if (signed) drawDifference(map, cells, values);
  else drawWeights(map, cells, values);
  canvas.width = w * scale;
  canvas.height = h * scale;
  const context = canvas.getContext("2d");
  context.filter = "grayscale(1)";
  context.drawImage(below, 0, 0, canvas.width, canvas.height);
  context.filter = "none";
  context.imageSmoothingEnabled = false;
  context.globalAlpha = strength;
  context.drawImage(map, 0, 0, canvas.width, canvas.height);
  context.globalAlpha = 1;
  return signed;
}

/* side: the values in the URL, of which `method` and `class` belong to this block. changed(): after a choice. Returns
   {panel, show}. show(model, view, photo, answer): draws the map of the answer's image; without a photo it hides the
   block. */
function relevanceView(side, changed, strength) {
  const canvas = element("canvas", { role: "img", "aria-label": "Relevance" }), line = textLine();
  const words = element("p", { class: "relevance-words", "aria-live": "polite" });
  const problem = element("p", { class: "note problem", role: "alert", hidden: true });
  const tools = element("div", { class: "tools" }), picture = element("div", { class: "relevance-view", hidden: true }, canvas,
    line.panel);
  const reading = element("p", { class: "reading" });
  const panel = element("div", { class: "relevance", hidden: true }, element("h3", {}, "Relevance for a class"), tools,
    reading, problem, picture, words);
  let shown = null, drawn = null;

  function choose(values) {
    Object.assign(side, values);
    changed();
    draw(...shown);
  }
  function select(label, value, options, key) {
    return element("label", { class: "slider" }, label, element("select", { "aria-label": label,
      onchange: (event) => choose({ [key]: event.target.value }) }, ...options.map(([name, text]) =>
      element("option", { value: name, selected: name === value }, text))));
  }
  const nameOf = ({ label, class: number }) => label ?? `class ${number}`;
  function showTools(model, answer) {
    const classes = (answer.top ?? []).map((one) => [String(one.class), nameOf(one)]);
    if (side.class && !classes.some(([number]) => number === side.class))
      classes.push([side.class, `class ${side.class}`]);
    tools.replaceChildren(select("Method", side.method, [["", "none"],
      ...model.relevance.map(({ name, title }) => [name, title])], "method"),
    ...(side.method ? [select("Class", side.class, [["", "most probable"], ...classes], "class")] : []));
    const method = model.relevance.find(({ name }) => name === side.method);
    reading.textContent = method ? `${method.summary}${method.source ? ` (${method.source})` : ""}` : "";
  }
  function clear(sentence) {
    picture.hidden = true;
    words.textContent = "";
    problem.textContent = sentence;
    problem.hidden = !sentence;
    delete canvas.dataset.method;
    drawn = null;
  }
  /* Draws a map over the image or the words; returns whether some values are negative. */
  function drawMap(photo, map) {
    canvas.hidden = Boolean(photo.words);
    line.panel.hidden = !photo.words;
    if (!photo.words) return drawRelevance(canvas, photo, map, strength());
    line.show(photo.words);
    line.shade(map.values, 1, -1);
    return map.values.some((value) => value < 0);
  }
  const cellOf = (photo, best, { height, width }) => (photo.words ? `“${photo.words[best].name}” (token ${best})`
    : `row ${Math.floor(best / width) + 1}, column ${(best % width) + 1} of ${height} × ${width}`);
  const draw = latest(async (model, view, photo, answer) => {
    showTools(model, answer);
    if (!side.method) {
      clear("");
      return;
    }
    try {
      const map = await askJson("relevance", { ...view, method: side.method, class: side.class || -1 });
      if (shown?.[2] !== photo) return; /* another image or checkpoint is shown meanwhile */
      clear("");
      const signed = drawMap(photo, map), best = d3.greatestIndex(map.values), cell = cellOf(photo, best, map);
      const top = (answer.top ?? []).find((one) => one.class === map.class);
      const [low, high] = d3.extent(map.values);
      words.textContent = `${nameOf(top ?? { class: map.class })}: logit ${number(map.logit, 4)}. Largest: ` +
        `${number(high, 3)} in ${cell}; smallest: ${number(low, 3)}.` +
        `${signed ? " Orange speaks for the class, purple against it." : ""}`;
      picture.hidden = false;
      drawn = [photo, map];
      canvas.setAttribute("aria-label", words.textContent);
      Object.assign(canvas.dataset, { method: side.method, target: map.class, changes: view.changes });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      clear(error.message);
    }
  });
  return { panel, redraw: () => drawn && drawMap(...drawn), show(model, view, photo, answer) {
    panel.hidden = !photo || !model.relevance.length;
    shown = panel.hidden ? null : [model, view, photo, answer];
    if (shown) return draw(...shown);
    clear("");
    return null;
  } };
}
