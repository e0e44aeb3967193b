"""The page without a mouse, in a real browser: keys, focus, and what is read aloud."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer.page import agrees_with_the_estimator, drawn, place, start_from, state


def tab_to(page, selector):
    """Press Tab until the focus is there."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab never comes to {selector}")


def test_with_the_keyboard_alone(visit):
    """A point is reached by Tab, moved by arrows, changed, doubled, removed; undo and redo bring all of it back."""
    page = visit()
    start_from(page, "notes4")
    focused = page.locator(".point:focus")
    tab_to(page, ".point")
    expect(focused).to_have_role("button")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("n")
    expect(focused).to_have_attribute("aria-label", re.compile("blue point 2 at 1, -1"))
    page.keyboard.press("F")  # Caps Lock
    drawn(page)
    points, labels, _ = state(page)
    np.testing.assert_allclose(points[0], [1 + 0.06 - 0.006, 1.06])
    assert labels.tolist() == [1, -1, -1, -1]
    page.keyboard.press("D")
    expect(focused).to_have_attribute("aria-label", re.compile("orange point 5"))
    page.keyboard.press("Delete")
    expect(page.locator(".point")).to_have_count(4)
    expect(focused).to_have_attribute("aria-label", re.compile("point 4"))
    page.keyboard.press("P")
    expect(focused).to_have_attribute("aria-label", re.compile("point 3"))
    for _ in range(6):
        page.keyboard.press("Control+z")
    np.testing.assert_array_equal(state(page)[0], [[1, 1], [1, -1], [-1, 1], [-1, -1]])
    page.keyboard.press("Control+Shift+Z")
    np.testing.assert_allclose(state(page)[0][0], [1.06, 1])
    unlabelled = page.evaluate(
        """[...document.querySelectorAll("button, select, input")].filter((one) => one.type !== "hidden" &&
           !one.ariaLabel && !one.textContent.trim() && !one.labels?.length).map((one) => one.outerHTML)"""
    )
    assert unlabelled == []


def test_an_empty_board_with_the_keyboard(visit):
    """Tab reaches the board though nothing is on it; Enter adds points at its centre, each of them in focus."""
    page = visit()
    tab_to(page, "#clear")
    page.keyboard.press("Enter")
    expect(page.locator(".point")).to_have_count(0)
    expect(page.locator("#board")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".point:focus")).to_have_attribute("aria-label", re.compile("blue point 1 at 0, 0"))
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator(".point:focus")).to_have_attribute("aria-label", re.compile("blue point 2 at 0, 0"))
    page.keyboard.press("f")
    drawn(page)
    agrees_with_the_estimator(page)
    assert page.get_attribute("#board", "tabindex") is None
    for _ in range(2):
        page.keyboard.press("Delete")
    expect(page.locator("#board")).to_be_focused()
    page.keyboard.press("Control+z")
    expect(page.locator(".point:focus")).to_have_count(1)


def test_the_focus_stays_with_what_is_left(visit):
    """Undo takes away the point in focus, or the last thing that can be undone: the keyboard goes on from a point."""
    page = visit()
    tab_to(page, ".point")
    page.keyboard.press("Enter")
    expect(page.locator(".point:focus")).to_have_attribute("aria-label", re.compile("point 41"))
    page.keyboard.press("Control+z")
    expect(page.locator(".point")).to_have_count(40)
    expect(page.locator(".point:focus")).to_have_count(1)
    page.keyboard.press("f")
    page.focus("#undo")
    page.keyboard.press("Enter")
    expect(page.locator("#undo")).to_be_disabled()
    expect(page.locator(".point:focus")).to_have_count(1)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e5])
def test_a_step_is_as_small_as_the_view(visit, scale):
    """An arrow moves a point by about an 80th of the view whatever its scale, and only along its own axis."""
    page = visit()
    text = "".join(f"{x * scale},{y * scale},{s}\n" for x, y, s in [(1, 1.23456789, "a"), (-1, 1, "b"), (0, -1, "b")])
    page.set_input_files("#file", {"name": "small.csv", "mimeType": "text/csv", "buffer": text.encode()})
    expect(page.locator("#banner")).to_contain_text("3 points")
    drawn(page)
    before, _, parts = state(page)
    page.locator(".point").first.focus()
    page.keyboard.press("ArrowRight")
    after, span = state(page)[0], float(parts["v"].split(",")[2])
    np.testing.assert_array_equal(after[1:], before[1:])
    assert after[0, 1] == before[0, 1]
    assert after[0, 0] - before[0, 0] == pytest.approx(span / 80, rel=0.4)


def test_what_is_read_aloud(visit):
    """The verdict is a polite live region; the numbers, which every move of a drag rewrites, are none."""
    page = visit()
    expect(page.locator("#verdict")).to_have_role("status")
    assert page.eval_on_selector_all("output", "all => new Set(all.map((one) => one.ariaLive)).size") == 1
    assert page.get_attribute("output", "aria-live") == "off"
    at = place(page, *state(page)[0][0])
    page.mouse.move(*at)
    expect(page.locator("#status")).to_have_attribute("aria-live", "polite")
    page.mouse.down()
    page.mouse.move(at[0] + 20, at[1])
    expect(page.locator("#status")).to_have_attribute("aria-live", "off")
    page.mouse.up()
