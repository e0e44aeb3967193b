// The page: brings state, server and drawings together. A change is drawn in the next frame and sent at once.

import { AlphaPlane } from "./alpha.js";
import { Connection, Line, command } from "./api.js";
import { Board } from "./board.js";
import { readTable } from "./csv.js";
import { Lifted } from "./lifted.js";
import { Numbers } from "./numbers.js";
import { PRESETS, preset } from "./presets.js";
import { asPng, asSvg, download } from "./save.js";
import { Store, fromAddress, viewOf } from "./state.js";
import { Steps } from "./steps.js";
import { digits, html, say, set } from "./svg.js";

const $ = (id) => document.getElementById(id);
const TOUCH = matchMedia("(pointer: coarse), (max-width: 520px)");
const TOUCH_HELP = "Tap to add a point, drag a point to move it. Choose the class and the tool above.";
const HELP = "Click to add a point (Shift: the other class), drag to move it. With the keyboard: Tab to the board; Enter adds a "
  + "point, arrows move it, N and P go on, D doubles, F changes class, Delete removes.";
const store = new Store();
let choices = null, fit = null, fitted = null;

const banner = (text, kind = "bad", actions = []) => {
  const root = $("banner");
  root.hidden = !text;
  root.className = kind;
  root.replaceChildren(...(text ? [html("span", {}, text), ...actions] : []));
};
/** A message that can be closed. Good news go by themselves, bad ones when a later change has its fit. */
let leaving = null, told = null;
const notice = (text, kind) => {
  clearTimeout(leaving);
  banner(text, kind, [html("button", { type: "button", "aria-label": "Close the message", onclick: () => banner(null) }, "×")]);
  told = kind === "bad" ? store.version : null;
  if (kind === "quiet") leaving = setTimeout(() => { if ($("banner").className === "quiet") banner(null); }, 8000);
};
const settle = (version) => {
  if (told === null || version <= told) return;
  told = null;
  banner(null);
};
const connection = new Connection((text) => { told = null; banner(text); draw(); });

const checked = (name) => document.querySelector(`input[name="${name}"]:checked`).value;
const status = (text) => {
  set($("status"), { "aria-live": store.gesture ? "off" : "polite" }); // nobody wants to hear every place of a drag
  say($("status"), text ?? (TOUCH.matches ? TOUCH_HELP : HELP));
};
const label = () => Number(checked("class"));
const board = new Board($("board"), store, { status, tool: () => checked("tool"), label, choose: () => draw() });
board.shown = { hulls: true, slack: true, alpha: true };

// Drawing: at most once a frame.

let waiting = false;
function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    const stale = (connection.lost || numbers.stale) && fitted?.version !== store.version;
    document.documentElement.classList.toggle("stale", stale);
    numbers.age(stale);
    board.draw(scene());
    document.documentElement.dataset.drawn = fitted?.version ?? -1;
  });
}

function scene() {
  if (store.tab === "steps") return steps.scene();
  if (store.tab === "alpha") return alpha.scene();
  if (!fit || !fitted) return {};
  const ids = fitted.ids;
  const name = (indices) => indices?.map((k) => ids[k]);
  return {
    facts: fit.w || fit.kernel ? factsOf(fit, ids) : null,
    curve: fit.curve,
    line: fit.w ? { w: fit.w, b: fit.b } : null,
    band: true,
    nearest: fit.nearest,
    hulls: fit.hulls && !fit.kernel && { positive: name(fit.hulls.positive), negative: name(fit.hulls.negative) },
    proof: fit.inseparable && proofOf(fit.inseparable, fitted.points),
  };
}

/** What a fit says of each point, by its id. */
function factsOf({ alpha, support, xi, margins, kinds }, ids) {
  const supports = new Set(support);
  const fact = (k) => ({ alpha: alpha?.[k] ?? null, supports: supports.has(k), xi: xi[k], margin: margins[k], kind: kinds[k] });
  return new Map(ids.map((id, k) => [id, fact(k)]));
}

/** The proof that no line separates: rays from the star to the points whose weighted mean it is. */
function proofOf({ point, positive, positive_weights: u, negative, negative_weights: v }, points) {
  const through = negative.length > 0, at = through ? point : [0, 0];
  const ray = (index, weight, side, sign = 1) =>
    ({ from: at, to: [sign * points[index].x, sign * points[index].y], weight, side });
  if (through) {
    const [blue, orange] = [positive.map((k, j) => ray(k, u[j], "blue")), negative.map((k, j) => ray(k, v[j], "orange"))];
    return { point: at, rays: [...blue, ...orange] };
  }
  const rays = positive.map((k, j) => ray(k, u[j], points[k].s > 0 ? "blue" : "orange", points[k].s));
  return { point: at, rays, mirrored: points.filter((p) => p.s < 0).map((p) => [-p.x, -p.y]) };
}

