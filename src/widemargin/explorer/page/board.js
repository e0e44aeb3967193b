// The board: points, the line with its band, slacks, hulls, proofs. It draws what it is told and reports gestures.

import { normal } from "./chance.js";
import { contours } from "./contours.js";
import { Frame, cut, round, ticks } from "./frame.js";
import { scores } from "./kernel.js";
import { digits, make, pool, set } from "./svg.js";
import { SPANS, point, tidy } from "./state.js";

const RADIUS = 7;
const REACH = 16;
const MOST_LABELS = 16;
const CELL = 5; // pixels; the finest grid on which a curve is traced
const MOST_TERMS = 8e6; // support vectors times nodes of the grid, so that tracing fits into a frame
const PARTS = {
  ring: (g) => make("circle", { class: "ring" }, g),
  dot: (g) => make("circle", { class: "dot", r: 2.6 }, g),
  cross: (g) => make("path", { class: "cross", d: "M-4-4 4 4M4-4-4 4" }, g),
  focus: (g) => make("circle", { class: "focus", r: RADIUS + 8 }, g),
};
const KINDS = {
  wrong: "on the wrong side",
  inside: "inside the band",
  edge: "on the edge of the band: a support vector",
  idle: "outside the band: no pull",
  pulls: "outside the band, and pulls at the line all the same",
  attracts: "outside the band, and draws the line towards itself",
  outside: "outside the band",
};
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const isLate = (fact) => fact?.kind === "inside" || fact?.kind === "wrong";

export class Board {
  constructor(svg, store, { status, tool, label, choose }) {
    Object.assign(this, { svg, store, status, tool, label, choose, marks: new Map(), current: null, hovered: null });
    const group = (name) => make("g", { class: name }, svg);
    this.back = make("rect", { class: "back", width: "100%", height: "100%" }, svg);
    this.grid = group("grid");
    this.band = make("polygon", { class: "band" }, svg);
    this.curvedBand = make("path", { class: "band", "fill-rule": "evenodd" }, svg);
    this.hulls = [1, -1].map((s) => make("polygon", { class: `hull ${s > 0 ? "blue" : "orange"}` }, svg));
    this.slacks = group("slacks");
    this.lines = group("lines");
    this.curves = group("lines");
    this.tickLabels = group("ticks");
    this.levels = group("levels");
    this.nearest = group("nearest");
    this.proof = group("proof");
    this.points = group("points");
    this.labels = group("labels");
    this.lit = group("lit");
    new ResizeObserver(() => this.resize()).observe(svg);
    this.listen();
  }

  resize() {
    const box = this.svg.getBoundingClientRect();
    if (!box.width) return;
    [this.width, this.height] = [box.width, box.height];
    set(this.svg, { viewBox: `0 0 ${round(box.width)} ${round(box.height)}` });
    this.onResize?.();
  }

  get frame() { return new Frame(this.width, this.height, this.store.view); }

  /** Draw points and scene. A scene has lines, and what the fit says of each point by its id. */
  draw(scene) {
    if (!this.width) return;
    this.scene = scene;
    const frame = this.frame;
    this.drawGrid(frame);
    this.drawBand(frame, scene);
    this.drawLines(frame, scene);
    this.drawCurves(frame, scene);
    this.drawPoints(frame, scene);
    this.drawHulls(frame, scene);
    this.drawSlacks(frame, scene);
    this.drawProof(frame, scene);
    this.drawLabels(frame, scene);
    this.drawLit(frame, scene);
    this.describe();
  }

  drawGrid(frame) {
    const { width, height } = this;
    const across = ticks(frame.left, frame.right, width / 90), up = ticks(frame.bottom, frame.top, height / 90);
    const lines = [
      ...across.map((x) => [frame.x(x), 0, frame.x(x), height, x]),
      ...up.map((y) => [0, frame.y(y), width, frame.y(y), y])];
    pool(this.grid, "line", lines, ([x1, y1, x2, y2, at]) =>
      ({ x1: round(x1), y1: round(y1), x2: round(x2), y2: round(y2), class: at === 0 ? "axis" : null }));
    const text = (value) => String(value).replace(/-/g, "−");
    const labels = [
      ...across.map((x) => [frame.x(x), height - 6, text(x), "middle"]).filter(([x]) => x > 34 && x < width - 14),
      ...up.map((y) => [6, frame.y(y) + 4, text(y), "start"]).filter(([, y]) => y > 32 && y < height - 18)];
    pool(this.tickLabels, "text", labels, ([x, y, t, anchor]) => ({ x: round(x), y: round(y), text: t, "text-anchor": anchor }));
  }

