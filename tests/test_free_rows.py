"""Few rows in play, solved all at once."""

import importlib

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from oracles import make_problem
from widemargin.solvers import SOLVERS
from widemargin.training import fit

descent_module = importlib.import_module("widemargin.solvers.dual_cd")

STORAGES = [np.asarray, sp.csr_array, lambda X: np.asfortranarray(X, np.float32)]


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("loss", "digit", "C"), [("hinge", 3, 10.0), ("squared_hinge", 0, 1000.0)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_few_rows_in_play_are_solved_by_their_products(loss, digit, C, fit_intercept, storage, monkeypatch):
    """Less work than visits of one row at a time, and the same optimum; α stays in its bounds, w is that of α."""
    digits, labels = load_digits(return_X_y=True)
    problem = make_problem(storage(digits / 16), np.where(labels == digit, 1.0, -1.0), C, loss, fit_intercept)

    def descend(few):
        monkeypatch.setattr(descent_module, "VERY_FEW", few)
        visits = 0
        for iterate in SOLVERS["dual_cd"].solve(problem, tol=1e-6):
            iterate.at_once, visits = 1000, visits + iterate.visits
            assert (iterate.alpha >= 0).all()
            assert (iterate.alpha <= problem.upper).all()
            assert iterate.w == pytest.approx(problem.weights(iterate.alpha), abs=1e-7)
            if iterate.claim <= 1e-6:
                return visits
        raise AssertionError("it gave up")

    alone, together = descend(0), descend(60)
    assert together < 0.7 * alone
    one, other = fit(problem, solver="dual_cd", tol=1e-6), fit(problem, solver="interior_point", tol=1e-9)
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-6)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize(("loss", "C"), [("hinge", 10.0), ("squared_hinge", 1000.0)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("very_few", [60, 400])
def test_equal_rows_are_one(loss, C, fit_intercept, very_few, storage, monkeypatch):
    """A pass among few rows, by copies or by products, moves equal ones to the same share of their strengths.

    The optimum is no other.
    """
    monkeypatch.setattr(descent_module, "VERY_FEW", very_few)
    rng = np.random.default_rng(5)
    different = np.where(rng.random((2500, 30)) < 0.5, 0.0, rng.integers(-2, 3, (2500, 30)) / 4)
    kinds = rng.integers(0, 2500, 6000)
    y = np.where(different[kinds] @ rng.standard_normal(30) + 0.02 * rng.standard_normal(6000) > 0, 1.0, -1.0)
    c = C * (rng.random(6000) + 0.1)
    problem = make_problem(storage(different[kinds]), y, c, loss, fit_intercept)
    before, several, kinds = np.zeros(6000), 0, 2 * kinds + (y > 0)
    for iterate in SOLVERS["dual_cd"].solve(problem, tol=1e-6):
        alpha, moved = iterate.alpha.copy(), iterate.alpha != before
        if 128 < iterate.active <= 6000 // 16:
            for kind in np.unique(kinds[moved]):
                shares = (alpha / c)[moved & (kinds == kind)]
                several += len(shares) > 1
                assert np.ptp(shares) <= 1e-12 * shares.max()
            assert ((alpha >= 0) & (alpha <= problem.upper)).all()
            assert iterate.w == pytest.approx(problem.weights(alpha), abs=1e-9 * np.abs(iterate.w).max())
        before = alpha
        if iterate.claim <= 1e-6:
            break
    assert several > 0
    found, exact = (fit(problem, solver=one, tol=1e-6) for one in ("dual_cd", "interior_point"))
    assert found.certificate.relative_gap <= 1e-6
    assert found.certificate.primal == pytest.approx(exact.certificate.primal, rel=2e-6)
