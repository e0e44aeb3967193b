// Step by step: one or two algorithms on the same points from the same draws.

import { Curves } from "./curves.js";
import { Plane, objective, roundUp } from "./plane.js";
import { Player } from "./player.js";
import { digits, html, make } from "./svg.js";

const ROWS = [["i", "point"], ["w1", "w₁"], ["w2", "w₂"], ["b", "b"], ["objective", "objective"], ["mistakes", "wrong"]];

export class Steps {
  constructor(root, store, algorithms, redraw) {
    Object.assign(this, { store, algorithms, redraw, answer: null, t: 0 });
    const names = Object.entries(algorithms);
    const options = () => names.map(([name, one]) => html("option", { value: name }, one.title));
    this.first = html("select", { id: "first", onchange: () => store.change({ first: this.first.value }) }, ...options());
    const nothing = html("option", { value: "" }, "nothing beside it");
    this.second = html("select", { id: "second", onchange: () => store.change({ second: this.second.value }) }, nothing, ...options());
    const number = (id, low, high) =>
      html("input", { id, type: "number", min: low, max: high, step: 1, onchange: () => store.change({ [id]: whole(this[id], low, high) }) });
    this.seed = number("seed", 0, 2 ** 31);
    this.steps = number("steps", 1, 2000);
    root.append(html("div", { class: "settings pair" },
      html("label", { class: "field" }, html("i", { class: "swatch first" }), unseen("Play"), this.first),
      html("label", { class: "field" }, html("i", { class: "swatch second" }), unseen("Beside it"), this.second)));
    this.player = new Player(root, "steps", (t) => { this.t = t; this.show(); redraw(); });
    const more = html("div", { class: "settings more" },
      html("label", { class: "field", title: "Another seed draws the points in another order" }, "Seed ", this.seed),
      html("label", { class: "field" }, "Steps ", this.steps));
    more.append(root.querySelector(".speed"));
    root.append(more);
    this.hint = html("p", { class: "hint", id: "steps-hint" });
    const cell = (k, key) => html("td", { "data-step": `${k}-${key}` });
    this.cells = [0, 1].map((k) => Object.fromEntries(ROWS.map(([key]) => [key, cell(k, key)])));
    this.heads = [0, 1].map((k) => html("th", { scope: "row", class: k ? "second" : "first" }));
    this.lines = [0, 1].map((k) => html("tr", {}, this.heads[k], ...ROWS.map(([key]) => this.cells[k][key])));
    const heads = ROWS.map(([key, name]) => html("th", { scope: "col", class: key }, name));
    this.table = html("table", { class: "readout" },
      html("thead", {}, html("tr", {}, html("td"), ...heads)), html("tbody", {}, ...this.lines));
    const drawing = (label, look) => make("svg", { class: look, role: "img", "aria-label": label });
    const looks = ["plane first", "plane second"];
    this.planeBoxes = looks.map((look, k) => drawing(`Plane of the weights, algorithm ${k + 1}`, look));
    this.planes = this.planeBoxes.map((svg) => new Plane(svg, ["w₁", "w₂"]));
    this.captions = [0, 1].map(() => html("figcaption"));
    this.figures = [0, 1].map((k) => html("figure", {}, this.planeBoxes[k], this.captions[k]));
    this.curveBox = drawing("Objective over the steps", "curves");
    this.curves = new Curves(this.curveBox);
    this.curveCaption = html("figcaption");
    const curve = html("figure", { class: "curve" }, this.curveBox, this.curveCaption);
    root.append(this.hint, html("div", { class: "planes" }, ...this.figures), curve, this.table);
  }

  get names() {
    const { first, second } = this.store;
    return second && second !== first ? [first, second] : [first];
  }

  /** What to ask the server for. */
  request() {
    const { points, labels, C } = this.store.asked();
    return { points, labels, C, bias: this.store.bias, seed: this.store.seed, steps: this.store.steps, algorithms: this.names };
  }

  sync() {
    if (document.activeElement !== this.seed) this.seed.value = this.store.seed;
    if (document.activeElement !== this.steps) this.steps.value = this.store.steps;
    this.first.value = this.store.first;
    this.second.value = this.store.second;
  }

  receive(answer, points) {
    Object.assign(this, { answer: answer.runs ? answer : null, points });
    this.hint.classList.toggle("bad", Boolean(answer.error));
    this.hint.textContent = answer.error ?? answer.waiting ?? this.words(answer);
    this.figures[1].hidden = !(answer.runs?.length > 1);
    for (const figure of this.figures) figure.classList.toggle("alone", !(answer.runs?.length > 1));
    if (this.answer) this.survey();
    this.player.load(this.answer ? Math.max(...this.answer.runs.map((run) => run.w.length)) : 0);
  }

  words(answer) {
    const titles = answer.runs.map((run) => this.algorithms[run.algorithm]);
    const parts = [titles.length > 1 ? "Both take the same points in the same order." : titles[0].hint];
    const habit = (one) => (one.drawn ? "takes the points that are drawn" : one.title === "SMO" ? "chooses its own points" : "takes all points at once");
    if (titles.some((one) => !one.drawn) && titles.length > 1) {
      parts[0] = titles.map((one) => `${one.title} ${habit(one)}`).join("; ") + ".";
    }
    const without = titles.filter((one) => one.bias === "none").map((one) => one.title);
    const always = titles.filter((one) => one.bias === "always");
    if (this.store.bias && without.length) {
      const lines = titles.length > 1 && !always.length ? "all lines pass" : "its line passes";
      parts.push(`${without.join(" and ")} ${without.length > 1 ? "have" : "has"} no bias: ${lines} through the origin.`);
    }
    if (always.length && (without.length || !this.store.bias)) parts.push(`${always[0].title} always has a bias.`);
    return parts.join(" ");
  }

