"""KernelSVM as SVC's users know it, and where it must say more: errors, warnings, hard margins, interrupts."""

import pickle
import re
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from oracles import noisy, text_like
from widemargin import InseparableError, KernelSVM, LinearSVM, kernel_training
from widemargin.estimators.kernel_svm import IndefiniteKernelWarning

IRIS = load_iris(return_X_y=True)
MOONS = make_moons(150, noise=0.25, random_state=0)
SVC_KERNELS = [
    {"kernel": "rbf"},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "rbf", "gamma": "auto"},
    {"kernel": "poly", "degree": 2, "coef0": 1.0},
    {"kernel": "poly", "gamma": 0.2},
]


def shuffled(X, y, seed=0):
    """Rows in another order than by class."""
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order], y[order]


class TestEqualsSVC:
    """SVC(tol=1e-8) solves the same problem, with kernel values of single precision: at C = 0.1 these leave 1e-6."""

    @pytest.mark.parametrize("parameters", SVC_KERNELS, ids=str)
    @pytest.mark.parametrize("weighted", [False, True])
    def test_two_classes(self, parameters, weighted):
        """Decision values to 1e-6, predictions, support vectors and how many each class has; with weights, too."""
        X, y = noisy(150, 4, seed=3)
        rng = np.random.default_rng(5)
        weights = rng.uniform(0.2, 2.0, len(y)) if weighted else None
        if weighted and parameters.get("gamma", "scale") == "scale":  # SVC's X.var() does not know of weights
            parameters = {**parameters, "gamma": 0.25}
        ours = KernelSVM(0.1, **parameters, tol=1e-9, class_weight={-1: 2.0, 1: 0.8}).fit(X, y, weights)
        theirs = SVC(C=0.1, **parameters, tol=1e-8, class_weight={-1: 2.0, 1: 0.8}).fit(X, y, weights)
        assert ours.decision_function(X) == pytest.approx(theirs.decision_function(X), abs=1e-6)
        assert np.array_equal(ours.predict(X), theirs.predict(X))
        assert ours.n_support_.tolist() == theirs.n_support_.tolist()
        assert set(ours.support_.tolist()) == set(theirs.support_.tolist())
        assert np.array_equal(ours.support_vectors_, X[ours.support_])
        assert np.sort(ours.dual_coef_[0]) == pytest.approx(np.sort(theirs.dual_coef_[0]), abs=1e-5)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6)

    @pytest.mark.parametrize("shape", ["ovr", "ovo"])
    @pytest.mark.parametrize("parameters", [SVC_KERNELS[i] for i in (0, 1, 3)], ids=str)
    def test_several_classes(self, parameters, shape):
        """All pairs of wines with rows in any order: scores per pair and per class, votes, the layout of dual_coef_."""
        X, y = shuffled(*load_wine(return_X_y=True))
        X, names = (X - X.mean(axis=0)) / X.std(axis=0), np.array(["red", "rosé", "white"])[y]
        ours = KernelSVM(0.1, **parameters, decision_function_shape=shape, tol=1e-9).fit(X, names)
        theirs = SVC(C=0.1, **parameters, decision_function_shape=shape, tol=1e-8).fit(X, names)
        assert ours.decision_function(X) == pytest.approx(theirs.decision_function(X), abs=2e-6)
        assert ours.predict(X).tolist() == theirs.predict(X).tolist()
        assert ours.support_.tolist() == theirs.support_.tolist()
        assert ours.n_support_.tolist() == theirs.n_support_.tolist()
        assert ours.dual_coef_ == pytest.approx(theirs.dual_coef_, abs=1e-5)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=2e-6)

    @pytest.mark.parametrize("break_ties", [False, True])
    def test_ties(self, break_ties):
        """Among five overlapping classes votes are tied, and ties broken, as there."""
        X, y = make_blobs([20, 14, 9, 17, 11], centers=None, cluster_std=3.0, random_state=2)
        grid = np.random.default_rng(0).uniform(-20, 20, (2000, 2))
        parameters = {"C": 0.1, "gamma": 0.05, "break_ties": break_ties}
        ours, theirs = KernelSVM(**parameters, tol=1e-9).fit(X, y), SVC(**parameters, tol=1e-8).fit(X, y)
        assert np.array_equal(ours.predict(grid), theirs.predict(grid))
        tied = ours.predict(grid) != ours.decision_function(grid).argmax(axis=1)
        assert tied.any() != break_ties

    def test_a_score_of_0(self):
        """Two equal classes far apart have b = 0, and a row far from both the score 0, which speaks for the class that
        is not the positive one: of a pair the second, of two classes the first.
        """
        X, y = [[0.0], [1.0], [9.0]], [0, 1, 2]
        ours, theirs = KernelSVM(gamma=1e4).fit(X, y), SVC(gamma=1e4).fit(X, y)
        assert ours.intercept_.tolist() == [0.0, 0.0, 0.0]
        assert ours.predict([[100.0]]) == theirs.predict([[100.0]])
        assert KernelSVM(gamma=1e4).fit(X[:2], y[:2]).predict([[100.0]]) == [0]

    def test_the_hard_margin(self):
        """On separable rows C = ∞ is what SVC tends to at C = 1e10: f to 1e-4 of its size."""
        X, y = make_moons(60, noise=0.05, random_state=2)
        ours = KernelSVM(C=np.inf, gamma=2.0, tol=1e-9).fit(X, y)
        theirs = SVC(C=1e10, gamma=2.0, tol=1e-8).fit(X, y)
        assert ours.certificate_.relative_gap <= 1e-9
        assert ours.decision_function(X) == pytest.approx(theirs.decision_function(X), abs=1e-3)
        assert np.abs(ours.decision_function(X)).min() == pytest.approx(1.0, abs=1e-9)

    def test_no_effect_of_weights_on_the_hard_margin(self):
        """All costs are infinite: the bits are those without weights, where γ is a number."""
        X, y = make_moons(60, noise=0.05, random_state=2)
        plain, weighted = (
            KernelSVM(C=np.inf, gamma=2.0).fit(X, y, weights) for weights in (None, np.linspace(0.1, 3, 60))
        )
        assert np.array_equal(plain.decision_function(X), weighted.decision_function(X))


