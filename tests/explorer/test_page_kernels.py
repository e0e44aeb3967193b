"""The kernel SVM on the page, in a real browser: curves, the lifted view, and settings are what the estimator says."""

import json
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer.loopback import kernel_svm
from explorer.page import (
    PHONE,
    PROJECTOR,
    agrees_with_the_kernel_svm,
    curve,
    drag,
    drawn,
    kernel_model,
    module,
    place,
    shown,
    start_from,
    state,
    until,
)
from explorer.test_page_looks import is_neat
from oracles import noisy
from widemargin.explorer.models import KERNELS

#: How far a traced curve may be from its level: its pieces are straight lines over cells of 5 pixels.
TRACED = 0.03


def sent(model):
    """A fitted kernel SVM as the page has it."""
    kernel = model.kernel_
    facts = {"name": kernel.name, "gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
    rows, coef = model.support_vectors_.tolist(), model.dual_coef_[0].tolist()
    return json.dumps({"kernel": facts, "rows": rows, "coef": coef, "b": float(model.intercept_[0])})


@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_are_those_of_the_estimator(visit, kernel):
    """What the page evaluates on a grid equals `decision_function` there, to the rounding."""
    X, y = noisy(60, 2, seed=1)
    model = kernel_svm(kernel, 0.4, 3, 0.5).fit(X, y)
    xs, ys = np.linspace(-2, 2, 7), np.linspace(-1, 3, 5)
    found = module(visit(), "kernel.js", f"return [...its.scores({sent(model)}, {xs.tolist()}, {ys.tolist()})];")
    places = np.array([[x, y] for y in ys for x in xs])
    np.testing.assert_allclose(found, model.decision_function(places), rtol=1e-9, atol=1e-9)


def test_contours_of_a_circle_and_of_a_saddle(visit):
    """x² + y² = 0.5 is one closed line at its radius; xy = ±0.1 are two open lines each, and no cell is left out."""
    steps = np.linspace(-1, 1, 41)
    x, y = np.meshgrid(steps, steps)
    page = visit()

    def lines(value, level):
        traced = f"return its.contours(Float64Array.from({value.ravel().tolist()}), 41, {level});"
        return [np.array(line) / 20 - 1 for line in module(page, "contours.js", traced)]

    (circle,) = lines(x**2 + y**2, 0.5)
    np.testing.assert_array_equal(circle[0], circle[-1])
    np.testing.assert_allclose(np.hypot(*circle.T), np.sqrt(0.5), atol=1e-3)
    turned = np.unwrap(np.arctan2(*circle.T[::-1]))
    assert abs(turned[-1] - turned[0]) == pytest.approx(2 * np.pi)
    for level in (0.1, -0.1):
        branches = lines(x * y, level)
        assert len(branches) == 2
        for branch in branches:
            np.testing.assert_allclose(branch.prod(axis=1), level, atol=1e-3)
            assert (np.abs(branch[[0, -1]]).max(axis=1) == 1).all()


@pytest.mark.parametrize("preset", ["moons", "circles", "moons200"])
def test_the_curves_are_where_the_score_is_their_level(visit, preset):
    """At every corner of what is drawn, `decision_function` is 0 on the boundary and ±1 on the edges of the band."""
    page = visit()
    start_from(page, preset)
    model = agrees_with_the_kernel_svm(page)
    assert shown(page, "misclassified") == [0]
    (boundary,) = curve(page, "separator")
    assert len(boundary) > 50
    np.testing.assert_allclose(model.decision_function(boundary), 0, atol=TRACED)
    for edge, level in zip(curve(page, "edge"), (-1, 1), strict=True):
        assert len(edge) > 50
        np.testing.assert_allclose(model.decision_function(edge), level, atol=TRACED)
    expect(page.locator(".levels text:not([display='none'])")).to_have_count(3)
    assert page.locator("#lifted-view").is_visible() == (preset == "circles")


def test_the_curve_follows_the_drag(visit):
    """While the point is still held, the boundary is that of the points as they are; zooming keeps it in its place."""
    page = visit()
    start_from(page, "moons")
    before = curve(page, "separator")[0]
    start = place(page, *state(page)[0][0])
    page.mouse.move(*start)
    page.mouse.down()
    for k in range(1, 7):
        page.mouse.move(start[0] - 25 * k, start[1] + 30 * k)
        drawn(page)
    during = curve(page, "separator")[0]
    model = kernel_model(page)
    np.testing.assert_allclose(model.decision_function(during), 0, atol=TRACED)
    assert np.abs(model.decision_function(before)).max() > 0.2
    page.mouse.up()
    page.click("#zoom-out")
    until(page, "location.hash.includes(',8.45&')")
    np.testing.assert_allclose(model.decision_function(curve(page, "separator")[0]), 0, atol=2 * TRACED)


def test_marks_and_slacks_of_a_kernel_svm(visit):
    """Rings, dots, crosses and slack lines are as many as the certificate counts; a slack ends on its own edge."""
    page = visit()
    start_from(page, "overlap")
    page.select_option("#model", "kernel")
    model = agrees_with_the_kernel_svm(page)
    proof = model.certificate_
    for mark, count in {
        ".ring": len(proof.support),
        ".dot": proof.violations - proof.misclassified,
        ".cross": proof.misclassified,
    }.items():
        expect(page.locator(f".point {mark}:not([display='none'])")).to_have_count(count)
    expect(page.locator(".slacks line:not([display='none'])")).to_have_count(proof.violations)
    ends = page.eval_on_selector_all(
        ".slacks line.blue:not([display='none'])",
        "all => all.map((one) => ['x2', 'y2'].map((name) => Number(one.getAttribute(name))))",
    )
    box = page.locator("#board").bounding_box()
    cx, cy, span = map(float, state(page)[2]["v"].split(","))
    scale = min(box["width"], box["height"]) / span
    places = [cx, cy] + (np.array(ends) - [box["width"] / 2, box["height"] / 2]) / [scale, -scale]
    np.testing.assert_allclose(model.decision_function(places), 1, atol=2 * TRACED)


def test_no_slack_leads_to_the_edge_of_another_point(visit):
    """With a large γ most points have no edge of their own; a slack is a way on which `decision_function` rises."""
    X, y = noisy(120, 2, seed=3)
    points = "".join(f"{u:.4f},{v:.4f}{'a' if s > 0 else 'b'}" for (u, v), s in zip(X.tolist(), y, strict=True))
    page = visit(f"#p={points}&m=kernel&C=1&k=rbf,30,2,1,1&v=0,0,6")
    model = agrees_with_the_kernel_svm(page)
    read = "one => ['x1', 'y1', 'x2', 'y2'].map((name) => Number(one.getAttribute(name)))"
    ends = page.eval_on_selector_all(".slacks line:not([display='none'])", f"all => all.map({read})")
    assert 0 < len(ends) < model.certificate_.violations
    box = page.locator("#board").bounding_box()
    scale = min(box["width"], box["height"]) / 6
    pixels = np.array(ends).reshape(-1, 2, 2)
    long = np.linalg.norm(pixels[:, 0] - pixels[:, 1], axis=1) > 30
    places = (pixels[long] - [box["width"] / 2, box["height"] / 2]) / [scale, -scale]
    own, middle, edge = (model.decision_function(one) for one in (places[:, 0], places.mean(axis=1), places[:, 1]))
    assert (np.sign(edge) * (middle - own) > -TRACED).all()


def test_other_fingers_do_not_take_part_in_a_drag(visit):
    """A second pointer that moves and leaves while a point is held changes nothing; the first goes on with it."""
    page = visit()
    start_from(page, "moons")
    start = place(page, *state(page)[0][0])
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(start[0] + 20, start[1])
    for kind in ("pointermove", "pointerup"):
        page.evaluate(
            """([kind, x, y]) => document.getElementById("board").dispatchEvent(
                 new PointerEvent(kind, { pointerId: 99, clientX: x, clientY: y, bubbles: true }))""",
            [kind, start[0] + 150, start[1] + 150],
        )
    page.mouse.move(start[0] + 40, start[1] + 10)
    page.mouse.up()
    drawn(page)
    assert place(page, *state(page)[0][0]) == pytest.approx((start[0] + 40, start[1] + 10), abs=1)
    agrees_with_the_kernel_svm(page)


def test_a_line_that_fails_leads_to_a_kernel(visit):
    """XOR with a hard margin and circles with a soft one: one click, and no point is on the wrong side."""
    page = visit()
    start_from(page, "xor")
    page.get_by_role("button", name="Bend the line with a kernel").click()
    agrees_with_the_kernel_svm(page)
    assert shown(page, "misclassified") == [0]
    expect(page.locator(".proof .star")).to_be_hidden()
    start_from(page, "circles")
    page.select_option("#model", "soft")
    drawn(page)
    assert shown(page, "misclassified")[0] > 7
    page.get_by_role("button", name="Bend the line with a kernel").click()
    drawn(page)
    assert shown(page, "misclassified") == [0]
    assert page.locator(".hull:not([display='none'])").count() == 0


def test_the_lifted_plane_is_the_score(visit):
    """Height minus plane equals `decision_function`, for every r: the drawn plane is the hyperplane, not a picture."""
    page = visit()
    X, y = noisy(50, 2, seed=2)
    for coef0 in (0.0, 1.5):
        model = kernel_svm("poly", 0.6, 2, coef0).fit(X, y)
        above = f"{X.tolist()}.map(([x, y]) => form.height(x, y) - form.plane(x, y))"
        use = f"const form = its.quadratic({sent(model)}); return {above};"
        np.testing.assert_allclose(module(page, "kernel.js", use), model.decision_function(X), rtol=1e-9, atol=1e-9)


def test_the_lifted_view_comes_with_degree_2_and_turns(visit):
    """It is there for the polynomial of degree 2 alone, has every point, and turns with the arrow keys and a drag."""
    page = visit()
    start_from(page, "circles")
    view = page.locator("#lifted-view")
    expect(view).to_be_visible()
    expect(view.locator(".dots3 path:not([display='none'])")).to_have_count(70)
    expect(view.locator("figcaption")).to_contain_text("flat plane")
    seen = view.locator(".boundary").get_attribute("d")
    page.focus("#lifted-view svg")
    page.keyboard.press("ArrowLeft")
    turned = view.locator(".boundary").get_attribute("d")
    assert turned != seen
    box = view.locator("svg").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 260, box["y"] + 120)
    page.mouse.up()
    assert view.locator(".boundary").get_attribute("d") not in (seen, turned)
    page.select_option("#degree", "3")
    drawn(page)
    expect(view).to_be_hidden()
    expect(page.locator("#field-lifted")).to_be_hidden()
    page.select_option("#degree", "2")
    expect(view).to_be_visible()
    page.uncheck("#lifted")
    expect(view).to_be_hidden()
    agrees_with_the_kernel_svm(page)


