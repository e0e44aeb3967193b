"""Losses: each test runs over the one list of losses."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar

from oracles import make_problem
from strategies import losses, margins, strengths
from widemargin import _core
from widemargin.losses import LOSSES, sigmoid
from widemargin.solvers import SOLVERS, Start


def at(value):
    """A scalar as the array of one element that losses take."""
    return np.array([float(value)])


@given(losses, margins, st.floats(-1.5, 2.5))
def test_fenchel_young_inequality(loss, m, a):
    """φ(m) + φ*(−a) ≥ −am for every m and a."""
    assert loss.value(at(m))[0] + loss.conjugate(at(a))[0] >= -a * m - 1e-12 * (1 + abs(a * m))


@given(losses, margins)
def test_fenchel_young_equality(loss, m):
    """φ(m) + φ*(φ′(m)) = mφ′(m): the slope attains the conjugate."""
    a = -loss.slope(at(m))
    assert loss.value(at(m)) + loss.conjugate(a) == pytest.approx(-a * m, abs=1e-9 * (1 + m * m))


@given(losses, margins)
def test_kkt_violation_is_zero_on_the_slope(loss, m):
    """−a = φ′(m) satisfies optimality exactly."""
    assert loss.kkt_violation(at(m), -loss.slope(at(m)))[0] <= 1e-12


@given(losses, margins, st.floats(0, 1))
def test_kkt_violation_sees_what_is_wrong(loss, m, a):
    """The violation is 0 only where the Fenchel–Young gap is 0."""
    gap = loss.value(at(m)) + loss.conjugate(at(a)) + a * m
    if gap[0] > 1e-6 * (1 + abs(m)):
        assert loss.kkt_violation(at(m), at(a))[0] > 0


@given(losses, margins)
def test_slope_is_the_derivative(loss, m):
    """The central difference of φ, away from kinks."""
    h = 1e-6
    if abs(m - loss.kink) > 1e-3:
        difference = (loss.value(at(m + h)) - loss.value(at(m - h))) / (2 * h)
        assert loss.slope(at(m)) == pytest.approx(difference, abs=1e-5 * (1 + abs(m)))


@given(losses, margins)
def test_curvature_is_the_derivative_of_the_slope(loss, m):
    """The central difference of φ′, for smooth losses away from jumps."""
    h = 1e-5
    if loss.smooth and abs(m - loss.kink) > 1e-3:
        difference = (loss.slope(at(m + h)) - loss.slope(at(m - h))) / (2 * h)
        assert loss.curvature(at(m)) == pytest.approx(difference, abs=1e-5)


@pytest.mark.parametrize(("name", "kink"), [("hinge", 1.0), ("perceptron", 0.0)])
def test_at_its_kink_the_slope_is_zero(name, kink):
    """The written choice: the end of the subdifferential nearer to 0, in NumPy and in the kernels."""
    assert LOSSES[name].slope(at(kink))[0] == 0 == _core.loss_function(name, "slope", kink)
    assert LOSSES[name].slope(at(kink - 1e-12))[0] == -1


def test_subdifferential_is_the_set_of_supporting_slopes():
    """[−1, 0] at the hinge's kink, one slope elsewhere; each supports φ everywhere, and no other does."""
    grid = np.linspace(-4, 4, 801)
    for loss in LOSSES.values():
        for m in (-1.0, 0.0, 0.5, 1.0, 2.0):
            low, high = loss.subdifferential(m)
            for slope, supports in ((low, True), (high, True), (low - 0.1, False), (high + 0.1, False)):
                line = loss.value(at(m)) + slope * (grid - m)
                assert (loss.value(grid) >= line - 1e-12).all() == supports
                assert (slope in loss.subdifferential(m)) == supports
    assert np.float32(-0.5) in LOSSES["hinge"].subdifferential(1.0)
    assert repr(LOSSES["hinge"].subdifferential(1.0)) == "[-1, 0]"


