from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import ORACLE, make_problem, minimum, noisy
from strategies import dual_points, primal_points, problems
from widemargin import _core
from widemargin.certificate import Certificates, InseparableError, certify, prove_inseparable
from widemargin.losses import LOSSES
from widemargin.model import LinearModel
from widemargin.training import fit


@settings(max_examples=100)
@given(st.data())
def test_gap_bounds_the_true_distance(data):
    """For any w, b and α the gap is at least primal − minimum, the minimum by an off-the-shelf cone solver."""
    problem = data.draw(problems())
    if len(np.unique(problem.y[problem.live])) < 2:
        return
    w, b = data.draw(primal_points(problem))
    certificate = certify(problem, w, b, data.draw(dual_points(problem)))
    true = minimum(problem)
    allowed = ORACLE * (1 + abs(true))
    assert certificate.gap >= certificate.primal - true - allowed
    assert certificate.dual <= true + allowed
    assert certificate.primal >= true - allowed


@given(st.data())
def test_the_kernel_counts_as_numpy_does(data):
    """Slacks, the KKT table and the objective as the formulas of losses.py have them, row by row."""
    problem = data.draw(problems())
    w, b = data.draw(primal_points(problem))
    seen = certify(problem, w, b, data.draw(dual_points(problem)))
    live, loss = problem.live, problem.loss
    m, alpha, c = problem.margins(w, b)[live], seen.alpha[live], problem.c[live]
    slacks, zero = np.maximum(0, 1 - m), ~np.isin(live, seen.support)
    assert seen.slack == pytest.approx(slacks.sum(), rel=1e-12)
    assert (seen.violations, seen.misclassified) == ((slacks > 1e-9).sum(), (slacks > 1).sum())
    assert (np.abs(alpha[~zero]) > 0).all()
    if problem.hard:
        misses, bound = np.where(zero, slacks, np.abs(m - 1)), np.zeros(len(m), bool)
    else:
        a = np.where(zero & (loss.lower == 0), 0.0, alpha / c)
        bound = ~zero & (a >= loss.upper - 1e-9)
        misses = loss.kkt_violation(m, np.where(bound, loss.upper, a))
        assert seen.primal == pytest.approx(problem.penalised * (w @ w) / 2 + c @ loss.value(m), rel=1e-12)
    for kind, place in zip(seen.kkt, (zero, ~zero & ~bound, bound), strict=True):
        assert kind.count == place.sum()
        assert kind.worst == pytest.approx(misses[place].max(initial=0.0), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_no_number_shows(loss):
    """A margin that is none is neither a slack of 0 nor a KKT condition that holds, in whatever order it comes."""
    one, far = np.ones(5), 8.0 if np.isfinite(LOSSES[loss].kink) else 0.5
    for at in (0, 4):
        m = np.full(5, far)
        m[at] = np.nan
        support = np.empty(5, np.uint8)
        _, worst, slack, *_ = _core.facts_of_rows(
            loss, m, 0.5 * one, one, one, one, 1.0, 1.0, 0.0, 1e-9, 1e-9, support, 1
        )
        assert np.isnan(slack)
        assert np.isnan(worst[1])
        assert np.isnan(_core.losses(loss, m, one, 1))


def test_right_is_what_a_model_predicts():
    """Rows on the hyperplane included, which belong to the first class."""
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, 3.0], [2.0, 1.0]])
    y, w = np.array([1.0, 1.0, -1.0, 1.0, -1.0]), np.array([0.5, 0.0])
    predicted = LinearModel(w[None], np.zeros(1), np.array([-1.0, 1.0])).choose(X @ w)
    assert certify(make_problem(X, y, 1.0), w, 0.0, np.zeros(5)).right == (predicted == y).sum() == 2


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gap_of_the_optimum_is_rounding(loss, fit_intercept):
    """At the optimum primal, dual and the cone solver's value agree, and the KKT table finds nothing to complain of."""
    X, y = noisy(80, 4, seed=1)
    problem = make_problem(X, y, 0.3, loss, fit_intercept)
    certificate = fit(problem, tol=1e-12).certificate
    assert certificate.primal == pytest.approx(minimum(problem), rel=ORACLE, abs=ORACLE)
    assert abs(certificate.primal - certificate.dual) <= 1e-12 * (1 + abs(certificate.dual))
    assert certificate.kkt_violation <= 1e-6
    assert sum(kind.count for kind in certificate.kkt) == 80


def test_kkt_table_counts_by_hand():
    """One point at α = 0, two on the margin, one at the bound beyond it, as placed by hand."""
    problem = make_problem([[3.0], [1.0], [-1.0], [2.0]], [1, 1, -1, -1], fit_intercept=False)
    certificate = certify(problem, np.array([1.0]), 0.0, np.array([0.0, 0.8, 0.8, 1.0]))
    assert [kind.count for kind in certificate.kkt] == [1, 2, 1]
    assert (certificate.slack, certificate.violations, certificate.misclassified) == (3.0, 1, 1)
    assert certificate.width == 2
    assert certificate.support.tolist() == [1, 2, 3]