class TestKernels:
    @pytest.mark.parametrize(
        "name", ["linear", "poly", "polynomial", "rbf", "sigmoid", "cosine", "laplacian", "chi2", "additive_chi2"]
    )
    def test_names_of_scikit_learn(self, name):
        """scikit-learn's pairwise_kernels, given as a matrix, makes the same machine: scores to 1e-9."""
        rng = np.random.default_rng(0)
        X, new = rng.random((80, 3)), rng.random((20, 3))
        y = (np.sin(5 * X[:, 0]) + X[:, 1] > 1).astype(int)
        parameters = {"gamma": 0.05, "coef0": 0.1, "degree": 2} if name in ("poly", "polynomial", "sigmoid") else {}
        if name in ("rbf", "laplacian", "chi2"):
            parameters = {"gamma": 0.8}
        values = partial(
            pairwise_kernels, metric=name, **{k: v for k, v in parameters.items() if name != "sigmoid" or k != "degree"}
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IndefiniteKernelWarning)
            named = KernelSVM(kernel=name, **parameters, tol=1e-10).fit(X, y)
            given = KernelSVM(kernel="precomputed", tol=1e-10).fit(values(X), y)
            called = KernelSVM(kernel=values, tol=1e-10).fit(X, y)
        scores = given.decision_function(values(new, X))
        assert named.decision_function(new) == pytest.approx(scores, abs=1e-7)
        assert called.decision_function(new) == pytest.approx(scores, abs=1e-9)

    @pytest.mark.parametrize("classes", [2, 3])
    def test_precomputed_and_called(self, classes):
        """k(x, y) = x·y given as a matrix, as a function and by its name: the same scores, weights left out or not."""
        X, y = shuffled(*load_wine(return_X_y=True))
        X, y = X[y < classes], y[y < classes]
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
        named = KernelSVM(kernel="linear", tol=1e-10).fit(X, y, weights)
        given = KernelSVM(kernel="precomputed", tol=1e-10).fit(X @ X.T, y, weights)
        called = KernelSVM(kernel=lambda a, b: a @ b.T, tol=1e-10).fit(X, y, weights)
        scores = named.decision_function(X)
        assert given.decision_function(X @ X.T) == pytest.approx(scores, abs=1e-8)
        assert called.decision_function(X) == pytest.approx(scores, abs=1e-8)
        assert given.support_.tolist() == called.support_.tolist() == named.support_.tolist()
        assert (weights[named.support_] > 0).all()
        assert given.support_vectors_.shape == (0, 0)

    def test_sparse_rows_reach_a_function_as_csr(self):
        """A function that returns a sparse matrix of sparse rows is as good as one that returns an array."""
        X, y = text_like(120, d=200)
        called = KernelSVM(kernel=lambda a, b: a @ b.T, tol=1e-10).fit(X, y)
        named = KernelSVM(kernel="linear", tol=1e-10).fit(X, y)
        assert called.decision_function(X) == pytest.approx(named.decision_function(X), abs=1e-9)

    def test_rows_of_any_kind_reach_a_function(self):
        """Texts, by how many letters they share: the machine of the matrix that the function returns."""
        texts = ["a a", "a", "b", "b b", "a b", "b a a", "b b b"]
        y = ["a", "a", "b", "b", "a", "a", "b"]

        def shared(left, right):
            return np.array([[sum(one.count(k) * two.count(k) for k in "ab") for two in right] for one in left])

        called = KernelSVM(kernel=shared, tol=1e-9).fit(texts, y, [1, 1, 1, 0, 1, 1, 1])
        given = KernelSVM(kernel="precomputed", tol=1e-9).fit(shared(texts, texts), y, [1, 1, 1, 0, 1, 1, 1])
        assert called.support_vectors_ == [texts[i] for i in called.support_]
        new = ["a a a b", "b", "c"]
        assert called.decision_function(new) == pytest.approx(given.decision_function(shared(new, texts)))
        assert set(called.predict(new)) == {"a", "b"}

    def test_gamma(self):
        """The formulas of "scale" and "auto"; a weight of 2 is a row twice; columns that never change give 1."""
        X, y = noisy(40, 3)
        weights = np.random.default_rng(0).integers(0, 3, 40)
        repeated = np.repeat(X, weights, axis=0)
        assert KernelSVM().fit(X, y).kernel_.gamma == pytest.approx(1 / (3 * X.var()))
        assert KernelSVM().fit(sp.csr_array(X), y).kernel_.gamma == pytest.approx(1 / (3 * X.var()))
        assert KernelSVM().fit(X, y, weights).kernel_.gamma == pytest.approx(1 / (3 * repeated.var()))
        assert KernelSVM().fit(sp.csr_array(X), y, weights).kernel_.gamma == pytest.approx(1 / (3 * repeated.var()))
        assert KernelSVM(gamma="auto").fit(X, y).kernel_.gamma == 1 / 3
        assert KernelSVM().fit(np.full((4, 2), 0.1), [0, 1, 0, 1]).kernel_.gamma == 1.0


