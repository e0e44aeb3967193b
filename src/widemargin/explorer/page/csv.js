// Reading a table of points: x, y and a label in each line. What cannot be read is named by its line.

import { point } from "./state.js";

const COLUMNS = "Give x, y and a label, separated by commas, in every line.";
const short = (text) => `“${text.slice(0, 30)}”`;

/** {points, told} from the text of a file; throws an Error that says which line is wrong and what to do. */
export function readTable(text, most, fallback) {
  const rows = rowsOf(text);
  if (!rows.length) throw new Error("The file is empty. Give one point per line: x, y, label.");
  if (!rows[0].cells.slice(0, 2).some(numeric)) rows.shift(); // a header
  if (!rows.length) throw new Error("The file has a header and no points. Give one point per line: x, y, label.");
  if (rows.length > most) {
    const [has, takes] = [rows.length, most].map((count) => count.toLocaleString("en"));
    throw new Error(`The file has ${has} points; this page takes at most ${takes}. Cut it down.`);
  }
  const columns = rows[0].cells.length;
  const found = rows.map((row) => readRow(row, columns));
  if (columns === 2) {
    const told = "There is no third column: all points are of one class. Add points of the other.";
    return { points: found.map(({ x, y }) => point(x, y, fallback)), told };
  }
  return classed(found);
}

/** The cells of each line that has any. One mark separates the cells of the whole file. */
function rowsOf(text) {
  const lines = text.replace(/^\uFEFF/, "").split(/\r\n|\r|\n/).map((line, k) => ({ line: line.trim(), number: k + 1 }));
  const full = lines.filter(({ line }) => line && !line.startsWith("#"));
  const unquoted = full[0]?.line.replace(/"[^"]*"/g, "") ?? "";
  const mark = ["\t", ";", ","].find((one) => unquoted.includes(one)) ?? "\\s";
  return full.map(({ line, number }) => ({ cells: cellsOf(line, mark, number), number }));
}

/** The cells of a line, trimmed and out of their quotes; a doubled quote inside of quotes is one. */
function cellsOf(line, mark, number) {
  const cell = new RegExp(`[^\\S${mark}]*(?:"((?:[^"]|"")*)"|([^"${mark}][^${mark}]*?|))[^\\S${mark}]*(${mark}|$)`, "y");
  const cells = [];
  for (let more = true; more;) {
    const found = cell.exec(line);
    if (!found) throw new Error(`Line ${number}: a quote is not closed, or something follows it. Close it, or leave it out.`);
    cells.push(found[1]?.replaceAll('""', '"').trim() ?? found[2]);
    more = found[3] !== "";
  }
  const kept = mark === "\\s" ? cells.filter((one) => one !== "") : cells;
  return kept.at(-1) === "" ? kept.slice(0, -1) : kept;
}

function readRow({ cells, number }, columns) {
  if (cells.length !== columns || columns < 2 || columns > 3) {
    throw new Error(`Line ${number}: ${cells.length} ${cells.length === 1 ? "column" : "columns"}. ${COLUMNS}`);
  }
  for (const cell of cells.slice(0, 2)) {
    const demand = "The first two columns must be numbers, with a point for the decimals.";
    if (!numeric(cell)) throw new Error(`Line ${number}: ${short(cell)} is not a number. ${demand}`);
  }
  const [x, y] = cells.map(Number);
  if (Math.max(Math.abs(x), Math.abs(y)) > 1e6) {
    const advice = "Divide the columns so that they stay below a million.";
    throw new Error(`Line ${number}: ${cells[0]}, ${cells[1]} is too far out. ${advice}`);
  }
  return { x, y, label: cells[2], number };
}

/** The points in the classes of their labels: the last in order is blue. */
function classed(found) {
  const labels = [...new Set(found.map((row) => row.label))];
  if (labels.length > 2) {
    const row = found.find(({ label }) => label === labels[2]);
    const others = `${short(labels[0])} and ${short(labels[1])}`;
    throw new Error(`Line ${row.number}: ${short(row.label)} is a third label beside ${others}. Keep two classes.`);
  }
  labels.sort((a, b) => (numeric(a) && numeric(b) ? Number(a) - Number(b) : a < b ? -1 : 1));
  const blue = labels.at(-1);
  const told = labels.length === 2
    ? `${found.length} points: “${labels[1]}” is blue, “${labels[0]}” is orange.`
    : `${found.length} points, all of the class “${blue}”.`;
  return { points: found.map(({ x, y, label }) => point(x, y, label === blue ? 1 : -1)), told };
}

const numeric = (cell) => /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(cell ?? "") && Number.isFinite(Number(cell));