  drawBand(frame, { line, band }) {
    const edges = line && band ? [frame.line(line.w, line.b, -1), frame.line(line.w, line.b, 1)] : [];
    const shown = edges.length === 2 && edges[0] && edges[1];
    const corners = shown ? [...edges[0], ...edges[1].slice().reverse()] : [];
    set(this.band, { points: corners.map((p) => frame.at(p)).join(" "), display: shown ? null : "none" });
  }

  drawLines(frame, { line, band, others = [] }) {
    const wanted = [...others];
    if (line) {
      if (band) for (const level of [-1, 1]) wanted.push({ ...line, level, look: "edge" });
      wanted.push({ ...line, look: "separator" });
    }
    const drawn = wanted.map((one) => ({ ...one, ends: frame.line(one.w, one.b, one.level ?? 0) })).filter((one) => one.ends);
    pool(this.lines, "line", drawn, ({ ends: [[x1, y1], [x2, y2]], look }) => ({
      x1: round(frame.x(x1)), y1: round(frame.y(y1)), x2: round(frame.x(x2)), y2: round(frame.y(y2)), class: look }));
    const marks = [];
    for (const level of line && band ? [0, 1, -1] : []) {
      marks.push(...this.levelMark(frame, line, level).filter((mark) => !isNear(mark, marks)));
    }
    this.drawLevels(marks);
  }

  /** The curves on which the score is −1, 0 and 1, and the band between the outer ones. */
  drawCurves(frame, { curve }) {
    const traced = curve ? this.trace(frame, curve).lines : [];
    const path = (lines) => lines.map((line) => `M${line.map(([x, y]) => `${round(x)} ${round(y)}`).join("L")}Z`).join("");
    const [low, middle, high] = traced.map(path);
    pool(this.curves, "path", curve ? [[low, "edge"], [high, "edge"], [middle, "separator"]] : [], ([d, look]) => ({ d, class: look }));
    set(this.curvedBand, { d: curve ? low + high : null }); // even-odd: above −1, but not above 1
    if (curve) this.drawLevels(this.curveMarks(frame, traced));
  }

  drawLevels(marks) {
    this.levelMarks = marks;
    pool(this.levels, "text", marks, (mark) => mark);
  }

  /** Closed lines in pixels, for each of the levels −1, 0 and 1: those that leave the board are closed outside of it. With them the
   * scores on the grid, from two cells outside of the board on. */
  trace(frame, curve) {
    const { width, height } = this, key = [width, height, frame.cx, frame.cy, frame.scale].join();
    if (this.traced?.curve === curve && this.traced.key === key) return this.traced;
    const cell = Math.max(CELL, Math.sqrt((width * height * curve.rows.length) / MOST_TERMS));
    const steps = (size) => Array.from({ length: Math.ceil(size / cell) + 5 }, (_, k) => (k - 2) * cell);
    const [across, down] = [steps(width), steps(height)];
    const value = scores(curve, across.map((x) => frame.world(x, 0)[0]), down.map((y) => frame.world(0, y)[1]));
    const columns = across.length, rows = down.length;
    for (let i = 0; i < columns; i++) value[i] = value[(rows - 1) * columns + i] = OUTSIDE;
    for (let j = 0; j < rows; j++) value[j * columns] = value[(j + 1) * columns - 1] = OUTSIDE;
    const lines = [-1, 0, 1].map((level) => contours(value, columns, level).map((line) => line.map(([i, j]) => [(i - 2) * cell, (j - 2) * cell])));
    this.traced = { curve, key, lines, value, columns, cell };
    return this.traced;
  }

