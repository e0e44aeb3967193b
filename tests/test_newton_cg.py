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
smooth = pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])


def counts(n, d, words=40, seed=0):
    """How often each of `words` words occurs in a row, some of them in most rows; labels by a noisy hyperplane."""
    rng = np.random.default_rng(seed)
    often = 1 / np.arange(1, d + 1)
    row, column = np.repeat(np.arange(n), words), rng.choice(d, n * words, p=often / often.sum())
    X = sp.csr_array((np.ones(n * words), (row, column)), shape=(n, d))
    X.sum_duplicates()
    scores = X @ rng.standard_normal(d)
    return X, np.where(scores - np.median(scores) + rng.standard_normal(n) > 0, 1.0, -1.0)


@smooth
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_direction_leaves_a_tenth_of_the_slope(loss, fit_intercept):
    """Measured by the matrix that is never written down, in the scale of its diagonal."""
    X, y = counts(200, 30)
    problem = make_problem(X, y, 1.0, loss, fit_intercept)
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
    assert not system.exhausted


@smooth
def test_auto_turns_to_it_where_descent_crawls(loss, monkeypatch):
    """On counts of words."""
    taken = []
    monkeypatch.setattr(chooser, "newton_cg", lambda *a, **k: taken.append(1) or module.newton_cg(*a, **k))
    problem = make_problem(*counts(4000, 2500), 10.0, loss)
    found = fit(problem, tol=1e-8)
    assert taken == [1]
    assert found.certificate.relative_gap <= 1e-8


def test_the_same_bits_on_two_threads():
    """Products are summed in the same order."""
    X, y = counts(4000, 2500)
    one, two = (fit(make_problem(X, y, 10.0, "logistic", threads=k), tol=1e-6) for k in (1, 2))
    assert one.w.tobytes() == two.w.tobytes()
    assert one.alpha.tobytes() == two.alpha.tobytes()


@pytest.mark.parametrize(("name", "value"), [("MOST_PRODUCTS", 1), ("MOST_STEPS", 2)])
def test_it_gives_way_where_it_gets_nowhere(name, value, monkeypatch):
    """Descent goes on, and the factor after it; iterations are counted on."""
    monkeypatch.setattr(chooser, name, value)
    problem = make_problem(*counts(4000, 2500), 10.0, "logistic")
    states = []
    found = fit(problem, tol=1e-7, keep=lambda state: states.append(state()))
    assert found.certificate.relative_gap <= 1e-7
    assert {state["solver"]["method"] for state in states if state["solver"]} >= {0, 1}
    counted = [line.iteration for line in found.history if not line.proved]
    assert counted == sorted(set(counted))


def test_a_fit_that_gave_it_up_goes_on_with_the_same_bits(monkeypatch):
    """From each of the stages that such a fit has."""
    monkeypatch.setattr(chooser, "MOST_PRODUCTS", 1)
    problem = make_problem(*counts(4000, 2500), 10.0, "logistic")
    whole, states = fit(problem, tol=1e-6), []
    fit(problem, tol=1e-6, keep=lambda state: states.append(state()))
    stages = {(state["solver"]["method"], state["solver"]["trying"]): state for state in states}
    assert len(stages) > 2
    for state in stages.values():
        again = fit(problem, tol=1e-6, resumed=state)
        assert again.w.tobytes() == whole.w.tobytes()
        assert again.iterations == whole.iterations


def test_it_says_when_a_step_took_too_many_products():
    """As a solver of its own it ends there, with the proof of what was reached."""
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
    monkeypatch.undo()
    assert found.certificate.primal == pytest.approx(
        fit(problem, solver="interior_point", tol=1e-8).certificate.primal, rel=2e-8
    )
