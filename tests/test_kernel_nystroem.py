"""Nyström: the best f of some landmarks, and certificates of it that the exact problem's optimum never contradicts."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import pairwise_kernels

from oracles import exact_kernel, noisy
from widemargin import KernelSVM, LinearSVM, certify, kernel_nystroem
from widemargin.data import Rows
from widemargin.estimators.kernel_svm import IndefiniteKernelWarning
from widemargin.kernel_nystroem import LANDMARKS, Landmarks, bound_square, prove
from widemargin.kernel_problem import KernelProblem
from widemargin.kernels import Kernel, MatrixGram, PointsGram
from widemargin.model_kernel import KernelModel

MOONS = make_moons(300, noise=0.3, random_state=0)
RBF = Kernel("rbf", gamma=1.0)
#: The exact optimum of the moons with C = 3, but for its rounding.
EXACT = KernelSVM(3.0, gamma=1.0, tol=1e-10).fit(*MOONS)
#: Few kernel values: many groups of support vectors. Some: a few groups. As many as it takes: the exact dual.
VALUES = (500, 8_000, None)


def approximate(**options):
    """KernelSVM for the moons by landmarks."""
    return KernelSVM(**{"C": 3.0, "gamma": 1.0, "solver": "nystroem", "tol": 1e-6, **options})


def one_problem(X, y, C=3.0, kernel=RBF):
    """The moons' kernel problem."""
    return KernelProblem.of(
        PointsGram(kernel, Rows(X)), ((0, len(y)),), np.where(y == 1, 1.0, -1.0), C * np.ones(len(y))
    )


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("how", LANDMARKS)
@pytest.mark.parametrize("m", [1, 5, 20, 80])
def test_the_gap_is_never_below_the_true_one(m, how, values):
    """The exact fit to 1e-10: primal above the optimum, dual below, and the gap at least the true suboptimality."""
    problem, optimum = one_problem(*MOONS), EXACT.certificate_
    (fit,) = kernel_nystroem.fit([problem], n_components=m, landmarks=how, tol=1e-6, values=values)
    found = fit.certificate
    assert len(fit.landmarks) == m
    assert found.primal >= optimum.dual - optimum.gap
    assert found.dual <= optimum.primal + optimum.gap
    assert found.gap >= found.primal - optimum.primal
    assert fit.approximate.relative_gap <= 1e-6
    if values is None and m == 80:
        assert found.relative_gap < 1e-2


@pytest.mark.parametrize("values", VALUES)
def test_the_bound_of_a_length(values):
    """vᵀKv in extended precision: from above, the closer the more kernel values; exact for one group."""
    X, rng = MOONS[0], np.random.default_rng(1)
    v = rng.standard_normal(len(X)) * (rng.random(len(X)) < 0.6)
    gram = PointsGram(RBF, Rows(X))
    landmarks = Landmarks.of(gram, np.sort(rng.choice(len(X), 12, replace=False)))
    true = float(v @ exact_kernel(RBF, X, X) @ v)
    bound = bound_square(gram, np.arange(len(X)), v, landmarks, np.inf if values is None else values)
    assert bound >= true
    if values is None:
        assert bound == pytest.approx(true, rel=1e-12)
    else:  # better than the diagonal of K − K̃, which is what groups of one row say
        phi = landmarks.features(np.arange(len(X)))
        apart = np.sqrt(np.maximum(1 - np.square(phi).sum(axis=1), 0))
        assert bound < np.square(v @ phi).sum() + (np.abs(v) @ apart) ** 2


def test_groups_of_one_row_are_cauchy_schwarz():
    """‖Σ vᵢφᵢ‖² + (Σ |vᵢ|√(kᵢᵢ − ‖φᵢ‖²))², by NumPy from the features."""
    X, v = MOONS[0], np.random.default_rng(1).standard_normal(300)
    gram = PointsGram(RBF, Rows(X))
    landmarks = Landmarks.of(gram, np.arange(0, 300, 25))
    phi = landmarks.features(np.arange(300))
    apart = np.sqrt(np.maximum(1 - np.square(phi).sum(axis=1), 0))
    wanted = np.square(v @ phi).sum() + (np.abs(v) @ apart) ** 2
    assert bound_square(gram, np.arange(300), v, landmarks, 0.0) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("name", ["rbf", "poly", "laplacian", "additive_chi2"])
