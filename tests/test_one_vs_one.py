"""Several classes one-vs-one: the layout of SVC, and each pair as the problem of its rows alone."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.svm import SVC

from widemargin import KernelSVM, kernel_training
from widemargin.data import Rows
from widemargin.kernel_certificate import certify
from widemargin.kernel_problem import KernelProblem
from widemargin.kernels import Kernel, PointsGram
from widemargin.one_vs_one import Pairs

KERNEL = Kernel("rbf", gamma=0.5)


def blobs(classes=4, n=120):
    """Rows of overlapping classes in no order, and their labels as text."""
    X, y = make_blobs(n, centers=classes, cluster_std=2.0, random_state=3)
    return X, np.array([f"class {k}" for k in "cadb"])[y]


def trained(X, y, c=None, tol=1e-9):
    """Pairs, their problems and fits."""
    pairs = Pairs.of(y, np.unique(y))
    gram = PointsGram(KERNEL, Rows(X[pairs.order]))
    problems = pairs.problems(gram, np.ones(len(y)) if c is None else c)
    return pairs, problems, kernel_training.fit(problems, tol=tol)


@pytest.mark.parametrize("classes", [3, 4])
def test_each_pair_is_the_problem_of_its_rows(classes):
    """Rows, labels and costs of every pair, against those picked from the data by their labels."""
    X, y = blobs(classes)
    c = np.random.default_rng(0).random(len(y))
    pairs = Pairs.of(y, np.unique(y))
    problems = pairs.problems(PointsGram(KERNEL, Rows(X[pairs.order])), c)
    names = [name.split(" vs ") for name in pairs.names]
    assert len(problems) == len(names) == classes * (classes - 1) / 2
    for problem, (first, second) in zip(problems, names, strict=True):
        rows = pairs.order[problem.index]
        assert set(rows) == set(np.flatnonzero((y == first) | (y == second)))
        assert np.array_equal(problem.y, np.where(y[rows] == first, 1.0, -1.0))
        assert np.array_equal(problem.c, c[rows])


def test_two_classes_are_one_problem():
    """All rows as they are, the second class the positive one."""
    X, y = blobs(2)
    pairs = Pairs.of(y, np.unique(y))
    (problem,) = pairs.problems(PointsGram(KERNEL, Rows(X)), np.ones(len(y)))
    assert pairs.names == ("class a vs class c",)
    assert problem.segments == ((0, len(y)),)
    assert np.array_equal(pairs.order, np.arange(len(y)))
    assert np.array_equal(problem.y, np.where(y == "class c", 1.0, -1.0))


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_the_table_of_coefficients_is_that_of_svc(classes):
    """SVC(tol=1e-10): the same support vectors, grouped by class, the same layout, and coefficients to 1e-5."""
    X, y = blobs(classes)
    pairs, _, fits = trained(X, y)
    rows, table, counts = pairs.support(fits)
    theirs = SVC(gamma=KERNEL.gamma, tol=1e-10).fit(X, y)
    assert np.array_equal(rows, theirs.support_)
    assert np.array_equal(counts, theirs.n_support_)
    assert table.shape == (classes - 1, len(rows))
    assert table == pytest.approx(theirs.dual_coef_, abs=1e-5)
    assert [fit.proved.b for fit in fits] == pytest.approx(theirs.intercept_, abs=1e-5)


def test_decision_values_are_those_of_svc():
    """SVC(tol=1e-10), of both shapes, on new rows; with weights, rows of weight 0 being left out."""
    X, y = blobs()
    weights = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    Z = np.random.default_rng(2).uniform(-12, 12, (300, 2))
    for shape in ("ovr", "ovo"):
        options = {"C": 2.0, "gamma": 0.5, "decision_function_shape": shape, "class_weight": {"class a": 3.0}}
        ours = KernelSVM(tol=1e-9, **options).fit(X, y, weights)
        theirs = SVC(tol=1e-10, **options).fit(X, y, weights)
        assert ours.decision_function(Z) == pytest.approx(theirs.decision_function(Z), abs=1e-4)
        assert np.array_equal(ours.predict(Z), theirs.predict(Z))


def test_each_pair_is_proved_by_itself():
    """The certificate of every pair is that of its rows on a kernel matrix of their own; the worst counts."""
    X, y = blobs()
    pairs, problems, fits = trained(X, y, tol=1e-6)
    found = pairs.certificate(fits)
    assert found.classes == pairs.names
    assert found.relative_gap == max(one.relative_gap for one in found) <= 1e-6
    for problem, fit in zip(problems, fits, strict=True):
        rows = pairs.order[problem.index]
        alone = KernelProblem.of(PointsGram(KERNEL, Rows(X[rows])), ((0, len(rows)),), problem.y, problem.c)
        certificate = certify(alone, fit.alpha).certificate
        assert fit.certificate.primal == pytest.approx(certificate.primal, rel=1e-12)
        assert fit.certificate.dual == pytest.approx(certificate.dual, rel=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_order_of_rows_does_not_matter(classes):
    """Rows in another order: the same decision function within what the gaps allow."""
    X, y = blobs(classes)
    order = np.random.default_rng(0).permutation(len(y))
    Z = np.random.default_rng(2).uniform(-12, 12, (200, 2))
    one = KernelSVM(gamma=0.5, tol=1e-9).fit(X, y).decision_function(Z)
    other = KernelSVM(gamma=0.5, tol=1e-9).fit(X[order], y[order]).decision_function(Z)
    assert one == pytest.approx(other, abs=1e-6)


def test_the_model_is_what_the_certificate_is_for():
    """A hard margin whose α differ by many powers of ten: with the small ones its smallest margin is 1, too."""
    rng = np.random.default_rng(2)
    X, y = 1e-7 * rng.standard_normal((150, 1)), np.where(rng.random(150) < 0.5, 1, -1)
    model = KernelSVM(np.inf, kernel="laplacian", gamma=1e4, tol=1e-2).fit(X, y)
    small = abs(model.dual_coef_[0]).min() / abs(model.dual_coef_[0]).max()
    assert 0 < small < 1e-8
    assert (y * model.decision_function(X)).min() == pytest.approx(1, abs=1e-6)
