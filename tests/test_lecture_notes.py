"""The numbers of the lecture notes' slides, exact where the slides round or slip."""

import pickle

import numpy as np
import pytest

from oracles import hard_margin, make_problem, noisy
from widemargin import InseparableError, LinearSVM, hildreth, textbook
from widemargin.certificate import certify
from widemargin.textbook import kernels
from widemargin.training import fit

FOUR = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
LABELS = [1, 1, -1, -1]


def slide(extra):
    """The four corners and, on most slides, one more positive point."""
    return np.array(FOUR + extra, dtype=float), np.array(LABELS + [1] * len(extra))


@pytest.mark.parametrize(
    ("extra", "C", "w", "b"),
    [
        ([[-0.1, -0.1]], 1, (1, 0), 0),
        ([], 1e10, (1, 0), 0),
        ([], np.inf, (1, 0), 0),
        ([[-0.01, -0.01]], 1e10, (200 / 99, 0), 101 / 99),
        ([[-0.01, -0.01]], np.inf, (200 / 99, 0), 101 / 99),
        ([[-2, 0]], 1, (1, 0), 0),
    ],
)
def test_slides(extra, C, w, b):
    """w and b of the transcripts to 1e-9, with a gap of rounding."""
    svm = LinearSVM(C).fit(*slide(extra))
    assert svm.coef_[0] == pytest.approx(w, abs=1e-9)
    assert svm.intercept_[0] == pytest.approx(b, abs=1e-9)
    assert svm.certificate_.relative_gap <= 1e-9
    assert svm.dual_coef_ @ slide(extra)[0][svm.support_] == pytest.approx(svm.coef_, abs=1e-6)


@pytest.mark.parametrize(
    ("extra", "C", "w", "alpha"),
    [
        ([[-0.1, -0.1]], 1, (1, 0), [0, 0.05, 0.45, 0.6, 1]),
        ([], 1e10, (1, 0), [0, 0.5, 0, 0.5]),
        ([[-2, 0]], 1, (1, 0), [0.5, 0.5, 1, 1, 1]),
    ],
)
def test_the_slides_own_alpha_is_optimal(extra, C, w, alpha):
    """The dual vectors that the slides print, certified as they stand."""
    X, y = slide(extra)
    certificate = certify(make_problem(X, y, C), np.array(w, float), 0.0, np.array(alpha, float))
    assert certificate.primal - certificate.dual <= 1e-12
    assert certificate.gap <= 1e-14 * max(C, 100)  # C times the rounding that a margin of 1 may hide
    assert certificate.stationarity <= 1e-12
    assert certificate.kkt_violation <= 1e-12


def test_what_if_c_is_infinite():
    """(−2, 0) makes the classes inseparable: said so, with a point in both hulls."""
    X, y = slide([[-2, 0]])
    with pytest.raises(InseparableError, match="finite C") as caught:
        LinearSVM(np.inf).fit(X, y)
    proof = caught.value
    for index, weights in ((proof.positive, proof.positive_weights), (proof.negative, proof.negative_weights)):
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        assert weights @ X[index] == pytest.approx(proof.point, abs=1e-9)
    assert (y[proof.positive] == 1).all()
    assert (y[proof.negative] == -1).all()


@pytest.mark.parametrize("solver", ["auto", "dual_cd", "interior_point"])
def test_inseparable_without_a_bias(solver):
    """Two equal points on the same side of 0 with both labels: no hyperplane through 0 separates them."""
    X, y = [[1.0, 2.0], [1.0, 2.0], [-1.0, 0.5]], [1, -1, -1]
    with pytest.raises(InseparableError, match="fit_intercept") as caught:
        LinearSVM(np.inf, fit_intercept=False, solver=solver).fit(X, y)
    signed = np.where(np.array(y)[caught.value.positive] > 0, 1.0, -1.0)
    assert (caught.value.positive_weights * signed) @ np.array(X)[caught.value.positive] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(30, 2), (300, 10), (20, 50)])
def test_hard_margin_equals_a_quadratic_program(seed, shape):
    """Separable data with C = inf: the margin of an off-the-shelf solver to 1e-8."""
    X, _ = noisy(*shape, seed=seed)
    y = np.where(X[:, 0] + X[:, 1] > 0.1, 1.0, -1.0)
    svm = LinearSVM(np.inf).fit(X, y)
    w, _ = hard_margin(X, y)
    assert svm.certificate_.width == pytest.approx(2 / np.linalg.norm(w), rel=1e-8)
    assert svm.certificate_.relative_gap <= 1e-8
    assert (y * svm.decision_function(X)).min() == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1.0, 1e8])
