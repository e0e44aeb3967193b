"""Every solver on every loss; solvers and losses are found by themselves."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from oracles import ORACLE, make_problem, minimum, noisy, text_like
from strategies import problems
from test_rows import storages
from widemargin.losses import LOSSES
from widemargin.solvers import SOLVERS
from widemargin.solvers.normal_equations import Tall, Wide
from widemargin.training import fit

every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_loss = pytest.mark.parametrize("loss", LOSSES)
with_and_without_bias = pytest.mark.parametrize("fit_intercept", [True, False])


@every_solver
@every_loss
@with_and_without_bias
def test_reaches_the_optimum(solver, loss, fit_intercept):
    """The primal value equals the cone solver's."""
    X, y = noisy(150, 6, seed=3)
    problem = make_problem(X, y, 0.1, loss, fit_intercept)
    found = fit(problem, solver=solver, tol=1e-7)
    assert found.certificate.relative_gap <= 1e-7
    assert found.certificate.primal == pytest.approx(minimum(problem), rel=2e-7, abs=ORACLE)


@settings(max_examples=150)
@given(problems())
def test_auto_leaves_no_case_out(problem):
    """Any small problem at all reaches a relative gap of 1e-6."""
    if len(np.unique(problem.y[problem.live])) < 2:
        return
    assert fit(problem, tol=1e-6).certificate.relative_gap <= 1e-6


@every_loss
@with_and_without_bias
@pytest.mark.parametrize("C", [0.01, 1, 100, 1e4])
@pytest.mark.parametrize("big", [1.0, 100.0, 1e4])
def test_any_scaling_and_any_strength(loss, fit_intercept, C, big):
    """Relative gap 1e-6 on noisy data with one column scaled, with no knob but tol."""
    X, y = noisy(2000, 20, big=big)
    assert fit(make_problem(X, y, C, loss, fit_intercept), tol=1e-6).certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("C", [1e-10, 1e-5, 1e5, 1e10])
def test_extreme_strengths(C):
    """From almost no loss to almost no penalty."""
    X, y = noisy(300, 5)
    assert fit(make_problem(X, y, C), tol=1e-6).certificate.relative_gap <= 1e-6


@with_and_without_bias
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_columns_far_from_zero(loss, fit_intercept):
    """Columns at 1e5 ± 1 are as good as centred ones."""
    X, y = noisy(500, 5)
    problem = make_problem(X + 1e5, y, 1.0, loss, fit_intercept)
    assert fit(problem, tol=1e-6).certificate.relative_gap <= 1e-6


@every_solver
def test_storage_does_not_matter(solver):
    """Dense in any order, CSR, 32 and 64 bits: the same numbers give the same w."""
    X, y = noisy(200, 5, seed=5)
    answers = [fit(make_problem(stored, y, 0.5), solver=solver, tol=1e-9).w for stored in storages(X)]
    for w in answers[1:]:
        assert w == pytest.approx(answers[0], abs=1e-4 if solver == "dual_cd" else 1e-9)


@every_loss
def test_order_of_rows_does_not_matter(loss):
    """A permutation of the rows gives the same w."""
    X, y = noisy(120, 4, seed=6)
    order = np.random.default_rng(0).permutation(120)
    one, other = (fit(make_problem(X[i], y[i], 0.5, loss), tol=1e-9) for i in (slice(None), order))
    assert one.w == pytest.approx(other.w, abs=1e-8)
    assert one.b == pytest.approx(other.b, abs=1e-8)


@every_loss
def test_weights_are_repeated_rows(loss):
    """Strength 2c is the row twice, strength 0 is no row."""
    X, y = noisy(90, 4, seed=7)
    times = np.arange(90) % 3
    weighted = fit(make_problem(X, y, 0.4 * times, loss), tol=1e-9)
    index = np.repeat(np.arange(90), times)
    repeated = fit(make_problem(X[index], y[index], 0.4, loss), tol=1e-9)
    assert weighted.w == pytest.approx(repeated.w, abs=1e-8)
    assert weighted.b == pytest.approx(repeated.b, abs=1e-8)
    assert weighted.certificate.primal == pytest.approx(repeated.certificate.primal, rel=1e-9, abs=1e-12)


@every_loss
@with_and_without_bias
def test_wide_data(loss, fit_intercept):
    """More columns than rows, dense and sparse: machine precision by the Gram matrix."""
    rng = np.random.default_rng(8)
    X = sp.random_array((60, 3000), density=0.05, rng=rng, format="csr")
    y = np.where(rng.random(60) < 0.4, 1.0, -1.0)
    for stored in (X, X.toarray()):
        found = fit(make_problem(stored, y, 10.0, loss, fit_intercept), solver="interior_point", tol=1e-3)
        assert found.certificate.relative_gap <= 1e-10


@with_and_without_bias
def test_both_linear_systems_give_the_same_step(fit_intercept):
    """Eliminating Δα or Δw is a choice of size, not of answer."""
    rng = np.random.default_rng(9)
    X, y = noisy(12, 12, seed=9)
    problem = make_problem(X, y, 1.0, fit_intercept=fit_intercept)
    weights = 10 ** rng.uniform(-3, 3, 12)
    residuals = rng.standard_normal(12), rng.standard_normal(12), 0.7 * fit_intercept
    steps = []
    for system in (Tall(problem), Wide(problem)):
        system.weigh(weights)
        steps.append(system.solve(*residuals))
    for one, other in zip(*steps, strict=True):
        assert one == pytest.approx(other, abs=1e-7)
    r, r_w, r_b = residuals
    dw, db, dalpha, dm = steps[0]
    assert dw == pytest.approx(X.T @ (y * dalpha) - r_w, abs=1e-8)
    assert dm == pytest.approx(y * (X @ dw + db), abs=1e-8)
    assert dalpha == pytest.approx(weights * (r - dm), abs=1e-6)
    if fit_intercept:
        assert y @ dalpha == pytest.approx(-r_b, abs=1e-8)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_shards_give_the_same_bits_on_any_number_of_threads(loss):
    """A set large enough for two shards: one, two and three threads agree to the last bit."""
    X, y = text_like(30_000)
    fits = [fit(make_problem(X, y, 1.0, loss, threads=threads), solver="dual_cd", tol=1e-3) for threads in (1, 2, 3)]
    assert fits[0].certificate.relative_gap <= 1e-3
    for other in fits[1:]:
        assert np.array_equal(fits[0].w, other.w)
        assert np.array_equal(fits[0].alpha, other.alpha)
        assert fits[0].b == other.b


@every_solver
def test_same_seed_same_bits(solver):
    """Nothing but the seed decides."""
    X, y = noisy(3000, 30, seed=10)
    one, other = (fit(make_problem(X, y), solver=solver, tol=1e-3, seed=3) for _ in range(2))
    assert np.array_equal(one.w, other.w)


@every_solver
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_degenerate_rows(solver, loss):
    """All rows equal, all rows empty, two rows, one column: still a proof."""
    for X in ([[1.0], [1.0], [1.0], [1.0]], [[0.0], [0.0], [0.0], [0.0]], [[0.0, 0.0], [1.0, 0.0]], [[5.0], [5.0]]):
        y = [1, -1] * (len(X) // 2)
        for fit_intercept in (True, False):
            problem = make_problem(X, y, 1.0, loss, fit_intercept)
            assert fit(problem, solver=solver, tol=1e-6).certificate.relative_gap <= 1e-6
