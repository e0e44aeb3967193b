"""The explorer's page in a real browser: what it shows equals what the estimators and the textbook say."""

import json
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from playwright.sync_api import Error, expect, sync_playwright
from scipy.optimize import minimize_scalar

from loopback import Loopback, estimator
from widemargin import LinearSVM, textbook
from widemargin.explorer.models import EXACT
from widemargin.losses import LOSSES

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium, then run again")
PROJECTOR, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def served():
    """The server, on loopback."""
    with Loopback("the-token-of-these-tests") as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    """Chromium without a window."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser, served):
    """Opens the page; at the end, no script may have failed on it."""
    contexts, failures = [], []

    def open_page(hash="", viewport=PROJECTOR, address=None, **options):
        context = browser.new_context(viewport=viewport, permissions=["clipboard-write"], **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.goto((address or served.address) + hash)
        page.wait_for_selector("html[data-ready]")
        drawn(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not failures


@pytest.fixture
def own_process():
    """The server as one runs it, in a process of its own, which does not share a lock with the browser's driver."""
    program = "from widemargin.explorer import serve; serve(open_browser=False)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().split()[-1]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0


def until(page, condition):
    """Wait until this is true on the page; its security policy allows no `wait_for_function`, which is an eval."""
    for _ in range(1500):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(10)
    raise AssertionError(f"never came true: {condition}")


def drawn(page):
    """Wait until the fit of the points that are there is drawn."""
    until(page, "document.documentElement.dataset.drawn === document.documentElement.dataset.version")


def start_from(page, preset):
    """Choose a preset, and wait for its fit."""
    page.select_option("#preset", preset)
    drawn(page)


def shown(page, *keys):
    """The numbers on the page, in full precision."""
    return [float(page.get_attribute(f'[data-key="{key}"]', "data-value")) for key in keys]


def state(page):
    """The points, labels and settings that the address of the page holds."""
    until(page, "document.documentElement.dataset.settled === document.documentElement.dataset.version")
    parts = dict(part.split("=") for part in page.evaluate("location.hash.slice(1)").split("&"))
    found = re.findall(r"([^ab]+),([^ab]+)([ab])", parts["p"])
    points = np.array([[float(x), float(y)] for x, y, _ in found])
    return points, np.array([1 if s == "a" else -1 for *_, s in found]), parts


def place(page, x, y):
    """Where a point of the board is on the screen."""
    box = page.locator("#board").bounding_box()
    cx, cy, span = map(float, state(page)[2]["v"].split(","))
    scale = min(box["width"], box["height"]) / span
    return box["x"] + box["width"] / 2 + (x - cx) * scale, box["y"] + box["height"] / 2 - (y - cy) * scale


def drag(page, start, end, steps=6):
    """Drag with the mouse, in a few moves."""
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=steps)
    page.mouse.up()
    drawn(page)


def overlap(one, other):
    """Whether two texts run into each other; their boxes are a little higher than the letters."""
    across = one["x"] < other["x"] + other["width"] - 1 and other["x"] < one["x"] + one["width"] - 1
    return across and one["y"] + 3 < other["y"] + other["height"] - 3 and other["y"] + 3 < one["y"] + one["height"] - 3


