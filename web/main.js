"use strict";
/* The page, put together. */

function title() {
  return report.title ?? report.sweep.name ?? (runs.length === 1 ? runs[0].name : runs.length < 4 ? runs.map((run) => run.name).join(" · ")
    : `${runs.length} runs`);
}

function subtitle() {
  const models = [...new Set(runs.map((run) => run.facts.model).filter(Boolean))];
  const seeds = [...new Set(runs.map((run) => run.facts.seed).filter((seed) => seed !== undefined))];
  const seedWords = seeds.length ? `seed${seeds.length > 1 ? "s" : ""} ${seeds.join(", ")}` : "";
  return [plural(runs.length, "run"), models.join(", "), seedWords].filter(Boolean).join(" · ");
}

function legendChip(run) {
  const chip = element("button", { type: "button", class: `chip ${classOf(run)}`, "aria-pressed": "true",
    title: "Point: highlight. Click: hide or show." }, emblem(run), run.name);
  chip.addEventListener("pointerenter", () => focusRun(run.index));
  chip.addEventListener("pointerleave", () => focusRun(null));
  chip.addEventListener("focus", () => focusRun(run.index));
  chip.addEventListener("blur", () => focusRun(null));
  chip.addEventListener("click", () => {
    if (!hidden.delete(run.index)) hidden.add(run.index);
    chip.setAttribute("aria-pressed", String(!hidden.has(run.index)));
    applyHidden(document);
    redrawCharts();
  });
  return chip;
}

function sections() {
  return [
    overviewSection(),
    settingGroups().length ? settingsSection() : null,
    runs.some((run) => run.maps) ? mapSection() : null,
    runs.some((run) => run.steps.step.length || run.epochs.length) ? trainingSection() : null,
    hasInstrument("accuracy") ? accuracySection() : null,
    ...depthSpecs().map(depthSection),
    hasInstrument("tns") ? stiffnessSection() : null,
    sampledRuns().length ? trajectorySection() : null,
    correlationsOf().length ? correlationSection() : null,
    runs.some((run) => run.development.series.length) ? developmentSection() : null,
  ].filter(Boolean);
}

(() => {
  document.title = `${title()} – attscope`;
  document.getElementById("title").textContent = title();
  document.getElementById("subtitle").textContent = subtitle();
  if (runs.length > 1) document.getElementById("legend").append(...runs.map(legendChip));
  const parts = sections();
  document.getElementById("sections").replaceChildren(...parts);
  document.getElementById("contents").append(...parts.map((part) =>
    element("a", { href: `#${part.id}` }, part.querySelector("h2").textContent)));
  document.getElementById("made").textContent =
    `attscope ${report.attscope}. Mean ± standard deviation (n − 1) over n images, unless said otherwise.`;
  document.documentElement.dataset.ready = "true";
})();
