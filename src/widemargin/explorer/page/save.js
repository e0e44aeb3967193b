// Saving: the board as SVG or PNG with its look written into it, and texts.

const LOOK = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity",
  "font-size", "font-family", "font-weight", "font-variant-numeric", "paint-order", "display",
];

/** The board as the text of a file of its own. */
export function asSvg(svg) {
  const copy = svg.cloneNode(true), { width, height } = svg.getBoundingClientRect();
  const from = [svg, ...svg.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, k) => {
    const style = getComputedStyle(element);
    for (const name of LOOK) to[k].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "role", "aria-roledescription", "style", "data-id"]) to[k].removeAttribute(name);
  });
  for (const element of copy.querySelectorAll('[display="none"]')) element.remove();
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("display", "inline");
  return new XMLSerializer().serializeToString(copy);
}

/** The board as a PNG of twice its size on the screen. */
export async function asPng(svg) {
  const { width, height } = svg.getBoundingClientRect(), address = URL.createObjectURL(new Blob([asSvg(svg)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally { URL.revokeObjectURL(address); }
}

export function download(content, name, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
