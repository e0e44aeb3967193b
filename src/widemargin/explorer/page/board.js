// The board: points, the line with its band, slacks, hulls, proofs. It draws what it is told and reports gestures.

import { Frame, round, ticks } from "./frame.js";
import { digits, make, pool, set } from "./svg.js";
import { point, tidy } from "./state.js";

const RADIUS = 7;
const REACH = 16;
const MOST_LABELS = 16;
const PARTS = {
  ring: (g) => make("circle", { class: "ring" }, g),
  dot: (g) => make("circle", { class: "dot", r: 2.6 }, g),
  cross: (g) => make("path", { class: "cross", d: "M-4-4 4 4M4-4-4 4" }, g),
  focus: (g) => make("circle", { class: "focus", r: RADIUS + 8 }, g),
};
export const KINDS = {
  free: "beyond the band, no pull on the line",
  edge: "on the edge of the band: a support vector",
  inside: "inside the band",
  wrong: "on the wrong side",
};

export class Board {
  constructor(svg, store, { status, tool, label, choose }) {
    Object.assign(this, { svg, store, status, tool, label, choose, marks: new Map(), current: null, hovered: null });
    const group = (name) => make("g", { class: name }, svg);
    this.back = make("rect", { class: "back", width: "100%", height: "100%" }, svg);
    this.grid = group("grid");
    this.band = make("polygon", { class: "band" }, svg);
    this.hulls = [1, -1].map((s) => make("polygon", { class: `hull ${s > 0 ? "blue" : "orange"}` }, svg));
    this.slacks = group("slacks");
    this.lines = group("lines");
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
    this.drawPoints(frame, scene);
    this.drawHulls(frame, scene);
    this.drawSlacks(frame, scene);
    this.drawProof(frame, scene);
    this.drawLabels(frame, scene);
    this.drawLit(frame, scene);
    this.describe();
  }

  drawGrid(frame) {
    const across = ticks(frame.left, frame.right, this.width / 90), up = ticks(frame.bottom, frame.top, this.height / 90);
    const lines = [...across.map((x) => [frame.x(x), 0, frame.x(x), this.height, x]), ...up.map((y) => [0, frame.y(y), this.width, frame.y(y), y])];
    pool(this.grid, "line", lines, ([x1, y1, x2, y2, at]) => ({ x1: round(x1), y1: round(y1), x2: round(x2), y2: round(y2), class: at === 0 ? "axis" : null }));
    const text = (value) => String(value).replace("-", "−");
    const labels = [
      ...across.filter((x) => frame.x(x) > 34 && frame.x(x) < this.width - 14).map((x) => [frame.x(x), this.height - 6, text(x), "middle"]),
      ...up.filter((y) => frame.y(y) > 28 && frame.y(y) < this.height - 22).map((y) => [6, frame.y(y) + 4, text(y), "start"])];
    pool(this.tickLabels, "text", labels, ([x, y, t, anchor]) => ({ x: round(x), y: round(y), text: t, "text-anchor": anchor }));
  }

  drawBand(frame, { line, band }) {
    const edges = line && band ? [frame.line(line.w, line.b, -1), frame.line(line.w, line.b, 1)] : [];
    const shown = edges.length === 2 && edges[0] && edges[1];
    set(this.band, { points: shown ? [...edges[0], ...edges[1].slice().reverse()].map((p) => frame.at(p)).join(" ") : "", display: shown ? null : "none" });
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
    for (const level of line && band ? [0, 1, -1] : []) marks.push(...this.levelMark(frame, line, level).filter((mark) => !marks.some((other) => Math.hypot(mark.x - other.x, mark.y - other.y) < 26)));
    pool(this.levels, "text", marks, (mark) => mark);
  }