def test_one_list_of_losses():
    """The kernels have the losses that Python has."""
    assert set(_core.loss_names) == set(LOSSES)


@given(losses, margins, st.sampled_from(["value", "slope"]))
def test_kernel_equals_numpy(loss, m, function):
    """φ and φ′ in C++ equal the NumPy twin."""
    assert _core.loss_function(loss.name, function, m) == pytest.approx(getattr(loss, function)(at(m))[0], rel=1e-14)


@given(losses.filter(lambda loss: loss.smooth), st.lists(margins, min_size=1, max_size=5), strengths)
def test_kernel_shape_equals_numpy(loss, m, c):
    """φ, φ′ and φ″ along a step of Newton's method equal the NumPy twins."""
    m, c, alpha, weights = np.array(m), np.full(len(m), c), np.empty(len(m)), np.empty(len(m))
    slope, bend, total, held = _core.follow_curve(loss.name, m - 1.0, np.ones(len(m)), 1.0, c, alpha, weights, 1)
    m = m - 1.0 + 1.0
    assert alpha == pytest.approx(-c * loss.slope(m), rel=1e-12, abs=1e-300)
    assert weights == pytest.approx(c * loss.curvature(m), rel=1e-12, abs=1e-300)
    assert (slope, bend) == (pytest.approx(-alpha.sum(), rel=1e-12), pytest.approx(weights.sum(), rel=1e-12))
    assert total == pytest.approx(float(c @ loss.value(m)), rel=1e-12)
    assert held == pytest.approx(float(alpha @ m), rel=1e-9, abs=1e-9 * float(np.abs(alpha * m).sum()))


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="there are no longer floats here")
def test_logistic_kernel_is_as_exact_as_its_numbers():
    """Vectors of exp and log of our own, against longer floats: α, cφ″, φ and φ* to four units in the last place."""
    m = np.concatenate([np.linspace(-690, 690, 4001), np.geomspace(1e-300, 690, 4001), [0.0]])
    alpha, weights = np.empty_like(m), np.empty_like(m)
    _core.follow_curve("logistic", m, np.zeros_like(m), 0.0, np.ones_like(m), alpha, weights, 1)
    values = [_core.follow_curve("logistic", *np.array([[x], [0.0]]), 0.0, *np.ones((3, 1)), 1)[2] for x in m]
    e = np.exp(-np.abs(m.astype(np.longdouble)))
    np.testing.assert_allclose(alpha, np.where(m > 0, e, 1) / (1 + e), rtol=1e-15)
    np.testing.assert_allclose(weights, e / (1 + e) ** 2, rtol=1e-15)
    np.testing.assert_allclose(values, np.log1p(e) + np.maximum(0, -m), rtol=1e-15)
    a = np.concatenate([np.geomspace(1e-300, 0.5, 4001), 1 - np.geomspace(1e-15, 0.5, 4001)])
    conjugates = [_core.conjugates("logistic", at(one), np.ones(1), 1) for one in a]
    exact = a.astype(np.longdouble)
    np.testing.assert_allclose(conjugates, exact * np.log(exact) + (1 - exact) * np.log1p(-exact), rtol=1e-15)


@pytest.mark.parametrize("m", [750.0, 1e308, np.inf])
def test_logistic_kernel_far_from_the_hyperplane(m):
    """φ and α are 0 on the right side but for 1e-300, and −m and 1 on the wrong one; no NaN."""
    margins, alpha, weights = np.array([m, -m]), np.empty(2), np.empty(2)
    loss = _core.follow_curve("logistic", margins, np.zeros(2), 0.0, np.ones(2), alpha, weights, 1)[2]
    assert loss == m
    assert alpha == pytest.approx([0.0, 1.0], abs=1e-300)
    assert weights == pytest.approx([0.0, 0.0], abs=1e-300)


@given(losses, st.floats(-0.5, 1.5))
def test_kernel_conjugate_equals_numpy(loss, a):
    """φ* in C++ equals the NumPy twin, infinite where it is."""
    assert _core.loss_function(loss.name, "conjugate", a) == pytest.approx(
        loss.conjugate(at(a))[0], rel=1e-12, abs=1e-15
    )


