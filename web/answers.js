"use strict";
/* What a network answers, in words and bars: classes of an image, scores of a pixel. */

function nameOfClass({ class: id, label }) {
  return label ? label.replace(/^n\d{8} /, "") : `class ${id}`;
}
/* A class with its probability: name, bar and number. before: the probability without changes of the network. */
function barParts({ class: id, label, probability }, before, colour = "") {
  const name = nameOfClass({ class: id, label });
  const fill = element("span", { class: "bar-fill" }), track = element("span", { class: "bar-track" }, fill);
  fill.style.width = `${100 * probability}%`;
  fill.style.background = colour;
  if (before !== undefined) {
    const mark = element("span", { class: "bar-before", title: `${percent(before)} without changes` });
    mark.style.left = `${100 * before}%`;
    track.append(mark);
  }
  return [element("span", { class: "bar-name", title: label ?? name }, name), track,
    element("span", { class: "bar-number", "data-value": probability }, percent(probability))];
}
function answerBar(entry, before, colour) {
  return element("li", { "data-class": entry.class }, ...barParts(entry, before, colour));
}
/* What became of the vector that a network without classes answers with. */
function vectorWords({ vector: { name, width, distance }, no_classes: reason }, isChanged) {
  const what = name === "mean" ? "the mean over the text's tokens" : "the input of a classifier or projection";
  return [element("p", { class: "reading" }, `${reason ?? "This network predicts no classes"}. Its answer here is a vector ` +
    `of ${count(width)} numbers, ${what}.`), isChanged ? element("p", { class: "vector", "data-distance": distance }, "Cosine distance to " +
    "the vector of the unchanged network: ", element("b", {}, number(distance, 3)), " (0: the same direction).") : null]
    .filter(Boolean);
}
function answerList(answer, plain) {
  if (answer.classes || answer.boxes) return [];
  if (answer.vector) return vectorWords(answer, plain !== null);
  const before = plain ? softmax(plain.logits) : null;
  const lost = plain && !answer.top.some((entry) => entry.class === plain.top[0].class) ? plain.top[0] : null;
  const after = lost && softmax(answer.logits);
  return [element("ol", { class: "bars" }, ...answer.top.map((entry) => answerBar(entry, before?.[entry.class])),
    lost ? answerBar({ ...lost, probability: after[lost.class] }, before[lost.class]) : null),
  plain ? element("figcaption", {}, "The marks show the probabilities without changes.") : null].filter(Boolean);
}

/* The classes with the largest logits at a pixel: the softmax of all logits, and the logits themselves. classes:
   {label, colour} of each class; before: the logits of the network without changes; null: there are none. */
const MOST_SCORES = 5;
function scoreList(classes, logits, before) {
  const scores = softmax(logits), plain = before && softmax(before);
  const order = d3.range(logits.length).sort((a, b) => logits[b] - logits[a] || a - b);
  return element("ol", { class: "bars" }, ...order.slice(0, MOST_SCORES).map((id) => {
    const item = answerBar({ class: id, label: classes[id].label, probability: scores[id] }, plain?.[id],
      classes[id].colour);
    item.append(element("span", { class: "bar-number logit", "data-value": logits[id] },
      `logit ${number(logits[id], 3)}`));
    return item;
  }));
}
