"""Pegasos's bound, the perceptron's mistakes, MIRA's margin: what the notes promise, held against the promise."""

import warnings
from itertools import pairwise

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from oracles import hard_margin, make_problem, noisy
from widemargin import MIRA, Perceptron
from widemargin.data import Rows
from widemargin.solvers import LazyWeights, MiraRule, Pegasos
from widemargin.training import fit


def adult_like(n=32_561, d=123, per_row=14, seed=0):
    """Rows of ones and zeros like those of a9a: one category out of each of 14 groups, and noisy labels."""
    rng = np.random.default_rng(seed)
    edges = np.linspace(0, d, per_row + 1).astype(int)
    columns = np.column_stack([low + ((high - low) * rng.random(n) ** 2).astype(int) for low, high in pairwise(edges)])
    X = sp.csr_array((np.ones(n * per_row), columns.ravel(), np.arange(0, n * per_row + 1, per_row)), shape=(n, d))
    scores = X @ rng.standard_normal(d)
    return X, np.where(scores - np.median(scores) + rng.standard_normal(n) > 0.8, 1.0, -1.0)


def test_pegasos_falls_like_its_bound():
    """λ/2‖w‖² + mean hinge after T steps, last and averaged, is at most c(1 + ln T)/(2λT) above the minimum, with
    c = (√λ + R)² for projected steps (Shalev-Shwartz et al. 2011, theorem 1), at five T; and it falls about as fast.
    """
    X, y = adult_like()
    n, lam = len(y), 1e-3
    problem = make_problem(X, y, 1 / (lam * n), fit_intercept=False)
    least = fit(problem, tol=1e-6).certificate.dual * lam
    R = np.sqrt(problem.norms.max())
    passes = [1, 3, 9, 27, 81]
    above = {}
    for average in (False, True):
        iterates = Pegasos(project=True, average=average)(problem, tol=0.0, seed=0)
        ws = {
            k: iterate.w.copy() for k, iterate in zip(range(1, passes[-1] + 1), iterates, strict=False) if k in passes
        }
        above[average] = [lam * problem.primal(w, problem.margins(w, 0.0)) - least for w in ws.values()]
        for k, distance in zip(passes, above[average], strict=True):
            assert 0 <= distance <= (np.sqrt(lam) + R) ** 2 * (1 + np.log(k * n)) / (2 * lam * k * n)
        assert above[average][-1] <= above[average][0] / 10
    assert above[True][-1] <= above[False][-1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_perceptron_makes_few_mistakes(seed, fit_intercept):
    """At most (R/γ)² mistakes on separable data, R and γ those of the rows with a column of ones for the bias."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 4)) + 0.5
    scores = X @ rng.standard_normal(4) + 0.7 * fit_intercept
    X, y = X[np.abs(scores) > 0.2], np.sign(scores[np.abs(scores) > 0.2])
    model = Perceptron(fit_intercept=fit_intercept, random_state=seed).fit(X, y)
    Z = np.hstack([X, np.ones((len(X), 1))]) if fit_intercept else X
    margin = 1 / np.linalg.norm(fit(make_problem(Z, y, np.inf, fit_intercept=False), tol=1e-6).w)
    assert model.separates_
    assert model.margin_ == pytest.approx(
        (y * (X @ model.coef_[0] + model.intercept_)).min() / np.linalg.norm(model.coef_)
    )
    assert 0 < sum(model.mistakes_) <= (np.linalg.norm(Z, axis=1).max() / margin) ** 2


def test_perceptron_depends_on_where_it_starts():
    """Two starts, two separators; a rate that decays slowly separates as well."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(-1.5, 0.5, (50, 2)), rng.normal(1.5, 0.5, (50, 2))])
    y = np.repeat([-1, 1], 50)
    one, other = (Perceptron().fit(X, y, coef_init=start) for start in ([0.0, 0.0], [5.0, -5.0]))
    assert one.separates_
    assert other.separates_
    assert not np.allclose(one.coef_ / np.linalg.norm(one.coef_), other.coef_ / np.linalg.norm(other.coef_), atol=1e-2)
    assert Perceptron(decay=0.3).fit(X, y).separates_


def least_change(X, y, w, b, C, fit_intercept):
    """min ½‖w′ − w‖² + ½(b′ − b)² + C Σ ξ with yᵢ(w′·xᵢ + b′) ≥ 1 − ξᵢ, by the cone solver; C = ∞ leaves ξ out."""
    k, d = X.shape
    rows = np.hstack([X, np.full((k, 1), float(fit_intercept))]) * y[:, None]
    slack = k if np.isfinite(C) else 0
    P = sp.block_diag([sp.eye(d + 1), sp.csc_matrix((slack, slack))], format="csc")
    q = np.concatenate([-w, [-b], np.full(slack, C if slack else 0.0)])
    A = sp.vstack([sp.hstack([-rows, -sp.eye(k, slack)]), sp.hstack([sp.csc_matrix((slack, d + 1)), -sp.eye(slack)])])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    right = np.append(-np.ones(k), np.zeros(slack))
    x = (
        clarabel.DefaultSolver(P, q, sp.csc_matrix(A), right, [clarabel.NonnegativeConeT(k + slack)], settings)
        .solve()
        .x
    )
    return np.array(x[:d]), x[d]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [np.inf, 0.05])
