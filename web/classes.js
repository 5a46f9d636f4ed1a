"use strict";
/* Class maps: the class of each pixel of an image, painted over the image, with a legend. */

const NO_CLASS = 65535; /* the network did not see the pixel */

/* The classes of a map with their pixels, [{id, pixels}], the most frequent first. */
function areasOf(map) {
  const pixels = new Map();
  for (const id of map) if (id !== NO_CLASS) pixels.set(id, (pixels.get(id) ?? 0) + 1);
  return [...pixels].map(([id, count]) => ({ id, pixels: count }))
    .sort((a, b) => b.pixels - a.pixels || a.id - b.id);
}

/* Draws an image and half of the colour of each pixel's class. chosen: the only class that is painted; the rest of the
   image becomes grey. null: all classes. colours: red, green and blue of each class, one after the other. */
function drawClasses(canvas, { image: { h, w, c }, pixels }, map, colours, chosen) {
  const data = new ImageData(w, h);
  canvas.width = w;
  canvas.height = h;
  for (const [p, id] of map.entries()) {
    const photo = (channel) => pixels[p * c + (c === 3 ? channel : 0)], leftOut = chosen !== null && id !== chosen;
    for (let channel = 0; channel < 3; channel++)
      data.data[4 * p + channel] = leftOut ? (photo(0) + photo(1) + photo(2)) / 3
        : id === NO_CLASS ? photo(channel) : (photo(channel) + colours[3 * id + channel] + 1) >> 1;
    data.data[4 * p + 3] = 255;
  }
  canvas.getContext("2d").putImageData(data, 0, 0);
}

/* Makes a view of class maps. classes: {label, colour} of each class, of which the labels are untrusted; label: null if
   it has no name. hover({row, column}) is called when the pointer is at a pixel, hover(null) when it leaves the image,
   and keep({row, column}) after a click. Returns {panel, show}; show({image: {h, w, c}, pixels}, map) shows another
   image. */
function classView(classes, { hover = () => {}, keep = () => {} } = {}) {
  const view = element("canvas", { class: "class-map", role: "img",
    "aria-label": "The image overlaid with the class of each pixel. The legend has the same as text." });
  const words = element("p", { class: "readout", "aria-live": "polite" });
  const legend = element("ul", { class: "legend" });
  const colours = Uint8Array.from(classes.flatMap(({ colour }) => {
    const { r, g, b } = d3.rgb(colour);
    return [r, g, b];
  }));
  let photo = null, map = null, areas = [], chosen = null;
  const nameOf = (id) => classes[id]?.label ?? `class ${id}`;
  const shareOf = (id) => percent((areas.find((area) => area.id === id)?.pixels ?? 0) / map.length);

  /* place: a pixel, or null. */
  function describe(place) {
    const id = place === null ? chosen : map[place];
    if (id === null) {
      words.replaceChildren("Click a pixel to see its class.");
      return;
    }
    const { w } = photo.image;
    const where = place === null ? "" : ` · row ${Math.floor(place / w) + 1}, column ${(place % w) + 1}`;
    words.replaceChildren(...(id === NO_CLASS ? ["No class: the network did not see this pixel."]
      : [element("b", {}, nameOf(id)), ` (class ${id}), ${shareOf(id)} of the image${where}.`]));
  }
  function draw() {
    drawClasses(view, photo, map, colours, chosen);
    view.dataset.chosen = chosen ?? "";
    for (const item of legend.querySelectorAll("button"))
      item.setAttribute("aria-pressed", String(Number(item.dataset.class) === chosen));
  }
  function choose(id, place = null) {
    chosen = id;
    draw();
    describe(place);
  }
  function pixelOf(event) {
    const box = view.getBoundingClientRect(), { w, h } = photo.image;
    return { row: cellAt((event.clientY - box.top) / box.height, h),
      column: cellAt((event.clientX - box.left) / box.width, w) };
  }
  const numberOf = ({ row, column }) => row * photo.image.w + column;
  view.addEventListener("pointermove", (event) => {
    const pixel = pixelOf(event);
    describe(numberOf(pixel));
    hover(pixel);
  });
  view.addEventListener("pointerleave", () => {
    describe(null);
    hover(null);
  });
  view.addEventListener("click", (event) => {
    const pixel = pixelOf(event), place = numberOf(pixel), id = map[place];
    choose(id === NO_CLASS || id === chosen ? null : id, place);
    keep(pixel);
  });
  function item({ id }) {
    const swatch = element("span", { class: "swatch" });
    swatch.style.background = classes[id]?.colour ?? "";
    return element("li", {}, element("button", { type: "button", class: "quiet", "aria-pressed": "false",
      "data-class": id, onclick: () => choose(id === chosen ? null : id) }, swatch, nameOf(id),
    element("span", { class: "bar-number" }, shareOf(id))));
  }
  function show(nextPhoto, nextMap) {
    photo = nextPhoto;
    map = nextMap;
    areas = areasOf(map);
    legend.replaceChildren(...areas.map(item));
    choose(areas.some(({ id }) => id === chosen) ? chosen : null);
  }
  const panel = element("div", { class: "classes" }, element("h3", {}, "Class of each pixel"),
    element("div", { class: "view" }, view), words, legend);
  return { panel, show };
}
