"use strict";
/* The values of a network's tensors: a block of the page "Network". The engine computes all figures. */

const MOST_FILTERS = 64; /* in one picture */

/* A histogram as SVG. {from, to, counts}: of equal bins. */
function histogramOf({ from, to, counts }) {
  const width = 420, height = 120, below = 18, largest = d3.max(counts) || 1, bin = width / counts.length;
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height + below}`).attr("class", "tensor-histogram")
    .attr("role", "img").attr("aria-label", `Histogram of the values from ${number(from, 3)} to ${number(to, 3)}`);
  svg.append("g").attr("class", "run-0").selectAll("rect").data(counts).join("rect").attr("class", "bin")
    .attr("x", (_, i) => i * bin).attr("width", Math.max(1, bin - 0.6)).attr("y", (n) => height - (height * n) / largest)
    .attr("height", (n) => (height * n) / largest).attr("data-value", (n) => n)
    .append("title").text((n, i) => `${number(from + ((to - from) * i) / counts.length, 3)} to ` +
      `${number(from + ((to - from) * (i + 1)) / counts.length, 3)}: ${count(n)}`);
  if (from < 0 && to > 0)
    svg.append("line").attr("class", "cursor").attr("x1", (-from / (to - from)) * width).attr("y1", 0)
      .attr("x2", (-from / (to - from)) * width).attr("y2", height);
  for (const [x, anchor, value] of [[0, "start", from], [width, "end", to]])
    svg.append("text").attr("class", "label").attr("x", x).attr("y", height + 13).attr("text-anchor", anchor)
      .text(number(value, 3));
  return svg.node();
}

/* Draws filters [filters, channels, height, width] side by side: three channels as a colour with zero as grey, else one
   cell for each channel of the first filter, or for each filter of one channel. */
function drawFilters(canvas, values, [channels, height, width]) {
  const size = channels * height * width, coloured = channels === 3;
  const cells = coloured ? values.length / size : values.length / (height * width);
  const columns = Math.min(8, cells), scale = Math.max(1, Math.floor(34 / Math.max(height, width)));
  const pitch = { x: width + 1, y: height + 1 }, rows = Math.ceil(cells / columns);
  const data = new ImageData(columns * pitch.x - 1, rows * pitch.y - 1);
  const largest = d3.max(values, Math.abs) || 1, plane = height * width;
  for (let cell = 0; cell < cells; cell++) {
    const own = coloured ? values.subarray(cell * size, (cell + 1) * size) : null;
    const most = own ? d3.max(own, Math.abs) || 1 : largest;
    for (let p = 0; p < plane; p++) {
      const x = (cell % columns) * pitch.x + (p % width), y = Math.floor(cell / columns) * pitch.y + Math.floor(p / width);
      const at = 4 * (y * data.width + x);
      if (own)
        for (let c = 0; c < 3; c++) data.data[at + c] = 127.5 + (127.5 * own[c * plane + p]) / most;
      else {
        const { r, g, b } = d3.rgb(d3.interpolatePuOr(0.5 - (0.5 * values[cell * plane + p]) / most));
        data.data.set([r, g, b], at);
      }
      data.data[at + 3] = 255;
    }
  }
  canvas.width = data.width;
  canvas.height = data.height;
  canvas.style.width = `${data.width * scale}px`;
  canvas.getContext("2d").putImageData(data, 0, 0);
  return cells;
}

/* Pictures of a convolution's weight [filters, channels, height, width], with the choice of the filters. */
function filterView(model, name, shape, fail) {
  const [filters, ...kernel] = shape, channels = kernel[0], single = channels !== 1 && channels !== 3;
  const canvas = element("canvas", { class: "filters", role: "img", "aria-label": "Filters" });
  const caption = element("figcaption"), step = single ? 1 : MOST_FILTERS;
  const input = element("input", { type: "number", min: 0, max: filters - 1, step, value: 0, "aria-label": single
    ? "Filter" : "First filter", onchange: () => show() });
  const show = latest(async () => {
    const first = Math.max(0, Math.min(filters - 1, Math.floor(Number(input.value)) || 0));
    try {
      const answer = await ask("values", { model, name, first, count: step });
      const values = new Float32Array(await answer.arrayBuffer());
      const shown = single ? values.subarray(0, MOST_FILTERS * kernel[1] * kernel[2]) : values;
      const cells = drawFilters(canvas, shown, kernel);
      caption.textContent = single ? `Filter ${first} of ${count(filters)}: ${count(cells)} of its ${count(channels)} ` +
        "input channels. Orange is positive, purple negative; all cells have one scale."
        : `Filters ${first} to ${first + cells - 1} of ${count(filters)}. ` + (channels === 3
          ? "Red, green and blue are the three input channels, grey is zero; each filter has its own scale."
          : "Orange is positive, purple negative; all cells have one scale.");
      canvas.setAttribute("aria-label", caption.textContent);
      canvas.dataset.first = first;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      fail(error.message);
    }
  });
  show();
  return [element("label", { class: "slider" }, single ? "Filter" : "First filter", input), canvas, caption];
}

/* A block that shows one of the tensors, {name, shape} each, of a checkpoint: an element. chosen: the tensor shown at
   first; "": none. choose(name): after a choice. */
function tensorView(model, tensors, chosen, choose) {
  const shown = element("div"), buttons = element("div", { class: "tools" });
  const fail = (sentence) => shown.replaceChildren(element("p", { class: "note problem", role: "alert" }, sentence));
  const show = latest(async (name) => {
    for (const button of buttons.children) button.setAttribute("aria-pressed", String(button.dataset.tensor === name));
    choose(name);
    if (!name) {
      shown.replaceChildren();
      return;
    }
    try {
      const t = await askJson("tensor", { model, name });
      const facts = [["Shape", t.shape.join(" × ") || "1"], ["Norm", number(t.norm, 5)],
        ["Mean", number(t.mean)], ["Deviation", number(t.deviation)], ["From, to", `${number(t.min, 4)}, ${number(t.max, 4)}`],
        ["Zeros", `${count(t.zeros)} of ${count(t.count)}`],
        ...(t.nonfinite ? [["NaN or infinite", count(t.nonfinite)]] : [])];
      shown.replaceChildren(element("dl", { class: "method" }, ...facts.flatMap(([term, text]) =>
        [element("dt", {}, term), element("dd", {}, text)])), histogramOf(t.histogram),
      ...(t.shape.length === 4 && t.shape[2] * t.shape[3] > 1 ? filterView(model, name, t.shape, fail) : []));
      shown.dataset.tensor = name;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      fail(error.message);
    }
  });
  buttons.append(...tensors.map(({ name, shape }) => element("button", { type: "button", class: "quiet",
    "aria-pressed": "false", "data-tensor": name, onclick: (event) =>
      show(event.currentTarget.getAttribute("aria-pressed") === "true" ? "" : name) },
  `${name.split(".").at(-1)} ${shape.join(" × ") || "1"}`)));
  if (tensors.some(({ name }) => name === chosen)) show(chosen);
  return element("div", { class: "tensors" }, element("h3", {}, "Values"), buttons, shown);
}