def test_inner_products_of_features(name):
    """K_XZ K_ZZ⁺ K_ZX by NumPy's pseudoinverse; moved by the landmarks' mean for additive_chi2."""
    X = np.abs(np.random.default_rng(0).standard_normal((60, 5)))
    kernel = Kernel(name, gamma=0.4, degree=2, coef0=1.0)
    landmarks = Landmarks.of(PointsGram(kernel, Rows(X)), np.arange(0, 60, 6))
    phi = landmarks.features(np.arange(60))
    K = pairwise_kernels(X, metric=name, **kernel.parameters)
    if name == "additive_chi2":
        mean = K[:, landmarks.index].mean(axis=1)
        K = K - mean - mean[:, None] + K[np.ix_(landmarks.index, landmarks.index)].mean()
    Z = K[:, landmarks.index]
    assert phi @ phi.T == pytest.approx(Z @ np.linalg.pinv(Z[landmarks.index], hermitian=True) @ Z.T, abs=1e-8)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "additive_chi2", "precomputed", pairwise_kernels])
def test_all_rows_as_landmarks_are_the_exact_fit(kernel):
    """The exact solver: the same objective, proved to 1e-8, and the same scores."""
    X, y = noisy(80, 3, seed=2)
    X = np.abs(X)
    if kernel == "precomputed":
        X = pairwise_kernels(X, metric="rbf", gamma=0.5)
    options = {"kernel": kernel, "gamma": 0.5, "tol": 1e-9, "coef0": 1.0}
    exact = KernelSVM(**options).fit(X, y)
    ours = KernelSVM(**options, solver="nystroem", n_components=80).fit(X, y)
    assert ours.certificate_.relative_gap < 1e-8
    assert ours.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-8)
    assert ours.decision_function(X) == pytest.approx(exact.decision_function(X), abs=1e-3)


def test_the_best_function_of_the_landmarks():
    """scikit-learn's Nystroem on the same landmarks, and LinearSVM on its features: the same objective and scores."""
    X, y = MOONS
    ours = approximate(n_components=15, tol=1e-9).fit(X, y)
    theirs = Nystroem(gamma=1.0, n_components=15).fit(ours.support_vectors_)
    features = theirs.transform(X)
    linear = LinearSVM(3.0, tol=1e-10).fit(features, y)
    assert ours.certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-8)
    assert ours.approximate_certificate_.primal == pytest.approx(linear.certificate_.primal, rel=1e-8)
    assert ours.decision_function(X) == pytest.approx(linear.decision_function(features), abs=1e-4)


def test_weights_are_repetitions():
    """Rows of weight 2 and 0, and class weights: the exact dual and primal are those of repeated rows."""
    X, y = MOONS
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    balanced = {"class_weight": {0: 2.0, 1: 0.5}, "tol": 1e-7}
    exact = KernelSVM(3.0, gamma=1.0, **balanced).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    ours = approximate(n_components=int((weights > 0).sum()), **balanced).fit(X, y, weights)
    assert ours.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-6)
    assert (weights[ours.support_] > 0).all()


def test_three_classes():
    """Each pair's exact problem bounds its certificate; landmarks of every class in its share, in SVC's layout."""
    X, y = load_iris(return_X_y=True)
    X, y = X[10:], y[10:]
    exact = KernelSVM(gamma=0.5, tol=1e-10).fit(X, y)
    ours = KernelSVM(gamma=0.5, tol=1e-6, solver="nystroem", n_components=28).fit(X, y)
    assert ours.n_support_.tolist() == [8, 10, 10]
    assert np.array_equal(y[ours.support_], np.repeat([0, 1, 2], ours.n_support_))
    assert ours.dual_coef_.shape == (2, 28)
    for approx, near, optimum in zip(ours.certificate_, ours.approximate_certificate_, exact.certificate_, strict=True):
        assert approx.primal >= optimum.dual
        assert approx.dual <= optimum.primal + optimum.gap
        assert near.relative_gap <= 1e-6
    assert ours.score(X, y) > 0.9
    K = pairwise_kernels(X, ours.support_vectors_, metric="rbf", gamma=0.5)
    first = K[:, :18] @ ours.dual_coef_[0, :18] + ours.intercept_[0]
    assert ours.set_params(decision_function_shape="ovo").decision_function(X)[:, 0] == pytest.approx(first, abs=1e-10)
    all_rows = KernelSVM(gamma=0.5, tol=1e-9, solver="nystroem", n_components=140).fit(X, y)
    for approx, optimum in zip(all_rows.certificate_, exact.certificate_, strict=True):
        assert approx.primal == pytest.approx(optimum.primal, rel=1e-8)


