// Contours of a function that is known on a grid: marching squares, their pieces joined to lines.

/** For each pattern of corners at or above the level (top left 1, top right 2, bottom right 4, bottom left 8) the pieces of the
 * contour, from an edge of the cell to another (0 top, 1 right, 2 bottom, 3 left), the higher side on the left. */
const PIECES = [
  [], [[3, 0]], [[0, 1]], [[3, 1]], [[1, 2]], null, [[0, 2]], [[3, 2]],
  [[2, 3]], [[2, 0]], null, [[2, 1]], [[1, 3]], [[1, 0]], [[0, 3]], []];
/** Two opposite corners are higher: whether they are joined is decided by the mean of all four. */
const SADDLES = { 5: [[[3, 0], [1, 2]], [[1, 0], [3, 2]]], 10: [[[0, 1], [2, 3]], [[0, 3], [2, 1]]] };

/** The lines on which the values, row by row on a grid of so many columns, pass the level: places in units of the grid. Lines that
 * do not end at the border end where they begin. */
export function contours(value, columns, level) {
  const rows = value.length / columns, next = new Int32Array(2 * value.length).fill(-1), entered = new Uint8Array(next.length);
  const mean = (k) => (value[k] + value[k + 1] + value[k + columns] + value[k + columns + 1]) / 4;
  const high = new Uint8Array(value.length);
  for (let k = 0; k < high.length; k++) high[k] = value[k] >= level ? 1 : 0;
  for (let j = 0; j + 1 < rows; j++) {
    for (let k = j * columns; k + 1 < (j + 1) * columns; k++) {
      const pattern = high[k] | (high[k + 1] << 1) | (high[k + columns + 1] << 2) | (high[k + columns] << 3);
      if (pattern === 0 || pattern === 15) continue;
      const edges = [2 * k, 2 * k + 3, 2 * (k + columns), 2 * k + 1]; // each by the node it starts from: across, down
      for (const [from, to] of PIECES[pattern] ?? SADDLES[pattern][Number(mean(k) >= level)]) {
        next[edges[from]] = edges[to];
        entered[edges[to]] = 1;
      }
    }
  }
  const place = (edge) => {
    const k = edge >> 1, down = edge & 1, from = value[k], to = value[k + (down ? columns : 1)];
    const share = (level - from) / (to - from), i = k % columns, j = (k - i) / columns;
    return down ? [i, j + share] : [i + share, j];
  };
  const follow = (start) => {
    const line = [place(start)];
    for (let edge = next[start], at = start; edge >= 0; [at, edge] = [edge, next[edge]]) {
      next[at] = -1;
      line.push(place(edge));
    }
    return line;
  };
  const lines = [];
  for (let edge = 0; edge < next.length; edge++) if (next[edge] >= 0 && !entered[edge]) lines.push(follow(edge));
  for (let edge = 0; edge < next.length; edge++) if (next[edge] >= 0) lines.push(follow(edge));
  return lines;
}
