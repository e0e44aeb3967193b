"""Long rows cut in two halves, and two threads that go through them in step."""

import importlib
import time
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp

from oracles import make_problem, noisy
from widemargin.data.machine import cores_at_hand
from widemargin.solvers import SOLVERS
from widemargin.training import fit

descent_module = importlib.import_module("widemargin.solvers.dual_cd")


def long_rows(storage):
    """Noisy rows long enough to be cut in two, an empty one and one with all its entries on one side among them."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 2400)) * (rng.random((300, 2400)) < (0.4 if storage == "sparse" else 1.0))
    y = np.where(X[:, 0] - X[:, -1] + rng.standard_normal(300) > 0, 1.0, -1.0)
    X[7] = 0
    X[11, 3:] = 0
    stored = {"float32": np.float32, "sparse": sp.csr_array, "F order": np.asfortranarray}.get(storage, np.asarray)
    return stored(X), y


def descent_of(problem):
    """Dual coordinate descent of rows that are all at hand, from α = 0."""
    at = descent_module._begin(problem, 1e-12, np.zeros(problem.rows.n), np.zeros(problem.rows.d), 0.0)
    return descent_module._AtHand(problem, at, 0)


halved = pytest.mark.parametrize("storage", ["dense", "float32", "sparse"])
blocks = pytest.mark.parametrize("blocks", [2000, 20, 1])  # of 1, 8 and 32 rows, the last of them shorter


@halved
@blocks
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_halves_give_the_same_bits_on_any_number_of_threads(loss, blocks, storage, monkeypatch):
    """Long rows: one and two threads agree to the last bit, time and again."""
    X, y = long_rows(storage)
    monkeypatch.setattr(descent_module, "BLOCKS", blocks)
    one, *others = (
        fit(make_problem(X, y, 1e-3, loss, threads=n), solver="dual_cd", tol=1e-8) for n in (1, 2, 2, 2, 2, 2)
    )
    assert one.certificate.relative_gap <= 1e-8
    for other in others:
        assert np.array_equal(one.w, other.w)
        assert np.array_equal(one.alpha, other.alpha)
        assert one.b == other.b
        assert one.certificate == other.certificate


@pytest.mark.skipif(cores_at_hand() < 2, reason="two threads go together where each has a core")
def test_two_threads_do_go_through_long_rows_together():
    """Passes of dual coordinate descent count what they share; on a busy machine it may take some until they do."""
    problem = make_problem(*long_rows("dense"), 1e-3, threads=2)
    descent = descent_of(problem)
    descent.all_play()
    for k in range(5000):
        descent.go_on(1)
        if descent.work.shared:
            break
        if k % 100 == 99:
            time.sleep(0.1)  # after waits in vain there are no helpers for a while
    assert descent.work.shared > 0


@halved
@blocks
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_halves_take_the_steps_of_whole_rows(loss, blocks, storage, monkeypatch):
    """Pass by pass the dual points equal those of rows that are not cut, but for the rounding of sums."""
    X, y = long_rows(storage)
    problem = make_problem(X, y, 1e-3, loss, threads=2)
    monkeypatch.setattr(descent_module, "BLOCKS", blocks)
    monkeypatch.setattr(descent_module, "MANY", 1)

    def points():
        return [one.alpha.copy() for one in islice(SOLVERS["dual_cd"].solve(problem, tol=1e-9, seed=0, start=None), 4)]

    halves = points()
    monkeypatch.setattr(descent_module, "LONG", np.inf)
    monkeypatch.setattr(descent_module, "MANY", 1_000_000_000)
    whole = points()
    assert any(not np.array_equal(one, other) for one, other in zip(halves, whole, strict=True))  # they were cut
    for one, other in zip(halves, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_what_is_cut_in_two():
    """Long rows that lie side by side; columns that do not ascend, as two threads must not meet, are sorted first."""

    def is_cut(X, y):
        return descent_of(make_problem(X, y, threads=2)).work.is_cut

    assert all(is_cut(*long_rows(storage)) for storage in ("dense", "float32", "sparse"))
    assert not is_cut(*long_rows("F order"))
    assert not is_cut(*noisy(100, 20))
    X, y = long_rows("sparse")
    falling = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape, copy=True)
    for own in map(slice, X.indptr[:-1], X.indptr[1:]):
        falling.indices[own], falling.data[own] = X.indices[own][::-1], X.data[own][::-1]
    problem = make_problem(falling, y, threads=2)
    assert descent_of(problem).work.is_cut
    assert np.array_equal(problem.rows.X.indices, X.indices)