@pytest.mark.parametrize("how", LANDMARKS)
def test_the_same_bits_on_any_number_of_threads(how):
    """1, 2 and 8 threads, 6,000 rows of 3 blocks."""
    X, y = noisy(6000, 5, seed=3)
    fits = [
        KernelSVM(gamma=0.1, solver="nystroem", n_components=40, landmarks=how, n_jobs=k, random_state=1).fit(X, y)
        for k in (1, 2, 8)
    ]
    for other in fits[1:]:
        for name in ("support_", "dual_coef_", "intercept_"):
            assert np.array_equal(getattr(fits[0], name), getattr(other, name))
        assert fits[0].certificate_ == other.certificate_
        assert np.array_equal(fits[0].certificate_.alpha, other.certificate_.alpha)


def test_storage():
    """float64 arrays, of numbers that float32 holds: the same from float32 and CSR but for rounding."""
    X, y = MOONS
    X = X.astype(np.float32)
    wanted = approximate(n_components=30).fit(X.astype(np.float64), y).certificate_
    for rows in (X, sp.csr_matrix(X), sp.csr_array(X.astype(np.float64))):
        fit = approximate(n_components=30).fit(rows, y)
        assert fit.certificate_.primal == pytest.approx(wanted.primal, rel=1e-5)
        assert fit.certificate_.dual == pytest.approx(wanted.dual, rel=1e-4)
        assert sp.issparse(fit.support_vectors_) == sp.issparse(rows)


def test_landmarks_are_chosen_as_they_say():
    """Three clusters of 200, 40 and 3 rows: k-means++ and leverage scores find the smallest, all rows alike may not."""
    rng = np.random.default_rng(0)
    sizes, centres = (200, 40, 3), ((0, 0), (40, 0), (0, 40))
    X = np.vstack([rng.normal(c, 0.1, (n, 2)) for c, n in zip(centres, sizes, strict=True)])
    y = np.arange(len(X)) % 2
    small = {}
    for how in LANDMARKS:
        fits = [
            KernelSVM(gamma=0.01, solver="nystroem", n_components=6, landmarks=how, random_state=k).fit(X, y)
            for k in range(10)
        ]
        small[how] = sum(bool((fit.support_ >= 240).any()) for fit in fits)
        assert all(len(set(fit.support_.tolist())) == 6 for fit in fits)
    assert small["k-means++"] == 10
    assert small["leverage"] > small["random"]
    again = KernelSVM(gamma=0.01, solver="nystroem", n_components=6, random_state=3).fit(X, y)
    assert np.array_equal(again.support_, clone(again).fit(X, y).support_)


def test_equal_rows_are_enough_landmarks():
    """Rows that are equal make as many landmarks as were asked for, with no more features than they have."""
    X, y = np.repeat([[0.0], [1.0], [3.0]], 20, axis=0), np.repeat([0, 1, 0], 20)
    for how in LANDMARKS:
        fit = KernelSVM(gamma=1.0, solver="nystroem", n_components=30, landmarks=how, tol=1e-8).fit(X, y)
        assert len(fit.support_) == 30
        assert fit.score(X, y) == 1
        assert fit.certificate_.relative_gap < 1e-6


@pytest.mark.parametrize("solver", ["smo", "auto"])
def test_exact_fits_begin_from_it(solver):
    """The exact fit without a start: the same optimum; in fewer rounds."""
    X, y = noisy(3000, 5, seed=4)
    options = {"gamma": 0.2, "tol": 1e-4}
    cold = KernelSVM(solver=solver, **options).fit(X, y)
    warm = KernelSVM(solver="nystroem", n_components=300, warm_start=True, **options).fit(X, y)
    assert warm.certificate_.primal >= cold.certificate_.dual
    warm.set_params(solver=solver).fit(X, y)
    assert not hasattr(warm, "approximate_certificate_")
    assert warm.certificate_.relative_gap <= 1e-4
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-4)
    assert warm.n_iter_ < cold.n_iter_


def test_it_begins_from_other_fits():
    """From itself: no steps are left. With rows added and from an exact fit: the same optimum of the landmarks."""
    X, y = MOONS
    warm = approximate(warm_start=True, n_components=40).fit(X[:200], y[:200])
    wanted = approximate(n_components=40).fit(X, y).certificate_
    assert warm.fit(X, y).certificate_.primal == pytest.approx(wanted.primal, rel=1e-5)
    assert warm.fit(X, y).n_iter_ == 0
    warm = KernelSVM(3.0, gamma=1.0, warm_start=True).fit(X, y).set_params(solver="nystroem", n_components=40, tol=1e-6)
    assert warm.fit(X, y).certificate_.primal == pytest.approx(wanted.primal, rel=1e-5)