def test_kkt_violation_is_the_worst_miss():
    """A point with α = 0 at margin 0.25 misses what is wanted by 0.75."""
    problem = make_problem([[0.25], [-1.0]], [1, -1], fit_intercept=False)
    certificate = certify(problem, np.array([1.0]), 0.0, np.zeros(2))
    assert certificate.kkt_violation == 0.75


def test_nothing_proved_is_infinite():
    """α = 0 proves nothing of the hinge: the relative gap is infinite."""
    problem = make_problem([[1.0], [-1.0]], [1, -1])
    assert certify(problem, np.array([0.3]), 0.0, np.zeros(2)).relative_gap == np.inf


def test_gap_bounds_the_distance_of_the_weights():
    """½‖w − w*‖² ≤ gap, since the objective is strongly convex in w."""
    X, y = noisy(100, 5, seed=2)
    problem = make_problem(X, y, 1.0)
    best = fit(problem, tol=1e-13)
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 10.0):
        w = best.w + scale * rng.standard_normal(5)
        gap = certify(problem, w, best.b, best.alpha).gap
        assert np.linalg.norm(w - best.w) ** 2 / 2 <= gap * (1 + 1e-9)


def test_printed_table_aligns():
    """All lines of each half end in the same column."""
    X, y = noisy(50, 3)
    text = str(fit(make_problem(X, y)).certificate)
    facts, kkt = text.split("\n\n")
    assert len({len(line) for line in facts.splitlines()}) == 1
    assert len({len(line) for line in kkt.splitlines()}) == 1


def test_several_classes_report_the_worst():
    """relative_gap and gap of several certificates are the largest of theirs."""
    X, y = noisy(50, 3)
    problem = make_problem(X, y)
    good = fit(problem, tol=1e-10)
    bad = certify(problem, 2 * good.w, good.b, good.alpha)
    both = Certificates(("a", "b"), (good.certificate, bad))
    assert both.relative_gap == bad.relative_gap > 1e-3
    assert both.gap == bad.gap
    assert both[0] is good.certificate
    assert len(both) == 2
    assert "worst relative gap" in str(both)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("d", [1, 3, 30])
def test_proof_of_inseparability_checks(seed, d):
    """The weights are non-negative, sum to 1 in each class, and give the same point in both hulls."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, d)) * 10 ** rng.uniform(-3, 3, d)
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    problem = make_problem(X, y, np.inf)
    error = prove_inseparable(problem, problem.live)
    assert isinstance(error, InseparableError)
    assert (y[error.positive] == 1).all()
    assert (y[error.negative] == -1).all()
    for weights in (error.positive_weights, error.negative_weights):
        assert (weights > 0).all()
        assert weights.sum() == pytest.approx(1, abs=1e-12)
    scale = np.abs(X).max(axis=0)
    here, there = error.positive_weights @ X[error.positive], error.negative_weights @ X[error.negative]
    assert np.abs((here - there) / scale).max() <= 1e-9
    assert error.point == pytest.approx(here)


def test_separable_rows_have_no_such_proof():
    """Where a separator exists, linear programming finds no common point."""
    X, _ = noisy(60, 4, noise=0.0)
    problem = make_problem(X, np.where(X[:, 1] > 0, 1.0, -1.0), np.inf)
    assert prove_inseparable(problem, problem.live) is None


@pytest.mark.parametrize("offset", [1e6, 1e9, 1e11])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_rounding_is_part_of_the_gap(offset, C):
    """Columns far from 0 cost digits: the gap covers the distance from the minimum of the centred data all the same."""
    X, y = noisy(40, 3, seed=1)
    X = np.round(X * 64) / 64  # so that adding the offset is exact
    true = minimum(make_problem(X, y, C))
    with np.errstate(all="ignore"):
        certificate = fit(make_problem(X + offset, y, C), tol=1e-6).certificate
    assert certificate.gap >= certificate.primal - true - ORACLE * true
    assert certificate.dual - certificate.rounding <= true * (1 + ORACLE)


def test_what_is_not_a_number_is_infinite():
    """NaN proves nothing."""
    X, y = noisy(20, 2)
    problem = make_problem(X, y)
    assert certify(problem, np.array([np.nan, 1.0]), 0.0, np.zeros(20)).relative_gap == np.inf


def test_mixed_strengths_are_refused():
    """A problem is hard or soft, not both."""
    with pytest.raises(ValueError, match="infinite"):
        make_problem([[1.0], [2.0]], [1, -1], [np.inf, 1.0])


def test_a_dual_above_the_primal_proves_nothing():
    """Weak duality: if it is broken by more than rounding, something is wrong with one of the two."""
    X, y = noisy(50, 3)
    proof = fit(make_problem(X, y), tol=1e-6).certificate
    assert replace(proof, dual=proof.primal * (1 + 1e-15)).relative_gap < 1e-6
    assert replace(proof, dual=proof.primal * 1.001).gap == np.inf
    assert replace(proof, dual=proof.primal * 1.001).relative_gap == np.inf