def test_gamma_with_the_keyboard(visit):
    """An arrow on the slider leaves “scale” for a number near it; ticking it again brings back the estimator's own."""
    page = visit()
    start_from(page, "moons")
    scale = shown(page, "gamma")[0]
    page.focus("#gamma")
    page.keyboard.press("ArrowRight")
    drawn(page)
    expect(page.locator("#scale")).not_to_be_checked()
    model = agrees_with_the_kernel_svm(page)
    assert 1.0 < model.kernel_.gamma / scale < 1.3
    page.focus("#scale")
    page.keyboard.press("Space")
    drawn(page)
    assert shown(page, "gamma") == [scale]
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    drawn(page)
    assert shown(page, "gamma") == [scale]
    expect(page.locator("#scale")).to_be_checked()


def test_what_does_not_act_is_not_offered(visit):
    """Degree and r for the polynomial alone, no bias and no solver for a kernel, and none of it for a line."""
    page = visit()
    start_from(page, "moons")

    def offered():
        fields = ("kernel", "gamma", "scale", "degree", "coef0", "lifted", "solver", "bias")
        return [name for name in fields if page.locator(f"#field-{name}").is_visible()]

    assert offered() == ["kernel", "gamma", "scale"]
    expect(page.locator("#show-hulls")).to_be_disabled()
    page.select_option("#kernel", "poly")
    assert offered() == ["kernel", "gamma", "scale", "degree", "coef0", "lifted"]
    page.fill("#coef0", "-3")
    page.keyboard.press("Tab")
    agrees_with_the_kernel_svm(page)
    assert page.input_value("#coef0") == "0"
    page.select_option("#model", "soft")
    assert offered() == ["solver", "bias"]


