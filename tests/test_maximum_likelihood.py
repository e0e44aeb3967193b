"""Logistic regression without a penalty."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_iris

from oracles import noisy
from widemargin import LogisticRegression, SeparableError


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_maximum_likelihood_equals_bfgs(fit_intercept):
    """Overlapping classes: w and b of a general-purpose method on the likelihood itself, with a gap of rounding."""
    X, y = noisy(200, 4, seed=2)
    Z = np.hstack([X, np.ones((200, 1))]) if fit_intercept else X

    def loss(v):
        m = y * (Z @ v)
        return np.logaddexp(0, -m).sum(), -Z.T @ (y / (1 + np.exp(m)))

    best = minimize(loss, np.zeros(Z.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    model = LogisticRegression(C=np.inf, fit_intercept=fit_intercept).fit(X, y)
    assert np.append(model.coef_[0], model.intercept_ if fit_intercept else []) == pytest.approx(best, abs=1e-6)
    assert model.certificate_.primal == pytest.approx(loss(best)[0], rel=1e-12)
    assert model.certificate_.relative_gap <= 1e-9


def test_separable_classes_have_no_maximum_likelihood():
    """The error's own hyperplane has every row on its right side, and says why the likelihood has no maximum."""
    X, y = load_iris(return_X_y=True)
    with pytest.raises(
        SeparableError, match="the likelihood rises with the length of w for ever; use a finite C"
    ) as caught:
        LogisticRegression(C=np.inf).fit(X[:100], y[:100])
    proof = pickle.loads(pickle.dumps(caught.value))
    assert proof.strict
    assert ((2 * y[:100] - 1) * (X[:100] @ proof.w + proof.b)).min() > 0


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-8])
def test_classes_that_touch_have_no_maximum_likelihood_either(tol):
    """Rows on the hyperplane itself, none on the wrong side: the likelihood still rises for ever."""
    X = np.array([[-2.0, 0.3], [-1.0, -1.0], [0.0, 1.0], [0.0, 1.0], [0.0, -2.0], [0.0, -2.0], [1.0, 0.5], [2.0, 0.1]])
    y = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    with pytest.raises(SeparableError, match="no row on its wrong side, though some lie on it") as caught:
        LogisticRegression(C=np.inf, tol=tol).fit(X, y)
    margins = (2 * y - 1) * (X @ caught.value.w + caught.value.b)
    assert not caught.value.strict
    assert margins.min() > -1e-9
    assert margins.max() > 0.1


def test_one_class_of_several_is_named():
    """One against the rest: the note says which class is separable."""
    X, y = load_iris(return_X_y=True)
    with pytest.raises(SeparableError) as caught:
        LogisticRegression(C=np.inf).fit(X, y)
    assert caught.value.__notes__ == ["This is for the class 0 against the rest."]


def test_far_outliers_on_the_right_side_do_not_look_separable():
    """A row at margin 200 has α = 0 in double precision; the linear program tells overlap from separation."""
    X, y = noisy(100, 2, seed=1)
    w = LogisticRegression(C=np.inf).fit(X, y).coef_[0]
    X, y = np.vstack([X, 200 * w / (w @ w)]), np.append(y, 1)
    assert LogisticRegression(C=np.inf).fit(X, y).certificate_.relative_gap <= 1e-6


@pytest.mark.parametrize("constant", [1.0, 0.1, 1000.1])
def test_a_constant_column_beside_the_bias_changes_nothing(constant):
    """Its weight is 0, and the rest as without it."""
    X, y = noisy(100, 3)
    plain = LogisticRegression(C=np.inf).fit(X, y)
    model = LogisticRegression(C=np.inf).fit(np.hstack([X, np.full((100, 1), constant)]), y)
    assert model.coef_[0] == pytest.approx(np.append(plain.coef_[0], 0.0), abs=1e-7)
    assert model.certificate_.relative_gap <= 1e-9


def test_one_far_row_does_not_make_overlapping_classes_separable():
    """Rounding is a matter of each row, not of the longest."""
    rng = np.random.default_rng(0)
    X = np.append(rng.standard_normal(60), 1e13)[:, None]
    y = np.append(np.arange(60) % 2, 1)
    try:
        LogisticRegression(C=np.inf).fit(X, y)
    except SeparableError as error:  # only a true separation counts
        margins = (2 * y - 1) * (X @ error.w + error.b)
        assert margins.min() >= 0
    except Warning:
        pass


def nearly_dependent(apart, seed):
    """The optimum in two orthogonal columns, that in the first alone, and what is found if they differ by little."""
    rng = np.random.default_rng(seed)
    x, v = rng.standard_normal((2, 300))
    y = np.where(v + rng.standard_normal(300) > 0, 1, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        both, one, near = (
            LogisticRegression(C=np.inf).fit(np.column_stack(columns), y).certificate_
            for columns in ([x, v], [x], [x, x + apart * v])
        )
    return both.dual, one.dual, near


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("apart", [1e-9, 1e-11])
def test_nearly_dependent_columns_are_not_proved_falsely(apart, seed):
    """The gap covers the distance from the optimum in orthogonal columns, or is infinite, which is told."""
    both, _, near = nearly_dependent(apart, seed)
    assert near.primal - both * (1 + 1e-6) <= near.gap


@pytest.mark.parametrize("seed", range(4))
def test_columns_that_differ_in_their_last_digits_may_count_as_one(seed):
    """A column that another differs from by rounding adds nothing: the gap is to one of the two optima, or infinite."""
    both, one, near = nearly_dependent(1e-13, seed)
    assert near.primal - both * (1 + 1e-6) <= near.gap or abs(near.primal - one) <= near.gap + 1e-6 * one


def test_a_category_of_one_class_only_is_separable():
    """A dummy column present in three positive rows: the likelihood rises with its weight."""
    X, y = noisy(30_000, 4)
    X = np.hstack([X, np.zeros((30_000, 1))])
    X[np.flatnonzero(y > 0)[:3], -1] = 1
    with pytest.raises(SeparableError, match="no row on its wrong side"):
        LogisticRegression(C=np.inf).fit(X, y)


def test_more_columns_than_rows_are_separable():
    """d > n: some hyperplane separates any labels of independent rows."""
    rng = np.random.default_rng(0)
    with pytest.raises(SeparableError):
        LogisticRegression(C=np.inf).fit(rng.standard_normal((20, 50)), np.arange(20) % 2)


def test_too_many_columns_are_refused():
    """The system is not built; the error names the finite C."""
    with pytest.raises(ValueError, match=r"takes 5,000 at most; use a finite C"):
        LogisticRegression(C=np.inf).fit(np.eye(6, 6000), np.arange(6) % 2)


def test_weights_and_classes_count():
    """A row of weight 2 is two rows; a row of weight 0 may lie anywhere."""
    X, y = noisy(80, 2)
    weights = np.arange(80) % 3
    index = np.repeat(np.arange(80), weights)
    weighted = LogisticRegression(C=np.inf).fit(X, y, weights)
    assert weighted.coef_ == pytest.approx(LogisticRegression(C=np.inf).fit(X[index], y[index]).coef_, abs=1e-7)
