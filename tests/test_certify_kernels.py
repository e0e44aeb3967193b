"""certify of fitted estimators: formulas in NumPy, a cone solver and scikit-learn's own numbers as oracles."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression as TheirLogisticRegression
from sklearn.linear_model import Perceptron as TheirPerceptron
from sklearn.linear_model import RidgeClassifier, SGDClassifier
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC

from oracles import ORACLE, ROUNDING, make_problem, minimum, noisy
from widemargin import IndefiniteKernelWarning, KernelModel, KernelSVM, LinearModel, LinearSVM, LogisticRegression
from widemargin.certificate import Certificates
from widemargin.estimators import certify

#: Kernel values are summed in another order here.
SUMS = 1e-9


def rows(classes, seed=0):
    """Rows that overlap, with labels of text."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((90, 5))
    scores = X @ rng.standard_normal((5, classes)) + 1.5 * rng.standard_normal((90, classes))
    return X, np.array(["a", "b", "c"])[scores.argmax(axis=1)]


def matrix(X, kernel):
    """The kernel matrix, by scikit-learn."""
    if callable(kernel):
        return kernel(X, X)
    if kernel == "precomputed":
        return X
    parameters = {"rbf": {"gamma": 0.2}, "poly": {"gamma": 0.2, "degree": 2, "coef0": 0.5}}.get(kernel, {})
    return pairwise_kernels(X, metric=kernel, **parameters)


def made(kind, kernel, **more):
    """An estimator with the parameters of `matrix`."""
    return kind(kernel=kernel, gamma=0.2, degree=2, coef0=0.5, **more)


def by_hand(clf, K, y, c):
    """Primal and dual of every pair of classes, from the formulas and the estimator's own α and b."""
    classes, found = clf.classes_, []
    table = np.zeros((len(classes) - 1, len(y)))
    table[:, clf.support_] = clf.dual_coef_
    for k, (i, j) in enumerate(combinations(range(len(classes)), 2)):
        index = np.flatnonzero((y == classes[i]) | (y == classes[j]))
        first = y[index] == classes[i]
        coef = np.where(first, table[j - 1, index], table[i, index])
        sign = np.where(first, 1.0, -1.0) * (-1 if len(classes) == 2 else 1)
        f = K[np.ix_(index, index)] @ coef
        square = coef @ f
        slack = np.maximum(0.0, 1 - sign * (f + clf.intercept_[k]))
        found.append((square / 2 + c[index] @ slack, np.abs(coef).sum() - square / 2))
    return np.array(found)


def inner(A, B):
    """A kernel that is a function."""
    return A @ B.T


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "kernel", ["linear", "poly", "rbf", "precomputed", inner], ids=["linear", "poly", "rbf", "precomputed", "function"]
)
def test_svc_by_the_formulas(kernel, classes, weighted):
    """½‖f‖² + Σ cᵢξᵢ and Σα − ½‖f‖² of SVC's own numbers, in NumPy, with its class weights and the sample weights."""
    X, y = rows(classes)
    if kernel == "precomputed":
        X = X @ X.T
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    clf = made(SVC, kernel, C=1.5, class_weight="balanced" if weighted else None, tol=1e-6).fit(X, y, weights)
    proof = certify(clf, X, y, weights)
    c = 1.5 * np.ones(len(y)) if weights is None else 1.5 * weights
    c *= np.array(clf.class_weight_)[np.searchsorted(clf.classes_, y)]
    expected = by_hand(clf, matrix(X, kernel), y, c)
    each = proof.each if classes == 3 else [proof]
    assert isinstance(proof, Certificates) == (classes == 3)
    assert np.array([one.primal for one in each]) == pytest.approx(expected[:, 0], rel=SUMS)
    assert np.array([one.dual for one in each]) == pytest.approx(expected[:, 1], rel=SUMS)
    assert proof.relative_gap < 1e-4


