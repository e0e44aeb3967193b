"""Newton's method for smooth losses: where it begins."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from oracles import make_problem, noisy
from widemargin import LogisticRegression
from widemargin.solvers import Start
from widemargin.solvers.normal_equations import Tall
from widemargin.training import fit

module = importlib.import_module("widemargin.solvers.newton")


def thin(X):
    """Most of it left out."""
    return sp.csr_array(np.where(np.abs(X - 1) > 1.5, X, 0.0))


def tall(loss, fit_intercept, storage=np.asarray):
    """Many rows of few columns, one in five of them in the first class, with strengths of 0 and of a thousand."""
    X, y = noisy(30_000, 8)
    rng = np.random.default_rng(1)
    keep = (y > 0) | (rng.random(30_000) < 0.2)
    X, y = X[keep] + 1, y[keep]
    c = rng.random(len(y))
    c[:50], c[50:60] = 0.0, 1000.0
    return make_problem(storage(X), y, c, loss, fit_intercept)


def primal(problem, w, b):
    """The objective there."""
    return problem.primal(w, problem.margins(w, b))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    ("loss", "storage"),
    [("logistic", np.asarray), ("squared_hinge", np.asarray), ("squared", sp.csr_array), ("logistic", thin)],
)
def test_some_rows_know_the_optimum_of_all_within_some_hundredths(loss, fit_intercept, storage):
    """The optimum by coordinate descent or in closed form, which know nothing of such a start."""
    problem = tall(loss, fit_intercept, storage)
    assert Tall(problem).sparse == (storage is thin)
    start = module.start_from_some_rows(problem, Tall(problem))
    other = "least_squares" if loss == "squared" else "dual_cd"
    best = fit(problem, solver=other, tol=1e-6).certificate.primal
    assert primal(problem, start.w, start.b) < 1.05 * best
    assert best < primal(problem, start.w, start.b)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_the_optimum_does_not_depend_on_the_start(loss, fit_intercept, monkeypatch):
    """With and without one, the same objective; only what they begin with differs."""
    problem = tall(loss, fit_intercept)
    monkeypatch.setattr(importlib.import_module("widemargin.solvers.interior_point"), "SMALL", 0)
    found = fit(problem, solver="interior_point", tol=1e-8)
    monkeypatch.setattr(module, "START_MOST", 0)
    plain = fit(problem, solver="interior_point", tol=1e-8)
    assert found.certificate.relative_gap <= 1e-8
    assert found.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-8)
    assert found.history[0].primal < plain.history[0].primal


def test_rows_are_drawn_from_each_class_and_stand_for_all():
    """As many of the rare class as of the other, the heavy ones anyway; their strengths add up to those of all."""
    problem = tall("logistic", True)
    some = module.some_rows(problem, 2000, Tall(problem).draws)
    assert (some.c == 1000).sum() == (problem.c == 1000).sum()
    assert (some.c > 0).all()
    for sign in (-1, 1):
        assert (some.y == sign).sum() == pytest.approx(1000, rel=0.1)
        assert some.c[some.y == sign].sum() == pytest.approx(problem.c[problem.y == sign].sum(), rel=0.1)


@pytest.mark.parametrize("c", [[1.0], [1e-300], [0.0, 1.0], [1e-12, 1.0, 1e12]], ids=str)
def test_a_class_of_few_rows_is_there_as_it_is(c):
    """Whatever their strengths; and rows of the other class are as many as they should be."""
    X, y = noisy(20_000, 3)
    rare, common = np.flatnonzero(y > 0)[: len(c)], np.flatnonzero(y < 0)
    strengths = np.zeros(20_000)
    strengths[common], strengths[rare] = 1.0, c
    some = module.some_rows(make_problem(X, y, strengths, "logistic"), 2000, np.random.default_rng(0).random(20_000))
    assert np.array_equal(some.c[some.y > 0], [one for one in c if one > 0])
    assert (some.y < 0).sum() == pytest.approx(1000, rel=0.1)


def test_the_rows_that_count_are_those_of_a_strength():
    """Many rows of strength 0 do not make few others enough for a start."""
    X, y = noisy(30_000, 8)
    c = np.zeros(30_000)
    c[:800] = 1.0
    problem = make_problem(X, y, c, "logistic")
    assert module.start_from_some_rows(problem, Tall(problem)) is None


@pytest.mark.parametrize("far", [1e3, 1e9])
def test_a_start_that_is_worse_than_nothing_is_none(far):
    """Then it begins at w = 0, whose objective is known: log 2 per row."""
    problem = make_problem(*noisy(500, 5), 1.0, "logistic", fit_intercept=False)
    start = Start(np.zeros(0), 0.0, np.full(5, far))
    first = next(module.newton(problem, Tall(problem), 1e-6, start, whole=True, most=1))
    assert first.primal == pytest.approx(500 * np.log(2), rel=1e-12)
    assert not first.w.any()


def test_a_strength_beyond_all_numbers():
    """What can be said is a warning, with weights that are numbers."""
    X, y = noisy(200, 5)
    with pytest.warns(ConvergenceWarning, match="relative gap is inf"):
        model = LogisticRegression(C=1e300).fit(X + 10 * y[:, None], y)  # separable
    assert np.isfinite(model.coef_).all()


def test_a_system_that_is_none_ends_it():
    """The third cannot be factored: two steps, each of which lowers the objective, are there to be looked at."""

    class Overflown(Tall):
        times = 0

        def weigh(self, weights, ridge=1.0):
            self.times += 1
            if self.times == 3:
                raise np.linalg.LinAlgError
            super().weigh(weights, ridge)

    problem = make_problem(*noisy(500, 5), 1.0, "logistic")
    seen = [
        (primal(problem, one.w, one.b), one.claim, one.iterations)
        for one in module.newton(problem, Overflown(problem), 1e-9, None, whole=True, most=50)
    ]
    assert seen[0] > seen[1] > seen[2]
    assert seen[2:] == [(seen[2][0], np.inf, 3), (seen[2][0], 0.0, 3)]


def test_where_some_rows_are_no_start():
    """Too few rows for the columns, one class, strengths beyond all numbers, sparse rows whose curvature jumps."""
    X, y = noisy(30_000, 8)
    for problem in (
        make_problem(X[:800], y[:800], 1.0, "logistic"),
        make_problem(X, np.ones(30_000), 1.0, "logistic"),
        make_problem(X, y, 1e305, "logistic"),
        make_problem(sp.csr_array(np.where(X > 1.5, X, 0.0)), y, 1.0, "squared_hinge"),
    ):
        assert module.start_from_some_rows(problem, Tall(problem)) is None