class TestWeights:
    def test_whole_weights_repeat_rows(self):
        """Rows repeated by their weights, 0 to 3, three classes: scores to 1e-8."""
        X, y = shuffled(*IRIS)
        weights = np.random.default_rng(0).integers(0, 4, 150)
        weighted = KernelSVM(tol=1e-10).fit(X, y, weights)
        repeated = KernelSVM(tol=1e-10).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
        assert weighted.decision_function(X) == pytest.approx(repeated.decision_function(X), abs=1e-8)
        assert weighted.certificate_.relative_gap <= 1e-10

    def test_class_weight_is_sample_weight(self):
        """A class weight multiplies the weights of the class's rows; 'balanced' gives every class the same total."""
        X, y = noisy(120, 3)
        y[:60] = 1
        fit = partial(KernelSVM, gamma=0.3, tol=1e-10)
        heavy = fit(class_weight={-1.0: 3.0}).fit(X, y).decision_function(X)
        assert heavy == pytest.approx(fit().fit(X, y, np.where(y < 0, 3.0, 1.0)).decision_function(X), abs=1e-9)
        balanced = fit(class_weight="balanced").fit(X, y).decision_function(X)
        weights = 60 / np.where(y > 0, (y > 0).sum(), (y < 0).sum())
        assert balanced == pytest.approx(fit().fit(X, y, weights).decision_function(X), abs=1e-9)

    def test_rows_of_weight_zero_do_not_touch_anything(self):
        """A row of 1e12 with weight 0 changes no bit, and no class that has such rows alone is there."""
        X, y = noisy(100, 3)
        far, labels = np.vstack([np.full((1, 3), 1e12), X]), np.append(5.0, y)
        again = KernelSVM().fit(far, labels, np.append(0.0, np.ones(100)))
        assert np.array_equal(again.decision_function(X), KernelSVM().fit(X, y).decision_function(X))
        assert again.support_.min() > 0
        assert again.classes_.tolist() == [-1, 1]


class TestTheSameBits:
    @pytest.mark.parametrize("kind", ["dense", "csr", "float32", "precomputed"])
    @pytest.mark.parametrize("solver", ["auto", "smo"])
    def test_threads(self, kind, solver):
        """One thread: the same bits at 2 and 8, for ten classes and for two, fitted and predicted."""
        X, y = load_digits(return_X_y=True)
        X, y = X[:500] / 16, y[:500]
        X = {"csr": sp.csr_array, "float32": np.float32, "precomputed": pairwise_kernels}.get(kind, np.array)(X)
        kernel = "precomputed" if kind == "precomputed" else "rbf"
        for labels in (y, y % 2):
            answers = [KernelSVM(kernel=kernel, solver=solver, n_jobs=jobs).fit(X, labels) for jobs in (1, 2, 8)]
            first = answers[0].decision_function(X)
            for other in answers[1:]:
                assert np.array_equal(answers[0].dual_coef_, other.dual_coef_)
                assert np.array_equal(answers[0].intercept_, other.intercept_)
                assert np.array_equal(first, other.decision_function(X))

    def test_the_cache(self):
        """Room for some rows only, of more columns than it pays to compute anew: nothing changes but the time."""
        X, y = noisy(3000, 80)
        scores = [KernelSVM(cache_size=size).fit(X, y).decision_function(X) for size in (None, 1000, 145)]
        assert np.array_equal(scores[0], scores[1])
        assert np.array_equal(scores[0], scores[2])
        X, y = noisy(400, 5)
        assert KernelSVM(cache_size=1e-3, tol=1e-9).fit(X, y).decision_function(X) == pytest.approx(
            KernelSVM(tol=1e-9).fit(X, y).decision_function(X), abs=1e-9
        )

    def test_the_seed(self):
        """The order in which the linear solvers visit rows shows in a rough fit; the same seed gives the same bits."""
        X, y = text_like(2500, d=500)
        rough = partial(KernelSVM, kernel="linear", tol=0.1)
        first, again, other = (rough(random_state=seed).fit(X, y).coef_ for seed in (7, 7, 8))
        assert np.array_equal(first, again)
        assert not np.array_equal(first, other)
        with pytest.raises(ValueError, match="seed"):
            rough(random_state="seven").fit(X, y)

    def test_pickled(self):
        """A pickled machine has the same scores, and an unfitted one is one."""
        X, y = IRIS
        model = KernelSVM().fit(X, y)
        again = pickle.loads(pickle.dumps(model))
        assert np.array_equal(again.decision_function(X), model.decision_function(X))
        assert again.kernel_ == model.kernel_
        assert pickle.loads(pickle.dumps(KernelSVM(C=3.0))).C == 3.0


class TestStorages:
    @pytest.mark.parametrize("classes", [2, 10])
    def test_storages_agree(self, classes):
        """Dense float64 rows: CSR with indices of 32 and 64 bits, float32, columns first, integers, a data frame."""
        X, y = load_digits(return_X_y=True)
        X, y = X[:250], y[:250] % classes
        wide = sp.csr_array(X)
        wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
        dense = KernelSVM(tol=1e-9).fit(X, y).decision_function(X)
        for stored in (
            sp.csr_array(X),
            sp.csr_matrix(X),
            wide,
            X.astype(np.float32),
            np.asfortranarray(X),
            X.astype(int),
        ):
            model = KernelSVM(tol=1e-9).fit(stored, y)
            assert model.decision_function(stored) == pytest.approx(dense, abs=1e-6)
            assert model.decision_function(X) == pytest.approx(dense, abs=1e-6)
            assert sp.issparse(model.support_vectors_) == sp.issparse(stored)
        frame = pd.DataFrame(X, columns=[f"pixel {j}" for j in range(64)])
        assert np.array_equal(KernelSVM(tol=1e-9).fit(frame, y).decision_function(frame), dense)

    def test_columns_first_is_no_other_problem(self):
        """Rows in Fortran order and rows of a larger array: the bits of the contiguous copy."""
        X, y = noisy(90, 6)
        first = KernelSVM().fit(X[:, ::2].copy(), y).decision_function(X[:, ::2].copy())
        assert np.array_equal(KernelSVM().fit(X[:, ::2], y).decision_function(X[:, ::2]), first)