  /** Each level written on its curve, as far to the right as there is room. */
  curveMarks(frame, traced) {
    const marks = [], taken = this.store.points.map((p) => ({ x: frame.x(p.x), y: frame.y(p.y) }));
    for (const k of [1, 2, 0]) {
      const places = traced[k].flat().filter(([x, y]) => x > 40 && x < this.width - 20 && y > 14 && y < this.height - 34).sort((a, c) => c[0] - a[0]);
      const free = places.find(([x, y]) => !isNear({ x, y }, marks) && !isNear({ x, y }, taken, 20));
      if (free) marks.push(levelText(free[0], free[1], k - 1));
    }
    return marks;
  }

  /** The score of a line, written where it leaves the board on the right or at the top. */
  levelMark(frame, { w, b }, level) {
    const ends = frame.line(w, b, level);
    if (!ends) return [];
    const pad = 26;
    const [[x1, y1], [x2, y2]] = ends.map(([x, y]) => [frame.x(x), frame.y(y)]);
    const places = [];
    if (Math.abs(x2 - x1) > 1e-9) {
      const y = y1 + ((this.width - pad - x1) * (y2 - y1)) / (x2 - x1);
      if (y > 14 && y < this.height - 34) places.push([this.width - pad, y]);
    }
    if (Math.abs(y2 - y1) > 1e-9) {
      const x = x1 + ((16 - y1) * (x2 - x1)) / (y2 - y1);
      if (x > 44 && x < this.width - pad) places.push([x, 16]);
    }
    if (!places.length) return [];
    return [levelText(...places[0], level)];
  }

  drawPoints(frame, { facts }) {
    const alive = new Set(), count = this.store.points.length, view = this.store.view;
    const small = (count > 90 ? 0.74 : count > 40 ? 0.87 : 1) * (this.width < 500 ? 0.85 : 1);
    const most = Math.max(...[...(facts?.values() ?? [])].map((fact) => Math.abs(fact.alpha ?? 0)));
    set(this.svg, { tabindex: count ? null : 0 });
    this.store.points.forEach((p, k) => {
      alive.add(p.id);
      const mark = this.marks.get(p.id) ?? this.newMark(p);
      const fact = facts?.get(p.id);
      const kind = fact?.kind ?? "outside", pull = fact?.supports ? Math.abs(fact.alpha) / most : 0;
      const tabbable = p.id === this.current || (this.current === null && k === 0);
      const where = [this.width, this.height, view.cx, view.cy, view.span, p.x, p.y];
      const key = [...where, p.s, k, kind, pull, small, tabbable, shows(this, "alpha")].join();
      if (mark.key === key) return;
      mark.key = key;
      const colour = p.s > 0 ? "blue" : "orange";
      set(mark.g, {
        transform: `translate(${round(frame.x(p.x))} ${round(frame.y(p.y))})`, class: `point ${colour} ${kind}`,
        tabindex: tabbable ? 0 : -1, "aria-label": `${colour} point ${k + 1} at ${p.x}, ${p.y}; ${KINDS[kind]}` });
      if (mark.s !== p.s || mark.small !== small) this.shape(mark, p.s, small);
      const ring = { "stroke-width": round((1 + 3 * pull) * small), r: round((RADIUS + 3.6 + 1.5 * pull) * small) };
      this.part(mark, "ring", pull > 0 && shows(this, "alpha"), ring);
      this.part(mark, "dot", kind === "inside");
      this.part(mark, "cross", kind === "wrong");
    });
    const focused = document.activeElement, gone = [...this.marks].filter(([id]) => !alive.has(id));
    for (const [id, mark] of gone) { mark.g.remove(); this.marks.delete(id); }
    if (this.current !== null && !alive.has(this.current)) this.current = null;
    if ((focused === this.svg && count) || gone.some(([, mark]) => mark.g === focused)) this.home();
  }

  newMark(p) {
    const g = make("g", { role: "button", "aria-roledescription": "point", tabindex: -1, "data-id": p.id }, this.points);
    const mark = { g, s: 0, body: make("path", { class: "body" }, g) };
    this.marks.set(p.id, mark);
    return mark;
  }

