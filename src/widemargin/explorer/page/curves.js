// Curves that grow with the steps: one or two runs over the same axis, the minimum dotted.

import { round } from "./frame.js";
import { digits, make, pool, set } from "./svg.js";

const LEFT = 44, BOTTOM = 20, TOP = 10, RIGHT = 10;

export class Curves {
  constructor(svg) {
    this.svg = svg;
    this.back = make("rect", { class: "back", width: "100%", height: "100%" }, svg);
    this.grid = make("g", { class: "grid" }, svg);
    this.labels = make("g", { class: "ticks" }, svg);
    this.minima = make("g", { class: "minima" }, svg);
    this.lines = make("g", { class: "curve-lines" }, svg);
    this.now = make("line", { class: "cursor" }, svg);
  }

  /** `runs` are lists of heights; `log` whether the axis is logarithmic. The axis holds the whole run, so it stays. */
  draw(runs, minima, t, log) {
    const box = this.svg.getBoundingClientRect(), width = box.width || 300, height = box.height || 150;
    set(this.svg, { viewBox: `0 0 ${round(width)} ${round(height)}` });
    const steps = Math.max(1, ...runs.map((run) => run.length));
    const known = [...runs.flat(), ...minima].filter((value) => value !== null && Number.isFinite(value) && (!log || value > 0));
    let low = log ? Math.min(...known) : 0, high = Math.max(...known, log ? 0 : 1);
    if (!known.length) [low, high] = [0.1, 1];
    if (log && low < high * 1e-6) low = high * 1e-6;
    if (!(high > low)) high = low + Math.max(1, Math.abs(low));
    const flat = (value) => (log ? Math.log10(Math.max(value, low)) : value);
    const x = (step) => LEFT + ((width - LEFT - RIGHT) * step) / steps;
    const y = (value) => height - BOTTOM - ((height - BOTTOM - TOP) * (flat(value) - flat(low))) / (flat(high) - flat(low));
    const marks = [low, log ? Math.sqrt(low * high) : (low + high) / 2, high];
    pool(this.grid, "line", marks, (mark) => ({ x1: LEFT, x2: width - RIGHT, y1: round(y(mark)), y2: round(y(mark)) }));
    const labels = [
      ...marks.map((mark) => [LEFT - 6, y(mark) + 4, digits(mark, 3), "end"]),
      [LEFT, height - 5, "0", "start"], [width - RIGHT, height - 5, `step ${steps}`, "end"]];
    pool(this.labels, "text", labels, ([tx, ty, text, anchor]) => ({ x: round(tx), y: round(ty), text, "text-anchor": anchor }));
    const look = (k) => (k ? "second" : "first");
    const lowest = minima.map((value, k) => [value, k]).filter(([value]) => value !== null);
    pool(this.minima, "line", lowest, ([value, k]) =>
      ({ x1: LEFT, x2: width - RIGHT, y1: round(y(value)), y2: round(y(value)), class: look(k) }));
    const at = (value, step) => `${round(x(step + 1))},${round(y(value))}`;
    pool(this.lines, "polyline", runs, (run, k) => ({ class: look(k), points: run.slice(0, t).map(at).join(" ") }));
    set(this.now, { x1: round(x(t)), x2: round(x(t)), y1: TOP, y2: height - BOTTOM });
  }
}