class TestOddButValid:
    @pytest.mark.parametrize("C", [1e-10, 1e-3, 1e3, 1e10, np.inf])
    @pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
    def test_any_cost(self, C, kernel):
        """A gap of at most tol is proved whatever C, on rows that can be separated, and are by a high cost."""
        X, y = make_blobs(40, centers=2, random_state=3)
        model = KernelSVM(C, kernel=kernel).fit(X, y)
        assert model.certificate_.relative_gap <= 1e-3
        assert model.score(X, y) == 1.0 or C < 1

    def test_small_costs_are_in_proportion(self):
        """Where every α = C, f and b are C times those of C = 1e-3, but for the rounding of 1 − C in b."""
        X, y = MOONS
        scores = [KernelSVM(C, gamma=1.0).fit(X, y).decision_function(X) / C for C in (1e-3, 1e-6, 1e-10)]
        assert scores[1] == pytest.approx(scores[0], abs=1e-8)
        assert scores[2] == pytest.approx(scores[0], abs=1e-4)

    def test_two_rows(self):
        """Two rows of one column: α = 2/η = 1/(1 − k) each, f is odd about their middle, in closed form."""
        model = KernelSVM(C=np.inf, gamma=1.0).fit([[0.0], [1.0]], ["no", "yes"])
        alpha = 1 / (1 - np.exp(-1.0))
        assert model.dual_coef_ == pytest.approx(np.array([[-alpha, alpha]]), rel=1e-12)
        assert model.intercept_ == pytest.approx([0.0], abs=1e-12)
        assert model.predict([[0.1], [0.9]]).tolist() == ["no", "yes"]

    def test_empty_and_equal_rows(self):
        """Rows without an entry, rows that stand there three times, some with the other label: the gap is proved, and
        the scores are those of the rows once, with weight 3.
        """
        X, y = noisy(50, 3)
        X[:5] = 0
        X[5] = X[6] = X[7]
        tripled = KernelSVM(tol=1e-9).fit(np.vstack([X] * 3), np.tile(y, 3))
        assert tripled.certificate_.relative_gap <= 1e-9
        once = KernelSVM(tol=1e-9).fit(X, y, np.full(50, 3.0))
        assert tripled.decision_function(X) == pytest.approx(once.decision_function(X), abs=1e-8)
        sparse = KernelSVM(tol=1e-9).fit(sp.csr_array(X), y, np.full(50, 3.0))
        assert sparse.decision_function(sp.csr_array(X)) == pytest.approx(once.decision_function(X), abs=1e-8)

    @pytest.mark.parametrize("kernel", ["linear", "rbf", "cosine", "poly"])
    def test_rows_that_are_all_the_same(self, kernel):
        """Nothing tells the classes apart: the constant of the larger one is optimal, C·(2 · 2) its loss."""
        model = KernelSVM(kernel=kernel).fit(np.ones((5, 2)), [0, 0, 1, 1, 1])
        assert model.certificate_.primal == pytest.approx(4.0)
        assert model.predict([[1.0, 1.0]]) == [1]

    def test_labels_of_any_kind(self):
        """Texts, booleans, negative numbers and columns of labels come back as they were."""
        X, y = MOONS
        for labels in (y.astype(bool), np.where(y, "après", "avant"), np.where(y, -3, 7), y[:, None].ravel().tolist()):
            model = KernelSVM().fit(X, labels)
            assert set(model.predict(X)) == set(labels) == set(model.classes_)

    @pytest.mark.parametrize("gamma", ["scale", 1.0])
    @pytest.mark.parametrize("C", [1.0, 1e4])
    def test_unscaled_columns(self, gamma, C):
        """A column of 1e6 beside Gaussian ones, on which LIBSVM may not end: tol is proved, and no warning needed."""
        X, y = noisy(300, 5, big=1e6)
        assert KernelSVM(C, gamma=gamma).fit(X, y).certificate_.relative_gap <= 1e-3


class TestLinear:
    def test_equals_the_linear_machine(self):
        """LinearSVM minimises the same: weights, bias and gap, and its iterations are counted."""
        X, y = noisy(300, 6)
        ours, theirs = KernelSVM(kernel="linear").fit(X, y), LinearSVM().fit(X, y)
        assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-8)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-8)
        assert ours.n_iter_ >= theirs.n_iter_ > 0
        assert ours.history_[-1].iteration == ours.n_iter_
        smo = KernelSVM(kernel="linear", solver="smo", tol=1e-9).fit(X, y)
        assert smo.coef_ == pytest.approx(theirs.coef_, abs=1e-6)

    @pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
    def test_weights(self, store):
        """w·x + b is the score of every pair; there is no coef_ for other kernels, and none to be written to."""
        X, y = IRIS
        model = KernelSVM(kernel="linear", decision_function_shape="ovo").fit(store(X), y)
        assert model.coef_.shape == (3, 4)
        assert model.decision_function(store(X)) == pytest.approx(X @ model.coef_.T + model.intercept_, abs=1e-9)
        with pytest.raises(ValueError, match="read-only"):
            model.coef_[0, 0] = 1.0
        model.set_params(kernel="rbf")  # what was fitted is linear still
        assert model.coef_.shape == (3, 4)
        assert not hasattr(KernelSVM().fit(X, y), "coef_")
        with pytest.raises(AttributeError, match="only there for the linear kernel"):
            _ = KernelSVM(kernel="poly").coef_

    def test_the_iterations_are_at_most_max_iter(self):
        """Those of the linear solvers and rounds together."""
        X, y = text_like(3000, d=500)
        with pytest.warns(ConvergenceWarning, match="raise max_iter"):
            assert KernelSVM(100.0, kernel="linear", tol=1e-9, max_iter=2).fit(X, y).n_iter_ == 2