def test_a_link_holds_the_kernel(visit):
    """Opened elsewhere, the address has the same kernel, γ, degree, r and lifted view; a damaged one is told."""
    page = visit()
    start_from(page, "circles")
    page.fill("#coef0", "0.5")
    page.keyboard.press("Tab")
    page.focus("#gamma")
    page.keyboard.press("ArrowLeft")
    page.uncheck("#lifted")
    drawn(page)
    parts = state(page)[2]
    assert re.fullmatch(r"poly,[\d.]+,2,0.5,0", parts["k"])
    other = visit(page.evaluate("location.hash"))
    assert state(other)[2] == parts
    agrees_with_the_kernel_svm(other)
    expect(other.locator("#lifted-view")).to_be_hidden()
    assert shown(other, "primal", "gamma") == shown(page, "primal", "gamma")
    for link, told in {
        "#p=1,1a&k=tree,scale,2,1,1": "the kernel",
        "#p=1,1a&k=rbf,0,2,1,1": "γ cannot",
        "#p=1,1a&k=rbf,scale": "the degree",
    }.items():
        other.evaluate("link => { location.hash = link; }", link)
        expect(other.locator("#banner")).to_contain_text(told)


@pytest.mark.parametrize("viewport", [PROJECTOR, PHONE], ids=["projector", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_kernels_are_neat(visit, viewport, scheme):
    """No text on another, nothing cut off, no sideways scrolling; the panel stays in place through a drag."""
    page = visit(viewport=viewport, color_scheme=scheme)
    for preset, kernel in [("moons", "rbf"), ("overlap", "laplacian"), ("circles", "poly")]:
        start_from(page, preset)
        page.select_option("#model", "kernel")
        page.select_option("#kernel", kernel)
        drawn(page)
        is_neat(page)
    where = """() => [...document.querySelectorAll("#board, #status, #verdict, .facts, #lifted-view, [role=tablist]")]
      .map((one) => one.getBoundingClientRect()).map((box) => [box.left, box.top, box.width].map(Math.round))"""
    page.evaluate("scrollTo(0, 0)")
    before = page.evaluate(where)
    at = place(page, *state(page)[0][0])
    drag(page, at, (at[0] + 40, at[1] + 30))
    assert page.evaluate(where) == before
