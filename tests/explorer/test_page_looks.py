"""How the page looks, in a real browser, on a projector and on a phone: nothing overlaps, is cut off or jumps."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer.page import PHONE, PROJECTOR, drawn, place, played, start_from, until


def overlap(one, other):
    """Whether two texts run into each other; their boxes are a little higher than the letters."""
    across = one["x"] < other["x"] + other["width"] - 1 and other["x"] < one["x"] + one["width"] - 1
    return across and one["y"] + 3 < other["y"] + other["height"] - 3 and other["y"] + 3 < one["y"] + one["height"] - 3


def is_dark(page):
    """Whether the page is dark, by its own colour."""
    return int(re.search(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[0]) < 100


#: Every piece of text that can be seen, with its box; texts of one line of one element are one piece.
TEXTS = """() => {
  const boxes = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const element = node.parentElement;
    const text = node.textContent.trim();
    if (!text || element.closest(".unseen, option, script, noscript, dialog") || !element.checkVisibility()) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const { x, y, width, height } of range.getClientRects()) {
      if (width > 1 && height > 1) boxes.push([text, { x, y, width, height }]);
    }
  }
  return boxes;
}"""
#: Texts that do not fit where they stand.
CUT = """() => [...document.querySelectorAll("h1, button, th, td, caption, dt, dd, p, figcaption, li, label span")]
  .filter((one) => one.checkVisibility() && !one.closest(".unseen, dialog") && one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.textContent)"""


def is_neat(page):
    """No text runs into another or is cut off, and nothing scrolls sideways."""
    boxes = page.evaluate(TEXTS)
    assert [(a, b) for k, (a, one) in enumerate(boxes) for b, other in boxes[:k] if overlap(one, other)] == []
    assert page.evaluate(CUT) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_stand_out(visit, scheme):
    """The body of a point or its outline has a contrast of at least 3 against the paper (WCAG 1.4.11)."""
    page = visit(color_scheme=scheme)
    read = "(one, name) => getComputedStyle(one)[name].match(/\\d+/g).map(Number)"

    def luminance(selector, name):
        colour = np.array(page.eval_on_selector(selector, read, name)[:3]) / 255
        return np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]

    paper = luminance("#board .back", "fill")
    for colour in ("blue", "orange"):
        marks = [luminance(f".point.{colour} .body", name) for name in ("fill", "stroke")]
        assert max((max(mark, paper) + 0.05) / (min(mark, paper) + 0.05) for mark in marks) >= 3


@pytest.mark.parametrize("viewport", [PROJECTOR, PHONE], ids=["projector", "phone"])
def test_every_panel_is_neat(visit, viewport):
    """All texts of all panels and tables: fits of each kind, runs of algorithms with the longest names, both planes."""
    page = visit(viewport=viewport)
    for preset, model in [("xor", "hard"), ("outlier", "squares"), ("overlap", "perceptron"), ("blobs", "logistic")]:
        start_from(page, preset)
        page.select_option("#model", model)
        drawn(page)
        is_neat(page)
    page.click("#tab-steps")
    for first, second in [("pegasos", "dual_cd"), ("logistic", "smo"), ("subgradient", ""), ("running_sum", "smo")]:
        page.select_option("#first", first)
        page.select_option("#second", second)
        played(page)
        expect(page.locator("#steps-count")).to_have_text(re.compile("/ 200"))
        for _ in range(4):
            page.click("#steps-step")
        is_neat(page)
    page.click("#tab-alpha")
    page.click("#two")
    until(page, "document.getElementById('alpha-scrub').max > 0")
    page.click("#alpha-step")
    is_neat(page)
    page.check("input[name=source][value=notes]")
    until(page, "document.getElementById('alpha-hint').textContent.includes('8/7')")
    is_neat(page)


#: Names that are wider than the box they are chosen in.
CUT_NAMES = """() => ["first", "second"].map((id) => document.getElementById(id)).flatMap((box) =>
  [...box.options].filter((option) => {
  const alone = box.cloneNode();
  alone.append(option.cloneNode(true));
  alone.style.cssText = "position: absolute; flex: none; width: max-content; max-width: none";
  box.parentElement.append(alone);
  const width = alone.getBoundingClientRect().width;
  alone.remove();
  return width > box.getBoundingClientRect().width + 1;
}).map((option) => option.text))"""


@pytest.mark.parametrize("viewport", [PROJECTOR, PHONE], ids=["projector", "phone"])
def test_algorithms_are_named_in_full(visit, viewport):
    """No name is cut in the box it is chosen in, and the columns of the numbers keep apart."""
    page = visit(viewport=viewport)
    page.click("#tab-steps")
    expect(page.locator("#steps-count")).to_have_text("0 / 200")
    assert page.evaluate(CUT_NAMES) == []
    boxes = {text: box for text, box in page.evaluate(TEXTS) if text in ("objective", "wrong")}
    assert boxes["wrong"]["x"] - boxes["objective"]["x"] - boxes["objective"]["width"] > 8


def test_marks_and_boxes_on_a_phone(visit):
    """Each panel has its legend, and boxes to tick are large enough for a finger."""
    page = visit(viewport=PHONE)
    for tab in ("fit", "steps", "alpha"):
        page.click(f"#tab-{tab}")
        expect(page.locator(f"#legend-{tab}")).to_be_visible()
        sizes = page.evaluate(
            """[...document.querySelectorAll(".checks input, .check input")].filter((one) => one.checkVisibility())
               .map((one) => [one.offsetWidth, one.offsetHeight, one.parentElement.offsetHeight])"""
        )
        assert len(sizes) >= 4
        assert (np.array(sizes) >= [20, 20, 36]).all()


@pytest.mark.parametrize("viewport", [PROJECTOR, PHONE], ids=["projector", "phone"])
def test_nothing_moves_when_all_points_go(visit, viewport):
    """Clear changes the words, and leaves the numbers and the panel where they are."""
    page = visit(viewport=viewport)
    where = """() => [...document.querySelectorAll("#board, #verdict, .facts, table")]
      .map((one) => Math.round(one.getBoundingClientRect().top + scrollY))"""
    before = page.evaluate(where)
    page.click("#clear")
    expect(page.locator("#verdict")).to_have_text("Add a point of each class.")
    assert page.evaluate(where) == before


@pytest.mark.parametrize("viewport", [PROJECTOR, PHONE], ids=["projector", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_overlaps_and_nothing_jumps(visit, viewport, scheme):
    """No sideways scrolling, no text on another, and the panel stays in place through a drag across it."""
    page = visit(viewport=viewport, color_scheme=scheme)
    for preset in ("notes5", "blobs", "noteshard"):
        start_from(page, preset)
        is_neat(page)
    where = """() => [...document.querySelectorAll("#board, #status, #verdict, .facts, table, [role=tablist]")]
      .map((one) => one.getBoundingClientRect()).map((box) => [box.left, box.top, box.width].map(Math.round))"""
    page.evaluate("scrollTo(0, 0)")
    start = place(page, -0.01, -0.01)
    before = page.evaluate(where)
    page.mouse.move(*start)
    page.mouse.down()
    for k in range(1, 7):  # through the separable and the inseparable
        page.mouse.move(start[0] - 30 * k, start[1] - 6 * k)
        drawn(page)
        assert page.evaluate(where) == before
    page.mouse.up()
    assert is_dark(page) == (scheme == "dark")
    page.click("#theme")
    assert is_dark(page) != (scheme == "dark")