@given(losses, st.floats(0, 1), margins, st.floats(-3, 3).map(lambda e: 10.0**e), strengths)
def test_coordinate_step_is_the_minimiser(loss, a, m, q, c):
    """The kernel's step minimises ½q(α'−α)² + m(α'−α) + cφ*(−α'/c), as Brent's method finds it."""
    alpha = a * c

    def objective(new):
        return q / 2 * (new - alpha) ** 2 + m * (new - alpha) + c * float(loss.conjugate(at(new / c))[0])

    low = max(loss.lower * c, alpha - (abs(m) + 2) / q)
    high = min(loss.upper * c, alpha + (abs(m) + 2) / q)
    best = minimize_scalar(objective, bounds=(low, high), method="bounded", options={"xatol": 1e-12 * c})
    step = _core.loss_step(loss.name, alpha, m, q, c)
    short_of_it = 2e-3 * (objective(alpha) - best.fun) if loss.name == "logistic" else 0.0
    assert objective(step) <= best.fun + short_of_it + 1e-9 * (1 + abs(best.fun))


@pytest.mark.parametrize("q", [0.0, 1e-3, 1.0, 1e3, 1e8])
@pytest.mark.parametrize("c", [1e-300, 1e-25, 1.0, 1e3, 1e8])
def test_logistic_step_is_a_root(q, c):
    """From anywhere, both ends included: the root of q(cσ(t) − α) + m + t that Brent's method finds.

    A step misses it by 3 % of its length at most, and a few more come to it.
    """
    for a in (0.0, 1e-20, 1e-3, 0.5, 1 - 1e-9, 1.0):
        for m in (-700.0, -30.0, -1.0, 0.0, 1.0, 30.0, 700.0):

            def slope(t, a=a, m=m):
                return q * c * (float(sigmoid(np.array([t]))[0]) - a) + m + t

            low, high = -m - q * c * (1 - a) - 1, -m + q * c * a + 1
            share = float(sigmoid(np.array([brentq(slope, low, high, xtol=1e-12, maxiter=1000)]))[0])
            alpha, margin = a * c, m
            step = _core.loss_step("logistic", alpha, margin, q, c)
            assert step / c == pytest.approx(share, rel=1e-7, abs=max(0.03 * abs(share - a), 1e-290))
            for _ in range(4):
                alpha, margin = step, margin + q * (step - alpha)
                step = _core.loss_step("logistic", alpha, margin, q, c)
            assert step / c == pytest.approx(share, rel=1e-7, abs=1e-290)


def test_a_pass_steps_as_far_as_the_minimiser():
    """Of logistic loss, on rows that have nothing in common: without exponentials for short steps, and hardly worse."""
    rng = np.random.default_rng(0)
    n = 400  # few enough for passes that are not corrected as a whole
    size, c = 10.0 ** rng.uniform(-2, 2, n), 10.0 ** rng.uniform(-2, 2, n)
    problem = make_problem(sp.diags_array(size).tocsr(), np.where(np.arange(n) % 2, 1.0, -1.0), c, "logistic", False)
    q, before = size**2, c * rng.uniform(0.01, 0.99, n)
    roots = [brentq(lambda t, q=q, c=c: q * c * sigmoid(at(t))[0] + t, -1e6, 1) for q, c in zip(q, c, strict=True)]
    best = c * sigmoid(np.array(roots))
    # Some begin next to where they belong, some far from it.
    before = best + rng.choice([1e-3, 0.1, 1.0], n) * (before - best)

    def dual(alpha):
        return q / 2 * alpha**2 + c * LOSSES["logistic"].conjugate(alpha / c)

    after = next(SOLVERS["dual_cd"].solve(problem, tol=1e-12, start=Start(before, 0.0)))
    assert after.visits == n
    assert (dual(after.alpha) - dual(best) <= 1e-3 * (dual(before) - dual(best)) + 1e-12 * np.abs(dual(best))).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n", [1, 3, 64, 1001])
