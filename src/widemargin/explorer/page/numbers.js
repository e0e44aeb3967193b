// The numbers of a fit: the line, the proof, the KKT table. The rows stay; only their text changes.

import { digits, html, say } from "./svg.js";

/** The largest relative gap at which primal and dual are said to meet. */
const MEET = 1e-6;
const STALE = ["warn", "Not computed: the server does not answer.", ""];

const FACTS = [
  ["w1", "w₁", "weight of x₁"],
  ["w2", "w₂", "weight of x₂"],
  ["norm", "‖w‖", "length of w in the kernel's feature space"],
  ["gamma", "γ", "the kernel's γ; “scale” is 1 / (2 · variance of all coordinates)"],
  ["b", "b", "bias"],
  ["width", "width 2/‖w‖", "distance between the dashed lines; with a kernel, in its feature space"],
  ["primal", "primal P", "what is minimised: ½‖w‖² + C Σ loss"],
  ["dual", "dual D", "a proved lower bound on it"],
  ["gap", "gap P − D", "how far from the best it can be at most"],
  ["slack", "total ξ", "sum of all slacks"],
];
/** What only a line has, and what only a kernel has in its place. */
const LINEAR = ["w1", "w2"], CURVED = ["norm", "gamma"];
const COUNTS = [
  ["support", "support vectors", "points with α ≠ 0"],
  ["inside", "inside the band", "0 < ξ ≤ 1"],
  ["misclassified", "wrong side", "ξ > 1"],
];

export class Numbers {
  constructor(root, verdict, why, { soften, bend }) {
    Object.assign(this, { verdict, why, soften, bend, cells: {}, fit: null, stale: false });
    const cell = (key) => (this.cells[key] = html("output", { "data-key": key, "aria-live": "off" }));
    const fact = ([key, name, hint]) => html("div", { title: hint }, html("dt", {}, name), html("dd", {}, cell(key)));
    const facts = html("dl", { class: "facts" }, ...FACTS.map(fact));
    const counts = html("dl", { class: "facts counts" }, ...COUNTS.map(fact));
    const columns = ["name", "demand", "count", "worst"];
    this.kkt = [0, 1, 2].map((k) => columns.map((column) => html("td", { "data-kkt": `${k}-${column}` })));
    const heads = ["points with", "demand", "how many", "worst miss"].map((name) => html("th", { scope: "col" }, name));
    this.table = html("table", {}, html("caption", {}, "KKT conditions: what each α demands of its margin m"),
      html("thead", {}, html("tr", {}, ...heads)),
      html("tbody", {}, ...this.kkt.map((cells) => html("tr", {}, ...cells))));
    this.foot = html("p", { class: "foot" });
    root.append(facts, counts, this.table, this.foot);
  }

  show(fit, { certified, kernelised }) {
    const has = fit && (fit.w || fit.kernel);
    const values = has ? {
      ...fit, w1: fit.w?.[0], w2: fit.w?.[1], gamma: fit.kernel?.gamma, width: fit.width ?? Infinity,
      gap: certified ? (fit.gap ?? Infinity) : undefined, support: fit.support?.length,
    } : {};
    for (const [key, cell] of Object.entries(this.cells)) {
      const value = values[key];
      const whole = COUNTS.some(([name]) => name === key);
      say(cell, value === undefined ? "–" : value === null ? "∞" : whole ? String(value) : digits(value, key === "gap" ? 2 : 4));
      cell.dataset.value = value ?? "";
    }
    for (const key of LINEAR) this.cells[key].closest("div").hidden = kernelised;
    for (const key of CURVED) this.cells[key].closest("div").hidden = !kernelised;
    this.table.classList.toggle("off", !fit?.kkt);
    this.kkt.forEach((cells, k) => {
      const row = fit?.kkt?.[k];
      const name = row?.name ?? ["α = 0", "0 < α < c", "α = c"][k];
      const rest = row ? [row.demand.replace("c", "C"), String(row.count), row.count ? digits(row.worst, 2) : "–"] : ["–", "–", "–"];
      [name.replace("c", "C"), ...rest].forEach((text, j) => say(cells[j], text));
    });
    say(this.foot, has ? effort(fit) : "");
    this.fit = fit;
    this.tell();
  }

  /** Whether these are the numbers of points that have changed since. */
  age(stale) {
    if (this.stale === stale) return;
    this.stale = stale;
    this.tell();
  }

  /** One line on top, always in its place: the state of things. Longer words stand at the foot. */
  tell() {
    const [kind, text, more] = this.stale ? STALE : sentence(this.fit);
    const key = kind + text + more;
    if (this.said === key) return;
    this.said = key;
    this.verdict.className = kind;
    this.verdict.textContent = text;
    const button = (act, words) => html("button", { type: "button", class: "inline", onclick: act }, words);
    const ways = this.fit?.inseparable ? [button(this.soften, "Use the soft margin")] : [];
    if (this.fit?.inseparable || isCrooked(this.fit)) ways.push(button(this.bend, "Bend the line with a kernel"));
    this.why.replaceChildren(...(more ? [html("p", {}, more, ...ways)] : []));
  }
}

/** Whether so many points are on the wrong side of the best line that one may wish for a curve. */
const isCrooked = (fit) => Boolean(fit?.w && fit.kkt && !fit.note && fit.misclassified > 0.1 * fit.margins.length);
const CROOKED = "More than a tenth of the points is on the wrong side: no line follows the shape of these classes.";

function effort({ milliseconds, iterations, changes }) {
  const parts = [`${digits(milliseconds, 3)} ms`, `${iterations} ${iterations === 1 ? "iteration" : "iterations"}`];
  if (changes !== undefined) parts.push(`${changes} changes of the line`);
  return parts.join(" · ");
}

function sentence(fit) {
  if (!fit) return ["quiet", "Computing…", ""];
  if (fit.error) return ["bad", fit.error, ""];
  if (fit.waiting) return ["quiet", fit.waiting, fit.more];
  if (fit.inseparable) return ["bad", "Impossible: no line separates these classes.", proofInWords(fit.inseparable)];
  if (fit.note) return ["warn", fit.note, fit.more ?? ""];
  if (fit.kkt && fit.tol > MEET) {
    const near = fit.tol.toExponential(0).replace("-", "−");
    return ["good", `Within ${near} of the optimum, and proved.`, "A rough method stops there: the gap is at most this share of the dual."];
  }
  if (fit.kkt) return ["good", "Optimal, and proved: primal and dual meet.", isCrooked(fit) ? CROOKED : ""];
  const more = "Others would do as well. Which one comes out depends on the order of the points.";
  return ["good", "Found: a line without mistakes.", more];
}

function proofInWords({ negative, positive }) {
  if (!negative.length) {
    return "Without a bias the line passes through the origin. Turn the orange points around it (crosses): a weighted mean of some "
      + "points is then the origin itself (star), which is on no side of any line.";
  }
  const list = (ids) => (ids.length === 1 ? "one" : ids.length);
  return `The star is the proof: it is a weighted mean of ${list(positive)} blue and of ${list(negative)} orange points, `
    + "so it lies in both hulls. A separating line would have it on both sides.";
}