  /** The score of a line, written where it leaves the board on the right or at the top. */
  levelMark(frame, { w, b }, level) {
    const ends = frame.line(w, b, level);
    if (!ends) return [];
    const pad = 26;
    const [[x1, y1], [x2, y2]] = ends.map(([x, y]) => [frame.x(x), frame.y(y)]);
    const places = [];
    if (Math.abs(x2 - x1) > 1e-9) { const y = y1 + ((this.width - pad - x1) * (y2 - y1)) / (x2 - x1); if (y > 14 && y < this.height - 34) places.push([this.width - pad, y]); }
    if (Math.abs(y2 - y1) > 1e-9) { const x = x1 + ((16 - y1) * (x2 - x1)) / (y2 - y1); if (x > 44 && x < this.width - pad) places.push([x, 16]); }
    if (!places.length) return [];
    const [x, y] = places[0];
    return [{ x: round(x), y: round(y + 4), text: level > 0 ? "+1" : level < 0 ? "−1" : "0", "text-anchor": "middle", class: level > 0 ? "blue" : level < 0 ? "orange" : "" }];
  }

  drawPoints(frame, { facts }) {
    const alive = new Set(), count = this.store.points.length, view = this.store.view;
    const small = (count > 90 ? 0.74 : count > 40 ? 0.87 : 1) * (this.width < 500 ? 0.85 : 1);
    const most = Math.max(...[...(facts?.values() ?? [])].map((fact) => fact.alpha ?? 0), 1e-12);
    this.store.points.forEach((p, k) => {
      alive.add(p.id);
      const mark = this.marks.get(p.id) ?? this.newMark(p);
      const fact = facts?.get(p.id);
      const kind = fact?.kind ?? "free";
      const pull = fact?.alpha > 1e-9 * most ? fact.alpha / most : 0;
      const tabbable = p.id === this.current || (this.current === null && k === 0);
      const key = [this.width, this.height, view.cx, view.cy, view.span, p.x, p.y, p.s, k, kind, pull, small, tabbable, shows(this, "alpha")].join();
      if (mark.key === key) return;
      mark.key = key;
      set(mark.g, { transform: `translate(${round(frame.x(p.x))} ${round(frame.y(p.y))})`, class: `point ${p.s > 0 ? "blue" : "orange"} ${kind}`,
        tabindex: tabbable ? 0 : -1,
        "aria-label": `${p.s > 0 ? "blue" : "orange"} point ${k + 1} at ${p.x}, ${p.y}; ${KINDS[kind]}` });
      if (mark.s !== p.s || mark.small !== small) this.shape(mark, p.s, small);
      this.part(mark, "ring", pull > 0 && shows(this, "alpha"), { "stroke-width": round((1 + 3 * pull) * small), r: round((RADIUS + 3.6 + 1.5 * pull) * small) });
      this.part(mark, "dot", kind === "inside");
      this.part(mark, "cross", kind === "wrong");
    });
    for (const [id, mark] of this.marks) if (!alive.has(id)) { mark.g.remove(); this.marks.delete(id); }
    if (this.current !== null && !alive.has(this.current)) this.current = null;
  }

  newMark(p) {
    const g = make("g", { role: "img", "data-id": p.id }, this.points);
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
    set(mark.body, { d: s > 0 ? `M${r} 0A${r} ${r} 0 1 1 ${-r} 0A${r} ${r} 0 1 1 ${r} 0Z` : `M${-a} ${-a}H${a}V${a}H${-a}Z` });
    Object.assign(mark, { s, small });
  }

  drawHulls(frame, { hulls }) {
    const places = new Map(this.store.points.map((p) => [p.id, p]));
    [hulls?.positive, hulls?.negative].forEach((ids, k) => {
      const corners = shows(this, "hulls") && ids ? ids.map((id) => places.get(id)).filter(Boolean) : [];
      set(this.hulls[k], { points: corners.map((p) => frame.at([p.x, p.y])).join(" "), display: corners.length > 1 ? null : "none" });
    });
  }

  drawSlacks(frame, { facts, line, band }) {
    const drawn = [];
    if (shows(this, "slack") && facts && line && band) {
      const square = line.w[0] ** 2 + line.w[1] ** 2;
      for (const p of this.store.points) {
        const xi = facts.get(p.id)?.xi;
        if (xi > 1e-9 && square > 0) drawn.push([p, [p.x + (p.s * xi * line.w[0]) / square, p.y + (p.s * xi * line.w[1]) / square]]);
      }
    }
    pool(this.slacks, "line", drawn, ([p, [x, y]]) => ({ x1: round(frame.x(p.x)), y1: round(frame.y(p.y)), x2: round(frame.x(x)), y2: round(frame.y(y)), class: p.s > 0 ? "blue" : "orange" }));
  }

