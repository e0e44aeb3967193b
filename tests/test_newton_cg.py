"""Newton's method by conjugate gradients: its steps, when `auto` turns to it, and what comes after it."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from oracles import make_problem, noisy
from widemargin.solvers import Start
from widemargin.training import fit

module = importlib.import_module("widemargin.solvers.newton_cg")
chooser = importlib.import_module("widemargin.solvers.auto")


def counts(n, d, words=40, seed=0):
    """How often each of `words` words occurs in a row, some of them in most rows; labels by a noisy hyperplane."""
    rng = np.random.default_rng(seed)
    often = 1 / np.arange(1, d + 1)
    row, column = np.repeat(np.arange(n), words), rng.choice(d, n * words, p=often / often.sum())
    X = sp.csr_array((np.ones(n * words), (row, column)), shape=(n, d))
    X.sum_duplicates()
    scores = X @ rng.standard_normal(d)
    return X, np.where(scores - np.median(scores) + rng.standard_normal(n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_direction_leaves_a_tenth_of_the_slope(fit_intercept):
    """Measured by the matrix that is never written down, in the scale of its diagonal."""
    X, y = counts(200, 30)
    problem = make_problem(X, y, 1.0, "logistic", fit_intercept)
    rng = np.random.default_rng(1)
    weights, slope = rng.random(200), rng.standard_normal(31)
    system = module._Curvature(problem, 1000)
    system.weigh(weights)
    dw, db = system.direction(slope[:-1], slope[-1])
    Z = np.column_stack([X.toarray(), np.ones(200)])
    matrix = Z.T @ (weights[:, None] * Z) + np.diag([1.0] * 30 + [0.0])
    step = np.append(dw, db)
    if not fit_intercept:
        assert db == 0
        matrix, slope, step = matrix[:-1, :-1], slope[:-1], step[:-1]
    scale = np.sqrt(np.diag(matrix))
    assert np.linalg.norm((slope - matrix @ step) / scale) <= module.ROUGH * np.linalg.norm(slope / scale)
    assert system.left > 0


def test_a_direction_without_curvature_is_none():
    """Rows that weigh nothing, or next to nothing, leave the bias where it is, and w to the penalty."""
    for fit_intercept in (True, False):
        system = module._Curvature(make_problem(*counts(20, 3), 1.0, "logistic", fit_intercept), 1000)
        for weight in (0.0, 1e-311):
            system.weigh(np.full(20, weight))
            dw, _ = system.direction(np.array([1.0, 2.0, 3.0]), 0.0)
            assert dw == pytest.approx([1.0, 2.0, 3.0])
    system = module._Curvature(make_problem(*counts(20, 3), 1.0, "logistic"), 1000)
    system.weigh(np.zeros(20))
    assert system.direction(np.zeros(3), 1.0)[1] == 0


def stages_of(problem, tol):
    """A fit, and the last state of each of its stages: the number of the other method, whether descent is tried."""
    states = []
    found = fit(problem, tol=tol, keep=lambda state: states.append(state()))
    return found, {(state["solver"]["method"], state["solver"]["trying"]): state for state in states}


@pytest.mark.parametrize(("loss", "C"), [("logistic", 10.0), ("squared_hinge", 1.0), ("squared", 10.0)])
def test_auto_turns_to_it_where_descent_crawls(loss, C):
    """On counts of words; and it is the one that ends the fit."""
    found, stages = stages_of(make_problem(*counts(4000, 2500), C, loss), 1e-8)
    assert found.certificate.relative_gap <= 1e-8
    assert list(stages) == [(0, True), (0, False)]


def test_the_same_bits_on_two_threads():
    """Products are summed in the same order."""
    X, y = counts(4000, 2500)
    one, two = (fit(make_problem(X, y, 10.0, "logistic", threads=k), solver="newton_cg", tol=1e-6) for k in (1, 2))
    assert one.w.tobytes() == two.w.tobytes()
    assert one.alpha.tobytes() == two.alpha.tobytes()


@pytest.mark.parametrize("factor", [True, False])
def test_it_gives_way_where_it_gets_nowhere(factor, monkeypatch):
    """Descent goes on, and after it the factor if there is one; stopped at any stage, a fit ends with the same bits."""
    monkeypatch.setattr(chooser, "MOST_PRODUCTS", 1)
    monkeypatch.setattr(chooser, "LARGEST_SYSTEM", 5000 if factor else 0)
    monkeypatch.setattr(chooser, "_is_solved_at_once", lambda problem: False)
    monkeypatch.setattr(chooser, "_cost_of_second_order", lambda problem: 10 * chooser._cost_of_newton_cg(problem))
    problem = make_problem(*counts(4000, 500), 1000.0, "logistic")
    whole = fit(problem, tol=1e-7)
    found, stages = stages_of(problem, 1e-7)
    assert list(stages) == [(0, True), (0, False), (1, True), (1, False)]
    assert found.certificate.relative_gap <= 1e-7
    counted = [line.iteration for line in found.history if not line.proved]
    assert counted == sorted(set(counted))
    for state in stages.values():
        again = fit(problem, tol=1e-7, resumed=state)
        assert again.w.tobytes() == whole.w.tobytes()
        assert again.iterations == whole.iterations


def test_it_may_cost_some_times_what_descent_has_left():
    """From a gap that falls by a factor of ten for every unit of cost; at least what it needs where all goes well."""
    problem = make_problem(*counts(4000, 500), 1.0, "logistic")
    product = chooser._cost_of_a_product(problem)
    for per_digit, wanted in ((1, 60), (5, 6 * 4 * 5), (100, 600)):
        trace = [(0.0, np.inf), *((k * per_digit * product, 10.0 ** (2 - k)) for k in range(1, 5))]
        assert chooser._products(problem, trace, 1e-6) == pytest.approx(wanted, abs=1)
    assert chooser._products(problem, [(0.0, np.inf)], 1e-6) == 600


def test_small_falls_of_the_objective_add_up():
    """Each by a third of what counts as one; without any, it is waited for some steps and no more."""
    headway = importlib.import_module("widemargin.solvers.headway")
    falling, still = headway.Headway(1e-6), headway.Headway(1e-6)
    assert not any(falling.ended(0.9997**k, -1.0, 0.9997**k) for k in range(100))
    *waits, last = (still.ended(1.0, -1.0, 1.0) for _ in range(headway.PATIENCE + 2))
    assert last
    assert not any(waits)


def test_it_ends_with_its_products():
    """After the step that took the last of them, which is a step down all the same."""
    problem = make_problem(*counts(300, 50), 1e3, "logistic")
    iterates = list(module.newton_cg(problem, tol=1e-9, products=2))
    assert len(iterates) == 2
    assert iterates[1].primal < iterates[0].primal


def test_it_sets_out_from_where_another_ended():
    """One look is enough at the optimum."""
    problem = make_problem(*counts(500, 80), 1.0, "logistic")
    found = fit(problem, tol=1e-9)
    start = Start(found.alpha, found.b, found.w, hopeful=False)
    assert fit(problem, solver="newton_cg", tol=1e-6, start=start).iterations == 1


def test_rows_without_strength_count_for_nothing():
    """And an empty column stays at 0."""
    X, y = noisy(200, 5)
    X[:, 2] = 0.0
    strengths = np.where(np.arange(200) < 150, 1.0, 0.0)
    found = fit(make_problem(X, y, strengths, "logistic"), solver="newton_cg", tol=1e-9)
    fewer = fit(make_problem(X[:150], y[:150], 1.0, "logistic"), solver="newton_cg", tol=1e-9)
    assert found.w == pytest.approx(fewer.w, abs=1e-6)
    assert found.w[2] == 0


def test_a_squared_hinge_that_takes_too_many_steps_is_solved_the_other_way(monkeypatch):
    """As a hard margin that gives way."""
    monkeypatch.setattr(sys.modules["widemargin.solvers.interior_point"], "SLOW", 2)
    problem = make_problem(*noisy(4000, 60), 1e3, "squared_hinge")
    found = fit(problem, solver="interior_point", tol=1e-8)
    assert found.certificate.relative_gap <= 1e-8
    counted = [line.iteration for line in found.history if not line.proved]
    assert counted == sorted(set(counted))
    monkeypatch.undo()
    assert found.certificate.primal == pytest.approx(
        fit(problem, solver="interior_point", tol=1e-8).certificate.primal, rel=2e-8
    )
