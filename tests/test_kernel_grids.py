"""Every γ and C by cross-validation, beside scikit-learn's search."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, ShuffleSplit, StratifiedKFold
from sklearn.svm import SVC

from widemargin import KernelSVM, kernel_grid, kernel_paths
from widemargin.estimators.kernel_svm import IndefiniteKernelWarning

ROOT = Path(__file__).parents[1]

CS, GAMMAS = (0.1, 1.0, 30.0), (0.05, 0.5, 5.0)


def moons(n=240, seed=0):
    """Two arcs that overlap."""
    rng = np.random.default_rng(seed)
    t, y = np.pi * rng.random(n), np.where(np.arange(n) % 2, 1, -1)
    X = np.column_stack([y * np.cos(t) + (y < 0), y * np.sin(t) + 0.5 * (y < 0)])
    return X + 0.25 * rng.standard_normal((n, 2)), np.where(y > 0, "up", "down")


def theirs(X, y, cv, kernel="rbf", **options):
    """Scores of scikit-learn's search, of every γ, C and fold."""
    grid = {"C": CS, "gamma": GAMMAS}
    found = GridSearchCV(SVC(kernel=kernel, tol=1e-7, **options), grid, cv=cv, refit=False).fit(X, y)
    count = found.n_splits_
    scores = np.array([found.cv_results_[f"split{fold}_test_score"] for fold in range(count)])
    return scores.reshape(count, len(CS), len(GAMMAS)).transpose(2, 1, 0), found.best_params_


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("data", ["two classes", "three classes"])
def test_scores_are_those_of_grid_search(data, kernel, sparse):
    """GridSearchCV of SVC at a fine tolerance: the same score of every γ, C and fold, and every gap is proved."""
    X, y = moons() if data == "two classes" else load_iris(return_X_y=True)
    X = X / np.abs(X).max()  # of larger numbers, polynomials of degree 3 round to more than a gap of 1e-7
    rows = sp.csr_array(X) if sparse else X
    found = kernel_grid(rows, y, CS, GAMMAS, cv=4, estimator=KernelSVM(kernel=kernel, tol=1e-7))
    scores, best = theirs(X, y, 4, kernel)
    assert np.array_equal(found.scores, scores)
    assert found.best_params == best
    assert found.relative_gaps.shape == scores.shape
    assert found.relative_gaps.max() <= 1e-7


def test_each_certificate_is_that_of_a_fit_of_its_own():
    """KernelSVM on the training rows of each fold: the same optimum, within both gaps."""
    X, y = moons()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = KernelSVM(tol=1e-4, class_weight="balanced")
    found = kernel_grid(X, y, CS, GAMMAS, cv=3, estimator=model, sample_weight=weights, refit=False)
    folds = list(StratifiedKFold(3).split(X, y))
    for g, gamma in enumerate(GAMMAS):
        for k, C in enumerate(CS):
            for fold, (train, test) in enumerate(folds):
                alone = KernelSVM(C, gamma=gamma, tol=1e-8, class_weight="balanced")
                alone.fit(X[train], y[train], weights[train])
                ours, own = found.certificates[g][k][fold], alone.certificate_
                assert own.dual * (1 - 1e-12) <= ours.primal <= own.dual * (1 + 1.1e-4)
                assert own.primal * (1 - 1.1e-4) <= ours.dual <= own.primal * (1 + 1e-12)
                assert abs(found.scores[g, k, fold] - alone.score(X[test], y[test])) <= 1 / len(test)
    assert found.best_estimator is None


def test_splits_that_overlap_and_leave_rows_out():
    """GridSearchCV with random splits, whose training rows are no complement of anything: the same scores."""
    X, y = moons(120)
    cv = ShuffleSplit(3, train_size=0.5, test_size=0.3, random_state=0)
    found = kernel_grid(X, y, CS, GAMMAS, cv=cv, estimator=KernelSVM(tol=1e-7), refit=False)
    assert np.array_equal(found.scores, theirs(X, y, cv)[0])


@pytest.mark.parametrize("jobs", [2, 8])
def test_threads_and_memory_change_nothing(jobs):
    """One thread: the same scores and bounds with more; with memory for a few rows alone the scores are the same."""
    X, y = moons(150)
    one = kernel_grid(X, y, CS, GAMMAS, cv=3, estimator=KernelSVM(n_jobs=1), refit=False)
    more = kernel_grid(X, y, CS, GAMMAS, cv=3, estimator=KernelSVM(n_jobs=jobs), refit=False)
    little = kernel_grid(X, y, CS, GAMMAS, cv=3, estimator=KernelSVM(n_jobs=jobs, cache_size=0.1), refit=False)
    duals = [
        np.array([[[c.dual for c in folds] for folds in row] for row in each.certificates]) for each in (one, more)
    ]
    assert np.array_equal(one.scores, more.scores)
    assert np.array_equal(duals[0], duals[1])
    assert little.relative_gaps.max() <= 1e-3
    assert np.abs(little.scores - one.scores).max() < 1.5 / 50  # one row of a fold


def test_a_large_cost_is_proved(monkeypatch):
    """A fit to 1e-8: the same scores, though float32 rows round to more than the gap; no fit is begun anew for that."""
    X, y = moons(300, seed=4)
    exact = kernel_grid(X, y, [1e3, 3e4], [20.0, 100.0], cv=3, estimator=KernelSVM(tol=1e-8), refit=False)
    monkeypatch.setattr(kernel_paths, "_alone", None)
    found = kernel_grid(X, y, [1e3, 3e4], [20.0, 100.0], cv=3, refit=False)
    assert found.relative_gaps.max() <= 1e-3
    assert np.abs(found.scores - exact.scores).max() <= 0.02


