// The numbers of a fit: the line, the proof, the KKT table. The rows stay; only their text changes.

import { digits, html } from "./svg.js";

const FACTS = [
  ["w1", "w₁", "weight of x₁"], ["w2", "w₂", "weight of x₂"], ["b", "b", "bias"], ["width", "width 2/‖w‖", "distance between the dashed lines"],
  ["primal", "primal P", "what is minimised: ½‖w‖² + C Σ loss"], ["dual", "dual D", "a proved lower bound on it"], ["gap", "gap P − D", "how far from the best it can be at most"],
  ["slack", "total ξ", "sum of all slacks"],
];
const COUNTS = [["support", "support vectors", "points with α > 0"], ["inside", "inside the band", "0 < ξ ≤ 1"], ["misclassified", "wrong side", "ξ > 1"]];

export class Numbers {
  constructor(root, verdict, soften) {
    Object.assign(this, { verdict, soften, cells: {} });
    const cell = (key) => (this.cells[key] = html("output", { "data-key": key }));
    const facts = html("dl", { class: "facts" }, ...FACTS.map(([key, name, hint]) => html("div", { title: hint, id: `fact-${key}` }, html("dt", {}, name), html("dd", {}, cell(key)))));
    const counts = html("dl", { class: "facts counts" }, ...COUNTS.map(([key, name, hint]) => html("div", { title: hint }, html("dt", {}, name), html("dd", {}, cell(key)))));
    this.kkt = [0, 1, 2].map((k) => ["name", "demand", "count", "worst"].map((column) => html("td", { "data-kkt": `${k}-${column}` })));
    this.table = html("table", {}, html("caption", {}, "KKT conditions: what each α demands of its margin m"),
      html("thead", {}, html("tr", {}, ...["points with", "demand", "how many", "worst miss"].map((name) => html("th", { scope: "col" }, name)))),
      html("tbody", {}, ...this.kkt.map((cells) => html("tr", {}, ...cells))));
    this.foot = html("p", { class: "foot" });
    root.append(facts, counts, this.table, this.foot);
  }

  show(fit, { model, points, certified }) {
    const has = fit && fit.w;
    const values = has ? { w1: fit.w[0], w2: fit.w[1], b: fit.b, width: fit.width ?? Infinity, primal: fit.primal, dual: fit.dual,
      gap: certified ? (fit.gap ?? Infinity) : undefined, slack: fit.slack,
      support: fit.support?.length, inside: fit.xi.filter((xi) => xi > 1e-9 && xi <= 1).length, misclassified: fit.misclassified } : {};
    for (const [key, cell] of Object.entries(this.cells)) {
      const value = values[key];
      const whole = COUNTS.some(([name]) => name === key);
      cell.textContent = value === undefined ? "–" : value === null ? "∞" : whole ? String(value) : key === "gap" ? digits(value, 2) : digits(value);
      cell.dataset.value = value ?? "";
    }
    this.table.classList.toggle("off", !fit?.kkt);
    this.kkt.forEach((cells, k) => {
      const row = fit?.kkt?.[k];
      const names = ["α = 0", "0 < α < C", "α = C"];
      [row?.name.replace("c", "C") ?? names[k], row?.demand ?? "–", row ? String(row.count) : "–", row ? (row.count ? digits(row.worst, 2) : "–") : "–"].forEach((text, j) => { cells[j].textContent = text; });
    });
    this.foot.textContent = has ? `${digits(fit.milliseconds, 2)} ms · ${fit.iterations} ${fit.iterations === 1 ? "iteration" : "iterations"}${fit.changes === undefined ? "" : ` · ${fit.changes} changes of the line`}` : "";
    this.tell(fit, model, points);
  }

  /** One sentence on top: the state of things. */
  tell(fit, model, points) {
    const [kind, text] = sentence(fit, model, points);
    const key = kind + text;
    if (this.said === key) return;
    this.said = key;
    this.verdict.className = kind;
    this.verdict.replaceChildren(html("p", {}, text));
    if (fit?.inseparable) this.verdict.append(html("button", { type: "button", onclick: this.soften }, "Use the soft margin instead"));
  }
}

function sentence(fit, model, points) {
  if (!fit) return ["quiet", "Computing…"];
  if (fit.error) return ["bad", fit.error];
  if (fit.waiting) return ["quiet", fit.waiting];
  if (fit.inseparable) return ["bad", why(fit.inseparable)];
  if (fit.note) return ["warn", fit.note];
  if (fit.kkt) return ["good", fit.relative_gap !== null && fit.relative_gap < 1e-6 ? "Optimal, and proved: primal and dual meet." : "Solved as far as this method gets."];
  return ["good", "It found a line without mistakes. Others exist: which one comes out depends on the order of the points."];
}

function why({ negative, positive }) {
  if (!negative.length) return "No line through the origin separates these classes: turn every orange point around the origin (crosses), and a weighted mean of the points is the origin itself (star). Switch the bias on, or use a soft margin.";
  const list = (ids) => (ids.length === 1 ? "one point" : `${ids.length} points`);
  return `No line separates these classes. The star is the proof: it is a weighted mean of ${list(positive)} of the blue class and of ${list(negative)} of the orange class, so it lies in both hulls. A separating line would need it on both sides.`;
}
