// Drawing without flicker: elements are made once and their attributes changed.

const SPACE = "http://www.w3.org/2000/svg";

export function make(tag, attributes = {}, parent = null) {
  const element = document.createElementNS(SPACE, tag);
  set(element, attributes);
  parent?.append(element);
  return element;
}

export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false) element.removeAttribute(name);
    else if (name === "text") { if (element.textContent !== value) element.textContent = value; }
    else { const text = String(value); if (element.getAttribute(name) !== text) element.setAttribute(name, text); }
  }
  return element;
}

/** As many children of one kind as there are things to draw; those left over are hidden and kept. */
export function pool(parent, tag, things, attributes) {
  things.forEach((thing, k) => set(parent.children[k] ?? make(tag, {}, parent), { display: null, ...attributes(thing, k) }));
  for (let k = things.length; k < parent.children.length; k++) set(parent.children[k], { display: "none" });
}

/** Change a text only where it differs: the browser lays out anew whatever is touched. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** An HTML element with its attributes and children. */
export function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/** A number in a few digits, at least two that count: 1.234, 0.035, 1.2e−4; rounding is 0, unless one asks for two places, as for
 * a gap. */
export function digits(value, places = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  let text;
  if (size < 1e-14 && places > 2) text = "0";
  else if (size === 0) text = "0";
  else if (size < 1e-3 || size >= 1e6) text = value.toExponential(1).replace("e+", "e");
  else {
    const power = Math.floor(Math.log10(size));
    text = value.toFixed(Math.max(0, places - 1 - Math.max(0, power), 1 - power));
  }
  return text.replace(/-/g, "−");
}
