"use strict";
/* The page "Lessons": four papers, each with what it claims, what the user's checkpoint shows on one image, and the
   command that prints it. All numbers come from the engine. */

/* --- pictures ---------------------------------------------------------------------------------------------------- */

const PLOT = { width: 560, height: 250, left: 58, right: 14, top: 12, bottom: 38 };
const LINES = [null, "7 5", "2 4.5", "11 4 2 4"];

/* Lines over blocks. series: {name, points: [{x, y, label}]}; undefined values are left out. bars: the first series is
   drawn as bars. references: {y, label}. most: where the axis of y ends. */
function plot({ title, series, xLabel, yLabel, log, caption, references = [], bars = false, most = Infinity }) {
  const usable = (p) => isNumber(p.y) && (!log || p.y > 0);
  const points = series.flatMap((s) => s.points.filter(usable));
  const [low, high] = d3.extent([...points.map(({ y }) => y), ...references.map(({ y }) => y)]);
  const x = d3.scaleLinear(d3.extent(points, (p) => p.x),
    [PLOT.left + (bars ? 14 : 4), PLOT.width - PLOT.right - (bars ? 14 : 0)]);
  const y = (log ? d3.scaleLog().domain([low / 1.5, high * 1.5])
    : d3.scaleLinear().domain([Math.min(0, low), high * 1.05 || 1]).nice(5))
    .range([PLOT.height - PLOT.bottom, PLOT.top]);
  y.domain([y.domain()[0], Math.min(most, y.domain()[1])]);
  const svg = d3.create("svg").attr("viewBox", `0 0 ${PLOT.width} ${PLOT.height}`).attr("class", "plot")
    .attr("role", "img").attr("aria-label", `${title}. ${caption ?? ""}`);
  const ticks = log ? logTicks(y) : y.ticks(5);
  svg.append("g").attr("class", "axis y").attr("transform", `translate(${PLOT.left},0)`)
    .call(d3.axisLeft(y).tickValues(ticks).tickSize(-(PLOT.width - PLOT.left - PLOT.right)).tickPadding(8)
      .tickFormat((v) => number(v, 3)))
    .call((g) => g.select(".domain").remove());
  svg.append("g").attr("class", "axis x").attr("transform", `translate(0,${PLOT.height - PLOT.bottom})`)
    .call(d3.axisBottom(x).ticks(8).tickFormat((v) => (Number.isInteger(v) ? v : "")).tickSizeOuter(0));
  svg.append("text").attr("class", "label").attr("x", PLOT.width - PLOT.right).attr("y", PLOT.height - 4)
    .attr("text-anchor", "end").text(xLabel);
  svg.append("text").attr("class", "label").attr("x", 4).attr("y", PLOT.height - 4).text(yLabel);
  for (const [i, { name, points: own }] of series.entries()) {
    const g = svg.append("g").attr("class", `run-${i}`).attr("data-series", name);
    if (bars && i === 0) {
      const zero = y(log ? y.domain()[0] : 0);
      g.selectAll("rect").data(own.filter(usable)).join("rect").attr("class", "bar").attr("width", 10)
        .attr("x", (p) => x(p.x) - 5).attr("y", (p) => Math.min(zero, y(p.y)))
        .attr("height", (p) => Math.abs(zero - y(p.y))).attr("data-value", (p) => p.y)
        .append("title").text((p) => p.label);
      continue;
    }
    g.append("path").attr("class", "line").attr("stroke-dasharray", LINES[i % LINES.length])
      .attr("d", d3.line().defined(usable).x((p) => x(p.x)).y((p) => y(p.y))(own));
    g.selectAll("circle").data(own.filter(usable)).join("circle").attr("class", "mark").attr("r", 3.2)
      .attr("cx", (p) => x(p.x)).attr("cy", (p) => y(p.y)).attr("data-value", (p) => p.y)
      .append("title").text((p) => p.label);
  }
  // Above the bars, so that the label of a reference can be read.
  for (const reference of references) {
    const g = svg.append("g").attr("class", "reference").attr("transform", `translate(0,${y(reference.y)})`);
    g.append("line").attr("x1", PLOT.left).attr("x2", PLOT.width - PLOT.right);
    g.append("text").attr("x", PLOT.width - PLOT.right).attr("y", -5).attr("text-anchor", "end").text(reference.label);
  }
  const key = series.length > 1 ? element("div", { class: "key" }, ...series.map(({ name }, i) => element("span", {
    class: `run-${i}` }, sample(i), ` ${name}`))) : null;
  return picture(title, svg.node(), key, caption, "lesson-figure");
}
function sample(i) {
  const svg = d3.create("svg").attr("viewBox", "0 0 34 10").attr("class", "sample").attr("aria-hidden", "true");
  svg.append("line").attr("class", "line").attr("x1", 1).attr("x2", 33).attr("y1", 5).attr("y2", 5)
    .attr("stroke-dasharray", LINES[i % LINES.length]);
  return svg.node();
}

