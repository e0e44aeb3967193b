"""The least squares solver and classifier, against NumPy's lstsq, closed forms and RidgeClassifier."""

import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier

from oracles import make_problem, noisy, text_like
from test_rows import storages
from widemargin import LeastSquaresClassifier, LinearSVM, LogisticRegression
from widemargin.data import Rows
from widemargin.solvers import least_squares as solver
from widemargin.solvers.least_squares import solve
from widemargin.training import fit

module = sys.modules[solver.__module__]


def reference(X, y, alpha, fit_intercept):
    """w and b by NumPy's lstsq on centred columns, with rows √alpha·I for the penalty."""
    X = np.asarray(X, dtype=float)
    mean, offset = (X.mean(axis=0), y.mean()) if fit_intercept else (0.0, 0.0)
    A = np.vstack([X - mean, np.sqrt(alpha) * np.eye(X.shape[1])])
    w = np.linalg.lstsq(A, np.append(y - offset, np.zeros(X.shape[1])), rcond=None)[0]
    return w, offset - np.sum(mean * w)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("shape", [(80, 5), (12, 40), (20, 20)])
def test_least_squares_equals_lstsq(shape, alpha, fit_intercept):
    """Tall, wide and square, with and without a penalty: w and b of lstsq, the shortest where there are many."""
    X, y = noisy(*shape, seed=1)
    X += 3
    model = LeastSquaresClassifier(alpha, fit_intercept=fit_intercept).fit(X, y)
    w, b = reference(X, y, alpha, fit_intercept)
    assert model.coef_[0] == pytest.approx(w, rel=1e-8, abs=1e-9)
    assert model.intercept_[0] == pytest.approx(b, rel=1e-8, abs=1e-9)
    assert model.certificate_.gap <= 1e-9 * model.certificate_.rows * max(1, 1 / (2 * alpha) if alpha else 1)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_least_squares_in_every_storage(alpha):
    """The same w whatever X is made of."""
    X, y = noisy(60, 5)
    for stored in storages(X):
        w, _ = reference(stored.toarray() if sp.issparse(stored) else stored, y, alpha, fit_intercept=True)
        assert LeastSquaresClassifier(alpha).fit(stored, y).coef_[0] == pytest.approx(w, abs=1e-10)


@pytest.mark.parametrize("condition", [1e2, 1e5, 1e7, 1e9, 1e12])
def test_ill_conditioned_least_squares(condition):
    """Columns of every size, nearly dependent: the loss is ‖y − UUᵀy‖², or as far from it as the certificate says."""
    rng = np.random.default_rng(3)
    left, right = np.linalg.qr(rng.standard_normal((200, 8)))[0], np.linalg.qr(rng.standard_normal((8, 8)))[0]
    X = left * np.geomspace(1, 1 / condition, 8) @ right
    y = np.where(left @ rng.standard_normal(8) > 0, 1.0, -1.0)
    least = 200 - np.sum((left.T @ y) ** 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if condition < 1e10 else "ignore")  # w = 1e12 leaves four digits of the scores
        model = LeastSquaresClassifier(fit_intercept=False).fit(X, y)
    w = model.coef_[0]
    loss = np.sum((X @ w - y) ** 2)
    rounding = np.finfo(float).eps * 8 * np.abs(X) @ np.abs(w)  # of each score, however it is summed
    assert abs(loss - model.certificate_.primal) <= 2 * np.sum(2 * np.abs(X @ w - y) * rounding + rounding**2)
    assert loss - least <= model.certificate_.gap + 1e-12 * least
    if condition < 1e8:
        assert loss == pytest.approx(least, rel=1e-10)