BAD_PARAMETERS = [
    *({"gamma": gamma} for gamma in (0, 0.0, -1.0, np.inf, np.nan, "large", None)),
    *({"kernel": kernel, "gamma": 0.0} for kernel in ("linear", "precomputed", np.dot)),
    *({"degree": degree} for degree in (-1, 2.5, "3")),
    *({"coef0": coef0} for coef0 in (np.nan, np.inf, "0")),
    *({"kernel": kernel} for kernel in ("gauss", None, 3)),
    *({"cache_size": size} for size in (0, -1.0, np.nan, "large")),
    *({"decision_function_shape": shape} for shape in ("ovx", None)),
    *({"break_ties": value} for value in (1, "yes")),
    *({"solver": solver} for solver in ("dual_cd", None)),
    *({"C": C} for C in (0, -1.0, np.nan, "1")),
]


@pytest.mark.parametrize("parameters", BAD_PARAMETERS, ids=range(len(BAD_PARAMETERS)))
def test_bad_parameters(parameters):
    """Each is a ValueError that names the parameter, its value and what it may be, whatever the kernel; nothing is
    fitted.
    """
    X, y = noisy(20, 2)
    name, value = next(reversed(parameters.items()))
    model = KernelSVM(**parameters)
    with pytest.raises(ValueError, match=rf"{name}={re.escape(repr(value))}; (it must be|choose from)"):
        model.fit(X, y)
    assert not hasattr(model, "classes_")
    with pytest.raises(NotFittedError):
        model.predict(X)


K = pairwise_kernels(noisy(6, 2)[0], metric="rbf")


def changed(i, j, value, both=True):
    """K with another number."""
    other = K.copy()
    other[i, j] = value
    if both:
        other[j, i] = value
    return other


BAD_MATRICES = [
    (K[:, :5], r"X has shape \(6, 5\); a precomputed kernel matrix is square"),
    (changed(1, 2, np.nan), "X contains NaN"),
    (changed(1, 2, np.inf), "X contains infinity"),
    (
        changed(1, 2, 0.125, both=False),
        r"X is not symmetric: X\[\d, \d\] is 0.\d+ and X\[\d, \d\] is 0.\d+.*use a matrix",
    ),
    (changed(3, 3, -0.5), r"X\[3, 3\] is -0.5; k\(x, x\) is a squared length and never negative"),
    (sp.csr_array(K), "Sparse precomputed kernels are not supported"),
]


@pytest.mark.parametrize(("matrix", "message"), BAD_MATRICES, ids=[message[:30] for _, message in BAD_MATRICES])
def test_bad_matrices(matrix, message):
    """A precomputed matrix that is none: what is wrong, where, and what to do; nothing is fitted."""
    model = KernelSVM(kernel="precomputed")
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(matrix, [0, 1, 0, 1, 0, 1])
    assert not hasattr(model, "classes_")


BAD_FUNCTIONS = [
    (lambda a, b: np.ones((len(a), 3)), r"returned an array of shape \(6, 3\) for 6 and 6 rows; it must be \(6, 6\)"),
    (lambda a, b: 1.0, r"returned an array of shape \(\)"),
    (lambda a, b: np.full((len(a), len(b)), np.nan), r"K\[0, 0\] is nan; kernel values must be finite"),
    (lambda a, b: a[:, :1] - b[:, 0] + 3, r"K is not symmetric: K\[\d, \d\] is"),
    (lambda a, b: -(a @ b.T), r"K\[0, 0\] is -\d.*never negative"),
    (lambda a, b: (a @ b.T).astype(complex), "array of complex128; kernel values must be real numbers"),
    (lambda a, b: np.full((len(a), len(b)), "k"), "kernel values must be real numbers"),
]


@pytest.mark.parametrize(("kernel", "message"), BAD_FUNCTIONS, ids=[message[:30] for _, message in BAD_FUNCTIONS])
def test_bad_functions(kernel, message):
    """A function that returns no kernel matrix: what it returned, where, and what it must be."""
    model = KernelSVM(kernel=kernel)
    with pytest.raises(ValueError, match=message):
        model.fit(noisy(6, 2)[0], [0, 1, 0, 1, 0, 1])
    assert not hasattr(model, "classes_")


def test_rows_are_numbered_as_they_were_given():
    """With rows of weight 0 before it and classes in any order, a message names the row of X."""
    X = noisy(8, 2)[0]
    labels, weights = [2, 1, 0, 1, 2, 0, 1, 0], [0, 1, 1, 1, 1, 1, 1, 1]

    def broken(a, b):
        values = a @ b.T
        at = np.flatnonzero((a == X[4]).all(axis=1))[0]
        values[at, at] = -9.0
        return values

    with pytest.raises(ValueError, match=r"K\[4, 4\] is -9"):
        KernelSVM(kernel=broken).fit(X, labels, weights)
    X[5] *= 1e200
    with pytest.raises(ValueError, match=r"k\(x, x\) of row 5 is inf with poly.*scale the columns of X"):
        KernelSVM(kernel="poly", gamma=1.0).fit(X, labels, weights)
    X[5] = -3.0
    with pytest.raises(ValueError, match="Negative values in data: kernel='chi2' is for numbers ≥ 0"):
        KernelSVM(kernel="chi2").fit(X, labels)


def test_numbers_that_overflow():
    """X.var() has no inverse where X is too large or too small: what is wrong and what to do."""
    y = [0, 1, 0, 1]
    for size in (1e200, 1e-155):
        with pytest.raises(ValueError, match=r"X.var\(\) is .*; scale the columns of X"):
            KernelSVM().fit(size * noisy(4, 2)[0], y)


