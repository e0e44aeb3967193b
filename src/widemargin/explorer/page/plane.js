// A plane of two variables: contours of a function over it, and the path of an algorithm.

import { contours } from "./contours.js";
import { Frame, round, ticks } from "./frame.js";
import { make, pool, set } from "./svg.js";

const GRID = 40, ROUGH_GRID = 20;
const EDGE = 9;
const DOT = "M5.5 0A5.5 5.5 0 1 1-5.5 0A5.5 5.5 0 1 1 5.5 0Z", ARROW = "M9 0-7-7-3 0-7 7Z";
const SHARES = [0.015, 0.05, 0.11, 0.19, 0.29, 0.41, 0.55, 0.7, 0.86];

export class Plane {
  /** `names` are the axes' names. */
  constructor(svg, names) {
    Object.assign(this, { svg, names });
    this.back = make("rect", { class: "back", width: "100%", height: "100%" }, svg);
    this.region = make("polygon", { class: "region", display: "none" }, svg);
    this.contours = make("g", { class: "contours" }, svg);
    this.axes = make("g", { class: "grid" }, svg);
    this.tickLabels = make("g", { class: "ticks" }, svg);
    this.path = make("polyline", { class: "path" }, svg);
    this.dots = make("g", { class: "dots" }, svg);
    this.best = make("path", { class: "best", d: "M-6 0H6M0-6V6", display: "none" }, svg);
    this.now = make("path", { class: "now", display: "none" }, svg);
  }

  view(view) { this.seen = view; }

  get frame() {
    const box = this.svg.getBoundingClientRect();
    const [width, height] = [box.width || 260, box.height || 220];
    set(this.svg, { viewBox: `0 0 ${round(width)} ${round(height)}` });
    return new Frame(width, height, this.seen);
  }

  /** Contours of f over the frame, at set shares of its heights; rough ones while something is dragged. */
  survey(f, rough = false) {
    const frame = this.frame, cell = Math.min(frame.width, frame.height) / (rough ? ROUGH_GRID : GRID);
    const nx = Math.round(frame.width / cell), ny = Math.round(frame.height / cell);
    const value = [];
    for (let j = 0; j <= ny; j++) {
      for (let i = 0; i <= nx; i++) value.push(f(...frame.world((i * frame.width) / nx, (j * frame.height) / ny)));
    }
    const sorted = Float64Array.from(value.filter(Number.isFinite)).sort();
    const levels = sorted.length ? SHARES.map((share) => sorted[Math.floor(share * (sorted.length - 1))]) : [];
    pool(this.contours, "path", levels, (level, k) =>
      ({ d: trace(value, nx, ny, frame, level), "stroke-opacity": round(0.95 - 0.08 * k) }));
  }

  /** Axes, the path up to step t, and the best point. */
  draw(path, t, best, region = null) {
    const frame = this.frame;
    const marks = ticks(frame.left, frame.right, frame.width / 70), up = ticks(frame.bottom, frame.top, frame.height / 60);
    const [x0, y0] = [round(frame.x(0)), round(frame.y(0))];
    const axes = [{ x1: x0, x2: x0, y1: 0, y2: frame.height }, { x1: 0, x2: frame.width, y1: y0, y2: y0 }];
    pool(this.axes, "line", axes, (ends) => ({ ...ends, class: "axis" }));
    const text = (value) => String(value).replace(/-/g, "−");
    const free = (x, y) => !(x > frame.width - 34 && y > frame.height - 30) && !(x < 40 && y < 26);
    const labels = [
      ...marks.map((x) => [frame.x(x), frame.height - 5, text(x), "middle"]).filter(([x]) => x > 30 && x < frame.width - 36),
      ...up.map((y) => [5, frame.y(y) + 4, text(y), "start"]).filter(([, y]) => y > 30 && y < frame.height - 16)];
    const names = [[frame.width - 6, frame.height - 5, this.names[0], "end"], [5, 15, this.names[1], "start"]];
    pool(this.tickLabels, "text", [...labels.filter(([x, y]) => free(x, y)), ...names], ([x, y, t, anchor]) =>
      ({ x: round(x), y: round(y), text: t, "text-anchor": anchor }));
    const shown = path.slice(0, t + 1);
    const at = ([u, v]) => this.within(1e5, frame.x(u), frame.y(v), frame).map(round);
    set(this.path, { points: shown.map((p) => at(p).join(",")).join(" ") });
    pool(this.dots, "circle", shown.length <= 60 ? shown.slice(0, -1) : [], (p) => ({ cx: at(p)[0], cy: at(p)[1], r: 2 }));
    set(this.now, shown.length ? { ...this.mark(shown.at(-1), frame), display: null } : { display: "none" });
    set(this.best, best ? { transform: `translate(${at(best).join(" ")})`, display: null } : { display: "none" });
    const corners = region?.map((p) => at(p).join(",")).join(" ");
    set(this.region, region ? { points: corners, display: null } : { display: "none" });
  }

