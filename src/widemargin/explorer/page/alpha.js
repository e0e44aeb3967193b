// Hildreth's algorithm in the plane of two dual variables: one coordinate at a time, up the hill, never below 0.

import { Plane, roundUp } from "./plane.js";
import { Player } from "./player.js";
import { digits, html, make } from "./svg.js";

const EXAMPLE = { Q: [[4, 1], [1, 2]], b: [-6, -4], upper: null };
const ORDERS = { cyclic: "1, 2, 1, 2, …", greedy: "the one that gains most", random: "random permutations" };

export class AlphaPlane {
  constructor(root, store, redraw, startWithTwo) {
    Object.assign(this, { store, redraw, answer: null, t: 0, source: "points" });
    const radio = (value, text) => {
      const onchange = () => { this.source = value; store.change({}); this.line.ask(); };
      const input = html("input", { type: "radio", name: "source", value, checked: value === this.source, onchange });
      return html("label", { class: "check" }, input, ` ${text}`);
    };
    const orders = Object.entries(ORDERS).map(([name, title]) => html("option", { value: name }, title));
    this.order = html("select", { id: "order", onchange: () => this.line.ask() }, ...orders);
    this.hint = html("p", { class: "hint", id: "alpha-hint" });
    const two = { type: "button", id: "two", title: "Start from a board with two points", onclick: startWithTwo };
    root.append(html("div", { class: "settings more" },
      radio("points", "points 1 and 2"), radio("notes", "the notes' example"), html("button", two, "Two points")));
    this.player = new Player(root, "alpha", (t) => { this.t = t; this.show(); redraw(); });
    const more = html("div", { class: "settings more" }, html("label", { class: "field" }, "Order ", this.order));
    more.append(root.querySelector(".speed"));
    root.append(more);
    this.player.speed.value = 0;
    this.player.speed.dispatchEvent(new Event("input"));
    this.svg = make("svg", { class: "plane first large", role: "img", "aria-label": "Plane of two dual variables" });
    this.plane = new Plane(this.svg, ["α₁", "α₂"]);
    this.readout = html("p", { class: "formula", id: "alpha-readout" });
    const caption = html("figcaption", {}, "Contours of the dual; shaded: where α may be; cross: the maximum");
    root.append(this.hint, html("figure", { class: "alone" }, this.svg, caption), this.readout);
  }

  problem() {
    if (this.source === "notes") return EXAMPLE;
    const [p, q] = this.store.points;
    if (!q) return null;
    const inner = (a, c) => a.s * c.s * (a.x * c.x + a.y * c.y);
    const Q = [[inner(p, p), inner(p, q)], [inner(p, q), inner(q, q)]];
    return { Q, b: [-1, -1], upper: this.store.model === "hard" ? null : this.store.C };
  }

  request() {
    const problem = this.problem();
    return problem && { ...problem, order: this.order.value, steps: 40, seed: 0 };
  }

  missing() {
    this.answer = null;
    this.hint.textContent = "Put two points on the board, or look at the notes' example.";
    this.player.load(0);
  }

  receive(answer, asked) {
    this.asked = asked;
    this.answer = answer.alpha ? answer : null;
    this.hint.classList.toggle("bad", Boolean(answer.error));
    this.hint.textContent = answer.error ?? this.words(asked);
    if (this.answer) {
      const top = Math.max(0.01, ...this.answer.alpha.flat()), reach = roundUp(1.35 * top);
      this.plane.view({ cx: 0.42 * reach, cy: 0.42 * reach, span: 1.16 * reach });
      const { Q, b } = asked;
      this.plane.survey((u, v) => (Q[0][0] * u * u + 2 * Q[0][1] * u * v + Q[1][1] * v * v) / 2 + b[0] * u + b[1] * v);
    }
    this.player.load(this.answer ? this.answer.alpha.length : 0);
  }

  words({ upper }) {
    if (this.source === "notes") {
      return "Maximise −½αᵀQα − αᵀb over α ≥ 0 with Q = [[4, 1], [1, 2]] and b = (−6, −4): the answer is (8/7, 10/7).";
    }
    return "Hildreth's algorithm: the best α₁ while α₂ stays, then the best α₂. It maximises α₁ + α₂ − ½‖α₁y₁x₁ + α₂y₂x₂‖² "
      + `over 0 ≤ α${upper === null ? "" : " ≤ C"}; its line has no bias.`;
  }

  show() {
    if (!this.answer || !this.svg.getBoundingClientRect().width) return;
    const { alpha, objective, i } = this.answer;
    const far = Math.min(this.asked.upper ?? Infinity, 4 * this.plane.seen.span);
    this.plane.draw([[0, 0], ...alpha], this.t, alpha.at(-1), [[0, 0], [far, 0], [far, far], [0, far]]);
    const now = this.t ? alpha[this.t - 1] : [0, 0];
    const moved = this.t ? `, α${i[this.t - 1] ? "₂" : "₁"} moved` : "", dual = this.t ? objective[this.t - 1] : 0;
    const values = `α₁ = ${digits(now[0])}   α₂ = ${digits(now[1])}   dual = ${digits(dual)}`;
    this.readout.textContent = `step ${this.t}${moved}:  ${values}`;
    this.readout.dataset.value = JSON.stringify(now);
  }

  scene() {
    const [p, q] = this.store.points;
    if (this.source === "notes" || !q) return {};
    const tags = new Map([[p.id, "1"], [q.id, "2"]]);
    if (!this.answer || !this.t) return { tags };
    const [a, c] = this.answer.alpha[this.t - 1];
    const line = { w: [a * p.s * p.x + c * q.s * q.x, a * p.s * p.y + c * q.s * q.y], b: 0 };
    return { line, band: true, tags, lit: [this.answer.i[this.t - 1]] };
  }
}