@pytest.mark.parametrize("apart", [1e-6, 1e-9, 1e-11, 1e-13])
def test_nearly_dependent_columns_are_not_proved_falsely(apart):
    """Two columns that differ by a direction with half of the answer: the gap covers the true distance."""
    rng = np.random.default_rng(0)
    x, v = rng.standard_normal((2, 200))
    X, y = np.column_stack([x, x + apart * v]), np.sign(v + 0.5 * rng.standard_normal(200))
    basis = np.linalg.qr(np.column_stack([x, v, np.ones(200)]))[0]
    least = 200 - np.sum((basis.T @ y) ** 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certificate = LeastSquaresClassifier().fit(X, y).certificate_
    assert certificate.primal - least * (1 + 1e-6) <= certificate.gap
    if apart > 1e-8:
        assert certificate.primal == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize("constant", [1.0, 0.1, 1000.1])
def test_a_constant_column_beside_the_bias_gets_no_weight(constant, monkeypatch):
    """In closed form and by conjugate gradients, dense and sparse: the answer without that column."""
    X, y = text_like(1000, d=50, per_row=10)
    plain = LeastSquaresClassifier().fit(X, y)
    more = sp.csr_array(sp.hstack([X, np.full((1000, 1), constant)]))
    for largest in (3000, 10):
        monkeypatch.setattr(module, "LARGEST_SYSTEM", largest)
        for stored in (more, more.toarray()):
            model = LeastSquaresClassifier().fit(stored, y)
            assert model.coef_[0, -1] == 0
            assert model.coef_[0, :-1] == pytest.approx(plain.coef_[0], abs=1e-7)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rank_deficient_least_squares_is_the_shortest(fit_intercept):
    """Equal columns share their weight, empty ones get none, a constant one competes with the bias in vain."""
    X, y = noisy(50, 3)
    X = np.hstack([X, X[:, :1], np.zeros((50, 1)), np.full((50, 1), 2.0)])
    model = LeastSquaresClassifier(fit_intercept=fit_intercept).fit(X, y)
    w, _ = reference(X, y, 0.0, fit_intercept)
    assert model.coef_[0] == pytest.approx(w, abs=1e-9)
    assert model.coef_[0, 0] == pytest.approx(model.coef_[0, 3])
    assert model.coef_[0, 4] == 0


def test_least_squares_weights_are_repeated_rows():
    """A whole-number weight is the row so many times, 0 is no row."""
    X, y = noisy(60, 4)
    times = np.arange(60) % 3
    weighted = LeastSquaresClassifier(0.3).fit(X, y, times)
    index = np.repeat(np.arange(60), times)
    assert weighted.coef_ == pytest.approx(LeastSquaresClassifier(0.3).fit(X[index], y[index]).coef_, abs=1e-10)


@pytest.mark.parametrize("alpha", [0.1, 10.0])
def test_least_squares_equals_ridge_classifier(alpha):
    """scikit-learn's RidgeClassifier on ten classes, dense and sparse."""
    X, y = load_digits(return_X_y=True)
    theirs = RidgeClassifier(alpha).fit(X, y)
    for stored in (X, sp.csr_array(X)):
        ours = LeastSquaresClassifier(alpha).fit(stored, y)
        assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-8)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-8)
        assert ours.certificate_.relative_gap <= 1e-9
        assert np.array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_conjugate_gradients_reach_the_closed_form(alpha, fit_intercept, monkeypatch):
    """Too large to factor: the same w as by factoring, dense and sparse."""
    X, y = text_like(3000, d=200, per_row=20)
    closed = LeastSquaresClassifier(alpha, fit_intercept=fit_intercept).fit(X, y)
    monkeypatch.setattr(module, "LARGEST_SYSTEM", 10)
    for stored in (X, X.toarray()):
        steps = LeastSquaresClassifier(alpha, fit_intercept=fit_intercept, tol=1e-11).fit(stored, y)
        assert steps.n_iter_ > 1
        assert steps.coef_ == pytest.approx(closed.coef_, abs=1e-6)
        assert steps.certificate_.relative_gap <= 1e-9


def test_least_squares_as_a_solver_of_linear_svm():
    """LinearSVM(loss="squared", solver="least_squares") is the ridge with alpha = 1/(2C), and the interior point's."""
    X, y = noisy(100, 5)
    ours = LinearSVM(0.25, loss="squared", solver="least_squares").fit(X, y)
    assert ours.coef_ == pytest.approx(LeastSquaresClassifier(2.0).fit(X, y).coef_, abs=1e-12)
    assert ours.coef_ == pytest.approx(
        LinearSVM(0.25, loss="squared", solver="interior_point").fit(X, y).coef_, abs=1e-9
    )