class TestPrediction:
    def test_of_other_columns(self):
        """Rows of another width are an error that says how many columns there must be, for every kind of kernel."""
        X, y = noisy(12, 3)
        for model, rows, needed in (
            (KernelSVM().fit(X, y), X[:, :2], 3),
            (KernelSVM(kernel=lambda a, b: a @ b.T).fit(X, y), X[:, :2], 3),
            (KernelSVM(kernel="precomputed").fit(X @ X.T, y), X[:4] @ X[:5].T, 12),
        ):
            with pytest.raises(ValueError, match=f"expecting {needed} features"):
                model.predict(rows)

    def test_of_numbers_that_are_none(self):
        """NaN and infinity in X, and from a function that is one at last."""
        X, y = noisy(12, 3)
        with pytest.raises(ValueError, match="X contains NaN"):
            KernelSVM().fit(X, y).predict(np.full((2, 3), np.nan))
        late = KernelSVM(kernel=lambda a, b: a @ b.T / (len(a) > 2)).fit(X, y)
        with np.errstate(all="ignore"), pytest.raises(ValueError, match="kernel of row 0 and support vector 0 is"):
            late.predict(X[:2])
        shrunk = KernelSVM(kernel=lambda a, b: (a @ b.T)[:, : len(a)]).fit(X, y)
        with pytest.raises(ValueError, match=r"returned an array of shape \(2, 2\) for 2 and \d+ rows"):
            shrunk.predict(X[:2])

    def test_of_negative_numbers_by_chi2(self):
        """Where the kernel is not defined, an error says so."""
        model = KernelSVM(kernel="chi2").fit(np.abs(noisy(20, 3)[0]), noisy(20, 3)[1])
        with pytest.raises(ValueError, match="Negative values in data"):
            model.predict([[1.0, -1.0, 0.0]])

    def test_what_was_fitted_counts(self):
        """Parameters that are set after the fit, and a fit that fails, leave its scores as they are."""
        X, y = noisy(60, 3)
        model = KernelSVM(gamma=0.5).fit(X, y)
        before = model.decision_function(X)
        model.set_params(kernel="poly", gamma=3.0)
        assert np.array_equal(model.decision_function(X), before)
        with pytest.raises(ValueError, match="only one class"):
            model.fit(X, np.ones(60))
        assert np.array_equal(model.decision_function(X), before)

    def test_break_ties_needs_scores_of_classes(self):
        """As in SVC, break_ties with "ovo" raises when it would act."""
        with pytest.raises(ValueError, match="break_ties must be False when decision_function_shape is 'ovo'"):
            KernelSVM(decision_function_shape="ovo", break_ties=True).fit(*IRIS).predict(IRIS[0])


class TestWarmStart:
    @pytest.mark.parametrize("change", [{"C": 0.5}, {"gamma": 0.302}, {"tol": 1e-5}], ids=str)
    def test_the_same_optimum_in_fewer_rounds(self, change):
        """A cold fit has the same objective, and takes more rounds."""
        X, y = noisy(3000, 5)
        warm = KernelSVM(gamma=0.3, tol=1e-4, solver="smo", warm_start=True).fit(X, y).set_params(**change).fit(X, y)
        cold = clone(warm).fit(X, y)
        assert warm.certificate_.relative_gap <= warm.tol
        assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2 * warm.tol)
        assert warm.n_iter_ < cold.n_iter_

    def test_of_the_linear_kernel(self):
        """The linear solvers go on from the last α, too: nothing to do for the same problem, less at another C."""
        X, y = text_like(3000, d=500)
        model = KernelSVM(kernel="linear", warm_start=True, tol=1e-4).fit(X, y)
        first = model.n_iter_
        assert model.fit(X, y).n_iter_ == 0
        assert model.set_params(C=1.2).fit(X, y).n_iter_ < first
        assert model.certificate_.relative_gap <= 1e-4

    def test_several_classes_and_more_rows(self):
        """Pairs take up their own α, rows may be added and left out, and a new class begins anew."""
        X, y = shuffled(*load_wine(return_X_y=True))
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        model = KernelSVM(gamma=0.05, tol=1e-8, solver="smo", warm_start=True).fit(X[:150], y[:150])
        weights = np.arange(178) % 7 > 0
        for fit in (partial(model.fit, X, y), partial(model.fit, X, y, weights), partial(model.fit, X, y % 2)):
            fitted = fit()
            cold = clone(model).fit(*fit.args)
            assert fitted.certificate_.relative_gap <= 1e-8
            assert fitted.decision_function(X) == pytest.approx(cold.decision_function(X), abs=1e-3)
        assert model.fit(X, y % 2).n_iter_ == 0