def is_dark(page):
    """Whether the page is dark, by its own colour."""
    return int(re.search(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[0]) < 100


def agrees_with_the_estimator(page):
    """Whether every number of the page is that of `fit` on the points of the page."""
    points, labels, parts = state(page)
    model = estimator(parts["m"], parts["s"], float(parts["C"]), parts["b"] == "1").fit(points, labels)
    proof = model.certificate_
    expected = [*model.coef_[0], model.intercept_[0], proof.primal, proof.dual, proof.gap, proof.width, proof.slack]
    np.testing.assert_array_equal(shown(page, "w1", "w2", "b", "primal", "dual", "gap", "width", "slack"), expected)
    assert shown(page, "support") == [len(proof.support)]
    assert [page.inner_text(f'[data-kkt="{k}-count"]') for k in range(3)] == [str(kind.count) for kind in proof.kkt]
    return model


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


def test_a_shared_link_brings_everything_back(visit, served):
    """Opened elsewhere, the address shows the same points, settings and numbers."""
    page = visit()
    start_from(page, "moons")
    page.select_option("#model", "logistic")
    page.select_option("#solver", "dual_cd")
    page.focus("#C")
    page.keyboard.press("ArrowLeft")
    page.uncheck("#bias")
    drag(page, place(page, *state(page)[0][0]), place(page, 2.5, -1.5))
    page.click("#share")
    expect(page.locator("#banner")).to_contain_text("brings back")
    points, labels, parts = state(page)
    other = visit(page.evaluate("location.hash"))
    there = state(other)
    np.testing.assert_array_equal(there[0], points)
    np.testing.assert_array_equal(there[1], labels)
    assert there[2] == parts
    assert (parts["m"], parts["s"], parts["b"]) == ("logistic", "dual_cd", "0")
    assert shown(other, "w1", "w2", "primal") == shown(page, "w1", "w2", "primal")


def test_a_damaged_link_is_told(visit):
    """A message on the page, whether it is opened or pasted, and points to start from."""
    page = visit("#p=1,1")
    expect(page.locator("#banner")).to_contain_text("damaged: point 1")
    agrees_with_the_estimator(page)
    for link, told in {
        "#nonsense": "no points",
        "#p=1,1a&m=tree": "the model",
        "#p=1e99,1a": "a point",
        "#p=1,1a&C=-1": "C cannot",
        "#p=1,1a&a=newton": "the algorithm",
        "#p=1,1a&v=0,0": "the view",
        "#p=" + 2001 * "1,1a": "too many",
    }.items():
        page.evaluate("link => { location.hash = link; }", link)
        expect(page.locator("#banner")).to_contain_text(told)
    expect(page.locator(".point")).to_have_count(40)


def test_junk_in_a_file_is_told(visit):
    """The message names the line and what to do; the points stay as they were."""
    page = visit()
    start_from(page, "notes4")
    for text, told in {
        "x,y,label\n1,2,a\n3,junk,b\n": "Line 3: “junk” is not a number",
        "1,2,a\n3,4\n": "Line 2: 2 columns",
        "1,2,a\n3,4,b\n5,6,c\n": "Line 3: “c” is a third label",
        "1,2,a\n3,NaN,b\n": "Line 2: “NaN” is not a number",
        "1,2,a\n0x10,2,b\n": "Line 2: “0x10” is not a number",
        '1,2,"a\n3,4,b\n': "Line 1: a quote is not closed",
        "1,2,a\n3,1e9,b\n": "Line 2: 3, 1e9 is too far out",
        "": "empty",
        "x,y,label\n": "no points",
        "%PDF-1.4 \x00\x01\n\x02": "Line 2: 1 column.",
        "0,0,a\n" * 2001: "at most 2,000",
    }.items():
        page.set_input_files("#file", {"name": "points.csv", "mimeType": "text/csv", "buffer": text.encode()})
        expect(page.locator("#banner")).to_contain_text(told)
    assert len(state(page)[0]) == 4
    page.mouse.click(*place(page, 0.3, 0.3))
    expect(page.locator("#banner")).to_be_hidden()  # the next good fit is drawn
    drawn(page)
    assert len(state(page)[0]) == 5


@pytest.mark.parametrize(
    "text",
    [
        "1, 2, a b\n3, 4, c d\n",
        '"x one" , "y" , "the label"\n1 , 2 , "a b"\n3 , 4 , "c d"\n',
        "1;2;a b;\n3;4;c d;\n",
        "1\t 2 \ta b\n3\t4\tc d\n",
        '1  2 "a b"\n3 4   "c d"\n',
    ],
)
def test_tables_as_people_write_them(visit, text):
    """Spaces after commas, names of two words, quotes, a mark at the end: the same two points."""
    page = visit()
    page.set_input_files("#file", {"name": "two.csv", "mimeType": "text/csv", "buffer": text.encode()})
    expect(page.locator("#banner")).to_contain_text("“c d” is blue, “a b” is orange")
    points, labels, _ = state(page)
    np.testing.assert_array_equal(points, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(labels, [-1, 1])


def test_quotes_and_marks_inside_of_quotes(visit):
    """A label in quotes may have commas and doubled quotes in it."""
    page = visit()
    text = '1,2,"a, ""b"""\n3,4,"c, d"\n'
    page.set_input_files("#file", {"name": "two.csv", "mimeType": "text/csv", "buffer": text.encode()})
    expect(page.locator("#banner")).to_contain_text('“c, d” is blue, “a, "b"” is orange')


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e5])
def test_a_step_is_as_small_as_the_view(visit, scale):
    """An arrow moves a point by about an 80th of the view whatever its scale, and only along its own axis."""
    page = visit()
    text = "".join(f"{x * scale},{y * scale},{s}\n" for x, y, s in [(1, 1.23456789, "a"), (-1, 1, "b"), (0, -1, "b")])
    page.set_input_files("#file", {"name": "small.csv", "mimeType": "text/csv", "buffer": text.encode()})
    expect(page.locator("#banner")).to_contain_text("3 points")
    before, _, parts = state(page)
    page.locator(".point").first.focus()
    page.keyboard.press("ArrowRight")
    after, span = state(page)[0], float(parts["v"].split(",")[2])
    np.testing.assert_array_equal(after[1:], before[1:])
    assert after[0, 1] == before[0, 1]
    assert after[0, 0] - before[0, 0] == pytest.approx(span / 80, rel=0.4)


