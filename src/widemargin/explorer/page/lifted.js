// The lifted view: the board bent into the third dimension by a polynomial kernel of degree 2, where a flat plane separates.

import { contours } from "./contours.js";
import { quadratic, scores } from "./kernel.js";
import { round } from "./frame.js";
import { digits, html, make, pool, set } from "./svg.js";

const CELLS = 14, FINE = 56;
const TALL = 0.75; // the height of the drawing, in sides of its floor
const TURN = 0.008, KEY_TURN = Math.PI / 36;
const KEYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

export class Lifted {
  constructor(root) {
    Object.assign(this, { yaw: -0.6, pitch: 0.42, curve: null });
    const label = "Lifted view: points on a curved surface, cut by the separating plane. Arrow keys turn it.";
    this.svg = make("svg", { class: "plane large lifted", role: "img", tabindex: 0, "aria-label": label });
    make("rect", { class: "back", width: "100%", height: "100%" }, this.svg);
    const group = (name) => make("g", { class: name }, this.svg);
    this.floor = make("polygon", { class: "floor" }, this.svg);
    this.shadow = make("path", { class: "shadow" }, this.svg);
    this.upright = make("path", { class: "upright" }, this.svg);
    this.axes = group("ticks");
    this.far = { surface: group("surface"), points: group("dots3") };
    this.plane = make("polygon", { class: "cut" }, this.svg);
    this.margins = group("cut-margins");
    this.near = { surface: group("surface"), points: group("dots3") };
    this.boundary = make("path", { class: "boundary" }, this.svg);
    this.caption = html("figcaption", { id: "lifted-words" });
    this.figure = html("figure", { class: "alone", id: "lifted-view", hidden: true }, this.svg, this.caption);
    root.append(this.figure);
    this.listen();
  }

