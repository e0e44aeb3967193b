"""Logistic descent goes back where a pass went too far, and some rows tell it how much of the gap is left."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp

from oracles import make_problem, text_like
from widemargin.solvers import SOLVERS
from widemargin.training import fit


def alike(n=2000, d=300):
    """Rows that have most of their direction in common."""
    rng = np.random.default_rng(0)
    X = 1 + rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X[:, : d // 3] += 0.05 * y[:, None]
    return X, y


def passes_of(problem, count):
    """The first iterates of descent, with the relative gaps at their points."""
    for iterate in islice(SOLVERS["dual_cd"].solve(problem, tol=1e-14), count):
        margins = problem.margins(iterate.w, problem.best_bias(problem.rows.scores(iterate.w)))
        alpha = problem.feasible(iterate.alpha)
        dual = problem.dual(alpha, problem.weights(alpha))
        yield iterate, (problem.primal(iterate.w, margins) - dual) / dual


def test_passes_that_went_too_far_are_not_kept_in_full():
    """Each leaves a twentieth of the gap or less; without a step back, a tenth from the fourth on."""
    for C in (0.1, 1.0):
        gaps = [gap for _, gap in passes_of(make_problem(*alike(), C, "logistic", False), 5)]
        assert gaps[-1] < gaps[0] / 20**4
        assert gaps == sorted(gaps, reverse=True)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, lambda X: np.asfortranarray(X, np.float32)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_what_is_kept_is_a_dual_point_with_its_weights(fit_intercept, storage):
    """Every α within its bounds, w its weights; and the solution is that of Newton's method."""
    X, y = alike()
    problem = make_problem(storage(X), y, 1.0, "logistic", fit_intercept)
    for iterate, _ in passes_of(problem, 4):
        assert (iterate.alpha > 0).all()
        assert (iterate.alpha < 1).all()
        assert iterate.w == pytest.approx(problem.weights(iterate.alpha), abs=1e-9)
    one, other = fit(problem, solver="dual_cd", tol=1e-8), fit(problem, solver="interior_point", tol=1e-9)
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-8)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_a_sample_tells_what_the_first_pass_left(C, fit_intercept):
    """The claim after one pass over text is the gap at its point, give or take; with a bias, b is on its way."""
    first, gap = next(passes_of(make_problem(*text_like(8000), C, "logistic", fit_intercept), 1))
    assert gap / 3 <= first.claim <= 3 * gap


@pytest.mark.parametrize("rare", [2, 30])
def test_a_sample_has_rows_of_both_classes(rare):
    """A class of one row in thirty has most of the gap; the claims are as close to the truth."""
    X, y = alike()
    y[np.arange(len(y)) % rare > 0] = -1
    for iterate, gap in passes_of(make_problem(X, y, 1.0, "logistic", False), 4):
        assert gap / 2 <= iterate.claim <= 2 * gap


@pytest.mark.parametrize("rare", [5, 30])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_bias_settles(rare, weighted):
    """Uneven classes, whose bias is far from 0: b comes to rest, and a gap of 1e-7 takes few passes."""
    X, y = alike(n=4000, d=200)
    X[np.abs(X) < 0.06] = 0
    y[np.arange(len(y)) % rare > 0] = -1
    strengths = 10.0 ** np.random.default_rng(1).uniform(-1, 1, len(y)) if weighted else np.ones(len(y))
    problem = replace(make_problem(sp.csr_array(X), y, 1.0, "logistic", True), c=strengths)
    end = fit(problem, solver="dual_cd", tol=1e-7)
    assert end.certificate.relative_gap <= 1e-7
    assert end.iterations <= 30


def test_a_few_rows_that_a_sample_misses_only_delay_the_proof():
    """Three rows a million times as strong as the others, which have nearly all of the gap."""
    X, y = alike()
    strengths = np.full(len(y), 1e-3)
    strengths[[5, 600, 1500]] = 1e3
    problem = replace(make_problem(X, y, 1.0, "logistic", False), c=strengths)
    assert fit(problem, solver="dual_cd", tol=1e-6).certificate.relative_gap <= 1e-6


def test_bits_do_not_depend_on_threads():
    """Nor does the sample that is drawn."""
    X, y = text_like(8000)
    problem = make_problem(X, y, 1.0, "logistic", True)
    one, two = ([it.w.copy() for it, _ in passes_of(problem.but(threads=threads), 4)] for threads in (1, 2))
    assert np.array_equal(one, two)