def test_a_file_is_loaded(visit):
    """Header, semicolons or tabs, a label of any name: the fit is that of the file's points."""
    page = visit()
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(30, 2)) * 20 + np.repeat([[100], [160]], 15, axis=0)).round(3)
    lines = ["width;height;kind", *(f"{x};{y};{'pear' if k < 15 else 'plum'}" for k, (x, y) in enumerate(X.tolist()))]
    page.set_input_files("#file", {"name": "fruit.csv", "mimeType": "text/csv", "buffer": "\n".join(lines).encode()})
    expect(page.locator("#banner")).to_contain_text("“plum” is blue, “pear” is orange")
    drawn(page)
    points, labels, _ = state(page)
    np.testing.assert_array_equal(points, X)
    np.testing.assert_array_equal(labels, np.repeat([-1, 1], 15))
    agrees_with_the_estimator(page)
    page.click("#undo")
    drawn(page)
    assert len(state(page)[0]) == 40


def test_undo_brings_back_view_and_preset(visit):
    """After a file of other size, undo shows the points as they were seen, under their name; a zoom alone stays."""
    page = visit()
    page.click("#zoom-in")
    expect(page).not_to_have_url(re.compile("v=0,0,7&"))
    before = state(page)[2]["v"]
    text = b"100000,0,a\n-100000,5,b\n100000,100000,a\n"
    page.set_input_files("#file", {"name": "large.csv", "mimeType": "text/csv", "buffer": text})
    expect(page.locator(".point")).to_have_count(3)
    large = state(page)[2]["v"]
    assert page.input_value("#preset") == ""
    page.click("#undo")
    assert state(page)[2]["v"] == before != large
    assert page.input_value("#preset") == "blobs"
    page.click("#redo")
    assert state(page)[2]["v"] == large
    assert page.input_value("#preset") == ""
    page.click("#undo")
    drag(page, place(page, *state(page)[0][0]), place(page, 0.2, 0.2))
    assert page.input_value("#preset") == ""
    page.click("#zoom-out")
    expect(page).to_have_url(re.compile("v=0,0,7&"))
    page.click("#undo")
    assert state(page)[2]["v"] == "0,0,7"
    assert page.input_value("#preset") == "blobs"


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


def test_a_server_that_stops_and_comes_back(visit):
    """The page says that it stopped, keeps what one does meanwhile, and goes on by itself when it is back."""
    running = Loopback("a-token-that-stays").start()
    page = visit(address=running.address)
    start_from(page, "notes4")
    expect(page.locator("#verdict")).to_have_class("good")
    at = place(page, 0.3, 0.3)
    running.stop()
    page.mouse.click(*at)
    expect(page.locator("#banner")).to_contain_text("does not answer")
    expect(page.locator("#verdict")).to_have_text("Not computed: the server does not answer.")
    expect(page.locator("#verdict")).to_have_class("warn")
    expect(page.locator("html.stale")).to_have_count(1)
    command = f"widemargin explore --port={running.port} --token={running.token}"
    expect(page.locator("#banner")).to_contain_text(command)
    expect(page.locator(".point")).to_have_count(5)
    with running:
        expect(page.locator("#banner")).to_be_hidden()
        drawn(page)
        assert len(state(page)[0]) == 5
        agrees_with_the_estimator(page)
        expect(page.locator("#verdict")).to_have_class("good")
        expect(page.locator("html.stale")).to_have_count(0)
        running.stop()
        page.mouse.click(at[0] - 60, at[1])
        expect(page.locator("#banner")).to_contain_text("does not answer")
        running.token = "another-token"
        running.start()
        expect(page.locator("#banner")).to_contain_text("belongs to an earlier one")


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


def module(page, name, use):
    """What comes of using a module of the page."""
    return page.evaluate(f"async () => {{ const its = await import(new URL({name!r}, location)); {use} }}")


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


def test_a_young_question_is_not_given_up(visit):
    """A question is given up for a newer one when it is itself old, whenever the newer ones came."""
    page = visit()
    use = """
      const aborted = [], answers = [], wait = (time) => new Promise((resolve) => setTimeout(resolve, time));
      const post = (path, body, signal) => new Promise((resolve, reject) => {
        answers.push(() => resolve({ status: 200, answer: {} }));
        signal.onabort = () => { aborted.push(body.turn); reject(new DOMException("", "AbortError")); };
      });
      const line = new its.Line({ lines: [], post, lose() {} }, "api/fit", () => ({ request: {} }), () => {});
      line.ask();            // the first question
      line.ask();            // a newer one waits
      await wait(700);
      answers[0]();          // the first is answered, the second sent
      await wait(50);
      line.ask();            // a third waits
      await wait(500);       // the second is 550 ms old
      const young = [...aborted];
      await wait(700);
      return [young, aborted];"""
    assert module(page, "api.js", use) == [[], [2]]