// Questions to the server.

const numbers = new Numbers($("numbers"), $("verdict"), $("why"), {
  soften: () => store.change({ model: "soft" }),
  bend: () => store.change({ model: "kernel", solver: "auto", kernel: "rbf", gamma: "scale" }),
});
const lifted = new Lifted($("lifted-place"));
const isKernel = () => store.model === "kernel";
const isQuadratic = () => isKernel() && store.kernel === "poly" && store.degree === 2;
/** The lifted view belongs to a fit that is there: of degree 2, and asked for. */
const lift = () => {
  const wanted = store.lifted && store.tab === "fit" && fit?.kernel?.name === "poly" && fit.kernel.degree === 2;
  lifted.show(wanted ? fit.curve : null, fitted?.points);
};
let steps = null, alpha = null;
const SOON = 50;
let late = null;
const fitLine = new Line(connection, "api/fit",
  () => {
    const { points, version, model } = store;
    return { request: store.asked(), version, ids: points.map((p) => p.id), points, model };
  },
  (answer, asked) => {
    [fit, fitted] = [answer, asked];
    if (fit.kernel) fit.curve = { kernel: fit.kernel, rows: fit.rows.map((k) => [asked.points[k].x, asked.points[k].y]), coef: fit.coef, b: fit.b };
    numbers.show(fit, choices.models[asked.model]);
    showGamma();
    lift();
    if (!fit.error) settle(asked.version);
    clearTimeout(late);
    late = null;
    draw();
  });
const stepsLine = new Line(connection, "api/steps",
  () => (store.tab === "steps" ? { request: steps.request(), points: store.points } : null),
  (answer, asked) => { steps.receive(answer, asked.points); draw(); });
const alphaLine = new Line(connection, "api/hildreth",
  () => {
    const request = store.tab === "alpha" ? alpha.request() : null;
    if (!request && store.tab === "alpha") alpha.missing();
    return request && { request };
  },
  (answer, asked) => { alpha.receive(answer, asked.request); draw(); });

// Controls.

function fillSolvers() {
  const solvers = Object.entries(choices.models[store.model].solvers);
  $("solver").replaceChildren(...solvers.map(([name, title]) => html("option", { value: name }, title)));
  $("solver").dataset.model = store.model;
}

/** γ is the slider's, or what "scale" has come to on the points of the last fit. */
function showGamma() {
  const gamma = store.gamma === "scale" ? fit?.kernel?.gamma : store.gamma;
  say($("gamma-value"), gamma === undefined ? "" : digits(gamma, 3));
  if (gamma > 0 && Math.abs(Number($("gamma").value) - Math.log10(gamma)) > 0.03) $("gamma").value = Math.log10(gamma);
}

function syncKernel() {
  const kernel = choices.kernels[store.kernel], on = isKernel() && store.tab === "fit";
  $("kernel").value = store.kernel;
  $("scale").checked = store.gamma === "scale";
  $("degree").value = store.degree;
  if (document.activeElement !== $("coef0")) $("coef0").value = store.coef0;
  $("lifted").checked = store.lifted;
  for (const name of ["kernel", "gamma", "scale"]) $(`field-${name}`).hidden = !on;
  for (const name of ["degree", "coef0"]) $(`field-${name}`).hidden = !on || !kernel.parameters.includes(name);
  $("field-lifted").hidden = !on || !isQuadratic();
  if (on) $("model-hint").textContent = `${choices.models.kernel.hint} ${kernel.formula}. ${kernel.hint}`;
  $("show-hulls").disabled = on;
  showGamma();
}

