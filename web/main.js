"use strict";
/* Builds the page from its sections. */

function title() {
  return report.title ?? report.sweep.name ??
    (runs.length === 1 ? runs[0].name : runs.length < 4 ? runs.map((run) => run.name).join(" · ")
    : `${runs.length} runs`);
}

function subtitle() {
  if (report.ode) return `${plural(report.ode.size, "equation")} · ${plural(runs.length, "method")}`;
  const models = [...new Set(runs.map((run) => run.facts.model).filter(Boolean))];
  const seeds = [...new Set(runs.map(seedTextOf).filter((seed) => seed !== undefined))];
  const seedWords = seeds.length ? `seed${seeds.length > 1 || runs.some((run) => networksOf(run) > 1) ? "s" : ""} ${seeds.join(", ")}` : "";
  return [plural(runs.length, "run"), models.join(", "), seedWords].filter(Boolean).join(" · ");
}

/* Makes one chip per run. If there are several settings, groups the chips by setting and labels them by seed. */
function legend() {
  if (runs.length === 1) return [];
  if (!bySetting) return runs.map((run) => legendChip(run));
  return [...groupsOf(runs).map(({ name, group }) => element("div", { class: "setting" },
    group[0].setting === null ? null : element("span", { class: "setting-name" }, name),
    ...group.map((run) => legendChip(run, run.setting === null ? run.name : `seed ${seedTextOf(run) ?? "–"}`)))),
  element("span", { class: "reading" }, "Colour shows the setting; marker and dashes show the seed.")];
}

/* Keeps the targets of links below the sticky bar. */
function watchBar() {
  const bar = document.querySelector(".bar"), root = document.documentElement;
  const set = () => { root.style.scrollPaddingTop = `${bar.offsetHeight + 8}px`; };
  addEventListener("resize", set);
  set();
}

function sections() {
  if (report.ode) return [odeSection()];
  return [
    overviewSection(),
    hasViews() ? viewsSection() : null,
    settingGroups().length ? settingsSection() : null,
    differencesOf().length ? differenceSection() : null,
    runs.some((run) => run.maps) ? mapSection() : null,
    runsWithContours().length ? contourSection() : null,
    runs.some((run) => run.steps.step.length || run.epochs.length) ? trainingSection() : null,
    ...networkInstruments().filter((name) => infoOf(name).score).map(networkSection),
    ...depthSpecs().map(depthSection),
    hasPaths() ? pathsSection() : null,
    hasInstrument(CHAINS) ? chainsSection() : null,
    hasInstrument(SURFACES) ? surfacesSection() : null,
    hasInstrument("path_accuracy") ? accuracySection() : null,
    hasInstrument("circle") ? circleSection() : null,
    ...networkInstruments().filter((name) => !infoOf(name).score).map(networkSection),
    ...sampledInstruments().map(trajectorySection),
    hasSamples() ? histogramSection() : null,
    ...referenceInstruments().map(referenceSection),
    correlationsOf().length ? correlationSection() : null,
    offeredDevelopments(runs).length ? developmentSection() : null,
    runsWithPaths().length ? pathSection() : null,
  ].filter(Boolean);
}

(() => {
  document.title = `${title()} – attscope`;
  document.getElementById("title").textContent = title();
  document.getElementById("subtitle").textContent = subtitle();
  document.getElementById("legend").append(...legend());
  const parts = sections();
  document.getElementById("sections").replaceChildren(...parts);
  document.getElementById("contents").append(...parts.map((part) =>
    element("a", { href: `#${part.id}` }, part.querySelector("h2").textContent)));
  document.getElementById("made").textContent = `attscope ${report.attscope}.` + (report.ode ? ""
    : ` Mean ± standard deviation (n − 1) over n ${EXPERIMENTS.some(hasInstrument) ? "samples" : "images"}, ` +
      "unless stated otherwise.");
  const served = runs.filter((run) => run.served).map((run) => run.served);
  if (served.length)
    showPages("report", element("a", { href: runsAddress("live", served) },
      served.length > 1 ? "Charts of these runs" : "Charts of this run"));
  watchBar();
  fragment.show();
  document.documentElement.dataset.ready = "true";
})();
