"""Points and fits on the page, in a real browser: every number and mark is what the estimators say."""

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer.loopback import estimator
from explorer.page import agrees_with_the_estimator, drag, drawn, module, place, shown, start_from, state
from widemargin import LinearSVM
from widemargin.explorer.models import EXACT


def test_points_added_dragged_and_another_strength(visit):
    """After clicks, a drag and another C the numbers are those of `LinearSVM.fit` on the same points, to the bit."""
    page = visit()
    start_from(page, "notes5")
    agrees_with_the_estimator(page)
    page.mouse.click(*place(page, 0.5, -0.4))
    page.check("input[name=class][value='-1']", force=True)
    page.mouse.click(*place(page, -0.3, 0.7))
    drawn(page)
    assert len(state(page)[0]) == 7
    before = shown(page, "w1", "w2")
    drag(page, place(page, 1, 1), place(page, 0.35, 1.4))
    np.testing.assert_allclose(state(page)[0][0], [0.35, 1.4], atol=0.02)
    assert shown(page, "w1", "w2") != before
    page.focus("#C")
    for _ in range(12):
        page.keyboard.press("ArrowRight")
    drawn(page)
    assert float(state(page)[2]["C"]) == 3.98
    assert agrees_with_the_estimator(page).C == 3.98
    page.uncheck("#bias")
    drawn(page)
    agrees_with_the_estimator(page)


def test_marks_on_the_board_are_those_of_the_certificate(visit):
    """Rings, white dots and crosses: as many as support vectors, points inside and points on the wrong side."""
    page = visit()
    start_from(page, "overlap")
    points, labels, _ = state(page)
    proof = LinearSVM(C=1.0, tol=EXACT).fit(points, labels).certificate_

    def seen(mark):
        return page.locator(f".point {mark}:not([display='none'])").count()

    assert seen(".body") == len(labels)
    assert seen(".ring") == len(proof.support)
    assert seen(".dot") == proof.violations - proof.misclassified > 0
    assert seen(".cross") == proof.misclassified > 0
    assert page.locator(".slacks line:not([display='none'])").count() == proof.violations


def test_small_numbers_keep_two_digits(visit):
    """A gap of 0.0346 is 0.035 on its tile, and no number that is not 0 looks like it."""
    page = visit()
    numbers = [[0.0346, 2], [0.00123, 4], [0.5, 4], [12.34, 3], [1234.5, 4], [0, 2], [3e-5, 2]]
    written = module(page, "svg.js", f"return {numbers}.map((one) => its.digits(...one));")
    assert written == ["0.035", "0.0012", "0.500", "12.3", "1235", "0", "3.0e−5"]
    page.select_option("#solver", "pegasos")
    drawn(page)
    assert float(page.inner_text('[data-key="gap"]')) == pytest.approx(shown(page, "gap")[0], rel=0.02)


@pytest.mark.parametrize("solver", ["sgd", "subgradient"])
def test_rough_methods_claim_no_more_than_they_proved(visit, solver):
    """The verdict of a fit that stops at a relative gap of 1e-3 names it; only a closed gap is called optimal."""
    page = visit()
    page.select_option("#model", "logistic")
    drawn(page)
    expect(page.locator("#verdict")).to_have_text("Optimal, and proved: primal and dual meet.")
    page.select_option("#solver", solver)
    drawn(page)
    primal, dual = shown(page, "primal", "dual")
    assert 1e-6 < (primal - dual) / dual <= 1e-3
    expect(page.locator("#verdict")).to_have_text("Within 1e−3 of the optimum, and proved.")


def test_every_support_vector_is_marked(visit):
    """Rings and labels at coordinates of 1e5, where every α is tiny, and for least squares, where some are negative."""
    page = visit("#p=100000,100000a-100000,-100000b300000,0a&m=hard&v=0,0,900000")
    points, labels, _ = state(page)
    support = estimator("hard").fit(points, labels).certificate_.support
    expect(page.locator(".point .ring:not([display='none'])")).to_have_count(len(support))
    expect(page.locator(".labels text:not([display='none'])")).to_have_count(len(support))
    assert page.locator(".point.edge").count() == len(support) >= 2
    start_from(page, "outlier")
    points, labels, _ = state(page)
    alpha = estimator("squares", C=100).fit(points, labels).certificate_.alpha
    expect(page.locator(".point .ring:not([display='none'])")).to_have_count(int((alpha != 0).sum()))
    expect(page.locator(".point.attracts")).to_have_count(int((alpha < 0).sum()))
    assert "draws the line towards itself" in page.locator(".point.attracts").first.get_attribute("aria-label")
    assert page.inner_text('[data-kkt="1-name"]') == "α ≠ 0"


def test_slacks_run_along_w_however_long(visit):
    """Points of 1e-5 have slacks millions of boards long: each is drawn along w, as far as the board needs it."""
    page = visit("#p=0.00001,0.00001a-0.00001,-0.00001b0.00003,0a-0.00002,0.00002a&v=0,0,0.0001")
    w = np.array(shown(page, "w1", "w2"))
    lines = page.eval_on_selector_all(
        ".slacks line:not([display='none'])",
        "all => all.map((one) => ['x1', 'y1', 'x2', 'y2'].map((name) => Number(one.getAttribute(name))))",
    )
    assert lines
    for x1, y1, x2, y2 in lines:
        way = np.array([x2 - x1, y1 - y2])
        assert 500 < np.linalg.norm(way) < 5000
        assert abs(way @ w) == pytest.approx(np.linalg.norm(way) * np.linalg.norm(w), rel=1e-6)


def test_no_line_separates_them(visit):
    """XOR: the page says so and marks a point in both hulls; the soft margin is one click away."""
    page = visit()
    start_from(page, "xor")
    expect(page.locator("#verdict")).to_contain_text("no line separates")
    expect(page.locator(".proof .star")).to_be_visible()
    assert page.locator(".proof .ray.blue").count() >= 2
    assert page.locator(".proof .ray.orange").count() >= 2
    page.get_by_role("button", name="Use the soft margin").click()
    drawn(page)
    expect(page.locator(".proof .star")).to_be_hidden()
    agrees_with_the_estimator(page)


def test_every_preset_and_every_model(visit):
    """Whatever is chosen, a line, a proof that there is none, or a sentence comes back, and no script fails."""
    page = visit()
    presets = page.eval_on_selector_all("#preset option:not([disabled])", "all => all.map((one) => one.value)")
    assert len(presets) >= 12
    for preset in presets:
        start_from(page, preset)
        assert page.inner_text("#verdict")
    for model in page.eval_on_selector_all("#model option", "all => all.map((one) => one.value)"):
        page.select_option("#model", model)
        drawn(page)
        assert page.locator(".lines .separator:not([display='none'])").count() == (model != "hard")
        assert page.inner_text("#verdict")


def test_two_tabs_at_once(visit):
    """Each drags points of its own, in turns, and shows the fit of its own."""
    one, other = visit(), visit()
    start_from(one, "notes5")
    start_from(other, "outlier")
    other.select_option("#model", "soft")
    here, there = place(one, -0.1, -0.1), place(other, 3.6, -2.6)
    for page, at in ((one, here), (other, there)):
        page.mouse.move(*at)
        page.mouse.down()
    for k in range(1, 9):
        one.mouse.move(here[0] - 9 * k, here[1] - 5 * k)
        other.mouse.move(there[0] - 20 * k, there[1] - 9 * k)
    for page in (one, other):
        page.mouse.up()
        drawn(page)
        agrees_with_the_estimator(page)