  /** This place, or where the line to it from the origin comes so far out of the frame. */
  within(out, x, y, frame) {
    const [x0, y0] = [frame.x(0), frame.y(0)];
    const share = (from, way, size) => Math.max(0, (way > 0 ? size + out - from : from + out) / Math.abs(way));
    const least = Math.min(1, share(x0, x - x0, frame.width), share(y0, y - y0, frame.height));
    return [x0 + least * (x - x0), y0 + least * (y - y0)];
  }

  /** Where the path has got to: a dot, or an arrow at the edge towards a place outside. */
  mark([u, v], frame) {
    const [x, y] = [frame.x(u), frame.y(v)], isInside = x >= 0 && x <= frame.width && y >= 0 && y <= frame.height;
    if (isInside) return { d: DOT, transform: `translate(${round(x)} ${round(y)})` };
    const turn = (Math.atan2(y - frame.y(0), x - frame.x(0)) * 180) / Math.PI;
    const place = this.within(-EDGE, x, y, frame).map(round).join(" ");
    return { d: ARROW, transform: `translate(${place}) rotate(${round(turn)})` };
  }
}

/** The curve f = level as a path of the drawing. */
function trace(value, nx, ny, frame, level) {
  const dx = frame.width / nx, dy = frame.height / ny;
  const at = ([x, y]) => `${round(x * dx)} ${round(y * dy)}`;
  return contours(value, nx + 1, level).map((line) => `M${line.map(at).join("L")}`).join("");
}

/** The objective of w at its best bias: ½‖w‖² (or not) + strength Σ loss(y(w·x + b)). */
export function objective({ loss, penalised, strength, bias }, points) {
  const n = points.length, scores = new Float64Array(n), turns = new Float64Array(n);
  const positive = points.filter((p) => p.s > 0).length;
  const mean = (key) => (bias ? points.reduce((sum, p) => sum + p[key], 0) / n : 0); // the best bias makes up for it
  const [cx, cy] = [mean("x"), mean("y")];
  const kink = loss === "perceptron" ? 0 : 1;
  const value = {
    hinge: (m) => Math.max(0, 1 - m),
    perceptron: (m) => Math.max(0, -m),
    squared: (m) => (1 - m) ** 2,
    logistic: (m) => Math.max(0, -m) + Math.log1p(Math.exp(-Math.abs(m))),
  }[loss];
  const bestBias = () => {
    if (loss === "squared") return points.reduce((sum, p, i) => sum + p.s - scores[i], 0) / n;
    if (loss === "logistic") return likeliestBias(points, scores, Math.log(positive / (n - positive)));
    for (let i = 0; i < n; i++) turns[i] = points[i].s * kink - scores[i];
    turns.sort();
    return (turns[positive - 1] + turns[positive]) / 2;
  };
  return (u, v) => {
    for (let i = 0; i < n; i++) scores[i] = u * (points[i].x - cx) + v * (points[i].y - cy);
    const b = bias ? bestBias() : 0;
    let sum = 0;
    for (let i = 0; i < n; i++) sum += value(points[i].s * (scores[i] + b));
    return strength * sum + (penalised ? (u * u + v * v) / 2 : 0);
  };
}

/** The b at which Σ log(1 + exp(−s(score + b))) is least: Newton's method, halving where it would leave the bracket. If all
 * scores were equal, the best b would be `odds` less that score; so it lies between those of the largest and the least. */
function likeliestBias(points, scores, odds) {
  let low = Infinity, high = -Infinity;
  for (const score of scores) { low = Math.min(low, odds - score); high = Math.max(high, odds - score); }
  let b = (low + high) / 2;
  for (let round = 0; round < 60 && high - low > 1e-6; round++) {
    let slope = 0, curve = 0;
    for (let i = 0; i < scores.length; i++) {
      const q = 1 / (1 + Math.exp(points[i].s * (scores[i] + b)));
      slope -= points[i].s * q;
      curve += q * (1 - q);
    }
    if (slope > 0) high = b;
    else low = b;
    const next = b - slope / curve, step = Math.abs(next - b);
    b = next > low && next < high ? next : (low + high) / 2;
    if (step < 1e-5) break;
  }
  return b;
}

/** The next round number: planes change their scale in steps, not with every move. */
export function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 6, 8, 10].find((k) => k * power >= value * (1 - 1e-9)) * power;
}