  /** A part of a mark, made when it is first needed: of 200 points most have none. */
  part(mark, name, wanted, attributes = {}) {
    if (wanted) set((mark[name] ??= PARTS[name](mark.g)), { display: null, ...attributes });
    else if (mark[name]) set(mark[name], { display: "none" });
  }

  /** Circles and squares of the same area. */
  shape(mark, s, small) {
    const r = RADIUS * small, a = round(r * 0.886);
    const circle = `M${r} 0A${r} ${r} 0 1 1 ${-r} 0A${r} ${r} 0 1 1 ${r} 0Z`, square = `M${-a} ${-a}H${a}V${a}H${-a}Z`;
    set(mark.body, { d: s > 0 ? circle : square });
    Object.assign(mark, { s, small });
  }

  drawHulls(frame, { hulls }) {
    const places = new Map(this.store.points.map((p) => [p.id, p]));
    [hulls?.positive, hulls?.negative].forEach((ids, k) => {
      const corners = shows(this, "hulls") && ids ? ids.map((id) => places.get(id)).filter(Boolean) : [];
      set(this.hulls[k], { points: corners.map((p) => frame.at([p.x, p.y])).join(" "), display: corners.length > 1 ? null : "none" });
    });
  }

  drawSlacks(frame, { facts, line, band, curve }) {
    const drawn = [];
    if (shows(this, "slack") && facts && curve) drawn.push(...this.curvedSlacks(frame, facts, this.trace(frame, curve)));
    if (shows(this, "slack") && facts && line && band) {
      const square = line.w[0] ** 2 + line.w[1] ** 2;
      for (const p of this.store.points) {
        const fact = facts.get(p.id);
        if (!isLate(fact) || !(square > 0)) continue;
        const way = (p.s * fact.xi) / square;
        drawn.push([[p.x, p.y], [p.x + way * line.w[0], p.y + way * line.w[1]], p.s > 0 ? "blue" : "orange"]);
      }
    }
    this.drawStraight(this.slacks, frame, drawn);
  }

  /** From each point inside the band or beyond to the nearest place on its own side's edge. There is no line if the score falls on
   * the way: that edge is another point's. */
  curvedSlacks(frame, facts, traced) {
    const isOnBoard = ([x, y]) => x >= 0 && y >= 0 && x <= this.width && y <= this.height;
    const edges = { 1: traced.lines[2].flat().filter(isOnBoard), [-1]: traced.lines[0].flat().filter(isOnBoard) };
    return this.store.points.filter((p) => isLate(facts.get(p.id)) && edges[p.s].length).flatMap((p) => {
      const [x, y] = [frame.x(p.x), frame.y(p.y)], { margin } = facts.get(p.id);
      if (!isOnBoard([x, y])) return [];
      const end = edges[p.s].reduce((best, one) => (square(one, x, y) < square(best, x, y) ? one : best));
      const isFar = square(end, x, y) > (4 * traced.cell) ** 2;
      if (isFar && p.s * scoreAt(traced, (x + end[0]) / 2, (y + end[1]) / 2) < margin) return [];
      return [[[p.x, p.y], frame.world(...end), p.s > 0 ? "blue" : "orange"]];
    });
  }

  /** Lines from a place to another, each with its class. */
  drawStraight(parent, frame, lines) {
    const onBoard = ([from, to, look]) => {
      const ends = cut([frame.x(from[0]), frame.y(from[1]), frame.x(to[0]), frame.y(to[1])], this.width, this.height);
      return ends ? [[...ends.map(round), look]] : [];
    };
    pool(parent, "line", lines.flatMap(onBoard), ([x1, y1, x2, y2, look]) => ({ x1, y1, x2, y2, class: look }));
  }