/* Points of rows at the places of their nodes in `order`. */
function byOrder(rows, order = rows.map(({ node }) => node)) {
  return rows.map(({ node, mean }) => ({ x: order.indexOf(node), y: mean, label: `${node}: ${number(mean)}` }));
}

/* --- what lessons ask -------------------------------------------------------------------------------------------- */

/* Figures of an instrument, of single heads and of all heads together. */
async function figuresOf(lesson, instrument) {
  const { instruments } = await askJson("model", { model: lesson.model });
  return askFigures(instruments, lesson, instrument);
}
function only(figures, statistic) {
  return figures.filter((row) => row.statistic === statistic && row.head < 0 && row.node);
}
/* The probability of the class that the unchanged network predicts. */
async function probabilityOf(lesson, changes, best) {
  const answer = await askJson("run", { model: lesson.model, image: lesson.image, changes });
  if (!answer.top)
    throw new Refusal("This part of the lesson needs a network that predicts one class for an image or a text.");
  const wanted = best ?? answer.top[0].class;
  return { best: wanted, label: answer.top[0].label ?? `class ${answer.top[0].class}`,
    probability: softmax(answer.logits)[wanted] };
}

/* --- lesson 1: a convolution as a sum of shifts ------------------------------------------------------------------ */

const KERNELS = {
  edges: [0, -1, 0, -1, 4, -1, 0, -1, 0],
  blur: [1, 2, 1, 2, 4, 2, 1, 2, 1].map((w) => w / 16),
  sharpen: [0, -1, 0, -1, 5, -1, 0, -1, 0],
};
const SMALL = 56;