@pytest.mark.parametrize("sparse", [False, True])
def test_the_gap_is_never_below_the_truth(sparse):
    """SVC's objective less the minimum by a cone solver is at most the gap, and the gap shrinks with its tol."""
    X, y = noisy(80, 4)
    true, gaps = minimum(make_problem(X, y, 0.5)), []
    for tol in (1.0, 1e-1, 1e-3, 1e-7):
        data = sp.csr_matrix(X) if sparse else X
        proof = certify(SVC(C=0.5, kernel="linear", tol=tol).fit(data, y), data, y)
        assert proof.primal - true <= proof.gap + ORACLE * true
        assert proof.dual <= true * (1 + ORACLE)
        gaps.append(proof.relative_gap)
    assert gaps[0] > 1e-2 > 1e-6 > gaps[-1]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_kernel_svm_as_its_own_certificate(classes, weighted):
    """The same numbers as certificate_, which training computed; rows of weight 0 do not count."""
    X, y = rows(classes)
    weights = np.random.default_rng(1).integers(0, 3, len(y)) if weighted else None
    clf = KernelSVM(2.0, class_weight="balanced" if weighted else None, tol=1e-6).fit(X, y, weights)
    one, other = certify(clf, X, y, weights), clf.certificate_
    for mine, its in zip(getattr(one, "each", [one]), getattr(other, "each", [other]), strict=True):
        assert (mine.primal, mine.dual) == pytest.approx((its.primal, its.dual), rel=ROUNDING)
        assert (mine.rows, len(mine.support), mine.misclassified) == (its.rows, len(its.support), its.misclassified)
    hard = KernelSVM(np.inf, gamma=2.0).fit(X, y)
    assert certify(hard, X, y).relative_gap == pytest.approx(hard.certificate_.relative_gap, abs=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("classes", [2, 3])
def test_sklearnex(classes, kernel):
    """The formulas in NumPy again; of two classes its support vectors are not grouped by class."""
    svm = pytest.importorskip("sklearnex.svm")
    X, y = rows(classes)
    clf = made(svm.SVC, kernel, C=1.5).fit(X, y)
    proof = certify(clf, X, y)
    expected = by_hand(clf, matrix(X, kernel), y, np.full(len(y), 1.5))
    assert np.array([one.primal for one in getattr(proof, "each", [proof])]) == pytest.approx(expected[:, 0], rel=1e-6)
    model = KernelModel.from_estimator(clf)
    assert certify(model, X, y).relative_gap == pytest.approx(proof.relative_gap, rel=1e-6)


def test_svc_and_rows_of_weight_0():
    """SVC counts only rows of positive weight in support_; they are found by their values, and the formulas hold."""
    X, y = rows(2)
    weights = np.where(np.arange(90) % 7 == 0, 0.0, 1.0)
    clf = made(SVC, "rbf", tol=1e-6).fit(X, y, weights)
    live = weights > 0
    assert not np.array_equal(X[clf.support_], clf.support_vectors_)
    expected = by_hand(clf, matrix(X[live], "rbf"), y[live], np.ones(live.sum()))
    assert certify(clf, X, y, weights).primal == pytest.approx(expected[0, 0], rel=SUMS)


@pytest.mark.parametrize("form", ["safetensors", "libsvm"])
@pytest.mark.parametrize("classes", [2, 3])
def test_models_find_their_rows(tmp_path, classes, form):
    """A file's proof is that of the estimator, its rows in any order, equal ones among them."""
    X, y = rows(classes)
    X, y = np.vstack([X, X[:20]]), np.searchsorted(["a", "b", "c"], np.append(y, y[:20]))
    clf = made(SVC, "rbf", C=1.5, class_weight={0: 2.0}).fit(X, y)
    expected = certify(clf, X, y)
    KernelModel.from_estimator(clf).save(tmp_path / "m", format=form)
    model = KernelModel.load(tmp_path / "m")
    order = np.random.default_rng(0).permutation(len(y))
    if form == "libsvm":
        with pytest.raises(ValueError, match="the model says no C"):
            certify(model, X, y)
        with pytest.raises(ValueError, match=r"the model: a support vector's α is 3, outside of 0 ≤ α ≤ 1\.5"):
            certify(model, X, y, C=1.5)
        weights = np.where(y == 0, 2.0, 1.0)
        assert certify(model, X, y, weights, C=1.5).gap == pytest.approx(expected.gap, rel=1e-6)
    else:
        assert certify(model, X[order], y[order]).gap == pytest.approx(expected.gap, rel=1e-6)


@pytest.mark.filterwarnings("ignore::widemargin.IndefiniteKernelWarning")
@pytest.mark.parametrize("kind", [SVC, KernelSVM])
def test_an_indefinite_kernel_proves_nothing(kind):
    """Of tanh with negative curvature the gap is infinite, with a warning that shows the curvature."""
    X, y = rows(2)
    clf = kind(kernel="sigmoid", gamma=2.0).fit(X, y)
    with pytest.warns(IndefiniteKernelWarning, match="not positive semidefinite: vᵀKv = -"):
        assert certify(clf, X, y).relative_gap == np.inf


LINEAR = {
    "LinearSVM": (LinearSVM(0.5, class_weight="balanced"), {"C": 0.5, "class_weight": "balanced"}),
    "no bias": (LinearSVM(0.5, fit_intercept=False), {"C": 0.5, "fit_intercept": False}),
    "LogisticRegression": (LogisticRegression(0.5), {"C": 0.5, "loss": "logistic"}),
    "LinearSVC": (LinearSVC(loss="hinge", C=0.5), {"C": 0.5}),
    "squared hinge": (
        LinearSVC(C=0.5, fit_intercept=False),
        {"C": 0.5, "loss": "squared_hinge", "fit_intercept": False},
    ),
    "their LogisticRegression": (TheirLogisticRegression(C=0.5), {"C": 0.5, "loss": "logistic"}),
    "SGDClassifier": (SGDClassifier(alpha=0.05, random_state=0), {"C": 1 / (0.05 * 100)}),
    "SGDClassifier, log loss": (SGDClassifier(loss="log_loss", alpha=0.1), {"C": 0.1, "loss": "logistic"}),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_estimators_by_their_weights(name):
    """Equals certify of the weights with the C, loss, bias and class weights that stand here."""
    clf, parameters = LINEAR[name]
    X, y = noisy(100, 3)
    clf.fit(X, y)
    one, other = certify(clf, X, y), certify(X, y, clf.coef_, clf.intercept_, **parameters)
    assert (one.primal, one.dual) == (other.primal, other.dual)
    if hasattr(clf, "certificate_"):
        again = certify(LinearModel.from_estimator(clf), X, y)
        assert (again.primal, again.dual) == (other.primal, other.dual)
    assert certify(clf, X, y, np.full(100, 2.0)).primal > one.primal
    assert certify(estimator=clf, X=X, y=y, C=3.0).primal > one.primal


def test_several_classes_of_linear_estimators():
    """A class against the rest, as certify of the weights."""
    X, y = rows(3)
    clf = LinearSVC(C=0.5, loss="hinge").fit(X, y)
    assert certify(clf, X, y).gap == certify(X, y, clf.coef_, clf.intercept_, C=0.5).gap


X3, Y3 = rows(3)
FITTED = SVC(C=2.0).fit(X3, Y3)
GIVEN = SVC(kernel="precomputed").fit(X3 @ X3.T, Y3)
SWAPPED = np.where(Y3 == "a", "b", np.where(Y3 == "b", "a", Y3))
REFUSED = {
    "rows in another order": ((FITTED, X3[::-1], Y3[::-1]), r"SVC: support vector \d+ is row \d+, of class \w, and y"),
    "labels in another order": (
        (FITTED, X3, SWAPPED),
        "SVC: support vector 1 is row .*; give the rows of its training",
    ),
    "rows that are missing": ((FITTED, X3[:-1], Y3[:-1]), "X has 89 rows, SVC was fitted to 90; give the rows"),
    "columns that are missing": ((FITTED, X3[:, :4], Y3), "X has 4 columns, SVC was fitted to 5; give the rows"),
    "other rows": (
        (FITTED, X3 + 1e-6, Y3),
        r"SVC: support vector 1 is not row \d+ of X; give the rows of its training",
    ),
    "other classes": (
        (FITTED, X3, np.where(Y3 == "a", "b", Y3)),
        "y has the classes b, c, and SVC knows a, b, c; give",
    ),
    "other weights": (
        (FITTED, X3, Y3, np.full(90, 0.1)),
        r"SVC: a support vector's α is 2, outside of 0 ≤ α ≤ 0\.2, C",
    ),
    "a weight of 0": (
        (FITTED, X3, Y3, np.where(np.arange(90) == FITTED.support_[0], 0, 1)),
        "weight 0; give the weights",
    ),
    "no kernel matrix": ((GIVEN, X3, Y3), r"X has shape \(90, 5\); a precomputed kernel matrix is square"),
    "a matrix in another order": ((GIVEN, (X3 @ X3.T)[::-1, ::-1], Y3[::-1]), "SVC: support vector .*; give the rows"),
    "not fitted": ((SVC(), X3, Y3), "SVC has no classes_; give a fitted classifier"),
    "a regression": ((SVR().fit(X3, X3[:, 0]), X3, Y3), "SVR has no classes_; give a fitted classifier"),
    "another problem": (
        (NuSVC(nu=0.1).fit(X3, Y3), X3, Y3),
        "NuSVC has nu in the place of C and solves another problem",
    ),
    "a pipeline": ((make_pipeline(SVC()).fit(X3, Y3), X3, Y3), "Pipeline has no coef_; .* the last step of a pipeline"),
    "the multinomial loss": (
        (TheirLogisticRegression().fit(X3, Y3), X3, Y3),
        "has the multinomial loss; certify hinge",
    ),
    "another loss": (
        (SGDClassifier(loss="modified_huber").fit(X3, Y3), X3, Y3),
        "SGDClassifier has a loss or a penalty that is not ours; certify hinge, logistic or squared losses",
    ),
    "another penalty": (
        (SGDClassifier(penalty="l1").fit(X3, Y3), X3, Y3),
        "says no C in front of .*; say which with C=",
    ),
    "no penalty": ((TheirPerceptron().fit(X3, Y3), X3, Y3), "Perceptron says no C in front of its loss"),
    "alpha of another loss": (
        (RidgeClassifier().fit(X3, Y3), X3, Y3),
        "RidgeClassifier says no C .*; say which with C=",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_judged(name):
    """Each error says what does not fit, where, and what to give in its place."""
    arguments, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        certify(*arguments)


def test_the_first_form_has_no_parameters_of_the_second():
    """An estimator has its own loss: naming another is an error, not ignored."""
    with pytest.raises(TypeError, match="loss"):
        certify(FITTED, X3, Y3, loss="hinge")
