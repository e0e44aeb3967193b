// Reading a table of points: x, y and a label in each line. What cannot be read is named by its line.

import { point } from "./state.js";

/** {points, told} from the text of a file; throws an Error that says which line is wrong and what to do. */
export function readTable(text, most, fallback) {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\r|\n/).map((line, k) => [line.trim(), k + 1]).filter(([line]) => line && !line.startsWith("#"));
  if (!lines.length) throw new Error("The file is empty. Give one point per line: x, y, label.");
  const rows = lines.map(([line, number]) => [line.split(/[,;\t]|\s+/).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1")).filter((cell, k, all) => cell !== "" || k < all.length - 1), number]);
  if (!rows[0][0].slice(0, 2).some(numeric)) rows.shift(); // a header
  if (!rows.length) throw new Error("The file has a header and no points. Give one point per line: x, y, label.");
  if (rows.length > most) throw new Error(`The file has ${rows.length.toLocaleString("en")} points; this page takes at most ${most.toLocaleString("en")}. Cut it down.`);
  const columns = rows[0][0].length;
  const found = rows.map(([cells, number]) => {
    if (cells.length !== columns || columns < 2 || columns > 3) throw new Error(`Line ${number}: ${cells.length} ${cells.length === 1 ? "column" : "columns"}. Give x, y and a label, separated by commas, in every line.`);
    for (const cell of cells.slice(0, 2)) if (!numeric(cell)) throw new Error(`Line ${number}: “${cell.slice(0, 30)}” is not a number. The first two columns must be numbers, with a point for the decimals.`);
    const [x, y] = cells.slice(0, 2).map(Number);
    if (Math.max(Math.abs(x), Math.abs(y)) > 1e6) throw new Error(`Line ${number}: ${cells[0]}, ${cells[1]} is too far out. Divide the columns so that they stay below a million.`);
    return { x, y, label: cells[2], number };
  });
  if (columns === 2) return { points: found.map(({ x, y }) => point(x, y, fallback)), told: "There is no third column: all points are of one class. Add points of the other." };
  const labels = [...new Set(found.map((row) => row.label))];
  if (labels.length > 2) { const row = found.find(({ label }) => label === labels[2]); throw new Error(`Line ${row.number}: “${row.label.slice(0, 30)}” is a third label beside “${labels[0].slice(0, 30)}” and “${labels[1].slice(0, 30)}”. Keep two classes.`); }
  labels.sort((a, b) => (numeric(a) && numeric(b) ? Number(a) - Number(b) : a < b ? -1 : 1));
  const blue = labels.at(-1);
  const told = labels.length === 2 ? `${found.length} points: “${labels[1]}” is blue, “${labels[0]}” is orange.` : `${found.length} points, all of the class “${blue}”.`;
  return { points: found.map(({ x, y, label }) => point(x, y, label === blue ? 1 : -1)), told };
}

const numeric = (cell) => cell !== undefined && cell !== "" && Number.isFinite(Number(cell)) && /^[-+.\d]/.test(cell);