/* Grey values of the image, SMALL x SMALL, 0 to 1. */
function greyOf({ h, w, c }, pixels) {
  return Float32Array.from(d3.range(SMALL * SMALL), (i) => {
    const y = Math.floor(((Math.floor(i / SMALL) + 0.5) / SMALL) * h);
    const x = Math.floor((((i % SMALL) + 0.5) / SMALL) * w);
    return d3.mean(pixels.subarray((y * w + x) * c, (y * w + x) * c + c)) / 255;
  });
}
/* The image moved so that each pixel shows the one at the shift; zeros come in from outside. */
function shifted(grey, dy, dx) {
  return grey.map((_, i) => {
    const y = Math.floor(i / SMALL) + dy, x = (i % SMALL) + dx;
    return y < 0 || x < 0 || y >= SMALL || x >= SMALL ? 0 : grey[y * SMALL + x];
  });
}
/* Draws values from -1 to 1 (signed) or 0 to 1. */
function drawGrey(canvas, values, signed) {
  canvas.width = canvas.height = SMALL;
  const data = new ImageData(SMALL, SMALL);
  values.forEach((value, i) => {
    const level = 255 * Math.max(0, Math.min(1, signed ? (value + 1) / 2 : value));
    data.data.set([level, level, level, 255], 4 * i);
  });
  canvas.getContext("2d").putImageData(data, 0, 0);
}
/* The map of a head that attends to one shift: 3 x 3 keys around the query. */
function drawHead(canvas, which) {
  canvas.width = canvas.height = 30;
  const context = canvas.getContext("2d");
  d3.range(9).forEach((i) => {
    context.fillStyle = (i === which ? heat[230] : heat[20]).toString();
    context.fillRect((i % 3) * 10, Math.floor(i / 3) * 10, 9, 9);
  });
  context.strokeStyle = "#fff";
  context.strokeRect(10.5, 10.5, 8, 8);
}
function shiftAnimation(photo) {
  const grey = greyOf(photo.image, photo.pixels);
  const shifts = d3.range(9).map((i) => shifted(grey, Math.floor(i / 3) - 1, (i % 3) - 1));
  const heads = d3.range(9).map(() => element("canvas", { class: "shift-head" }));
  const parts = d3.range(9).map(() => element("canvas", { class: "shift-part" }));
  const sum = element("canvas", { class: "shift-sum", role: "img",
    "aria-label": "The sum of the shifted images so far" });
  const words = element("p", { class: "reading", "aria-live": "polite" });
  let name = "edges", step = 9, timer = null;
  function draw() {
    const kernel = KERNELS[name], signed = kernel.some((w) => w < 0);
    const total = grey.map((_, p) => d3.sum(d3.range(step), (i) => kernel[i] * shifts[i][p]));
    heads.forEach((canvas, i) => {
      drawHead(canvas, i);
      canvas.classList.toggle("now", i === step - 1);
      drawGrey(parts[i], shifts[i].map((value) => kernel[i] * value), signed);
      parts[i].classList.toggle("later", i >= step);
    });
    drawGrey(sum, total, signed && name === "edges");
    sum.dataset.step = step;
    words.textContent = step === 0 ? "No head yet."
      : `Head ${step - 1} attends to the pixel ${shiftText(step - 1)}; its value matrix multiplies by ` +
        `${number(kernel[step - 1], 3)}. Sum of ${plural(step, "head")}${step === 9 ? ": the convolution." : "."}`;
    slider.value = step;
  }
  function shiftText(i) {
    const [dy, dx] = [Math.floor(i / 3) - 1, (i % 3) - 1];
    const vertical = dy < 0 ? "above" : dy > 0 ? "below" : "";
    const horizontal = dx < 0 ? "to the left" : dx > 0 ? "to the right" : "";
    return [vertical, horizontal].filter(Boolean).join(" and ") || "itself";
  }
  function play() {
    clearInterval(timer);
    step = 0;
    draw();
    timer = setInterval(() => {
      step += 1;
      draw();
      if (step === 9) clearInterval(timer);
    }, 700);
  }
  const slider = element("input", { type: "range", min: 0, max: 9, value: 9, "aria-label": "Number of heads in the sum",
    oninput: (event) => {
      clearInterval(timer);
      step = Number(event.target.value);
      draw();
    } });
  const kernels = choice("Kernel", Object.keys(KERNELS).map((key) => [key, key]), name, (value) => {
    name = value;
    draw();
  });
  const grid = (canvases) => element("div", { class: "shift-grid" }, ...canvases);
  const captioned = (node, caption) => element("div", {}, node, element("figcaption", {}, caption));
  draw();
  return element("figure", { class: "lesson-figure" }, element("h3", {}, "A 3 × 3 convolution as a sum of nine heads"),
    element("div", { class: "tools" }, kernels,
      element("button", { type: "button", class: "quiet", onclick: play }, "Play"),
      element("label", { class: "slider" }, "Heads", slider)),
    element("div", { class: "shift-row" },
      captioned(grid(heads), "Nine heads: the key that each attends to, around the query"),
      captioned(grid(parts), "The image shifted by each head, times its weight"), captioned(sum, "Their sum")), words);
}
/* Centres of the heads: the mean shift from query to key, in patches. */
function centresPicture(figures) {
  const heads = figures.filter(({ head }) => head >= 0);
  const of = (statistic) => new Map(heads.filter((row) => row.statistic === statistic)
    .map((row) => [`${row.node} ${row.head}`, row]));
  const rows = of("row"), columns = of("column"), layers = [...new Set(heads.map(({ node }) => node))];
  const points = [...rows].map(([key, row]) => ({ key, y: row.mean, x: columns.get(key)?.mean,
    layer: layers.indexOf(row.node),
    label: `${row.node} head ${row.head}: ${number(row.mean, 3)} rows, ${number(columns.get(key)?.mean, 3)} columns` }))
    .filter(({ x, y }) => isNumber(x) && isNumber(y));
  const reach = d3.max(points, ({ x, y }) => Math.max(Math.abs(x), Math.abs(y))) || 1;
  const scale = d3.scaleLinear([-reach * 1.1, reach * 1.1], [0, 260]);
  const svg = d3.create("svg").attr("viewBox", "0 0 260 260").attr("class", "centres").attr("role", "img")
    .attr("aria-label", "Centres of all heads");
  svg.append("path").attr("class", "cross").attr("d", "M130,0V260M0,130H260");
  svg.append("g").selectAll("circle").data(points).join("circle").attr("r", 4).attr("cx", ({ x }) => scale(x))
    .attr("cy", ({ y }) => scale(y))
    .attr("fill", ({ layer }) => d3.interpolateViridis(layer / Math.max(1, layers.length - 1)))
    .attr("data-value", ({ x, y }) => `${x} ${y}`).append("title").text(({ label }) => label);
  const caption = "Mean shift from query to key of each head, in patches; the edges are at " +
    `${number(reach * 1.1, 3)}. Colours go from the first layer (dark) to the last (light). A head that acts like ` +
    "one tap of a convolution always looks at one shift: its spread is near 0.";
  return picture("Where heads look, relative to the query", svg.node(), null, caption, "lesson-figure");
}

