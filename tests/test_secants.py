"""Steps from a factor that was computed some steps ago."""

import sys
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp

from oracles import make_problem, noisy
from widemargin.solvers.normal_equations import Factor, Tall
from widemargin.solvers.secants import Secants
from widemargin.training import fit


def test_newton_keeps_a_factor_as_long_as_steps_gain_by_it(monkeypatch):
    """The logistic loss of sparse rows: fewer factors than steps, and the same optimum."""
    rng = np.random.default_rng(12)
    X = sp.csr_array((rng.random((20_000, 60)) < 0.1).astype(float))
    y = np.where(X @ rng.standard_normal(60) + rng.standard_normal(20_000) > 0.5, 1.0, -1.0)
    problem = make_problem(X, y, 1.0, "logistic")
    monkeypatch.setattr(sys.modules["widemargin.solvers.interior_point"], "SMALL", 0)
    with mock.patch.object(Factor, "refresh", autospec=True, side_effect=Factor.refresh) as factors:
        found = fit(problem, solver="interior_point", tol=1e-9)
    assert found.certificate.relative_gap <= 1e-9
    assert factors.call_count < found.iterations - 2
    best = fit(problem, solver="dual_cd", tol=1e-9)
    assert found.certificate.primal == pytest.approx(best.certificate.primal, rel=2e-9)


def test_secants_hold_for_the_last_step_exactly():
    """The last change of the slope leads back along its step, whatever matrix it began with."""
    problem = make_problem(*noisy(200, 5), 1.0, "logistic")
    system, rng = Tall(problem), np.random.default_rng(0)
    system.weigh(np.ones(200))
    secants, curvature = Secants(system), rng.standard_normal((6, 6))
    curvature = curvature @ curvature.T + np.eye(6)
    for step in rng.standard_normal((4, 6)):
        change = curvature @ step
        secants.add(step, change)
        dw, db, dm = secants.newton_step(change)
        assert np.append(dw, db) == pytest.approx(-step, abs=1e-9)
        assert dm == pytest.approx(problem.y * (problem.rows.scores(dw) + db), abs=1e-12)
