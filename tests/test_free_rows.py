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


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, lambda X: np.asfortranarray(X, np.float32)])
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