/* --- the lessons ------------------------------------------------------------------------------------------------- */

const LESSONS = [
  { id: "convolution", short: "1 convolution", title: "Attention can express convolution",
    paper: "Cordonnier, Loukas and Jaggi: On the Relationship between Self-Attention and Convolutional Layers, " +
      "ICLR 2020",
    claims: ["A layer of self-attention with K² heads and relative positions can compute every K × K convolution: " +
      "each head attends to the pixel at one fixed shift, and its value matrix holds the kernel's weights for that " +
      "shift.",
    "In their networks, heads of the first layers learned such shifts by themselves; later layers attend more by " +
      "content."],
    scale: "The paper trained its networks on CIFAR-10. The charts show how your checkpoint attends. They do not " +
      "test the theorem.",
    command: "head_shape",
    async show(lesson) {
      if (isText(lesson.image)) throw new Refusal("This lesson is about images, and the network reads texts.");
      const answer = await askJson("run", { model: lesson.model, image: lesson.image, changes: "" });
      const bytes = await ask("input", { model: lesson.model, image: lesson.image, changes: "" });
      const [h, w, c] = answer.input;
      const photo = { image: { h, w, c }, pixels: new Uint8Array(await bytes.arrayBuffer()) };
      return [shiftAnimation(photo), centresPicture(await figuresOf(lesson, "head_shape"))];
    } },
  { id: "rank", short: "2 rank", title: "Pure attention loses rank",
    paper: "Dong, Cordonnier and Loukas: Attention Is Not All You Need, ICML 2021",
    claims: ["Without skip connections and MLPs, the tokens become equal to each other: their residual, the distance " +
      "from one common row, shrinks doubly exponentially with depth.",
    "Skip connections prevent it. MLPs slow it down: their Lipschitz constant makes the bound of the residual larger."],
    scale: "The paper shows BERT, ALBERT and XLNet, at initialisation and trained. Here: your checkpoint, with its " +
      "weights, one image.",
    reading: "The line with MLPs can fall before the line of attention only, as it does for DeiT-Tiny. This does not " +
      "refute the paper: its claim about MLPs is about an upper bound of the residual, and a larger bound allows a " +
      "slower fall but does not force one. The weights were trained with skips. Without them, each of the first two " +
      "MLPs of DeiT-Tiny takes more than a third of the residual away, and the fall to the third power, which begins " +
      "once the residual is small, begins some layers earlier.",
    command: "collapse",
    async show(lesson) {
      const figures = await figuresOf(lesson, "collapse");
      const names = { attention: "attention only", skip: "attention + skip", mlp: "attention + MLP",
        both: "attention + skip + MLP" };
      const order = only(figures, "composite both").map(({ node }) => node);
      const series = Object.entries(names)
        .map(([key, name]) => ({ name, points: byOrder(only(figures, `composite ${key}`), order) }))
        .filter(({ points }) => points.length);
      const falls = series.map(({ name, points }) => [name, points.find(({ y }) => y < 0.1)?.x]);
      const words = falls.map(([name, x]) => `${name}: ${x === undefined ? "never" : `at addition ${x}`}`).join("; ");
      return [plot({ title: "Residual of the tokens by depth", series, log: true, xLabel: "residual addition",
        yLabel: "‖res(X)‖ / ‖X‖",
        caption: `First below 0.1 – ${words}. res(X) = X − 1·mean(X), ‖·‖ = √(‖·‖₁ ‖·‖∞). The same weights, with ` +
          "parts left out. Computed in f32, so values near 1e-6 are rounding; the command with --f64 shows smaller " +
          "ones." })];
    } },
  { id: "uniform", short: "3 uniform", title: "Uniform attention helps",
    paper: "Hyeon-Woo, Yu-Ji, Heo, Han, Oh and Oh: Scratching Visual Transformer's Back with Uniform Attention, " +
      "ICCV 2023",
    claims: ["Attention of vision transformers is dense: the entropy of its rows is high, close to that of uniform " +
      "attention. Uniform attention is hard for softmax to learn: its gradient is steepest there.",
    "Adding the mean token to every token (context broadcasting) gives the network uniform attention at almost no " +
      "cost, and improves accuracy."],
    scale: "The paper trains ViTs with and without context broadcasting on ImageNet-1k. Here: how dense your " +
      "checkpoint attends, and what one uniform layer does to one prediction.",
    command: "entropy,density",
    async show(lesson) {
      const { layers } = await askJson("run", { model: lesson.model, image: lesson.image, changes: "" });
      const entropy = only(await figuresOf(lesson, "entropy"), "mean");
      const most = Math.log(d3.max(layers, ({ tokens, window_h, window_w }) =>
        (window_h ? window_h * window_w : tokens)));
      const plain = await probabilityOf(lesson, "");
      const points = [];
      for (const [l, { node, heads }] of layers.entries()) {
        const changes = d3.range(heads).map((h) => `h${l}.${h}u`).join("-");
        const { probability } = await probabilityOf(lesson, changes, plain.best);
        points.push({ x: l, y: probability, label: `${node} uniform: ${percent(probability)}` });
      }
      return [plot({ title: "Entropy of attention by layer", series: [{ name: "entropy", points: byOrder(entropy) }],
        xLabel: "layer", yLabel: "nats", references: [{ y: most, label: `uniform: ${number(most, 3)}` }], bars: true,
        caption: "−Σ_j a_ij ln a_ij, mean over queries and heads." }),
      plot({ title: `Probability of ${plain.label} with one uniform layer`, series: [{ name: "probability", points }],
        xLabel: "uniform layer", yLabel: "probability", bars: true, most: 1,
        references: [{ y: plain.probability, label: `unchanged: ${percent(plain.probability)}` }],
        caption: "All heads of one layer attend to all keys equally; nothing is trained again." })];
    } },
  { id: "stiffness", short: "4 step size", title: "Attention adapts the step size",
    paper: "Understanding Self-attention Mechanism via Dynamical System Perspective, ICCV 2023 (StepNet)",
    claims: ["A residual network x_{t+1} = x_t + f(x_t) is Euler's method; where the trajectory of the features is " +
      "stiff, its steps must be small. NSI, ‖x_{t+1} − x_t‖ / ‖x_t‖ per unit step, measures how stiff a block is.",
    "Channel attention (SE, ECA, FCA, SRM) multiplies the step by a gate, which acts as an adaptive step size."],
    scale: "The paper trains ResNets on CIFAR and ImageNet with such modules. Here: the NSI of every residual " +
      "addition of your checkpoint, and what skipping it does to one prediction.",
    command: "nsi",
    async show(lesson) {
      const { branches } = await askJson("model", { model: lesson.model });
      const nsi = only(await figuresOf(lesson, "nsi"), "attention");
      const plain = await probabilityOf(lesson, "");
      const points = [];
      for (const [b, branch] of branches.entries()) {
        const { probability } = await probabilityOf(lesson, `b${b}`, plain.best);
        points.push({ x: b, y: probability, label: `without ${branchName(branch)}: ${percent(probability)}` });
      }
      return [plot({ title: "NSI of each residual addition", series: [{ name: "NSI", points: byOrder(nsi) }],
        xLabel: "residual addition", yLabel: "NSI", bars: true,
        caption: "ζ_t = ‖f(x_t)‖ / ‖x_t‖ before the gate of an attention module (the reading \"attention\")." }),
      plot({ title: `Probability of ${plain.label} without one branch`, series: [{ name: "probability", points }],
        xLabel: "removed branch", yLabel: "probability", bars: true, most: 1,
        references: [{ y: plain.probability, label: `unchanged: ${percent(plain.probability)}` }],
        caption: "x_{t+1} = x_t for one addition; nothing is trained again." })];
    } },
];