  drawProof(frame, { nearest, proof }) {
    const pair = nearest?.[0] && nearest?.[1] && shows(this, "hulls") ? nearest : null;
    pool(this.nearest, "line", pair ? [pair] : [], ([a, b]) => ({ x1: round(frame.x(a[0])), y1: round(frame.y(a[1])), x2: round(frame.x(b[0])), y2: round(frame.y(b[1])) }));
    const rays = proof?.rays ?? [];
    const marks = [...rays.map((ray) => ["ray", ray]), ...(proof?.mirrored ?? []).map((m) => ["mirror", m]), ...(proof ? [["star", proof]] : [])];
    pool(this.proof, "path", marks, ([what, one]) => {
      if (what === "ray") return { d: `M${frame.at(one.from)}L${frame.at(one.to)}`, class: `ray ${one.side}`, "stroke-width": round(1 + 3.5 * one.weight), transform: null };
      if (what === "mirror") return { d: "M-6 0H6M0-6V6", class: "mirror", transform: `translate(${frame.at(one)})`, "stroke-width": null };
      return { d: "M0-11 3-3 11 0 3 3 0 11-3 3-11 0-3-3Z", class: "star", transform: `translate(${frame.at(one.point)})`, "stroke-width": null };
    });
  }

  /** α beside its point, where there is room: no label covers a point or another label. */
  drawLabels(frame, { facts, tags = new Map() }) {
    const points = this.store.points, wanted = [];
    if (facts && shows(this, "alpha")) for (const p of points) { const a = facts.get(p.id)?.alpha; if (a > 1e-9) wanted.push([p, `α ${digits(a, 3)}`]); }
    const shown = wanted.length <= MOST_LABELS ? wanted : wanted.filter(([p]) => p.id === this.hovered || p.id === this.current);
    for (const p of points) if (tags.has(p.id)) shown.push([p, tags.get(p.id)]);
    const taken = points.map((p) => box(frame.x(p.x), frame.y(p.y), 22, 22)), drawn = [];
    for (const [p, text] of shown) {
      const width = 7 * text.length + 4, x = frame.x(p.x), y = frame.y(p.y);
      const away = tags.has(p.id) ? 28 : 22;
      const places = [[0, -away], [0, away], [15 + width / 2, 0], [-15 - width / 2, 0], [12 + width / 2, -16], [-12 - width / 2, -16], [12 + width / 2, 16], [-12 - width / 2, 16]];
      for (const [dx, dy] of places) {
        const mine = box(x + dx, y + dy, width, 15);
        if (mine.left < 2 || mine.top < 2 || mine.right > this.width - 2 || mine.bottom > this.height - 20 || taken.some((other) => meet(mine, other))) continue;
        taken.push(mine);
        drawn.push({ x: round(x + dx), y: round(y + dy + 4), text });
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
    const points = this.store.points, id = this.hovered ?? (this.svg.contains(document.activeElement) ? this.current : null);
    const k = points.findIndex((p) => p.id === id);
    if (k < 0) return this.status(null);
    const p = points[k], fact = this.scene?.facts?.get(p.id);
    const parts = [`${p.s > 0 ? "Blue" : "Orange"} point ${k + 1} at (${digits(p.x)}, ${digits(p.y)})`];
    if (fact) {
      parts.push(KINDS[fact.kind], `margin ${digits(fact.margin)}`);
      if (fact.xi > 1e-9) parts.push(`ξ = ${digits(fact.xi)}`);
      if (fact.alpha !== null) parts.push(`α = ${digits(fact.alpha)}`);
    }
    return this.status(parts.join(" · "));
  }

  // Gestures.

  listen() {
    const { svg, store } = this;
    let doing = null, spray = null, box = null;
    const place = (event) => {
      if (!doing || !box) box = svg.getBoundingClientRect(); // once a gesture: asking makes the browser lay out the page
      return this.frame.world(event.clientX - box.left, event.clientY - box.top);
    };
    const under = (event) => {
      const at = place(event), { scale } = this.frame, near = store.points.map((p) => Math.hypot(p.x - at[0], p.y - at[1]) * scale);
      const k = near.indexOf(Math.min(...near));
      return near[k] <= REACH ? store.points[k].id : null;
    };
    const inside = ([x, y]) => [clamp(x, this.frame.left, this.frame.right), clamp(y, this.frame.bottom, this.frame.top)].map(tidy);
    const remove = (id) => store.change(({ points }) => ({ points: points.filter((p) => p.id !== id) }));

    const paint = () => {
      if (!doing || store.points.length >= this.most) return;
      const reach = store.view.span * 0.045;
      const [x, y] = inside([doing.at[0] + reach * normal(), doing.at[1] + reach * normal()]);
      store.change(({ points }) => ({ points: [...points, point(x, y, doing.s)] }));
    };

    svg.addEventListener("pointerdown", (event) => {
      if (event.button > 2 || doing) return;
      event.preventDefault();
      svg.setPointerCapture(event.pointerId);
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
      const at = place(event);
      if (doing.what === "drag") this.move(doing.id, ...inside([at[0] + doing.shift[0], at[1] + doing.shift[1]]));
      if (doing.what === "erase") { const id = under(event); if (id !== null) remove(id); }
      if (doing.what === "cloud") doing.at = at;
    });
    const end = () => {
      if (!doing) return;
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
    svg.addEventListener("focusin", (event) => { const id = Number(event.target.dataset?.id); if (id) { this.current = id; this.part(this.marks.get(id), "focus", true); this.choose(); } });
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

  zoom(factor, [x, y] = [this.store.view.cx, this.store.view.cy]) {
    const { cx, cy, span } = this.store.view, wanted = clamp(span * factor, 1e-3, 4e6), real = wanted / span;
    this.store.change({ view: { cx: x + (cx - x) * real, cy: y + (cy - y) * real, span: wanted } });
  }

  key(event) {
    const { store } = this, at = store.points.findIndex((p) => p.id === this.current), p = store.points[at];
    if (!p || event.ctrlKey || event.metaKey || event.altKey) return;
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const go = (to) => this.focus(store.points[(to + store.points.length) % store.points.length].id);
    if (arrows[event.key]) {
      const step = Number((store.view.span / (event.shiftKey ? 800 : 80)).toPrecision(1));
      const [dx, dy] = arrows[event.key];
      this.move(p.id, tidy(clamp(p.x + dx * step, -1e6, 1e6)), tidy(clamp(p.y + dy * step, -1e6, 1e6)));
    } else if (event.key === "Delete" || event.key === "Backspace") {
      store.change(({ points }) => ({ points: points.filter((one) => one !== p) }));
      requestAnimationFrame(() => { if (store.points.length) { this.current = store.points[Math.min(at, store.points.length - 1)].id; this.choose(); requestAnimationFrame(() => this.focus(this.current)); } });
    } else if (event.key === "n" || event.key === "PageDown") go(at + 1);
    else if (event.key === "p" || event.key === "PageUp") go(at - 1);
    else if (event.key === "f") store.change(({ points }) => ({ points: points.map((one) => (one === p ? { ...one, s: -one.s } : one)) }));
    else if (event.key === "d" && store.points.length < this.most) {
      const twin = point(tidy(p.x + store.view.span / 20), tidy(p.y), p.s);
      store.change(({ points }) => ({ points: [...points, twin] }));
      this.current = twin.id;
      requestAnimationFrame(() => requestAnimationFrame(() => this.focus(twin.id)));
    } else return;
    event.preventDefault();
  }
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
const normal = () => Math.sqrt(-2 * Math.log(1 - Math.random())) * Math.cos(2 * Math.PI * Math.random());
const box = (x, y, width, height) => ({ left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 });
const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const shows = (board, what) => board.shown?.[what] !== false;
