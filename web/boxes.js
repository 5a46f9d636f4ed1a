"use strict";
/* Boxes of objects over a photograph, with a list of them. */

/* The intersection of two boxes [left, top, width, height] over their union. */
function overlapOf([x, y, w, h], [left, top, width, height]) {
  const across = Math.min(x + w, left + width) - Math.max(x, left);
  const down = Math.min(y + h, top + height) - Math.max(y, top);
  const common = Math.max(0, across) * Math.max(0, down);
  return common / (w * h + width * height - common);
}

/* Finds what became of boxes: {before: for each box of `now` the one of `then` with the same class and the largest
   overlap, which is at least SAME and taken only once, else undefined; lost: the boxes of `then` that none has}. */
const SAME = 0.5;
function matchBoxes(now, then) {
  const left = new Set(then);
  const before = now.map((box) => {
    const like = [...left].filter((other) => other.class === box.class && overlapOf(box.bbox, other.bbox) >= SAME);
    const found = d3.greatest(like, (a, b) => overlapOf(box.bbox, a.bbox) - overlapOf(box.bbox, b.bbox));
    left.delete(found);
    return found;
  });
  return { before, lost: [...left] };
}

/* A box of the photograph in shares of the network's input: {left, top, right, bottom}. map: from the points of the
   photograph to those of the input, by rows. */
function placeOfBox([x, y, width, height], [a, b, c, d, e, f], { h, w }) {
  const corners = [[x, y], [x + width, y + height]].map(([u, v]) => [(a * u + b * v + c) / w, (d * u + e * v + f) / h]);
  const [[left, top], [right, bottom]] = corners;
  return { left, top, right, bottom };
}

/* The colour of text on a colour: black on a light one (ITU-R BT.601), else white. */
function inkOn(colour) {
  const { r, g, b } = d3.rgb(colour);
  return 299 * r + 587 * g + 114 * b > 128000 ? "#000" : "#fff";
}

function sizeWords([x, y, width, height]) {
  const [left, top, w, h] = [x, y, width, height].map(Math.round);
  return `${w} × ${h} at ${left}, ${top}`;
}

/* The frame of a box, in shares of the picture, with its name. */
function boxFrame(box, { left, top, right, bottom }, colour, lost) {
  const name = element("span", {}, `${nameOfClass(box)} ${percent(box.score)}`);
  const frame = element("div", { class: lost ? "box lost" : "box" }, name);
  const at = { left, top, width: right - left, height: bottom - top };
  for (const [side, share] of Object.entries(at)) frame.style[side] = `${100 * share}%`;
  frame.style.setProperty("--c", colour);
  frame.style.setProperty("--on", inkOn(colour));
  return frame;
}

/* Puts names above their frames, or inside where there is no room, and within the picture. Hides names that would cover
   one before them; a marked frame shows its name all the same. */
function placeNames(frames) {
  const shown = [];
  for (const frame of frames) {
    const name = frame.firstChild, picture = frame.parentElement;
    frame.classList.toggle("inside", frame.offsetTop < name.offsetHeight);
    frame.classList.toggle("from-right", frame.offsetLeft + name.offsetWidth > picture.clientWidth);
    const box = name.getBoundingClientRect();
    const covers = shown.some((other) => box.left < other.right && other.left < box.right && box.top < other.bottom &&
      other.top < box.bottom);
    frame.classList.toggle("covered", covers);
    if (!covers) shown.push(box);
  }
}

/* Makes a view of boxes. classes: {label, colour} of each class, of which the labels are untrusted. least: the lowest
   score that is shown; choose(score) is called when the user sets another one. hover(pixel) and keep(pixel): as for
   classView(). Returns {panel, scores, show}: the picture, the list, and show({image, pixels}, {boxes, map}, plain),
   which shows other boxes, beside those of the answer `plain` of the network without changes; null: there is none. */