let synced = "";
function sync() {
  const { model: name, solver, C, bias, tab, first, second, seed, steps: count, past, future, points, preset: origin } = store;
  const { kernel, gamma, degree, coef0, lifted: isLifted } = store;
  const now = [kernel, gamma, degree, coef0, isLifted, name, solver, C, bias, tab, first, second, seed, count, past.length, future.length, points.length > 0, origin].join();
  if (now === synced) return; // a drag changes none of them
  synced = now;
  const held = document.activeElement;
  $("preset").value = origin;
  const model = choices.models[store.model];
  if ($("solver").dataset.model !== store.model) fillSolvers();
  $("model").value = store.model;
  $("solver").value = store.solver;
  $("solver").disabled = Object.keys(model.solvers).length < 2;
  const wanted = Math.log10(store.C);
  if (Math.abs(Number($("C").value) - wanted) > 0.03) $("C").value = wanted;
  const played = steps.names.map((name) => choices.algorithms[name]);
  const strong = { fit: Boolean(model.strength), steps: played.some((one) => one.strength), alpha: store.model !== "hard" };
  const acts = strong[store.tab];
  $("C").disabled = !acts;
  $("C-value").textContent = acts ? String(store.C) : store.model === "hard" && store.tab !== "steps" ? "∞" : "–";
  $("field-C").title = store.tab === "fit" ? model.strength : "";
  $("bias").checked = store.bias;
  const decided = played.some((one) => one.bias === "none") || played.every((one) => one.bias === "always");
  $("bias").disabled = store.tab === "steps" && decided;
  $("model-hint").textContent = [model.hint, model.strength].filter(Boolean).join(" ");
  $("field-model").hidden = store.tab === "steps";
  $("field-solver").hidden = store.tab !== "fit" || isKernel();
  $("field-bias").hidden = store.tab === "alpha" || (store.tab === "fit" && isKernel());
  syncKernel();
  $("undo").disabled = !store.past.length;
  $("redo").disabled = !store.future.length;
  $("clear").disabled = !store.points.length;
  for (const tab of ["fit", "steps", "alpha"]) {
    const on = store.tab === tab;
    $(`tab-${tab}`).setAttribute("aria-selected", on);
    $(`tab-${tab}`).tabIndex = on ? 0 : -1;
    $(`panel-${tab}`).hidden = !on;
    $(`legend-${tab}`).hidden = !on;
  }
  steps.sync();
  lift();
  if (held.disabled || held.closest("[hidden]")) board.home();
}

const settled = debounce(() => {
  const address = store.toAddress();
  if (location.hash !== address) history.replaceState(null, "", address);
  document.documentElement.dataset.settled = store.version;
}, 250);

let asked = { version: -1 };
store.onChange(() => {
  document.documentElement.dataset.version = store.version;
  sync();
  // In a drag the points wait for a fit that will be there soon, and are drawn with it; before a slow one they go ahead.
  if (store.gesture && fitLine.took < SOON) late ??= setTimeout(() => { late = null; draw(); }, SOON);
  else draw();
  settled();
  const extra = [store.tab, store.first, store.second, store.seed, store.steps].join();
  if (asked.version !== store.version) fitLine.ask();
  if (asked.version !== store.version || asked.extra !== extra) {
    if (store.tab === "steps") stepsLine.ask();
    if (store.tab === "alpha") alphaLine.ask();
  }
  asked = { version: store.version, extra };
  if (!store.gesture && steps.rough) steps.survey();
});

function debounce(act, time) {
  let timer = null;
  return () => { clearTimeout(timer); timer = setTimeout(act, time); };
}

const start = (name) => store.change(preset(name));