class TestHardMargin:
    def proof_holds(self, error, values, labels, positive):
        """The two weighted means are of one class each, and the same point: weights sum to 1, distance 0."""
        u, v = error.positive_weights, error.negative_weights
        assert np.concatenate([u, v]).min() > 0
        assert (u.sum(), v.sum()) == pytest.approx((1.0, 1.0))
        assert set(labels[error.positive]) == {positive}
        assert len(set(labels[error.negative])) == 1
        assert set(labels[error.negative]) != {positive}
        rows, weights = np.append(error.positive, error.negative), np.append(u, -v)
        square = weights @ values[np.ix_(rows, rows)] @ weights
        assert abs(square) <= 1e-12 * np.abs(np.diag(values)).max()

    @pytest.mark.parametrize("kernel", ["linear", "precomputed"])
    def test_exclusive_or(self, kernel):
        """No line separates it: two weighted means, one of each class, are the same point."""
        X, y = np.array([[1.0, 1], [-1, -1], [1, -1], [-1, 1]]), np.array([0, 0, 1, 1])
        with pytest.raises(InseparableError) as proof:
            KernelSVM(C=np.inf, kernel=kernel).fit(X if kernel == "linear" else X @ X.T, y)
        self.proof_holds(proof.value, X @ X.T, y, 1)
        assert KernelSVM(C=np.inf, gamma=1.0).fit(X, y).score(X, y) == 1.0

    @pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "precomputed"])
    def test_a_row_with_both_labels(self, kernel):
        """No kernel separates it, and the proof has all but its last digits at that row."""
        X, y = make_moons(40, noise=0.05, random_state=1)
        X, y = np.vstack([X, X[7]]), np.append(y, 1 - y[7])
        values = pairwise_kernels(X, metric="rbf" if kernel == "precomputed" else kernel)
        model = KernelSVM(C=np.inf, kernel=kernel)
        with pytest.raises(InseparableError) as proof:
            model.fit(values if kernel == "precomputed" else X, y)
        self.proof_holds(proof.value, values, y, 1)
        if kernel != "poly":  # of ten features, in which other rows cross, too
            heaviest = [
                rows[weights.argmax()]
                for rows, weights in (
                    (proof.value.positive, proof.value.positive_weights),
                    (proof.value.negative, proof.value.negative_weights),
                )
            ]
            assert set(heaviest) == {7, 40}
        assert not hasattr(model, "classes_")

    @pytest.mark.parametrize("kernel", ["linear", "rbf"])
    def test_of_several_classes(self, kernel):
        """The pair that has no separator is named, and rows are those of X, whatever their order and weights."""
        X, y = shuffled(*make_blobs(60, centers=[[0, 0], [9, 0], [0, 9]], random_state=0))
        at = np.flatnonzero(y == 2)[3]
        X, y = np.vstack([[[50.0, 50.0]], X, X[at]]), np.concatenate([[0], y, [1]])
        with pytest.raises(InseparableError) as proof:
            KernelSVM(C=np.inf, kernel=kernel).fit(X, y, np.append(0.0, np.ones(61)))
        assert proof.value.__notes__ == ["This is for the classes 1 and 2."]
        self.proof_holds(proof.value, pairwise_kernels(X, metric=kernel), y, 1)

    @pytest.mark.parametrize("degree", [2, 5, 9])
    def test_labels_at_random(self, degree):
        """300 rows with labels by chance in 6, 21 and 55 features, the last of some 10⁹ in size: there is a proof."""
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((300, 2)), rng.integers(0, 2, 300)
        with pytest.raises(InseparableError) as proof:
            KernelSVM(C=np.inf, kernel="poly", gamma=1.0, degree=degree, coef0=1.0).fit(X, y)
        self.proof_holds(proof.value, (X @ X.T + 1) ** degree, y, 1)


class TestIndefinite:
    def test_no_hard_margin(self):
        """Where ‖f‖² may be negative there is no margin: an error, before α grows without end, with the direction."""
        X, y = shuffled(*IRIS)
        with pytest.raises(ValueError, match=r"C=inf needs a positive semidefinite kernel.*vᵀKv = -.*use a finite C"):
            KernelSVM(C=np.inf, kernel="sigmoid", gamma=0.1, coef0=-0.5).fit(X, y)

    def test_a_matrix_of_float32(self):
        """What rounding to float32 does to a kernel is told as what it may be; in float64 the gap is proved."""
        X, y = make_moons(300, noise=0.3, random_state=0)
        values = pairwise_kernels(X, metric="rbf", gamma=0.1)
        with pytest.warns(IndefiniteKernelWarning, match="rounding of float32: give kernel values in float64"):
            KernelSVM(kernel="precomputed").fit(values.astype(np.float32), y)
        assert KernelSVM(kernel="precomputed").fit(values, y).certificate_.relative_gap <= 1e-3

    @pytest.mark.parametrize("C", [1.0, 100.0])
    def test_the_pair_that_shows_it(self, C):
        """tanh is no kernel here: for the rows named k(i, i) + k(j, j) − 2k(i, j) is what the warning says, below 0."""
        X, y = shuffled(*IRIS)
        weights = np.append(np.zeros(20), np.ones(130))
        with pytest.warns(IndefiniteKernelWarning, match="nothing is proved") as told:
            model = KernelSVM(C, kernel="sigmoid", gamma=0.1, coef0=-0.5).fit(X, y, weights)
        text = str(told[0].message)
        value, i, j = re.search(r"is (-[\d.e-]+) for the rows i = (\d+) and j = (\d+)", text).groups()
        Z = X[[int(i), int(j)]]
        values = np.tanh(0.1 * Z @ Z.T - 0.5)
        assert values[0, 0] + values[1, 1] - 2 * values[0, 1] == pytest.approx(float(value), rel=1e-2)
        assert float(value) < 0
        assert min(int(i), int(j)) >= 20
        assert np.isinf(model.certificate_.relative_gap)
        assert np.isfinite(model.decision_function(X)).all()

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("C", [1.0, 50.0])
    def test_it_ends_at_a_stationary_point(self, seed, C):
        """The KKT conditions hold to tol: no row whose αy may rise has an e larger by more than one that may fall."""
        X, y = noisy(120, 4, seed=seed)
        with pytest.warns(IndefiniteKernelWarning):
            model = KernelSVM(C, kernel="sigmoid", gamma=1.0).fit(X, y)
        alpha = np.zeros(len(y))
        alpha[model.support_] = np.abs(model.dual_coef_[0])
        e = y - model.decision_function(X)
        up, down = np.where(y > 0, alpha < C, alpha > 0), np.where(y > 0, alpha > 0, alpha < C)
        assert e[up].max() - e[down].min() <= 1e-3

    def test_a_direction_that_shows_it(self):
        """No pair of rows shows it, a vector does: a matrix with one eigenvalue of −0.5, found to 3 digits."""
        rng = np.random.default_rng(0)
        v = np.append(rng.standard_normal(29), 0.0)
        v[-1] = -v.sum()
        v /= np.linalg.norm(v)
        basis = np.linalg.qr(np.column_stack([v, rng.standard_normal((30, 29))]))[0]
        matrix = basis @ np.diag(np.append(-0.5, rng.uniform(1, 2, 29))) @ basis.T
        with pytest.warns(IndefiniteKernelWarning, match=r"vᵀKv = -0\.5 for a v with ‖v‖ = 1 and Σ v = 0"):
            KernelSVM(kernel="precomputed").fit((matrix + matrix.T) / 2, np.arange(30) % 2)

    def test_a_kernel_for_balanced_sums(self):
        """−‖a − b‖² is indefinite but not on Σ v = 0, which is all that the bias needs: a proof, and no warning. The
        same scores as (‖a‖² + ‖b‖² − ‖a − b‖²) = 2a·b.
        """
        X, y = noisy(60, 3)
        distances = ((X[:, None] - X) ** 2).sum(axis=2)
        model = KernelSVM(kernel="precomputed", tol=1e-9).fit(-distances, y)
        assert model.certificate_.relative_gap <= 1e-9
        twice = KernelSVM(kernel="precomputed", tol=1e-9).fit(2 * X @ X.T, y)
        assert model.decision_function(-distances) == pytest.approx(twice.decision_function(2 * X @ X.T), abs=1e-7)