@pytest.mark.parametrize("cache_size", [None, 0.1])
def test_ctrl_c_ends_it(cache_size):
    """SIGINT in the main thread while solvers are at work: KeyboardInterrupt, and no thread of the search is left."""
    code = (
        "import os, signal, sys, threading\n"
        "sys.path.insert(0, 'tests')\n"
        "from test_kernel_grids import moons\n"
        "from widemargin import KernelSVM, kernel_grid, kernel_paths\n"
        "advance, before = kernel_paths._Path.advance, threading.active_count()\n"
        "def begun(self, limits):\n"
        "    if self.C > 1: os.kill(os.getpid(), signal.SIGINT)\n"
        "    return advance(self, limits)\n"
        "kernel_paths._Path.advance = begun\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "try:\n"
        f"    kernel_grid(*moons(400), [1, 1e9], [100.0], estimator=KernelSVM(tol=1e-12, cache_size={cache_size}))\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', threading.active_count() - before)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60, check=True)
    assert run.stdout == "interrupted 0\n"


def test_a_kernel_that_is_not_semidefinite():
    """KernelSVM on the training rows: nothing is proved, and the search says why."""
    X, y = moons(120)
    with pytest.warns(IndefiniteKernelWarning, match="not positive semidefinite with γ = 2"):
        found = kernel_grid(X, y, [1.0], [2.0], cv=3, estimator=KernelSVM(kernel="sigmoid"), refit=False)
    assert (found.relative_gaps == np.inf).all()


def test_weights_of_0_and_rows_that_come_twice():
    """KernelSVM with weights on the rows of each split as given: the same dual values, and scores of all its rows."""
    X, y = moons(80)
    rng = np.random.default_rng(0)
    weights = np.where(np.arange(80) % 5 > 0, rng.uniform(0.5, 2, 80), 0.0)
    cv = [(rng.integers(0, 80, 60), rng.permutation(80)[:30]) for _ in range(3)]
    model = KernelSVM(tol=1e-8)
    found = kernel_grid(X, y, [3.0], [0.5], cv=cv, estimator=model, sample_weight=weights, refit=False)
    for fold, (train, test) in enumerate(cv):
        alone = KernelSVM(3.0, gamma=0.5, tol=1e-8).fit(X[train], y[train], weights[train])
        assert found.certificates[0][0][fold].dual == pytest.approx(alone.certificate_.dual, rel=3e-8)
        assert found.scores[0, 0, fold] == alone.score(X[test], y[test])


def test_numbers_beyond_float32():
    """One row of 1e20 among others, whose square is none in float32: every gap is proved."""
    X, y = moons(60)
    X[7] = 1e20
    X = np.column_stack([X, np.zeros((60, 4))])  # rows that are taken as sparse ones are not moved by their mean
    assert kernel_grid(sp.csr_array(X), y, [1.0, 10.0], [0.5], cv=3, refit=False).relative_gaps.max() <= 1e-3


def test_the_best_model_is_trained_on_all_rows():
    """KernelSVM with the best γ and C: the same model; other scorers count by their names or as functions."""
    X, y = moons()
    found = kernel_grid(X, y, CS, GAMMAS, cv=3, scoring="roc_auc")
    again = KernelSVM(**found.best_params).fit(X, y)
    assert np.array_equal(found.best_estimator.dual_coef_, again.dual_coef_)
    assert found.best_score == found.mean_scores.max()
    area = GridSearchCV(SVC(tol=1e-7), {"C": CS, "gamma": GAMMAS}, cv=3, scoring="roc_auc").fit(X, y)
    assert found.best_score == pytest.approx(area.best_score_, abs=1e-3)
    errors = kernel_grid(X, y, CS, GAMMAS, cv=3, scoring=lambda y, chosen: -np.mean(y != chosen), refit=False)
    plain = kernel_grid(X, y, CS, GAMMAS, cv=3, refit=False)
    as_of_search = kernel_grid(X, y, CS, GAMMAS, cv=3, scoring=lambda clf, X, y: clf.score(X, y), refit=False)
    assert np.array_equal(as_of_search.scores, plain.scores)
    assert np.allclose(1 + errors.scores, plain.scores, rtol=0, atol=1e-15)
    assert str(plain).splitlines()[0].split()[-1] == "30"
    assert len(str(plain).splitlines()) == 1 + len(GAMMAS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Cs": [1, -1]}, "Cs has -1; give finite numbers > 0"),
        ({"Cs": []}, "Cs is empty"),
        ({"Cs": [np.inf]}, "Cs has inf"),
        ({"gammas": [0.0]}, "gamma=0.0"),
        ({"gammas": []}, "gammas is empty"),
        ({"estimator": KernelSVM(kernel="precomputed")}, "takes kernels by their names"),
        ({"estimator": KernelSVM(kernel="linear")}, "has no γ; leave gammas away"),
        ({"estimator": KernelSVM(solver="nystroem")}, "trains exact machines"),
        ({"cv": []}, "cv has no folds"),
        ({"cv": [(np.arange(100), [])]}, "fold 0 of cv has no test rows"),
        ({"scoring": "neg_log_loss"}, "needs probabilities"),
        ({"cv": [(np.arange(0, 100, 2), np.arange(1, 100, 2))]}, "fold 0 has no training rows of class"),
    ],
)
def test_mistakes(change, said):
    """A ValueError names what is wrong."""
    X, y = moons(100)
    with pytest.raises(ValueError, match=said):
        kernel_grid(X, y, **{"Cs": [1.0], "gammas": [1.0], "cv": 3, **change})