def test_linear_svm_without_a_penalty_is_plain_least_squares():
    """C = ∞ leaves the penalty out of a loss that has no hard margin."""
    X, y = noisy(100, 5)
    ours = LinearSVM(np.inf, loss="squared").fit(X, y)
    assert ours.coef_ == pytest.approx(LeastSquaresClassifier().fit(X, y).coef_, abs=1e-12)
    same = LinearSVM(np.inf, loss="squared", solver="least_squares").fit(X, y)
    assert same.coef_ == pytest.approx(ours.coef_, abs=1e-12)
    with pytest.raises(ValueError, match="dual_cd takes no C=inf with the squared loss; use 'auto', 'least_squares'"):
        LinearSVM(np.inf, loss="squared", solver="dual_cd").fit(X, y)


def test_several_targets_at_once_are_one_at_a_time():
    """One factorisation serves all classes."""
    X, y = noisy(80, 6)
    targets = np.column_stack([y, np.where(X[:, 0] > 0, 1.0, -1.0)])
    both = solve(Rows(X), targets, np.ones(80), penalty=1.0, fit_intercept=True)
    for k in range(2):
        one = solve(Rows(X), targets[:, [k]], np.ones(80), penalty=1.0, fit_intercept=True)
        assert both.w[k] == pytest.approx(one.w[0], abs=1e-13)


def test_least_squares_minds_outliers_and_logistic_regression_does_not():
    """004's picture: points far on the right side turn least squares around, and barely move logistic regression."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal((-1, 1), 0.4, (60, 2)), rng.normal((1, -1), 0.4, (60, 2))])
    y = np.repeat([0, 1], 60)
    far = np.vstack([X, rng.normal((9, -2), 0.4, (20, 2))])
    labels = np.append(y, np.ones(20, dtype=int))
    turns = []
    for Estimator in (LeastSquaresClassifier, LogisticRegression):
        before, after = Estimator().fit(X, y), Estimator().fit(far, labels)
        angle = [np.arctan2(*model.coef_[0]) for model in (before, after)]
        turns.append(abs(angle[1] - angle[0]))
        missed = 1 - after.score(X, y)
    assert turns[0] > 5 * turns[1]
    assert missed == 0


def test_the_certificate_of_plain_least_squares_is_a_lower_bound():
    """For any w the loss is at least the dual value that the certificate proves."""
    X, y = noisy(60, 4)
    problem = make_problem(X, y, 1.0, "squared")
    plain = fit(type(problem)(problem.rows, problem.y, problem.c, problem.loss, True, penalised=False))
    w, b = reference(X, y, 0.0, fit_intercept=True)
    least = np.sum((X @ w + b - y) ** 2)
    assert plain.certificate.dual <= least * (1 + 1e-12)
    assert plain.certificate.primal == pytest.approx(least, rel=1e-12)
    assert plain.certificate.gap <= 1e-9


@pytest.mark.parametrize("alpha", [0.0, 1e-20, 1e-12, 1.0])
def test_empty_columns_weigh_nothing(alpha):
    """Exactly 0, which is best for them, though other columns are nearly dependent."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(40)
    X = np.column_stack([x, np.zeros(40), x * (1 + 1e-15), rng.standard_normal(40), np.zeros(40)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LeastSquaresClassifier(alpha=alpha).fit(X, np.sign(x + rng.standard_normal(40)))
    assert model.coef_[0, [1, 4]].tolist() == [0.0, 0.0]


def test_a_column_of_one_entry_is_proved():
    """The α of its only row is 0 up to rounding, beside which that rounding is not small."""
    X, y = load_digits(return_X_y=True)
    assert (np.count_nonzero(X, axis=0) == 1).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LeastSquaresClassifier().fit(X, y).certificate_.relative_gap <= 1e-9
