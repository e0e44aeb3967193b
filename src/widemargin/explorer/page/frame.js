// A frame maps the world (x to the right, y up, the same scale for both) to the pixels of a drawing.

export class Frame {
  constructor(width, height, { cx, cy, span }) {
    Object.assign(this, { width, height, cx, cy });
    this.scale = Math.min(width, height) / span;
  }

  x(x) { return this.width / 2 + (x - this.cx) * this.scale; }
  y(y) { return this.height / 2 - (y - this.cy) * this.scale; }
  at([x, y]) { return `${round(this.x(x))},${round(this.y(y))}`; }
  world(px, py) { return [this.cx + (px - this.width / 2) / this.scale, this.cy - (py - this.height / 2) / this.scale]; }

  get left() { return this.world(0, 0)[0]; }
  get right() { return this.world(this.width, 0)[0]; }
  get bottom() { return this.world(0, this.height)[1]; }
  get top() { return this.world(0, 0)[1]; }

  /** Two points on w·x + b = level, well outside of the frame; null if w is 0. */
  line([u, v], b, level = 0) {
    const square = u * u + v * v;
    if (!(square > 0) || !Number.isFinite(square)) return null;
    const shift = (level - b - u * this.cx - v * this.cy) / square;
    const near = [this.cx + u * shift, this.cy + v * shift];
    const reach = (this.width + this.height) / this.scale / Math.sqrt(square);
    if (Math.hypot(near[0] - this.cx, near[1] - this.cy) * this.scale > 1e5) return null;
    return [[near[0] - v * reach, near[1] + u * reach], [near[0] + v * reach, near[1] - u * reach]];
  }
}

/** The part of a line from [x1, y1] to [x2, y2] that lies on or near a drawing of this size, or null: browsers bend lines whose
 * ends are too far away. */
export function cut([x1, y1, x2, y2], width, height) {
  let [from, to] = [0, 1];
  for (const [start, way, size] of [[x1, x2 - x1, width], [y1, y2 - y1, height]]) {
    if (way === 0 && (start < -size || start > 2 * size)) return null;
    const ends = way === 0 ? [0, 1] : [(-size - start) / way, (2 * size - start) / way].sort((a, b) => a - b);
    [from, to] = [Math.max(from, ends[0]), Math.min(to, ends[1])];
  }
  const at = (share) => [x1 + share * (x2 - x1), y1 + share * (y2 - y1)];
  return from < to ? [...at(from), ...at(to)] : null;
}

export const round = (value) => Math.round(value * 100) / 100;

/** Round numbers from low to high, about `wanted` of them. */
export function ticks(low, high, wanted) {
  const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) found.push(Number((k * step).toPrecision(8)));
  return found;
}