@pytest.mark.parametrize("k", [1, 4])
def test_mira_step_is_the_solution_of_its_qp(k, C, fit_intercept):
    """The compiled step, from any w, on one row and on four, bounded and not."""
    X, y = (part[:k] for part in noisy(4, 6, seed=k))
    rng = np.random.default_rng(1)
    w, b = -0.1 * y @ X + 0.01 * rng.standard_normal(6), -0.05 * fit_intercept
    assert (y * (X @ w + b) <= 0.9).all()
    weights = LazyWeights(6, start=w, bias=b)
    assert MiraRule(0.9, C, k)(weights, Rows(X), y, np.arange(k), bias=fit_intercept) == k
    expected, bias = least_change(X, y, w, b, C, fit_intercept)
    assert weights.w == pytest.approx(expected, abs=1e-7)
    assert weights.b == pytest.approx(bias if fit_intercept else 0.0, abs=1e-7)


def test_aggressive_mira_approaches_the_hard_margin():
    """Among p = 0, ½, 0.9 and 0.999 the last is nearest the hard margin's w; a batch of all rows is the hard margin."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 3))
    scores = X @ [2.0, -1.0, 0.5] + 0.3
    X, y = X[np.abs(scores) > 0.3], np.sign(scores[np.abs(scores) > 0.3])
    w, _ = hard_margin(X, y)
    cosines = []
    for p in (0.0, 0.5, 0.9, 0.999):
        model = MIRA(p, C=np.inf, max_iter=100_000, patience=100_000).fit(X, y)
        assert model.separates_
        cosines.append(float(model.coef_[0] @ w / np.linalg.norm(model.coef_) / np.linalg.norm(w)))
    assert cosines[-1] == max(cosines) > 0.995
    labels = np.sign(X @ [2.0, -1.0, 0.5])
    whole = MIRA(C=np.inf, batch_size=len(y), fit_intercept=False, max_iter=1).fit(X, labels)
    best = fit(make_problem(X, labels, np.inf, fit_intercept=False), tol=1e-12).w
    assert whole.coef_[0] == pytest.approx(best, rel=1e-9)


@pytest.mark.filterwarnings("ignore:the classes are not separated:sklearn.exceptions.ConvergenceWarning")
def test_empty_rows_and_contradictions_end():
    """An empty row without a bias is late for ever and moves nothing; so does the same row with both labels."""
    for Estimator in (Perceptron, MIRA):
        model = Estimator(fit_intercept=False, max_iter=3).fit([[0.0], [1.0], [-1.0]], [1, 1, 0])
        assert (model.coef_[0, 0], model.mistakes_[1:]) == (1, [1, 1])


def test_any_order_of_few_rows():
    """Twenty seeds, twenty orders: rows are shuffled one by one where there are few."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((31, 3)), rng.integers(0, 2, 31)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = {tuple(Perceptron(random_state=seed, max_iter=3).fit(X, y).coef_[0]) for seed in range(20)}
    assert len(answers) > 15


@pytest.mark.filterwarnings("ignore:the classes are not separated:sklearn.exceptions.ConvergenceWarning")
def test_contradictions_end():
    """The same row with both labels, alone and in one batch."""
    for batch_size in (1, 2):
        model = MIRA(batch_size=batch_size, max_iter=50).fit([[1.0], [1.0]], [0, 1])
        assert np.isfinite(model.coef_).all()
        assert not model.separates_
