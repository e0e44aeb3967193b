// The score of a kernel SVM, Σⱼ coefⱼ k(xⱼ, x) + b, over a grid of places: the server sends coef and b, the page evaluates.

/** exp(−γ d) of a distance that is a sum over the axes is a product over the axes: few exponentials for many places. */
const DISTANCES = { rbf: (t) => t * t, laplacian: Math.abs };

/** The scores at every x of `xs` for each y of `ys`, row by row. `rows` are the places of the support vectors. */
export const scores = (curve, xs, ys) => (DISTANCES[curve.kernel.name] ? product : polynomial)(curve, xs, ys);

function product({ kernel: { name, gamma }, rows, coef, b }, xs, ys) {
  const distance = DISTANCES[name], width = xs.length, value = new Float64Array(width * ys.length).fill(b);
  const across = new Float64Array(width);
  rows.forEach(([u, v], j) => {
    for (let i = 0; i < width; i++) across[i] = Math.exp(-gamma * distance(xs[i] - u));
    ys.forEach((y, row) => {
      const factor = coef[j] * Math.exp(-gamma * distance(y - v)), start = row * width;
      if (Math.abs(factor) < 1e-12) return; // too far away to be seen
      for (let i = 0; i < width; i++) value[start + i] += factor * across[i];
    });
  });
  return value;
}

/** The coefficients c[i][j] of xⁱyʲ in Σⱼ coefⱼ (γ xⱼ·x + r)ᵈ: many support vectors, one polynomial. */
function coefficients({ kernel: { gamma, degree, coef0 }, rows, coef }) {
  const table = Array.from({ length: degree + 1 }, (_, i) => new Array(degree + 1 - i).fill(0));
  const factorial = (n) => (n > 1 ? n * factorial(n - 1) : 1);
  for (let i = 0; i <= degree; i++) {
    for (let j = 0; i + j <= degree; j++) {
      const rest = degree - i - j, ways = factorial(degree) / (factorial(i) * factorial(j) * factorial(rest));
      const moment = rows.reduce((sum, [u, v], k) => sum + coef[k] * u ** i * v ** j, 0);
      table[i][j] = ways * coef0 ** rest * gamma ** (i + j) * moment;
    }
  }
  return table;
}

const horner = (terms, x) => terms.reduceRight((sum, term) => sum * x + term, 0);

function polynomial(curve, xs, ys) {
  const table = coefficients(curve), value = new Float64Array(xs.length * ys.length);
  let k = 0;
  for (const y of ys) {
    const terms = table.map((row) => horner(row, y));
    for (const x of xs) value[k++] = curve.b + horner(terms, x);
  }
  return value;
}

/** The score of a polynomial kernel of degree 2, taken apart: a height over the plane, and the flat plane that it is compared to. */
export function quadratic(curve) {
  const [[constant, t, r], [s, q], [p]] = coefficients(curve);
  return {
    coefficients: [p, q, r],
    height: (x, y) => p * x * x + q * x * y + r * y * y, // the part of degree 2
    plane: (x, y, level = 0) => level - curve.b - constant - s * x - t * y, // the height at which the score is the level
    slopes: [s, t],
  };
}