def test_clouds_and_erasing(visit):
    """A cloud is painted while the button is held, in one step of the history; wiping removes; Clear and undo."""
    page = visit()
    page.click("#clear")
    page.check("input[name=tool][value=cloud]", force=True)
    at = place(page, 1, 1)
    page.mouse.move(*at)
    page.mouse.down()
    until(page, "document.querySelectorAll('.point').length > 8")
    page.mouse.up()
    many = len(state(page)[0])
    page.click("#undo")
    expect(page.locator(".point")).to_have_count(0)
    page.click("#redo")
    expect(page.locator(".point")).to_have_count(many)
    page.check("input[name=tool][value=erase]", force=True)
    drag(page, (at[0] - 120, at[1]), (at[0] + 120, at[1]), steps=30)
    assert page.locator(".point").count() < many


def test_pictures_and_program_are_saved(visit):
    """The SVG holds every point, the PNG is one, and the program, when run, has the weights of the page."""
    page = visit(accept_downloads=True)
    start_from(page, "noteshard")
    with page.expect_download() as saving:
        page.click("#save-svg")
    root = ET.parse(saving.value.path()).getroot()
    labels = [one for one in root.iter() if "point" in one.get("aria-label", "") and one is not root]
    assert len(labels) == 5
    assert "var(" not in ET.tostring(root, encoding="unicode")
    with page.expect_download() as saving:
        page.click("#save-png")
    picture = saving.value.path().read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5_000
    page.click("#save-code")
    expect(page.locator("#code")).to_contain_text("model = ")
    names = {}
    exec(page.inner_text("#code"), names)
    assert [*names["model"].coef_[0], *names["model"].intercept_] == shown(page, "w1", "w2", "b")


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
    start = place(page, -0.01, -0.01)
    page.evaluate("scrollTo(0, 0)")
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


def test_how_long_a_drag_among_200_points_takes(visit, own_process, record_property):
    """From each event to the page redrawn with its fit, measured in the browser; the median is printed."""
    page = visit(address=own_process)
    start_from(page, "crowd")
    points, _, _ = state(page)
    start = place(page, *points[0])
    page.evaluate(
        """() => {
          const data = document.documentElement.dataset, sent = new Map();
          window.took = [];
          addEventListener("pointermove", (event) => {
            if (!sent.has(data.version)) sent.set(data.version, event.timeStamp);
          });
          new MutationObserver(() => {
            const began = sent.get(data.drawn);
            sent.delete(data.drawn);
            const painted = () => window.took.push(performance.now() - began);
            if (began !== undefined) setTimeout(painted); // a task of its own: after the frame that is being drawn
          }).observe(document.documentElement, { attributeFilter: ["data-drawn"] });
        }"""
    )
    page.mouse.move(*start)
    page.mouse.down()
    for k in range(60):
        page.mouse.move(start[0] + 60 * np.sin(k / 6), start[1] + 60 * np.cos(k / 6))
        page.wait_for_timeout(10)
    page.mouse.up()
    drawn(page)
    until(page, "window.took.length > 10")
    took = page.evaluate("window.took")
    solver = float(page.inner_text("#numbers .foot").split()[0])
    agrees_with_the_estimator(page)
    record_property(
        "measured",
        f"drag among 200 points: event to redrawn page, median {statistics.median(took):.0f} ms of {len(took)} fits "
        f"(slowest {max(took):.0f} ms; the last fit took {solver:.0f} ms of it)",
    )


class Elsewhere(BaseHTTPRequestHandler):
    """A page of another server on this machine."""

    def do_GET(self):
        """Answer with next to nothing."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, *what):
        """Stay silent."""


@pytest.fixture
def elsewhere():
    """The address of that page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{stranger.server_port}/"
        stranger.shutdown()


def test_a_stranger_page_cannot_read(served, browser, elsewhere):
    """A page of another origin that knows the address gets nothing: the server refuses, the browser blocks."""
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(elsewhere)
        before = len(served.answered)
        with pytest.raises(Error, match="Failed to fetch"):
            page.evaluate("address => fetch(address + 'api/alive').then((reply) => reply.text())", served.address)
        assert served.answered[before:] == [(f"/{served.token}/api/alive", 403)]
    finally:
        context.close()