@pytest.mark.parametrize("shape", [(60, 2), (300, 5), (3000, 20)])
@pytest.mark.parametrize("seed", range(3))
def test_hard_margin_at_any_scale(seed, shape, scale):
    """Separable by construction: a gap of 1e-3 at least, every margin at least 1, and w as long as 2/width says."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    y = np.where(X @ rng.standard_normal(shape[1]) > 0, 1, -1)
    svm = LinearSVM(np.inf).fit(scale * X, y)
    assert svm.certificate_.relative_gap <= 1e-3
    assert (y * svm.decision_function(scale * X)).min() == pytest.approx(1, abs=1e-9)
    assert svm.certificate_.primal == pytest.approx(np.sum(svm.coef_**2) / 2, rel=1e-8)


def test_hard_margin_judges_the_weights_as_they_are():
    """A thousand times the optimal w is a separator, but not the optimal one."""
    X, y = slide([[-0.01, -0.01]])
    problem = make_problem(X, y, np.inf)
    best = fit(problem)
    far = certify(problem, 1000 * best.w, 1000 * best.b, best.alpha)
    assert far.primal == pytest.approx(1e6 * best.certificate.primal)
    assert certify(problem, 0.99 * best.w, best.b, best.alpha).primal == np.inf


@pytest.mark.parametrize(("solver", "apart"), [("auto", 1e-6), ("interior_point", 1e-6), ("dual_cd", 0.3)])
def test_close_is_not_touching(solver, apart):
    """Points a little apart, and a row of weight 0 on the wrong side, are no proof of anything."""
    X = np.array([[-1.0], [0.0], [apart], [1.0], [-1.0]])
    svm = LinearSVM(np.inf, solver=solver).fit(X, [-1, -1, 1, 1, 1], [1, 1, 1, 1, 0])
    assert svm.coef_[0, 0] == pytest.approx(2 / apart, rel=1e-3)


@pytest.mark.parametrize("seed", range(30))
def test_coordinate_descent_proves_inseparability_too(seed):
    """Random labels on few rows: the error comes from every solver."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((30, 2)), np.arange(30) % 2
    for solver in ("auto", "dual_cd"):
        with pytest.raises(InseparableError) as caught:
            LinearSVM(np.inf, solver=solver).fit(X, y)
        assert pickle.loads(pickle.dumps(caught.value)).point == pytest.approx(caught.value.point)


def test_an_empty_row_is_on_no_side():
    """Without a bias a row of zeros has margin 0 whatever w is."""
    with pytest.raises(InseparableError, match="fit_intercept"):
        LinearSVM(np.inf, fit_intercept=False, solver="dual_cd").fit([[1, 0], [-1, 0], [0, 0]], [1, -1, 1])


@pytest.mark.parametrize("seed", range(3))
def test_random_labels_have_no_hard_margin(seed):
    """Many points with random labels: the proof is found whatever the scaling."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 5)) * [1, 10, 1e-3, 1e4, 1]
    with pytest.raises(InseparableError):
        LinearSVM(np.inf).fit(X, rng.integers(0, 2, 400))


@pytest.mark.parametrize("seed", range(3))
def test_the_hulls_nearest_points_are_as_far_apart_as_the_margin_is_wide(seed):
    """Σ over each class of αx/Σα at C = ∞: their distance is 2/‖w‖, and w points from one to the other."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 2))
    y = np.where(X @ [1.0, 2.0] > 0.3, 1, -1)
    svm = LinearSVM(np.inf).fit(X, y)
    alpha = svm.certificate_.alpha
    positive, negative = (alpha[y == side] @ X[y == side] / alpha[y == side].sum() for side in (1, -1))
    assert np.linalg.norm(positive - negative) == pytest.approx(svm.certificate_.width, rel=1e-6)
    assert (positive - negative) * 2 / svm.certificate_.width**2 == pytest.approx(svm.coef_[0], rel=1e-5)


def test_misclassified_is_the_zero_one_loss():
    """Reported, never minimised: the rows that predict gets wrong."""
    X, y = noisy(200, 3)
    svm = LinearSVM().fit(X, y)
    assert svm.certificate_.misclassified == round(200 * (1 - svm.score(X, y)))
    margins = y * svm.decision_function(X)
    assert svm.certificate_.slack == pytest.approx(np.maximum(0, 1 - margins).sum())
    assert svm.certificate_.violations == (margins < 1 - 1e-9).sum()


def test_the_kernel_takes_the_place_of_the_inner_product():
    """The same dual on K = (1 + x·z)² is the linear SVM on that kernel's features; through Hildreth and through SMO."""
    X, y = noisy(60, 2, seed=5)
    y = np.where(np.linalg.norm(X, axis=1) > 1.1, 1.0, -1.0)
    features, K = kernels.quadratic_features(X), kernels.polynomial(2)(X, X)
    linear = LinearSVM(0.5, fit_intercept=False, tol=1e-10).fit(features, y)
    alpha = hildreth(K * np.outer(y, y), -np.ones(60), upper=0.5).alpha
    assert K @ (alpha * y) == pytest.approx(linear.decision_function(features), abs=1e-6)
    with_bias = LinearSVM(0.5, tol=1e-10).fit(features, y)
    *_, last = textbook.smo(X, y, 0.5, kernel=kernels.polynomial(2))
    assert K @ (last.alpha * y) == pytest.approx(features @ with_bias.coef_[0], abs=1e-6)
