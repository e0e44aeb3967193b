"""Algorithms step by step on the page, in a real browser: each step is the textbook's."""

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect
from scipy.optimize import minimize_scalar

from explorer.page import PHONE, PROJECTOR, module, place, played, start_from, state, until
from widemargin import LinearSVM, textbook
from widemargin.explorer.models import EXACT
from widemargin.losses import LOSSES


def test_twenty_steps_of_pegasos(visit):
    """Each step's w and b are the generator's from the same draws; played to the end they are the same."""
    page = visit()
    start_from(page, "overlap")
    points, labels, _ = state(page)
    page.click("#tab-steps")
    page.select_option("#second", "")
    page.fill("#steps", "20")
    page.press("#steps", "Enter")
    expect(page.locator("#steps-count")).to_have_text("0 / 20")
    draws = np.random.default_rng(0).integers(len(labels), size=20).tolist()
    expected = list(textbook.pegasos(points, labels, 1 / len(labels), draws, fit_intercept=True))

    def now():
        return [float(page.get_attribute(f'[data-step="0-{key}"]', "data-value")) for key in ("w1", "w2", "b")]

    for step in expected:
        page.click("#steps-step")
        assert now() == [*step.w, step.b]
        assert page.inner_text('[data-step="0-i"]') == str(step.i + 1)
    path = page.get_attribute(".plane.first .path", "points")
    assert len(path.split()) == 21
    page.click("#steps-start")
    page.fill("#steps-speed", "2.5")
    page.click("#steps-play")
    expect(page.locator("#steps-count")).to_have_text("20 / 20")
    assert now() == [*expected[-1].w, expected[-1].b]
    assert page.get_attribute(".plane.first .path", "points") == path


@pytest.mark.parametrize(("first", "second"), [("pegasos", "dual_cd"), ("perceptron", "mira")])
def test_two_algorithms_take_the_same_points(visit, first, second):
    """Side by side, both light the same point at each step, and draw a line and a path each."""
    page = visit()
    start_from(page, "overlap")
    page.click("#tab-steps")
    page.select_option("#first", first)
    page.select_option("#second", second)
    played(page)
    expect(page.locator("#steps-count")).to_have_text("0 / 200")
    for _ in range(5):
        page.click("#steps-step")
        assert page.inner_text('[data-step="0-i"]') == page.inner_text('[data-step="1-i"]') != "–"
    expect(page.locator(".lit circle:not([display='none'])")).to_have_count(1)
    for look in ("first", "second"):
        expect(page.locator(f".lines .{look}:not(.thin):not([display='none'])")).to_have_count(1)
        assert len(page.get_attribute(f".plane.{look} .path", "points").split()) == 6
        assert len(page.get_attribute(f".curve-lines .{look}", "points").split()) == 5


def test_hildreth_in_the_plane_of_two_points(visit):
    """The notes' example ends at (8/7, 10/7); two points of the board end at the hard margin without a bias."""
    page = visit()
    start_from(page, "two")
    page.click("#tab-alpha")
    until(page, "document.getElementById('alpha-scrub').max > 0")
    page.keyboard.press("Tab")
    page.focus("#alpha-scrub")
    page.keyboard.press("End")
    points, labels, _ = state(page)
    w = LinearSVM(C=np.inf, fit_intercept=False, tol=EXACT).fit(points, labels).coef_[0]
    alpha = np.array(json.loads(page.get_attribute("#alpha-readout", "data-value")))
    np.testing.assert_allclose((alpha * labels) @ points, w, rtol=1e-6)
    page.check("input[name=source][value=notes]")
    until(page, "document.getElementById('alpha-hint').textContent.includes('8/7')")
    page.focus("#alpha-scrub")
    page.keyboard.press("End")
    np.testing.assert_allclose(json.loads(page.get_attribute("#alpha-readout", "data-value")), [8 / 7, 10 / 7])


@pytest.mark.parametrize("preset", ["blobs", "overlap", "crowd"])
def test_the_two_points_of_the_plane_are_named(visit, preset):
    """In any crowd the board says which points are 1 and 2."""
    page = visit()
    start_from(page, preset)
    page.click("#tab-alpha")
    tags = page.locator(".labels text:not([display='none'])")
    expect(tags).to_have_text(["1", "2"])
    for k, (x, y) in enumerate(state(page)[0][:2]):
        box, (px, py) = tags.nth(k).bounding_box(), place(page, x, y)
        assert np.hypot(box["x"] + box["width"] / 2 - px, box["y"] + box["height"] / 2 - py) < 35


@pytest.mark.parametrize("viewport", [PROJECTOR, PHONE], ids=["projector", "phone"])
def test_a_path_that_leaves_its_plane_is_followed(visit, viewport):
    """Pegasos begins far outside: an arrow at the edge, on the line from the origin to w; inside it is a dot."""
    page = visit(viewport=viewport)
    page.click("#tab-steps")
    expect(page.locator("#steps-count")).to_have_text("0 / 200")
    plane, now = page.locator("#panel-steps .plane.first"), page.locator("#panel-steps .plane.first .now")

    def mark():
        return list(map(float, re.findall(r"-?[\d.]+", now.get_attribute("transform"))))

    x0, y0 = mark()
    page.click("#steps-step")
    box, (x, y, turn) = plane.bounding_box(), mark()
    assert min(x, y, box["width"] - x, box["height"] - y) == pytest.approx(9, abs=1.1)
    w = [float(page.get_attribute(f'[data-step="0-{key}"]', "data-value")) for key in ("w1", "w2")]
    angle = np.degrees(np.arctan2(-w[1], w[0]))
    assert turn == pytest.approx(angle, abs=0.1)
    assert np.degrees(np.arctan2(y - y0, x - x0)) == pytest.approx(angle, abs=0.1)
    page.focus("#steps-scrub")
    page.keyboard.press("End")
    assert len(mark()) == 2


@pytest.mark.parametrize("shift", [0, 40, 1e4])
@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_contours_have_the_best_bias(visit, loss, shift):
    """The height of the plane is the least over b, as SciPy finds it with the package's losses, wherever points lie."""
    page = visit()
    rng = np.random.default_rng(0)
    labels = np.where(np.arange(9) % 3, 1, -1)
    centred = rng.normal(size=(9, 2))
    points = centred + shift
    sent = [{"x": x, "y": y, "s": int(s)} for (x, y), s in zip(points.tolist(), labels, strict=True)]
    for u, v in [(0.3, -0.2), (5, 2), (-40, 30)]:
        lowers = json.dumps({"loss": loss, "penalised": True, "strength": 2, "bias": True})
        height = module(page, "plane.js", f"return its.objective({lowers}, {json.dumps(sent)})({u}, {v});")

        def total(b, w=(u, v)):
            return (w[0] ** 2 + w[1] ** 2) / 2 + 2 * LOSSES[loss].value(labels * (centred @ w + b)).sum()

        assert height == pytest.approx(minimize_scalar(total, (-1, 1), options={"xtol": 1e-12}).fun, rel=1e-6)