class TestEnds:
    def test_one_round(self):
        """max_iter=1 warns with what was reached and what to do, and everything is finite."""
        X, y = noisy(700, 8)
        with pytest.warns(
            ConvergenceWarning, match=r"relative gap is .* after 1 rounds.* asked for was .*; raise max_iter"
        ):
            model = KernelSVM(1e3, tol=1e-9, max_iter=1).fit(X, y)
        assert model.n_iter_ == 1
        assert 0 < model.certificate_.relative_gap < np.inf
        assert np.isfinite(model.decision_function(X)).all()

    @pytest.mark.parametrize("solver", ["auto", "smo"])
    @pytest.mark.parametrize("C", [1.0, 1e4, np.inf])
    def test_a_tolerance_that_no_double_reaches(self, C, solver):
        """A gap of 1e-17 is beyond rounding: the fit ends, with a gap near it, and says so."""
        X, y = make_moons(100, noise=0.05, random_state=0)
        with pytest.warns(ConvergenceWarning, match="asked for was tol=1.0e-17"):
            model = KernelSVM(C, gamma=1.0, solver=solver, tol=1e-17).fit(X, y)
        assert 0 < model.certificate_.relative_gap <= 1e-8

    def test_the_warning_points_here(self):
        """Its place is the line that called fit."""
        X, y = noisy(300, 5)
        with pytest.warns(ConvergenceWarning) as told:
            KernelSVM(100.0, tol=1e-9, max_iter=1).fit(X, y)
        assert told[0].filename == __file__

    @pytest.mark.parametrize("n", [150, 400])
    def test_the_last_digits(self, n):
        """At any tol below 1e-3, and at 1e-3 for few rows, free rows have m = 1 to 1e-9: the KKT table says so."""
        X, y = noisy(n, 6)
        proof = KernelSVM(10.0, tol=1e-3 if n < 200 else 9e-4).fit(X, y).certificate_
        assert proof.kkt[1].count > 10
        assert proof.kkt_violation <= 1e-9
        assert proof.relative_gap <= 1e-9

    @pytest.mark.parametrize("classes", [2, 3])
    def test_an_interrupted_fit_is_usable(self, classes, monkeypatch):
        """Ctrl-C raises KeyboardInterrupt, and what was reached is there to be used, with its proof."""
        calls = iter(range(100))
        told = kernel_training._tell

        def interrupted(*arguments):
            told(*arguments)
            if next(calls) == 0:
                raise KeyboardInterrupt

        monkeypatch.setattr(kernel_training, "_tell", interrupted)
        monkeypatch.setattr(kernel_training, "ROUNDS", 1)
        X, y = noisy(600, 8)
        labels = y if classes == 2 else np.arange(600) % 3
        model = KernelSVM(1e3, solver="smo", tol=1e-12)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, labels)
        assert model.n_iter_ == 1
        assert 0 < model.certificate_.relative_gap < np.inf
        assert model.score(X, labels) > 1 / classes

    def test_an_interrupted_linear_fit_is_usable(self, monkeypatch):
        """The same while the linear solvers are at work: no other one goes on."""
        from widemargin import solvers

        def interrupted(problem, *, tol, seed, start):
            descent = solvers.dual_cd(problem, tol=tol, seed=seed)
            yield from (iterate for _, iterate in zip(range(3), descent, strict=False))
            raise KeyboardInterrupt

        monkeypatch.setitem(solvers.SOLVERS, "auto", solvers.SOLVERS["auto"]._replace(solve=interrupted))
        X, y = noisy(500, 5)
        model = KernelSVM(kernel="linear", tol=1e-12)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert 0 < model.certificate_.relative_gap < np.inf
        assert model.coef_.shape == (1, 5)

    def test_verbose_shows_the_gap_falling(self, capsys):
        """verbose=2 prints lines of the gap on stderr, verbose=0 nothing, and stdout stays clean."""
        X, y = noisy(600, 5)
        KernelSVM(100.0).fit(X, y)
        assert capsys.readouterr() == ("", "")
        KernelSVM(100.0, solver="smo", tol=1e-6, verbose=2).fit(X, y)
        out, err = capsys.readouterr()
        assert out == ""
        gaps = [float(line.split("relative gap ")[1].split(" ")[0]) for line in err.splitlines()]
        assert gaps[-1] <= 1e-6 < gaps[0]