function listen() {
  const none = html("option", { value: "", disabled: true, selected: true }, "choose…");
  $("preset").append(none, ...Object.entries(PRESETS).map(([name, [title]]) => html("option", { value: name }, title)));
  $("preset").addEventListener("change", () => start($("preset").value));
  $("model").append(...Object.entries(choices.models).map(([name, { title }]) => html("option", { value: name }, title)));
  $("model").addEventListener("change", () => {
    const model = $("model").value, solver = choices.models[model].solvers[store.solver] ? store.solver : "auto";
    store.change({ model, solver });
  });
  $("solver").addEventListener("change", () => store.change({ solver: $("solver").value }));
  for (const slider of ["C", "gamma"]) {
    $(slider).addEventListener("pointerdown", () => { store.begin(); addEventListener("pointerup", () => store.end(), { once: true }); });
  }
  $("C").addEventListener("input", () => store.change({ C: Number((10 ** Number($("C").value)).toPrecision(3)) }));
  $("bias").addEventListener("change", () => store.change({ bias: $("bias").checked }));
  $("kernel").append(...Object.entries(choices.kernels).map(([name, { title }]) => html("option", { value: name }, title)));
  $("kernel").addEventListener("change", () => store.change({ kernel: $("kernel").value }));
  $("gamma").addEventListener("input", () => store.change({ gamma: Number((10 ** Number($("gamma").value)).toPrecision(3)) }));
  $("scale").addEventListener("change", () => store.change({ gamma: $("scale").checked ? "scale" : Number((10 ** Number($("gamma").value)).toPrecision(3)) }));
  $("degree").addEventListener("change", () => store.change({ degree: Number($("degree").value) }));
  $("coef0").addEventListener("change", () => {
    const coef0 = Math.max(0, Math.min(1000, Number($("coef0").value) || 0));
    $("coef0").value = coef0;
    store.change({ coef0 });
  });
  $("lifted").addEventListener("change", () => store.change({ lifted: $("lifted").checked }));
  $("undo").addEventListener("click", () => store.undo());
  $("redo").addEventListener("click", () => store.redo());
  $("clear").addEventListener("click", () => store.change({ points: [] }));
  $("zoom-in").addEventListener("click", () => board.zoom(1 / 1.3));
  $("zoom-out").addEventListener("click", () => board.zoom(1.3));
  $("zoom-fit").addEventListener("click", () => store.change({ view: viewOf(store.points) }));
  for (const what of ["hulls", "slack", "alpha"]) {
    $(`show-${what}`).addEventListener("change", (event) => { board.shown[what] = event.target.checked; draw(); });
  }
  const tabs = [...document.querySelectorAll("[role=tab]")];
  tabs.forEach((tab, k) => {
    tab.addEventListener("click", () => store.change({ tab: tab.id.slice(4) }));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: k + 1, ArrowLeft: k - 1 }[event.key];
      if (to === undefined) return;
      const next = tabs[(to + tabs.length) % tabs.length];
      store.change({ tab: next.id.slice(4) });
      next.focus();
    });
  });
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || /^(text|number)$/.test(event.target.type)) return;
    const key = event.key.toLowerCase();
    if (key === "z" || key === "y") { event.preventDefault(); (key === "y" || event.shiftKey ? store.redo() : store.undo()); }
  });
  addEventListener("hashchange", () => {
    try { open(location.hash); } catch (error) { notice(error.message, "bad"); }
  });
  $("load").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", async () => { const [file] = $("file").files; $("file").value = ""; if (file) load(file); });
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => { event.preventDefault(); const [file] = event.dataTransfer.files; if (file) load(file); });
  $("share").addEventListener("click", share);
  $("save-svg").addEventListener("click", () => download(asSvg($("board")), "widemargin.svg", "image/svg+xml"));
  $("save-png").addEventListener("click", async () => download(await asPng($("board")), "widemargin.png"));
  $("save-code").addEventListener("click", showCode);
  $("code-close").addEventListener("click", () => $("code-dialog").close());
  $("code-copy").addEventListener("click", async () => { if (await copied($("code").textContent)) $("code-copy").textContent = "Copied"; });
  $("code-save").addEventListener("click", () => download($("code").textContent, "fit.py", "text/x-python"));
  $("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
  board.onResize = () => { draw(); if (steps.answer) { steps.survey(); steps.show(); } alpha.show(); lifted.draw(); };
}

async function load(file) {
  if (file.size > 5e6) {
    const size = Math.round(file.size / 1e6);
    return notice(`${file.name} has ${size} MB; a file of ${choices.most} points is much smaller. Cut it down.`, "bad");
  }
  try {
    const table = readTable(await file.text(), choices.most, label());
    store.change({ points: table.points, view: viewOf(table.points) });
    notice(`${file.name}: ${table.told}`, "quiet");
  } catch (error) { notice(`${file.name}: ${error.message}`, "bad"); }
}

async function copied(text) {
  try { await navigator.clipboard.writeText(text); return true; } catch { return false; }
}

async function share() {
  history.replaceState(null, "", store.toAddress());
  const done = await copied(location.href);
  const where = "on this machine while this server runs; elsewhere, add its part from the # on to the address there.";
  notice(`${done ? "The link is copied. It" : "Copy the address: it"} brings back these points and settings ${where}`, "quiet");
}

async function showCode() {
  try {
    const { answer } = await connection.post("api/code", store.asked());
    $("code").textContent = answer.code ?? answer.error;
    $("code-copy").textContent = "Copy";
    $("code-dialog").showModal();
  } catch { connection.lose(); }
}

const isDark = () => {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("widemargin-theme", theme); } catch { /* private window */ }
}

/** Take over the state that an address holds; true if it holds one. Throws where it is damaged. */
function open(hash) {
  if (hash === store.toAddress()) return true;
  const found = fromAddress(hash, choices);
  if (found) store.change(found);
  return Boolean(found);
}

async function begin() {
  try {
    const theme = localStorage.getItem("widemargin-theme");
    if (theme) document.documentElement.dataset.theme = theme;
  } catch { /* private window */ }
  try {
    choices = await (await fetch("api/choices")).json();
  } catch { return banner(`The server does not answer. Run ${command()} and reload this page.`); }
  board.most = choices.most;
  steps = new Steps($("panel-steps"), store, choices.algorithms, draw);
  alpha = new AlphaPlane($("panel-alpha"), store, draw, () => start("two"));
  alpha.line = alphaLine;
  listen();
  board.resize();
  try {
    if (!open(location.hash)) start("blobs");
  } catch (error) {
    start("blobs");
    notice(error.message, "bad");
  }
  store.past = [];
  sync();
  document.documentElement.dataset.ready = "yes";
}

begin();