def test_sums_equal_numpy(name, n):
    """Σ cφ and Σ cφ*, some in vectors and some one by one: margins of any size, α next to both ends and in between.

    Rows of strength 0 count for nothing; an α out of its bounds makes it infinite.
    """
    rng = np.random.default_rng(n)
    c, share = 10.0 ** rng.uniform(-5, 5, n), rng.choice([0.0, 1e-300, 1e-20, 1e-3, 0.5, 0.99, 1 - 1e-16, 1.0], n)
    m = rng.choice([-700.0, -30.0, -1.0, 1e-9, 0.7, 1.0, 30.0, 700.0], n) * rng.random(n)
    assert _core.losses(name, m, c, 1) == pytest.approx(c @ LOSSES[name].value(m), rel=1e-14)
    by_numpy = float(c @ LOSSES[name].conjugate(c * share / c))
    assert _core.conjugates(name, c * share, c, 1) == pytest.approx(by_numpy, abs=1e-14 * c.sum())
    none = np.append(c, 0.0)
    assert _core.losses(name, np.append(m, -5.0), none, 1) == pytest.approx(c @ LOSSES[name].value(m), rel=1e-14)
    assert _core.conjugates(name, np.append(c * share, 0.0), none, 1) == pytest.approx(by_numpy, abs=1e-14 * c.sum())
    for out in (-0.1, 1.1):
        wanted = LOSSES[name].conjugate(at(out))[0] == np.inf
        assert (_core.conjugates(name, np.append(c * share, out), np.append(c, 1.0), 1) == np.inf) == wanted


def test_conjugates_of_the_smallest_strengths():
    """0 at both ends, however small c is; the closed form at the middle."""
    for c in (5e-324, 1e-300, 1e-25, 1.0):
        ends = _core.conjugates("logistic", np.array([0.0, c]), np.full(2, c), 1)
        assert abs(ends) <= 1e-13 * c
    assert _core.conjugates("logistic", np.array([0.5e-25]), np.array([1e-25]), 1) == pytest.approx(-1e-25 * np.log(2))


def test_sigmoid_keeps_its_digits():
    """σ(−t) = 1 − σ(t), without overflow and with full precision at both ends."""
    t = np.array([-745.0, -40.0, -1e-8, 0.0, 30.0, 745.0])
    assert sigmoid(t) + sigmoid(-t) == pytest.approx(1, abs=1e-15)
    assert sigmoid(np.array([-40.0]))[0] == pytest.approx(np.exp(-40), rel=1e-14)


@pytest.mark.parametrize("c", [1e-300, 1e-30, 1.0, 1e30, 1.7e308])
def test_the_logistic_conjugate_is_exactly_0_at_both_ends(c):
    """As its formula says: anything below would make a dual bound too high."""
    ends = np.array([0.0, c])
    assert _core.conjugates("logistic", ends[:1], ends[1:], 1) == 0
    assert _core.conjugates("logistic", ends[1:], ends[1:], 1) == 0


@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "squared", "logistic"])
def test_bits_of_sums_do_not_depend_on_threads(name):
    """Σ cφ, Σ cφ* and what Newton's method asks of a curve: one, two and five threads give the same bits."""
    rng = np.random.default_rng(0)

    def sums(threads, m, dm, c, alpha):
        yield _core.losses(name, m, c, threads)
        yield _core.conjugates(name, alpha, c, threads)
        if LOSSES[name].smooth:
            yield from _core.follow_curve(name, m, dm, 0.5, c, *np.empty((2, len(m))), threads)

    for n in (1, 7, 100, 313, 5000):
        for _ in range(20):
            c = rng.random(n)
            numbers = 3 * rng.standard_normal(n), rng.standard_normal(n), c, c * rng.random(n)
            one, two, five = (list(sums(threads, *numbers)) for threads in (1, 2, 5))
            assert one == two == five
