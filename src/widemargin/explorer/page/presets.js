// Points to start from. Chance is seeded: a preset is the same every time.

import { normal, seeded } from "./chance.js";
import { point, tidy } from "./state.js";

function chance(seed) {
  const uniform = seeded(seed);
  return { uniform, normal: () => normal(uniform) };
}

const at = (x, y, s) => point(tidy(x, 8), tidy(y, 8), s);
const SQUARE = [[1, 1, 1], [1, -1, 1], [-1, 1, -1], [-1, -1, -1]];
const notes = (...more) => [...SQUARE, ...more].map(([x, y, s]) => point(x, y, s));

function blobs(count, distance, spread, seed) {
  const { normal } = chance(seed);
  return Array.from({ length: count }, (_, k) => {
    const s = k % 2 ? -1 : 1;
    return at(s * distance + spread * normal(), s * distance * 0.6 + spread * normal(), s);
  });
}

function moons(count) {
  const { normal } = chance(3);
  return Array.from({ length: count }, (_, k) => {
    const s = k % 2 ? -1 : 1, angle = (Math.PI * (k + 0.5)) / count;
    return at(-0.9 * s + 1.9 * Math.cos(angle) + 0.16 * normal(), s * (1.9 * Math.sin(angle) - 0.55) + 0.16 * normal(), s);
  });
}

function circles(count) {
  const { normal, uniform } = chance(4);
  return Array.from({ length: count }, (_, k) => {
    const s = k % 2 ? -1 : 1, angle = 2 * Math.PI * uniform(), r = (s > 0 ? 1 : 2.7) + 0.17 * normal();
    return at(r * Math.cos(angle), r * Math.sin(angle), s);
  });
}

function xor(count) {
  const { normal } = chance(5);
  return Array.from({ length: count }, (_, k) => {
    const [u, v] = [[1, 1], [-1, 1], [-1, -1], [1, -1]][k % 4];
    return at(1.6 * u + 0.45 * normal(), 1.6 * v + 0.45 * normal(), u * v);
  });
}

export const PRESETS = {
  notes4: ["Notes: four points", () => notes(), { model: "soft", C: 1, span: 4.5 }],
  notes5: ["Notes: a fifth inside, C = 1", () => notes([-0.1, -0.1, 1]), { model: "soft", C: 1, span: 4.5 }],
  noteshard: ["Notes: a fifth, hard margin", () => notes([-0.01, -0.01, 1]), { model: "hard", span: 4.5 }],
  notesfar: ["Notes: a fifth at (−2, 0), C = 1", () => notes([-2, 0, 1]), { model: "soft", C: 1, span: 5.5 }],
  notesnone: ["Notes: the same, hard margin?", () => notes([-2, 0, 1]), { model: "hard", span: 5.5 }],
  blobs: ["Two blobs", () => blobs(40, 1.45, 0.55, 1), { model: "soft", C: 1, span: 7 }],
  overlap: ["Overlapping classes", () => blobs(80, 0.75, 0.85, 2), { model: "soft", C: 1, span: 7 }],
  outlier: ["An outlier", () => [...blobs(30, 1.3, 0.35, 8), at(3.6, -2.6, 1)], { model: "squares", C: 100, span: 7.5 }],
  moons: ["Moons", () => moons(60), { model: "kernel", kernel: "rbf", C: 10, span: 6.5 }],
  circles: ["Circles", () => circles(70), { model: "kernel", kernel: "poly", degree: 2, coef0: 1, C: 1, span: 7.5 }],
  xor: ["XOR", () => xor(60), { model: "hard", span: 7 }],
  two: ["Two points", () => [point(0.5, 0.8, 1), point(-1, 0.3, -1)], { model: "hard", bias: false, span: 4 }],
  crowd: ["200 points", () => blobs(200, 1.1, 0.75, 9), { model: "soft", C: 1, span: 8 }],
  moons200: ["Moons, 200 points", () => moons(200), { model: "kernel", kernel: "rbf", C: 10, span: 6.5 }],
};

/** What a preset sets, ready for the store. */
export function preset(name) {
  const [, make, { span, ...settings }] = PRESETS[name];
  return { preset: name, points: make(), solver: "auto", bias: true, gamma: "scale", ...settings, view: { cx: 0, cy: 0, span } };
}