  drawProof(frame, { nearest, proof }) {
    const pair = nearest?.[0] && nearest?.[1] && shows(this, "hulls") ? nearest : null;
    this.drawStraight(this.nearest, frame, pair ? [[...pair, null]] : []);
    const ray = ({ from, to, side, weight }) =>
      ({ d: `M${frame.at(from)}L${frame.at(to)}`, class: `ray ${side}`, "stroke-width": round(1 + 3.5 * weight), transform: null });
    const stand = (d, look, at) => ({ d, class: look, transform: `translate(${frame.at(at)})`, "stroke-width": null });
    const mirror = (at) => stand("M-6 0H6M0-6V6", "mirror", at);
    const star = (at) => stand("M0-11 3-3 11 0 3 3 0 11-3 3-11 0-3-3Z", "star", at);
    const marks = proof ? [...proof.rays.map(ray), ...(proof.mirrored ?? []).map(mirror), star(proof.point)] : [];
    pool(this.proof, "path", marks, (mark) => mark);
  }

  /** α beside its point, where there is room: no label covers a point or another label. A tag without room stands on its point. */
  drawLabels(frame, { facts, tags = new Map() }) {
    const points = this.store.points, wanted = [];
    for (const p of facts && shows(this, "alpha") ? points : []) {
      const fact = facts.get(p.id);
      if (fact?.supports) wanted.push([p, `α ${digits(fact.alpha, 3)}`]);
    }
    const few = wanted.length <= MOST_LABELS ? wanted : wanted.filter(([p]) => p.id === this.hovered || p.id === this.current);
    const shown = [...points.filter((p) => tags.has(p.id)).map((p) => [p, tags.get(p.id)]), ...few];
    const taken = points.map((p) => box(frame.x(p.x), frame.y(p.y), 22, 22)), drawn = [];
    taken.push(...this.levelMarks.map(({ x, y }) => box(x, y - 4, 22, 15)));
    for (const [p, text] of shown) {
      const width = 7 * text.length + 4, x = frame.x(p.x), y = frame.y(p.y);
      const away = tags.has(p.id) ? 28 : 22;
      const side = 15 + width / 2, slant = 12 + width / 2;
      const places = [[0, -away], [0, away], [side, 0], [-side, 0], [slant, -16], [-slant, -16], [slant, 16], [-slant, 16]];
      if (tags.has(p.id)) places.push([0, 0]);
      for (const [dx, dy] of places) {
        const mine = box(x + dx, y + dy, width, 15);
        const isOut = mine.left < 2 || mine.top < 2 || mine.right > this.width - 2 || mine.bottom > this.height - 20;
        const isOnItsPoint = dx === 0 && dy === 0;
        if (!isOnItsPoint && (isOut || taken.some((other) => meet(mine, other)))) continue;
        taken.push(mine);
        drawn.push({ x: round(x + dx), y: round(y + dy + 4), text, class: tags.has(p.id) ? "tag" : null });
        break;
      }
    }
    pool(this.labels, "text", drawn, (label) => ({ ...label, "text-anchor": "middle" }));
  }

  drawLit(frame, { lit = [] }) {
    const chosen = lit.map((index) => this.store.points[index]).filter(Boolean);
    pool(this.lit, "circle", chosen, (p) => ({ cx: round(frame.x(p.x)), cy: round(frame.y(p.y)), r: RADIUS + 9 }));
  }

  /** What stands below the board: the point under the pointer or in focus, or what one can do. */
  describe() {
    const points = this.store.points, focused = this.svg.contains(document.activeElement) ? this.current : null;
    const id = this.hovered ?? focused;
    const k = points.findIndex((p) => p.id === id);
    if (k < 0) return this.status(null);
    const p = points[k], fact = this.scene?.facts?.get(p.id);
    const parts = [`${p.s > 0 ? "Blue" : "Orange"} point ${k + 1} at (${digits(p.x)}, ${digits(p.y)})`];
    if (fact) {
      parts.push(KINDS[fact.kind], `margin ${digits(fact.margin)}`);
      if (isLate(fact)) parts.push(`ξ = ${digits(fact.xi)}`);
      if (fact.alpha !== null) parts.push(`α = ${digits(fact.alpha)}`);
    }
    return this.status(parts.join(" · "));
  }

  // Gestures.

