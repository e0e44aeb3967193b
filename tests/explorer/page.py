"""What the tests of the page do with it: wait for it, read it, put a finger on it."""

import re
import time

import numpy as np

from explorer.loopback import SECONDS, estimator, kernel_svm

PROJECTOR, PHONE = {"width": 1280, "height": 720}, {"width": 390, "height": 844}


def until(page, condition):
    """Wait until this is true on the page; its security policy allows no `wait_for_function`, which is an eval."""
    end = time.monotonic() + SECONDS
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"never came true: {condition}"
        page.wait_for_timeout(10)


def drawn(page):
    """Wait until the fit of the points that are there is drawn."""
    until(page, "document.documentElement.dataset.drawn === document.documentElement.dataset.version")


def start_from(page, preset):
    """Choose a preset, and wait for its fit."""
    page.select_option("#preset", preset)
    drawn(page)


def played(page):
    """Wait until the runs that are there are those of the algorithms that are chosen, no more and no other."""
    chosen = "[...document.querySelectorAll('#first, #second')].map((box) => box.value && box.selectedOptions[0].text)"
    there = "[...document.querySelectorAll('#panel-steps tbody th')].map((head) => head.textContent)"
    until(page, f"{chosen}.join() === {there}.join()")


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


def agrees_with_the_estimator(page):
    """Whether every number of the page is that of `fit` on the points of the page."""
    drawn(page)
    points, labels, parts = state(page)
    model = estimator(parts["m"], parts["s"], float(parts["C"]), parts["b"] == "1").fit(points, labels)
    proof = model.certificate_
    expected = [*model.coef_[0], model.intercept_[0], proof.primal, proof.dual, proof.gap, proof.width, proof.slack]
    np.testing.assert_array_equal(shown(page, "w1", "w2", "b", "primal", "dual", "gap", "width", "slack"), expected)
    assert shown(page, "support") == [len(proof.support)]
    assert [page.inner_text(f'[data-kkt="{k}-count"]') for k in range(3)] == [str(kind.count) for kind in proof.kkt]
    return model


def kernel_model(page):
    """The kernel SVM of the settings and points in the address of the page."""
    drawn(page)
    points, labels, parts = state(page)
    kernel, gamma, degree, coef0, _ = parts["k"].split(",")
    gamma = gamma if gamma == "scale" else float(gamma)
    return kernel_svm(kernel, gamma, int(degree), float(coef0), float(parts["C"])).fit(points, labels)


def agrees_with_the_kernel_svm(page):
    """Whether every number of the page is that of `KernelSVM.fit` on the points of the page."""
    model = kernel_model(page)
    proof = model.certificate_
    expected = [model.kernel_.gamma, model.intercept_[0], proof.primal, proof.dual, proof.gap, proof.width, proof.slack]
    np.testing.assert_array_equal(shown(page, "gamma", "b", "primal", "dual", "gap", "width", "slack"), expected)
    assert shown(page, "support") == [len(proof.support)]
    assert [page.inner_text(f'[data-kkt="{k}-count"]') for k in range(3)] == [str(kind.count) for kind in proof.kkt]
    return model


def curve(page, look):
    """The places on the board, in its own coordinates, of the corners of the curves of this look: separator or edge."""
    paths = page.eval_on_selector_all(
        f".lines path.{look}:not([display='none'])", "all => all.map((one) => one.getAttribute('d'))"
    )
    box = page.locator("#board").bounding_box()
    cx, cy, span = map(float, state(page)[2]["v"].split(","))
    scale = min(box["width"], box["height"]) / span
    found = []
    for path in paths:
        pixels = np.array([pair.split() for pair in re.split("[MLZ]+", path) if pair], dtype=float).reshape(-1, 2)
        inside = ((pixels >= 0) & (pixels <= [box["width"], box["height"]])).all(axis=1)
        middle = np.array([box["width"], box["height"]]) / 2
        found.append([cx, cy] + (pixels[inside] - middle) / [scale, -scale])
    return found


def module(page, name, use):
    """What comes of using a module of the page."""
    return page.evaluate(f"async () => {{ const its = await import(new URL({name!r}, location)); {use} }}")
