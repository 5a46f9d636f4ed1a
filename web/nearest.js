"use strict";
/* The most similar of the server's images: a block of the page "Explore". The engine compares features, a few images in
   each answer. */

const MOST_NEAREST = 12;

/* side: the values in the URL, of which `near` belongs to this block. changed(): after a choice. choose(id): shows an
   image. Returns {panel, show(image)}; without an image the block is hidden. */
function nearestView(side, changed, choose) {
  const list = roving(element("ul", { class: "nearest" })), words = element("p", { class: "reading", role: "status" });
  const problem = element("p", { class: "note problem", role: "alert", hidden: true });
  const details = element("details", {}, element("summary", {}, "Nearest images"), words, problem, list);
  const panel = element("div", { class: "nearest-view", hidden: true }, details);
  let shown = "";

  const view = () => ({ model: side.model, image: shown });
  const isOf = (asked) => details.open && asked.model === side.model && asked.image === shown;
  function item({ id, name, similarity }) {
    return element("li", { "data-image": id, "data-value": similarity }, element("button", { type: "button",
      title: name, "aria-label": `Show ${name}, similarity ${similarity.toFixed(2)}`, onclick: () => choose(id) },
    element("img", { src: `api/thumbnail?image=${encodeURIComponent(id)}`, alt: "", width: 72, height: 72,
      loading: "lazy" })), element("span", { class: "reading" }, similarity.toFixed(2)));
  }
  function draw({ total, count: all, images, nearest }) {
    const which = total < all ? `${count(total)} of ${plural(all, "image")}, evenly spaced` : plural(all, "image");
    words.textContent = images < total ? `Comparing: ${count(images)} of ${count(total)} images so far …`
      : `Cosine similarity of the network's features, without changes of the network, among ${which}.`;
    list.replaceChildren(...nearest.map(item));
    list.dataset.images = images;
    list.dataset.of = shown;
  }
  const compare = latest(async () => {
    const asked = view();
    problem.hidden = true;
    list.replaceChildren();
    delete list.dataset.of;
    words.textContent = details.open && shown ? "Comparing …" : "";
    try {
      while (isOf(asked) && shown) {
        const answer = await askJson("nearest", { ...asked, count: MOST_NEAREST });
        if (!isOf(asked)) return;
        draw(answer);
        if (answer.images === answer.total) return;
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      words.textContent = "";
      problem.textContent = error.message;
      problem.hidden = false;
    }
  });
  details.open = side.near === "1";
  details.addEventListener("toggle", () => {
    side.near = details.open ? "1" : "";
    changed();
    compare();
  });
  return { panel, show(image) {
    panel.hidden = !image;
    if (image === shown && list.dataset.of === image) return;
    shown = image;
    compare();
  } };
}
