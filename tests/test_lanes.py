"""Several classes at once: each lane holds what descent for its class alone would have to hold."""

import os
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits

from oracles import text_like
from widemargin import LinearSVM, _core
from widemargin.certificate import certify
from widemargin.data import Rows
from widemargin.one_against_rest import OneAgainstRest
from widemargin.solvers import lanes
from widemargin.training import fit

LOSSES = ["hinge", "squared_hinge"]


def many_classes(count, n=900, d=300, seed=0):
    """Sparse rows of that many classes, some mislabelled."""
    rng = np.random.default_rng(seed)
    X, _ = text_like(n, d, 20, seed)
    y = np.argmax(X @ rng.standard_normal((d, count)), axis=1)
    return sp.csr_matrix(X), np.where(rng.random(n) < 0.1, rng.integers(0, count, n), y)


def problems_of(X, y, **options):
    """One problem per class."""
    weights = options.pop("weights", np.ones(len(y)))
    return OneAgainstRest(**options).problems(Rows(X), y, weights)[1]


def descended(problems, tol=1e-3, seed=0):
    """The starts of all classes, group by group."""
    groups = lanes.groups(len(problems))
    assert [k for group in groups for k in group] == list(range(len(problems)))
    return [
        start
        for group in groups
        for start in lanes.descend([problems[k] for k in group], tol=tol, seed=seed, told=lambda *_: None)
    ]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("count", [4, 8, 9, 17, 33])
def test_lanes_hold_feasible_points_and_their_weights(loss, fit_intercept, count):
    """0 ≤ α ≤ c and w = w(α), however many of the lanes are used."""
    X, y = many_classes(count)
    problems = problems_of(X, y, loss=loss, fit_intercept=fit_intercept)
    for problem, start in zip(problems, descended(problems), strict=True):
        assert (start.alpha >= 0).all()
        assert (start.alpha <= problem.upper).all()
        np.testing.assert_allclose(
            start.w, problem.weights(start.alpha), rtol=0, atol=1e-12 * np.abs(start.alpha).sum()
        )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_what_seems_solved_is_solved(loss, tol):
    """Without a bias a lane that says so is as close to its optimum as it says, by a proof it has no part in."""
    X, y = many_classes(12)
    problems = problems_of(X, y, C=0.05, loss=loss, fit_intercept=False)
    starts = descended(problems, tol)
    assert sum(start.hopeful for start in starts) >= 9
    for problem, start in zip(problems, starts, strict=True):
        if start.hopeful:
            assert certify(problem, start.w, 0.0, start.alpha).relative_gap <= 3 * tol


@pytest.mark.parametrize("loss", LOSSES)
def test_storage_makes_no_difference(loss):
    """CSR with either index, C and F order: the same points up to rounding."""
    X, y = many_classes(5, n=200, d=40)
    wide = sp.csr_matrix((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    dense = X.toarray()
    every_other = np.repeat(np.repeat(dense, 2, axis=0), 2, axis=1)[::2, ::2]
    reference = descended(problems_of(X, y, loss=loss))
    for other in (wide, dense, np.asfortranarray(dense), every_other):
        for one, two in zip(reference, descended(problems_of(other, y, loss=loss)), strict=True):
            np.testing.assert_allclose(one.w, two.w, rtol=1e-6, atol=1e-8)


def test_single_precision_is_read_as_it_is():
    """The same weights as for the same numbers in double precision."""
    X, y = many_classes(5, n=200, d=40)
    X.data = X.data.astype(np.float32)
    for one, two in zip(descended(problems_of(X, y)), descended(problems_of(X.astype(np.float64), y)), strict=True):
        np.testing.assert_allclose(one.w, two.w, rtol=1e-12, atol=1e-14)


def test_a_solved_class_stays_as_it_is():
    """Its point and its bias do not go on with those of the others."""
    X, y = many_classes(6)
    easy = problems_of(X, y, C=0.05)
    starts = lanes.descend(easy, tol=1e-2, seed=0, told=lambda *_: None)
    assert any(start.hopeful for start in starts)
    for problem, start in zip(easy, starts, strict=True):
        if start.hopeful:
            assert start.b == pytest.approx(problem.best_bias(problem.rows.scores(start.w)), abs=0.05)


def test_history_counts_what_came_before():
    """The passes and the seconds of all classes together are part of each."""
    problem, *others = problems_of(*many_classes(6))
    start, *_ = descended([problem, *others])
    first = fit(problem, tol=1e-6, start=start).history[0]
    assert first.iteration >= start.iterations > 0
    assert first.seconds > start.seconds > 0


def test_rows_of_no_weight_are_none():
    """As if they were not there."""
    X, y = many_classes(6)
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    kept = weights > 0
    with_them, without = problems_of(X, y, weights=weights), problems_of(X[kept], y[kept])
    for one, other in zip(descended(with_them), descended(without), strict=True):
        assert not one.alpha[~kept].any()
        np.testing.assert_allclose(one.w, other.w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"loss": "squared_hinge"}, {"C": 100.0}])