def test_models_and_pickles(tmp_path):
    """Itself: the scores of its pickle, of its model file and of the SVC that a model becomes."""
    X, y = MOONS
    fit = approximate(n_components=25).fit(X, y)
    assert set(y[fit.support_[: fit.n_support_[0]]]) == {0}
    assert np.array_equal(pickle.loads(pickle.dumps(fit)).decision_function(X), fit.decision_function(X))
    model = KernelModel.from_estimator(fit)
    assert np.array_equal(model.support_vectors, fit.support_vectors_)
    for name in ("safetensors", "libsvm"):
        model.save(tmp_path / name, format=name)
        assert KernelModel.load(tmp_path / name).scores(Rows(X)) == pytest.approx(fit.decision_function(X), abs=1e-12)
    assert model.to_sklearn().decision_function(X) == pytest.approx(fit.decision_function(X), abs=1e-9)
    with pytest.raises(ValueError, match="coefficients of landmarks"):
        certify(fit, X, y)


def test_kernels_that_are_not_semidefinite():
    """A sigmoid with negative curvature, and a matrix: IndefiniteKernelWarning, and nothing is proved."""
    X, y = noisy(120, 3, seed=5)
    with pytest.warns(IndefiniteKernelWarning):
        fit = KernelSVM(kernel="sigmoid", gamma=2.0, coef0=-1.0, solver="nystroem", n_components=60).fit(X, y)
    assert fit.certificate_.relative_gap == np.inf
    K = np.diag(np.where(np.arange(120) % 7, 1.0, 0.5)) - 0.9 * np.eye(120)[::-1]
    with pytest.warns(IndefiniteKernelWarning):
        fit = KernelSVM(kernel="precomputed", solver="nystroem", n_components=60).fit(K, y)
    assert fit.certificate_.relative_gap == np.inf


def test_the_proof_is_of_any_coefficients():
    """Weak duality: random β and α, against the exact optimum."""
    X, y = MOONS
    problem, optimum = one_problem(X, y), EXACT.certificate_
    rng = np.random.default_rng(0)
    for gram in (problem.gram, MatrixGram(np.asarray(exact_kernel(RBF, X, X), dtype=np.float64), 1)):
        one = KernelProblem.of(gram, problem.segments, problem.y, problem.c)
        landmarks = Landmarks.of(gram, np.arange(7, 300, 30))
        for values in (10.0, 3000.0, np.inf):
            beta = rng.standard_normal(10)
            beta -= beta.mean()
            found = prove(one, landmarks, beta, rng.uniform(0, 3, 300), values=values).certificate
            assert found.dual <= optimum.primal
            assert found.primal >= optimum.dual
            assert abs(found.alpha @ problem.y) < 1e-10
            assert 0 <= found.alpha.min() <= found.alpha.max() <= 3
            square = float(beta @ exact_kernel(RBF, X[landmarks.index], X[landmarks.index]) @ beta)
            assert found.width == pytest.approx(2 / np.sqrt(square))


def test_it_warns_of_its_own_problem_only():
    """tol is for the landmarks' problem: no warning where the exact gap is larger, one where that was not solved."""
    X, y = MOONS
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert approximate(n_components=3).fit(X, y).certificate_.relative_gap > 1e-3
    with pytest.warns(ConvergenceWarning, match="of the landmarks' problem"):
        approximate(n_components=100, tol=1e-16).fit(X, y)
    with pytest.warns(UserWarning, match="all of them are landmarks"):
        assert len(approximate(n_components=301).fit(X, y).support_) == 300


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": 2.5}, "n_components=2.5"),
        ({"n_components": True}, "n_components=True"),
        ({"landmarks": "best"}, "landmarks='best'; choose from 'random', 'k-means\\+\\+', 'leverage'"),
        ({"solver": "nystroem", "C": np.inf}, "hard margin"),
        ({"solver": "nystroem", "kernel": "precomputed", "landmarks": "k-means++", "n_components": 2}, "kernel matrix"),
    ],
)
def test_mistakes(options, message):
    """Messages that say what is wrong and what to do, whatever the solver."""
    with pytest.raises(ValueError, match=message):
        KernelSVM(**options).fit(np.eye(4), [0, 1, 0, 1])