function boxView(classes, least, { choose, hover, keep }) {
  const view = element("canvas", { class: "box-photo", role: "img",
    "aria-label": "The image with frames of objects. The list has the same as text." });
  const frames = element("div", { class: "frames", "aria-hidden": "true" });
  const words = element("p", { class: "reading", "aria-live": "polite" }), list = element("ol", { class: "bars" });
  const notes = element("figcaption", {}), output = element("output");
  let photo = null, answer = null, plain = null, chosen = null, parts = [];

  /* Marks a box in the picture and in the list; null: the chosen one. */
  function mark(box) {
    const marked = box ?? chosen;
    frames.classList.toggle("marked", marked !== null);
    for (const part of parts) {
      part.frame.classList.toggle("on", part.box === marked);
      part.row.classList.toggle("on", part.box === marked);
      part.row.setAttribute("aria-pressed", String(part.box === chosen));
    }
  }
  function markFrame(part) {
    mark(part.box);
    const { offsetTop, offsetHeight } = part.row, { scrollTop, clientHeight } = list;
    if (offsetTop < scrollTop || offsetTop + offsetHeight > scrollTop + clientHeight) list.scrollTop = offsetTop;
  }
  /* Chooses a box, or none if it was chosen already. */
  function toggle(box) {
    chosen = box === chosen ? null : box;
    mark(null);
  }
  function middleOf({ left, top, right, bottom }) {
    const { h, w } = photo.image;
    return { row: cellAt((top + bottom) / 2, h), column: cellAt((left + right) / 2, w) };
  }
  function makePart(box, before, lost) {
    const { colour } = classes[box.class], place = placeOfBox(box.bbox, answer.map, photo.image);
    const frame = boxFrame(box, place, colour, lost);
    const row = element("button", { type: "button", class: lost ? "bar-row lost" : "bar-row", "data-class": box.class,
      "aria-pressed": "false" },
    ...barParts({ ...box, probability: lost ? 0 : box.score }, lost ? box.score : before?.score, colour),
    element("span", { class: "bar-size" }, lost ? `${sizeWords(box.bbox)}; unchanged network only` : sizeWords(box.bbox)));
    const part = { box, frame, row };
    frame.addEventListener("pointerenter", () => markFrame(part));
    frame.addEventListener("pointerleave", () => mark(null));
    frame.addEventListener("click", () => toggle(box));
    for (const name of ["pointerenter", "focus"]) row.addEventListener(name, () => mark(box));
    for (const name of ["pointerleave", "blur"]) row.addEventListener(name, () => mark(null));
    row.addEventListener("click", () => {
      toggle(box);
      keep(middleOf(place));
    });
    return part;
  }
  function describe(shown) {
    const all = answer.boxes.length, limit = percent(least);
    if (!all) return "The network finds no boxes.";
    if (!shown) return `None of ${plural(all, "box", "boxes")} has a score of ${limit}: the best one has ` +
      `${percent(answer.boxes[0].score)}.`;
    return `Boxes shown: ${count(shown)} of ${count(all)}.`;
  }
  function draw() {
    const good = ({ score }) => score >= least;
    const shown = answer.boxes.filter(good), { before, lost } = matchBoxes(shown, plain?.boxes ?? []);
    parts = [...shown.map((box, i) => makePart(box, before[i], false)),
      ...lost.filter(good).map((box) => makePart(box, undefined, true))];
    if (!parts.some(({ box }) => box === chosen)) chosen = null;
    const area = ({ box: { bbox: [, , width, height] } }) => width * height;
    frames.replaceChildren(...[...parts].sort((a, b) => area(b) - area(a)).map(({ frame }) => frame));
    list.replaceChildren(...parts.map(({ row }) => element("li", {}, row)));
    scores.hidden = !parts.length;
    words.textContent = describe(shown.length);
    notes.textContent = plain ? "The marks show the scores without changes. Dashed frames are boxes that only the " +
      "unchanged network finds." : "";
    output.textContent = percent(least);
    mark(null);
    placeNames(parts.map(({ frame }) => frame));
  }
  function show(nextPhoto, nextAnswer, nextPlain) {
    [photo, answer, plain, chosen] = [nextPhoto, nextAnswer, nextPlain, null];
    drawPhoto(view, { maps: { image: photo.image }, pixels: photo.pixels }, 0);
    draw();
  }
  function pixelOf(event) {
    const box = frames.getBoundingClientRect(), { w, h } = photo.image;
    return { row: cellAt((event.clientY - box.top) / box.height, h),
      column: cellAt((event.clientX - box.left) / box.width, w) };
  }
  frames.addEventListener("pointermove", (event) => hover(pixelOf(event)));
  frames.addEventListener("pointerleave", () => hover(null));
  frames.addEventListener("click", (event) => keep(pixelOf(event)));
  new ResizeObserver(() => placeNames(parts.map(({ frame }) => frame))).observe(frames);
  const slider = element("input", { type: "range", min: 0, max: 100, value: 100 * least,
    "aria-label": "Lowest score that is shown, per cent",
    oninput: () => {
      least = slider.value / 100;
      draw();
    },
    onchange: () => choose(least) });
  const panel = element("div", { class: "boxes" }, element("h3", {}, "Boxes"),
    element("div", { class: "view" }, view, frames),
    element("label", { class: "slider" }, "Score at least", slider, output), words);
  const scores = element("div", { class: "box-scores" }, element("h3", {}, "Scores of the boxes"), list, notes);
  return { panel, scores, show };
}