  listen() {
    const { svg, store } = this;
    let doing = null, held = null, spray = null, box = null; // held: the pointer of the gesture; other fingers do nothing
    const place = (event) => {
      if (!doing || !box) box = svg.getBoundingClientRect(); // once a gesture: asking makes the browser lay out the page
      return this.frame.world(event.clientX - box.left, event.clientY - box.top);
    };
    const under = (event) => {
      const at = place(event), { scale } = this.frame;
      const near = store.points.map((p) => Math.hypot(p.x - at[0], p.y - at[1]) * scale);
      const k = near.indexOf(Math.min(...near));
      return near[k] <= REACH ? store.points[k].id : null;
    };
    const inside = ([x, y]) => {
      const { left, right, bottom, top } = this.frame;
      return [clamp(x, left, right), clamp(y, bottom, top)].map((value) => this.tidy(value));
    };
    const remove = (id) => store.change(({ points }) => ({ points: points.filter((p) => p.id !== id) }));

    const paint = () => {
      if (!doing || store.points.length >= this.most) return;
      const reach = store.view.span * 0.045;
      const [x, y] = inside(doing.at.map((middle) => middle + reach * normal(Math.random)));
      store.change(({ points }) => ({ points: [...points, point(x, y, doing.s)] }));
    };

    svg.addEventListener("pointerdown", (event) => {
      if (event.button > 2 || doing) return;
      event.preventDefault();
      held = event.pointerId;
      svg.setPointerCapture(held);
      const id = under(event), tool = this.tool(), at = place(event);
      const s = (event.shiftKey || event.button === 2 ? -1 : 1) * this.label();
      store.begin();
      if (tool === "erase") { doing = { what: "erase" }; if (id !== null) remove(id); return; }
      if (tool === "cloud") { doing = { what: "cloud", at, s }; paint(); spray = setInterval(paint, 35); return; }
      if (id !== null) {
        const p = store.points.find((one) => one.id === id);
        doing = { what: "drag", id, shift: [p.x - at[0], p.y - at[1]] };
        this.focus(id);
        return;
      }
      if (store.points.length >= this.most) { doing = { what: "nothing" }; return; }
      const [x, y] = inside(at), added = point(x, y, s);
      store.change(({ points }) => ({ points: [...points, added] }));
      doing = { what: "drag", id: added.id, shift: [0, 0] };
      this.current = added.id;
    });
    svg.addEventListener("pointermove", (event) => {
      if (!doing) {
        const id = under(event);
        if (id !== this.hovered) { this.hovered = id; svg.classList.toggle("over", id !== null); this.choose(); }
        return;
      }
      if (event.pointerId !== held) return;
      const at = place(event);
      if (doing.what === "drag") this.move(doing.id, ...inside([at[0] + doing.shift[0], at[1] + doing.shift[1]]));
      if (doing.what === "erase") { const id = under(event); if (id !== null) remove(id); }
      if (doing.what === "cloud") doing.at = at;
    });
    const end = (event) => {
      if (!doing || event.pointerId !== held) return;
      const id = doing.what === "drag" ? doing.id : null;
      doing = null;
      clearInterval(spray);
      store.end();
      if (id !== null) this.focus(id);
    };
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) svg.addEventListener(name, end);
    svg.addEventListener("pointerleave", () => { if (!doing && this.hovered !== null) { this.hovered = null; this.choose(); } });
    svg.addEventListener("contextmenu", (event) => event.preventDefault());
    svg.addEventListener("wheel", (event) => { event.preventDefault(); this.zoom(1.0015 ** event.deltaY, place(event)); }, { passive: false });
    svg.addEventListener("focusin", (event) => {
      const id = Number(event.target.dataset?.id);
      if (!id) return;
      this.current = id;
      this.part(this.marks.get(id), "focus", true);
      this.choose();
    });
    svg.addEventListener("focusout", () => this.choose());
    svg.addEventListener("keydown", (event) => this.key(event));
    this.dragging = () => doing?.what === "drag" || doing?.what === "cloud";
  }

  move(id, x, y) {
    this.store.change(({ points }) => {
      const old = points.find((p) => p.id === id);
      return !old || (old.x === x && old.y === y) ? {} : { points: points.map((p) => (p.id === id ? { ...p, x, y } : p)) };
    });
  }

  focus(id) {
    this.current = id;
    this.marks.get(id)?.g.focus({ preventScroll: true });
  }

  /** The focus comes to the point that had it last, or to the first, or to the empty board. */
  home() {
    const { points } = this.store, p = points.find(({ id }) => id === this.current) ?? points[0];
    if (!p) return set(this.svg, { tabindex: 0 }).focus({ preventScroll: true });
    if (!this.marks.has(p.id)) this.newMark(p);
    this.focus(p.id);
  }

  tidy(value) { return tidy(clamp(value, -1e6, 1e6), this.store.view.span); }

  add(x, y, s) {
    if (this.store.points.length >= this.most) return;
    const added = point(this.tidy(x), this.tidy(y), s);
    this.store.change(({ points }) => ({ points: [...points, added] }));
    this.newMark(added);
    this.focus(added.id); // before it is drawn, so that the next key finds it
  }

  zoom(factor, [x, y] = [this.store.view.cx, this.store.view.cy]) {
    const { cx, cy, span } = this.store.view, wanted = clamp(span * factor, ...SPANS), real = wanted / span;
    this.store.change({ view: { cx: x + (cx - x) * real, cy: y + (cy - y) * real, span: wanted } });
  }

  /** Enter adds a point wherever the focus is on the board; the other keys are about the point in focus. */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { store } = this, { cx, cy, span } = store.view;
    const at = store.points.findIndex((p) => p.id === this.current), p = store.points[at];
    const go = (to) => this.focus(store.points[(to + store.points.length) % store.points.length].id);
    const acts = {
      n: () => go(at + 1),
      p: () => go(at - 1),
      d: () => this.add(p.x + span / 20, p.y, p.s),
      f: () => store.change(({ points }) => ({ points: points.map((one) => (one === p ? { ...one, s: -one.s } : one)) })),
      delete: () => this.remove(at),
    };
    const key = event.key.toLowerCase(), alias = { pagedown: "n", pageup: "p", backspace: "delete" };
    const act = acts[alias[key] ?? key];
    if (key === "enter") this.add(cx, cy, this.label());
    else if (p && ARROWS[event.key]) this.nudge(p, ARROWS[event.key], event.shiftKey);
    else if (p && act) act();
    else return;
    event.preventDefault();
  }

  nudge({ id, x, y }, [dx, dy], fine) {
    const step = Number((this.store.view.span / (fine ? 800 : 80)).toPrecision(1));
    this.move(id, dx ? this.tidy(x + dx * step) : x, dy ? this.tidy(y + dy * step) : y);
  }

  remove(at) {
    const left = this.store.points.filter((_, k) => k !== at);
    this.current = left[Math.min(at, left.length - 1)]?.id ?? null;
    this.store.change({ points: left });
    this.home();
  }
}

const OUTSIDE = -1e9; // below every level: closes the curves that leave the board
const square = ([u, v], x, y) => (u - x) ** 2 + (v - y) ** 2;
/** The score at a pixel of the board, interpolated between the nodes of the grid. */
const scoreAt = ({ value, columns, cell }, x, y) => {
  const u = x / cell + 2, v = y / cell + 2, i = Math.floor(u), j = Math.floor(v), k = j * columns + i;
  const along = (at) => value[at] + (u - i) * (value[at + 1] - value[at]);
  return along(k) + (v - j) * (along(k + columns) - along(k));
};
const isNear = (mark, others, reach = 26) => others.some((other) => Math.hypot(mark.x - other.x, mark.y - other.y) < reach);
const levelText = (x, y, level) => {
  const [text, look] = level > 0 ? ["+1", "blue"] : level < 0 ? ["−1", "orange"] : ["0", ""];
  return { x: round(x), y: round(y + 4), text, "text-anchor": "middle", class: look };
};
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const box = (x, y, width, height) => ({ left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 });
const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const shows = (board, what) => board.shown?.[what] !== false;