/* --- the page ---------------------------------------------------------------------------------------------------- */

function makePage(models, images) {
  const given = new URLSearchParams(location.hash.slice(1));
  const state = { lesson: LESSONS.find(({ id }) => id === given.get("lesson"))?.id ?? LESSONS[0].id,
    model: models.find(({ id }) => id === given.get("model"))?.id ?? models[0].id,
    image: given.get("image") ?? "" };
  const text = element("div"), shown = element("div", { class: "lesson-figures" });
  const problem = element("p", { class: "note problem", role: "alert", hidden: true });
  const tools = element("div", { class: "tools" });
  const missing = element("p", { class: "note", hidden: true }, "These lessons need images or texts: attscope serve " +
    "CHECKPOINT --images FOLDER or --texts FILE, or an upload on the page \"explore\"");
  const which = element("span");
  let asked = 0;

  function command(lesson) {
    const { path } = models.find(({ id }) => id === state.model);
    if (!path)
      return element("p", { class: "reading" },
        "These weights are random and in no file, so attscope measure cannot repeat the figures.");
    const [all, operand] = isText(state.image) ? ["texts of a file", "TEXTS"] : ["images of a folder", "IMAGES"];
    return element("p", { class: "command" }, `The command that prints these figures, over all ${all}: `,
      element("code", {}, `attscope measure ${path} ${operand} --with ${lesson.command}`),
      " (with --model NAME if the file does not name its network)");
  }
  /* Chooses an image or a text that the network reads, and shows what can be chosen. A network that cannot be opened
     leaves the choice as it is; the lesson tells why. */
  async function fit() {
    try {
      const model = await askJson("model", { model: state.model }), own = readable(images, model);
      state.image = fitting(images, model, state.image);
      missing.hidden = own.length > 0;
      if (which.dataset.reads === model.reads) return;
      which.dataset.reads = model.reads;
      which.replaceChildren(...(own.length ? [dropdown(model.reads === "texts" ? "Text" : "Image",
        own.map(({ id, name }) => [id, name]), state.image, (image) => change({ image }))] : []));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
    }
  }
  async function show() {
    const mine = ++asked, lesson = LESSONS.find(({ id }) => id === state.lesson);
    shown.dataset.ready = "";
    await fit();
    if (mine !== asked) return;
    history.replaceState(null, "", `#${new URLSearchParams(state)}`);
    const name = models.find(({ id }) => id === state.model).name;
    text.replaceChildren(element("h2", {}, lesson.title), element("p", { class: "reading" }, lesson.paper),
      element("h3", {}, "What the paper claims"),
      element("ul", {}, ...lesson.claims.map((claim) => element("li", {}, claim))),
      element("h3", {}, `What ${name} shows`), element("p", { class: "note" }, lesson.scale),
      ...(lesson.reading ? [element("p", { class: "note" }, lesson.reading)] : []), command(lesson));
    shown.replaceChildren(element("p", { class: "reading", role: "status" }, "Computing …"));
    problem.hidden = true;
    try {
      const figures = await lesson.show({ model: state.model, image: state.image });
      if (mine !== asked) return;
      shown.replaceChildren(...figures);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (mine !== asked) return;
      shown.replaceChildren();
      text.querySelector(".command")?.remove();
      problem.textContent = error.message;
      problem.hidden = false;
    }
    shown.dataset.ready = lesson.id;
  }
  function change(values) {
    Object.assign(state, values);
    show();
  }
  const options = (list) => list.map(({ id, name }) => [id, name]);
  tools.append(
    choice("Lesson", LESSONS.map(({ id, short }) => [id, short]), state.lesson, (lesson) => change({ lesson })),
    dropdown("Checkpoint", options(models), state.model, (model) => change({ model })), which);
  show();
  return [tools, text, missing, problem, shown];
}

(async () => {
  const part = element("section", { id: "lessons", "aria-labelledby": "title" });
  showTitle("lessons", "Lessons", "Four papers about attention, and what your own checkpoint shows.");
  document.getElementById("sections").replaceChildren(part);
  try {
    const [{ models }, images] = await Promise.all([askJson("models"), askImages()]);
    part.append(...(models.length ? makePage(models, images)
      : [element("p", { class: "note" }, "No checkpoint was named: attscope serve CHECKPOINT --images FOLDER")]));
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    part.append(element("p", { class: "note problem", role: "alert" }, error.message));
  }
  document.documentElement.dataset.ready = "true";
})();