def test_every_class_has_its_proof(options):
    """All at once are as good as one by one."""
    X, y = many_classes(20)
    svm = LinearSVM(tol=1e-4, **options).fit(X, y)
    assert svm.certificate_.relative_gap <= 1e-4
    assert svm.n_iter_ >= 1
    for k in (0, 7, 19):
        alone = LinearSVM(tol=1e-4, **options).fit(X, y == k).certificate_
        assert svm.certificate_[k].primal == pytest.approx(alone.primal, rel=2e-4)


@pytest.mark.parametrize("data", ["text", "digits"])
def test_the_same_bits_at_any_number_of_threads(data):
    """Nor does it matter whether somebody watches."""
    X, y = many_classes(20) if data == "text" else load_digits(return_X_y=True)
    ways = {"n_jobs": 1}, {"n_jobs": 2}, {"n_jobs": 2, "verbose": 1}
    one, two, loud = (LinearSVM(C=0.1, **way).fit(X, y) for way in ways)
    assert one.coef_.tobytes() == two.coef_.tobytes() == loud.coef_.tobytes()
    assert one.intercept_.tobytes() == two.intercept_.tobytes() == loud.intercept_.tobytes()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_ends_all_classes(monkeypatch, n_jobs):
    """Ctrl-C while classes descend together: no model, and the next fit is as if nothing had happened."""
    X, y = many_classes(6)
    whole, begun = LinearSVM(n_jobs=n_jobs).fit(X, y), lanes._classes

    def struck(problems):
        os.kill(os.getpid(), signal.SIGINT)
        return begun(problems)

    svm, handler = LinearSVM(tol=1e-12, n_jobs=n_jobs), signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(lanes, "AT_ONCE", 1000)
        patch.setattr(lanes, "_classes", struck)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have taken away
        try:
            with pytest.raises(KeyboardInterrupt):
                svm.fit(X, y)
        finally:
            signal.signal(signal.SIGINT, handler)
    assert not hasattr(svm, "coef_")
    assert svm.set_params(tol=whole.tol).fit(X, y).coef_.tobytes() == whole.coef_.tobytes()


@pytest.mark.parametrize(
    "wrong",
    [
        {"b": np.zeros(9)},
        {"b": np.zeros(0)},
        {"live": np.array([7])},
        {"label": np.full(3, 9, np.uint8)},
        {"shift": -1},
    ],
)
def test_the_kernel_trusts_nobody(wrong):
    """Lanes, rows and blocks that do not exist are refused before anything is touched."""
    rows, one = Rows(np.eye(3)), np.ones(3)
    right = {"label": np.zeros(3, np.uint8), "b": np.zeros(1), "live": np.arange(3), "shift": 1} | wrong
    with pytest.raises((ValueError, IndexError)):
        _core.LaneDescent("hinge", rows.core, c=one, norms=one, inverse_rho=0.0, seed=0, **right)


def test_only_classes_of_the_same_rows_share_lanes():
    """Few classes, other losses, the hard margin, far more columns than numbers, and other rows do not."""
    X, y = many_classes(4)
    assert lanes.can_share(problems_of(X, y))
    assert not lanes.can_share(problems_of(X, y, loss="logistic"))
    assert not lanes.can_share(problems_of(X, y, C=np.inf))
    assert not lanes.can_share(problems_of(X, y % 3))
    hashed = sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], 10_000_000))
    assert not lanes.can_share(problems_of(hashed, y))
    assert not lanes.can_share([*problems_of(X, y), *problems_of(X, y)])