  listen() {
    const turn = (across, down) => {
      this.yaw += across;
      this.pitch = clamp(this.pitch + down, 0.05, 1.4);
      this.draw();
    };
    let last = null;
    const isHeld = (event) => last?.pointerId === event.pointerId; // one finger turns it
    this.svg.addEventListener("pointerdown", (event) => {
      if (last) return;
      last = event;
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!isHeld(event)) return;
      turn((event.clientX - last.clientX) * -TURN, (event.clientY - last.clientY) * TURN);
      last = event;
    });
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) this.svg.addEventListener(name, (event) => { if (isHeld(event)) last = null; });
    this.svg.addEventListener("keydown", (event) => {
      const way = KEYS[event.key];
      if (!way) return;
      event.preventDefault();
      turn(-way[0] * KEY_TURN, way[1] * KEY_TURN);
    });
  }

  /** Show this fit of these points, or nothing. */
  show(curve, points) {
    Object.assign(this, { curve, points });
    this.figure.hidden = !curve;
    if (!curve) return;
    this.form = quadratic(curve);
    const [p, q, r] = this.form.coefficients.map((value) => digits(value, 2));
    const sum = `${p} x₁² + ${q} x₁x₂ + ${r} x₂²`.replaceAll("+ −", "− ");
    this.caption.textContent = `Lifted to z = ${sum}, by the products that degree 2 adds, the boundary is a flat plane; where it `
      + "cuts the surface is the curve on the board. Drag it, or use the arrow keys, to turn it.";
    this.draw();
  }

  /** From a place over the floor to the drawing, and how far away it is. */
  measure() {
    const { form, points } = this, xs = points.map((p) => p.x), ys = points.map((p) => p.y);
    const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const reach = 0.56 * Math.max(right - left, high - low, 1e-9), cx = (left + right) / 2, cy = (low + high) / 2;
    const at = (k, cells) => -reach + (2 * reach * k) / cells;
    const heights = [];
    for (let j = 0; j <= CELLS; j++) for (let i = 0; i <= CELLS; i++) heights.push(form.height(cx + at(i, CELLS), cy + at(j, CELLS)));
    const [bottom, top] = [Math.min(...heights), Math.max(...heights)];
    return { cx, cy, reach, at, bottom, top, stretch: (2 * TALL * reach) / Math.max(top - bottom, 1e-300) };
  }

  draw() {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!this.curve || !width) return;
    set(this.svg, { viewBox: `0 0 ${round(width)} ${round(height)}` });
    const { cx, cy, reach, at, bottom, top, stretch } = this.measure(), { form, yaw, pitch } = this;
    const [sin, cos, rise, flat] = [Math.sin(yaw), Math.cos(yaw), Math.sin(pitch), Math.cos(pitch)];
    const unit = Math.min(width / (3.1 * reach), height / (2 * reach * (TALL * flat + 1.42 * rise) + 0.2 * reach));
    const project = ([x, y, z]) => {
      const u = x - cx, v = y - cy, h = (z - (bottom + top) / 2) * stretch, back = u * sin + v * cos;
      return { x: round(width / 2 + unit * (u * cos - v * sin)), y: round(height / 2 - unit * (h * flat + back * rise)), depth: back * flat - h * rise };
    };
    const list = (places) => places.map(project).map(({ x, y }) => `${x},${y}`).join(" ");
    const corners = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([i, j]) => [cx + i * reach, cy + j * reach]);
    set(this.floor, { points: list(corners.map(([x, y]) => [x, y, bottom])) });
    this.drawAxes(project, corners, bottom, top);

    const score = ([x, y, z]) => z - form.plane(x, y);
    const quads = [];
    const node = (i, j) => { const x = cx + at(i, CELLS), y = cy + at(j, CELLS); return [x, y, form.height(x, y)]; };
    for (let j = 0; j < CELLS; j++) {
      for (let i = 0; i < CELLS; i++) quads.push([node(i, j), node(i + 1, j), node(i + 1, j + 1), node(i, j + 1)]);
    }
    const depth = (places) => places.reduce((sum, place) => sum + project(place).depth, 0) / places.length;
    const side = (sign) => quads.map((quad) => clip(quad, (place) => sign * score(place))).filter((part) => part.length > 2)
      .map((part) => ({ part, depth: depth(part), look: sign > 0 ? "blue" : "orange" })).sort((a, c) => c.depth - a.depth);
    const [s, t] = form.slopes, towards = rise / stretch - flat * (s * sin + t * cos); // how the score grows towards the eye
    const [behind, before] = towards > 0 ? [-1, 1] : [1, -1];
    const lifted = this.points.map((p) => ({ p, place: [p.x, p.y, form.height(p.x, p.y)] }))
      .map((one) => ({ ...one, ...project(one.place), sign: score(one.place) >= 0 ? 1 : -1 })).sort((a, c) => c.depth - a.depth);
    for (const [layer, sign] of [[this.far, behind], [this.near, before]]) {
      pool(layer.surface, "polygon", side(sign), ({ part, look }) => ({ points: list(part), class: look }));
      pool(layer.points, "path", lifted.filter((one) => one.sign === sign), ({ p, x, y }) => ({
        d: p.s > 0 ? "M4.500 0A4.500 4.500 0 1 1-4.500 0A4.500 4.500 0 1 1 4.500 0Z" : "M-4-4H4V4H-4Z",
        transform: `translate(${x} ${y})`, class: p.s > 0 ? "blue" : "orange" }));
    }
    const sheet = (level) => {
      const whole = corners.map(([x, y]) => [x, y, form.plane(x, y, level)]);
      return clip(clip(whole, ([, , z]) => z - bottom), ([, , z]) => top - z);
    };
    set(this.plane, { points: list(sheet(0)) });
    pool(this.margins, "polygon", [-1, 1].map(sheet), (places, k) => ({ points: list(places), class: k ? "blue" : "orange" }));
    this.drawBoundary(project, (k) => at(k, FINE), cx, cy, bottom);
  }

  drawBoundary(project, at, cx, cy, bottom) {
    const steps = Array.from({ length: FINE + 1 }, (_, k) => at(k));
    const value = scores(this.curve, steps.map((x) => cx + x), steps.map((y) => cy + y));
    const lines = contours(value, FINE + 1, 0).map((line) => line.map(([i, j]) => [cx + at(i), cy + at(j)]));
    const path = (z) => lines.map((line) => "M" + line.map(([x, y]) => project([x, y, z(x, y)])).map(({ x, y }) => `${x} ${y}`).join("L")).join("");
    set(this.boundary, { d: path(this.form.height) });
    set(this.shadow, { d: path(() => bottom) });
  }

  /** The names of the axes: in the middle of the two edges of the floor that are nearest to the eye, and on top of an upright line
   * at its leftmost corner. */
  drawAxes(project, corners, bottom, top) {
    const edges = corners.map(([x, y], k) => {
      const [u, v] = corners[(k + 1) % 4], middle = project([(x + u) / 2, (y + v) / 2, bottom]);
      return { ...middle, name: k % 2 ? "x₂" : "x₁" };
    });
    const nearest = ["x₁", "x₂"].map((name) => edges.filter((edge) => edge.name === name).sort((a, c) => a.depth - c.depth)[0]);
    const middle = project([this.points.reduce((sum, p) => sum + p.x, 0) / this.points.length, 0, bottom]).x;
    const below = nearest.map(({ x, y, name }) => ({ x: x + (x < middle ? -10 : 10), y: y + 14, text: name }));
    const foot = corners.map(([x, y]) => [x, y, bottom]).sort((a, c) => project(a).x - project(c).x)[0];
    const [from, to] = [project(foot), project([foot[0], foot[1], top])];
    set(this.upright, { d: `M${from.x} ${from.y}L${to.x} ${to.y}` });
    pool(this.axes, "text", [...below, { x: to.x - 9, y: to.y + 5, text: "z" }], (name) => ({ ...name, "text-anchor": "middle" }));
  }
}

/** The part of a polygon where a function is not negative; the function is taken to be linear along each side. */
function clip(places, f) {
  const kept = [];
  places.forEach((place, k) => {
    const next = places[(k + 1) % places.length], a = f(place), c = f(next);
    if (a >= 0) kept.push(place);
    if (a >= 0 !== c >= 0) kept.push(place.map((value, axis) => value + (a / (a - c)) * (next[axis] - value)));
  });
  return kept;
}