  /** The scale of the planes, and their contours. */
  survey() {
    this.rough = Boolean(this.store.gesture);
    const views = this.answer.runs.map(viewOfPath);
    const same = JSON.stringify(this.answer.runs[0].lowers) === JSON.stringify(this.answer.runs.at(-1).lowers);
    this.answer.runs.forEach((run, k) => {
      this.planes[k].view(same ? views.reduce((a, c) => (a.span >= c.span ? a : c)) : views[k]);
      if (!this.planeBoxes[k].getBoundingClientRect().width) return;
      this.planes[k].survey(objective(run.lowers, this.points), this.rough);
      const { loss, penalised, bias } = run.lowers;
      const name = penalised ? loss : `${loss} loss`;
      this.captions[k].textContent = `Path over ${penalised ? "½‖w‖² + C Σ " : ""}${name}${bias ? ", best b" : ""}`;
    });
  }

  show() {
    const runs = this.answer?.runs ?? [];
    const single = runs.length < 2;
    this.lines[1].hidden = single;
    [0, 1].forEach((k) => {
      const run = runs[k], t = Math.min(this.t, run?.w.length ?? 0);
      this.heads[k].textContent = run ? this.algorithms[run.algorithm].title : "";
      const state = run && t > 0 ? stateAt(run, t - 1) : {};
      for (const [key, cell] of Object.entries(this.cells[k])) {
        const value = state[key];
        const isText = typeof value === "string" || key === "mistakes";
        cell.textContent = value === undefined ? (run ? "–" : "") : isText ? String(value) : digits(value);
        cell.dataset.value = value ?? "";
      }
      if (run && this.planeBoxes[k].getBoundingClientRect().width) this.planes[k].draw([[0, 0], ...run.w], t, run.best?.w ?? null);
    });
    const alike = ({ lowers: one }, { lowers: other }) => one.loss === other.loss && one.penalised === other.penalised;
    const same = runs.every((run) => alike(run, runs[0]));
    this.curveCaption.textContent = same ? "The objective, step by step; dotted, its minimum" : "Points on the wrong side, step by step";
    if (!this.curveBox.getBoundingClientRect().width) return;
    const heights = runs.map((run) => (same ? run.height : run.mistakes));
    const minima = same ? [...new Set(runs.map((run) => run.best?.height ?? null))] : [];
    this.curves.draw(heights, minima, this.t, same && runs[0]?.lowers.loss !== "perceptron");
  }

  /** What the board shows: each run's line, and where the first is heading. */
  scene() {
    const runs = this.answer?.runs ?? [], lines = [], lit = [];
    const stale = this.points && this.points.length !== this.store.points.length;
    if (runs[0]?.best) lines.push({ ...runs[0].best, look: "goal" });
    runs.forEach((run, k) => {
      const t = Math.min(this.t, run.w.length);
      if (!t) return;
      const line = { w: run.w[t - 1], b: run.b[t - 1] }, look = k ? "second" : "first";
      for (const level of [-1, 1]) lines.push({ ...line, level, look: `${look} thin` });
      lines.push({ ...line, look });
      const i = run.i[t - 1];
      if (i !== null && !stale) lit.push(...(Array.isArray(i) ? i : [i]));
    });
    return { others: lines, lit: [...new Set(lit)] };
  }
}

const unseen = (text) => html("span", { class: "unseen" }, text);
const stateAt = ({ i, w, b, height, mistakes }, t) =>
  ({ i: used(i[t]), w1: w[t][0], w2: w[t][1], b: b[t], objective: height[t], mistakes: mistakes[t] });
const used = (i) => (i === null ? "all" : Array.isArray(i) ? i.map((k) => k + 1).join(", ") : String(i + 1));
function whole(input, low, high) {
  const value = Math.max(low, Math.min(high, Math.trunc(Number(input.value) || low)));
  input.value = value;
  return value;
}

/** A view of the weights' plane: the origin, the minimum and most of the path. It changes in steps, not with every move. */
function viewOfPath({ w, best }) {
  const lengths = w.map(([u, v]) => Math.hypot(u, v)).sort((a, c) => a - c);
  const size = best ? Math.hypot(...best.w) : 0, most = lengths[Math.floor(0.85 * (lengths.length - 1))] ?? 1;
  const far = Math.max(1.2 * size, size > 0 ? Math.min(most, 4 * size) : most, 1e-3);
  const near = [[0, 0], ...(best ? [best.w] : []), ...w.filter(([u, v]) => Math.hypot(u, v) <= far)];
  const [low, high] = [Math.min, Math.max].map((edge) => [0, 1].map((axis) => edge(...near.map((p) => p[axis]))));
  const span = roundUp(1.3 * Math.max(high[0] - low[0], high[1] - low[1], 0.5 * far));
  const snap = (value) => Math.round(value / (span / 8)) * (span / 8);
  return { cx: snap((low[0] + high[0]) / 2), cy: snap((low[1] + high[1]) / 2), span };
}
