// The state of the page: points and settings, their history, and their place in the address.

export const START = {
  model: "soft", solver: "auto", C: 1, bias: true, kernel: "rbf", gamma: "scale", degree: 2, coef0: 1, lifted: true, view: { cx: 0, cy: 0, span: 8 }, points: [],
  tab: "fit", first: "pegasos", second: "dual_cd", seed: 0, steps: 200, preset: "",
};
const KEPT = ["points", "model", "solver", "C", "bias", "kernel", "gamma", "degree", "coef0"];
/** What comes back with them: the preset that the points are. */
const BROUGHT = [...KEPT, "preset"];
const MOST_UNDO = 300;
let nextId = 1;

export const point = (x, y, s) => ({ id: nextId++, x, y, s });
/** Rounded to what can be told apart in a view of this span, and never coarser than to a whole number. */
export const tidy = (value, span) => Number(value.toFixed(Math.max(0, 3 - Math.floor(Math.log10(span)))));
/** The narrowest and the widest view. */
export const SPANS = [1e-6, 4e6];

export class Store {
  constructor() {
    Object.assign(this, structuredClone(START));
    this.version = 0;
    this.listeners = [];
    this.past = [];
    this.future = [];
    this.gesture = null;
  }

  onChange(listener) { this.listeners.push(listener); }

  /** Change something. What can be undone goes on the history, a gesture (a drag) as one entry. A view that changes with the
   * points comes back with them; one that is zoomed alone stays. */
  change(change) {
    const before = this.snapshot([...BROUGHT, "view"]), asked = typeof change === "function" ? change(this) ?? {} : change;
    Object.assign(this, asked);
    if (before.points !== this.points && !asked.preset) this.preset = "";
    if (before.view === this.view) delete before.view;
    const kept = KEPT.some((key) => before[key] !== this[key]);
    if (kept) {
      this.version++;
      this.future = [];
      if (!this.gesture) this.push(before);
      else this.gesture.changed = true;
    }
    this.tell(kept);
  }

  snapshot(keys = BROUGHT) { return Object.fromEntries(keys.map((key) => [key, this[key]])); }
  push(entry) { this.past.push(entry); if (this.past.length > MOST_UNDO) this.past.shift(); }
  begin() { this.gesture = { before: this.snapshot(), changed: false }; }
  end() {
    if (this.gesture?.changed) this.push(this.gesture.before);
    this.gesture = null;
    this.tell(false);
  }

  undo() { this.travel(this.past, this.future); }
  redo() { this.travel(this.future, this.past); }
  travel(from, to) {
    if (!from.length || this.gesture) return;
    const entry = from.pop();
    to.push(this.snapshot(Object.keys(entry)));
    Object.assign(this, entry);
    this.version++;
    this.tell(true);
  }

  tell(kept) { for (const listener of this.listeners) listener(kept); }

  /** The points as a request sends them. */
  asked() {
    const { points, model, solver, C, bias, kernel, gamma, degree, coef0 } = this;
    const settings = model === "kernel" ? { kernel, gamma, degree, coef0 } : { bias }; // a kernel SVM always has a bias
    return { points: points.map((p) => [p.x, p.y]), labels: points.map((p) => p.s), model, solver, C, ...settings };
  }

  toAddress() {
    const { view: v } = this;
    const parts = { m: this.model, s: this.solver, C: this.C, b: this.bias ? 1 : 0,
      k: [this.kernel, this.gamma, this.degree, this.coef0, this.lifted ? 1 : 0].join(","),
      v: [tidy(v.cx, v.span), tidy(v.cy, v.span), Number(v.span.toPrecision(6))].join(","), t: this.tab,
      a: this.second ? `${this.first},${this.second}` : this.first, r: this.seed, n: this.steps,
      p: this.points.map((p) => `${p.x},${p.y}${p.s > 0 ? "a" : "b"}`).join("") };
    return "#" + Object.entries(parts).map(([key, value]) => `${key}=${value}`).join("&");
  }
}

/** The state that an address holds, or null; throws where it holds something else. */
export function fromAddress(hash, choices) {
  if (hash.length < 2) return null;
  const parts = new URLSearchParams(hash.slice(1));
  if (!parts.has("p")) throw new Error("This link holds no points.");
  const wrong = (what) => new Error(`This link is damaged: ${what} cannot be read.`);
  const number = (text, low, high, what) => {
    const value = Number(text);
    if (text === "" || text === null || !(value >= low && value <= high)) throw wrong(what);
    return value;
  };
  const text = parts.get("p"), points = [];
  const pattern = /([-+.\de]+),([-+.\de]+)([ab])/y;
  while (pattern.lastIndex < text.length) {
    const found = pattern.exec(text);
    if (!found) throw wrong(`point ${points.length + 1}`);
    const [x, y] = found.slice(1, 3).map((one) => number(one, -1e6, 1e6, "a point"));
    points.push(point(x, y, found[3] === "a" ? 1 : -1));
  }
  if (points.length > choices.most) throw wrong(`${points.length} points are too many;`);
  const model = parts.get("m") ?? START.model;
  if (!choices.models[model]) throw wrong("the model");
  const solver = parts.get("s") ?? "auto";
  const { kernel: k, gamma: g, degree: d, coef0: r } = START;
  const [kernel, gamma, degree, coef0, lifted] = (parts.get("k") ?? [k, g, d, r, 1].join(",")).split(",");
  if (!Object.hasOwn(choices.kernels, kernel)) throw wrong("the kernel");
  const [cx, cy, span] = (parts.get("v") ?? "0,0,8").split(",");
  const [first, second] = (parts.get("a") ?? "pegasos,dual_cd").split(",");
  if (![first, ...(second ? [second] : [])].every((name) => choices.algorithms[name])) throw wrong("the algorithm");
  const tab = parts.get("t") ?? "fit";
  if (!["fit", "steps", "alpha"].includes(tab)) throw wrong("the panel");
  return {
    points, model, tab, first, second: second ?? "",
    solver: choices.models[model].solvers[solver] ? solver : "auto",
    C: number(parts.get("C") ?? "1", 1e-6, 1e10, "C"),
    bias: parts.get("b") !== "0",
    kernel, gamma: gamma === "scale" ? gamma : number(gamma ?? "", 1e-15, 1e15, "γ"),
    degree: Math.trunc(number(degree ?? "", 1, 9, "the degree")), coef0: number(coef0 ?? "", 0, 1e6, "r"), lifted: lifted !== "0",
    seed: Math.trunc(number(parts.get("r") ?? "0", 0, 2 ** 31, "the seed")),
    steps: Math.trunc(number(parts.get("n") ?? "200", 1, 2000, "the number of steps")),
    view: {
      cx: number(cx, -1e7, 1e7, "the view"), cy: number(cy, -1e7, 1e7, "the view"), span: number(span, ...SPANS, "the view"),
    },
  };
}

/** A view that shows all of these points with room around them. */
export function viewOf(points) {
  if (!points.length) return { ...START.view };
  const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
  const [left, right] = [Math.min(...xs), Math.max(...xs)], [low, high] = [Math.min(...ys), Math.max(...ys)];
  const span = 1.35 * Math.max(right - left, high - low);
  return { cx: (left + right) / 2, cy: (low + high) / 2, span: span > 0 ? Math.max(span, SPANS[0]) : 2 };
}
