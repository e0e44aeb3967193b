"""Every estimator: scikit-learn's own checks, every parameter, every kind of bad input, memory and imports."""

import inspect
import os
import pickle
import re
import subprocess
import sys
import warnings
from fractions import Fraction
from operator import mul

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression as TheirLogisticRegression
from sklearn.linear_model import SGDClassifier
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import has_fit_parameter

import widemargin
from oracles import make_problem, minimum, noisy, text_like
from widemargin import (
    MIRA,
    KernelSVM,
    LeastSquaresClassifier,
    LinearSVM,
    LogisticRegression,
    Perceptron,
    _core,
    _cpu,
    certify,
)
from widemargin.estimators.linear_classifier import LinearClassifier
from widemargin.plots.demo import clouds

ESTIMATORS = [
    value for value in vars(widemargin.estimators).values() if inspect.isclass(value) and hasattr(value, "fit")
]
every_estimator = pytest.mark.parametrize("Estimator", ESTIMATORS)
every_certified = pytest.mark.parametrize("Estimator", [LinearSVM, LogisticRegression])
every_weighted = pytest.mark.parametrize("Estimator", [LinearSVM, LogisticRegression, LeastSquaresClassifier])
#: The perceptron and MIRA warn that they did not separate the classes; most tests do not ask them to.
overlap_is_no_news = pytest.mark.filterwarnings(
    "ignore:the classes are not separated:sklearn.exceptions.ConvergenceWarning"
)
every_online = pytest.mark.parametrize("Estimator", [Perceptron, MIRA])


def answer(model, X):
    """The weights, or the scores of these rows where there are no weights."""
    return model.coef_ if hasattr(model, "coef_") else model.decision_function(X)


def test_all_estimators_are_found():
    """The parametrised tests see each public estimator; all but the kernel machine have weights."""
    linear = {LinearSVM, LogisticRegression, LeastSquaresClassifier, Perceptron, MIRA}
    assert {*linear, KernelSVM} == set(ESTIMATORS)
    assert {Estimator for Estimator in ESTIMATORS if issubclass(Estimator, LinearClassifier)} == linear


@every_estimator
def test_scikit_learns_checks(Estimator):
    """check_estimator: nothing failed or expected to fail; where rows have weights, both checks of their equivalence to
    repeated rows passed (the online ones take no weights: an order of rows has none).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(Estimator(), on_fail=None)
    assert [r["check_name"] for r in results if r["status"] in ("failed", "xfail")] == []
    passed = {r["check_name"] for r in results if r["status"] == "passed"}
    if has_fit_parameter(Estimator, "sample_weight"):
        assert {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")} <= passed


CHANGES = {
    "C": 0.01,
    "aggressiveness": 0.5,
    "alpha": 3.0,
    "average": True,
    "batch_size": 7,
    "break_ties": True,
    "class_weight": "balanced",
    "coef0": 1.0,
    "decay": 0.5,
    "decision_function_shape": "ovo",
    "degree": 2,
    "fit_intercept": False,
    "gamma": 2.0,
    "kernel": "laplacian",
    "landmarks": "leverage",
    "learning_rate": 0.3,
    "loss": "squared_hinge",
    "max_iter": 1,
    "n_components": 30,
    "patience": 1,
    "random_state": 7,
    "shuffle": False,
    "solver": "dual_cd",
    "tol": 1e-9,
    "warm_start": True,
}
#: What the change is measured against, where that is not the default.
BEFORE = {
    **{(Estimator, name): {"solver": "dual_cd"} for Estimator in (LinearSVM, LogisticRegression) for name in CHANGES},
    **{(Estimator, "solver"): {"solver": "interior_point"} for Estimator in (LinearSVM, LogisticRegression)},
    (Perceptron, "learning_rate"): {"decay": 0.5},
    (KernelSVM, "tol"): {"solver": "smo"},
    (KernelSVM, "solver"): {"solver": "smo", "tol": 9e-4},
    (KernelSVM, "degree"): {"kernel": "poly"},
    (KernelSVM, "coef0"): {"kernel": "poly"},
    (KernelSVM, "n_components"): {"solver": "nystroem"},
    (KernelSVM, "landmarks"): {"solver": "nystroem"},
}
#: What the parameter is changed to, where one value does not suit all estimators.
AFTER = {(KernelSVM, "solver"): "auto"}
#: Parameters that act on time and on the terminal; those that act where there is no closed form; those that act on more
#: classes or rows than here, in tests/test_kernel_svm.py.
SILENT = {"n_jobs", "verbose", "cache_size"}
ELSEWHERE = {
    LeastSquaresClassifier: {"tol", "max_iter"},
    KernelSVM: {"decision_function_shape", "break_ties", "random_state"},
}


@every_estimator
def test_every_parameter_acts(Estimator):
    """Another value of each parameter gives another answer, or fewer iterations where that is its meaning."""
    X, y = noisy(400, 6, seed=1, noise=0.3)
    y[:80] = 1
    for name in set(Estimator().get_params()) - SILENT - ELSEWHERE.get(Estimator, set()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            before = Estimator(**BEFORE.get((Estimator, name), {})).fit(X, y)
            after = clone(before).set_params(**{name: AFTER.get((Estimator, name), CHANGES[name])}).fit(X, y)
            if name == "warm_start":
                assert after.fit(X, y).n_iter_ == 0
                continue
        if name == "learning_rate":  # ηₜ ∝ rate only scales w, and shows in the scale
            assert np.linalg.norm(after.coef_) == pytest.approx(0.3 * np.linalg.norm(before.coef_))
        assert not np.array_equal(answer(before, X), answer(after, X)), name


def test_large_least_squares(monkeypatch):
    """Where there is no closed form, a smaller tol is a smaller gap, and too small a max_iter warns."""
    from widemargin.solvers import least_squares

    monkeypatch.setattr(sys.modules[least_squares.__module__], "LARGEST_SYSTEM", 10)
    X, y = text_like(2000)
    loose, tight = (LeastSquaresClassifier(1.0, tol=tol).fit(X, y) for tol in (1e-2, 1e-8))
    assert tight.certificate_.relative_gap <= 1e-8 < loose.certificate_.relative_gap <= 1e-2
    assert tight.n_iter_ > loose.n_iter_
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        assert LeastSquaresClassifier(1.0, max_iter=2).fit(X, y).n_iter_ == 2


@every_certified
def test_verbose_shows_the_gap_falling(Estimator, capsys):
    """verbose=2 prints a line per iteration on stderr, verbose=0 nothing, and stdout stays clean."""
    X, y = noisy(300, 5)
    Estimator(solver="dual_cd").fit(X, y)
    assert capsys.readouterr() == ("", "")
    Estimator(solver="dual_cd", verbose=2).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    gaps = [float(line.split("relative gap ")[1].split(" ")[0]) for line in err.splitlines()]
    assert gaps[-1] <= 1e-3 < gaps[0]


@overlap_is_no_news
@every_online
def test_verbose_shows_the_mistakes(Estimator, capsys):
    """verbose=2 prints the rows that moved w, a line per pass on stderr."""
    model = Estimator(verbose=2).fit(*noisy(300, 5))
    out, err = capsys.readouterr()
    assert out == ""
    assert [int(line.split("late rows ")[1].split(" ")[0]) for line in err.splitlines()] == model.mistakes_


@every_weighted
def test_n_jobs_changes_nothing(Estimator):
    """One, two and all threads: the same bits."""
    X, y = text_like(25_000)
    answers = [Estimator(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2, None, -1)]
    for other in answers[1:]:
        assert np.array_equal(answers[0].coef_, other.coef_)
        assert np.array_equal(answers[0].intercept_, other.intercept_)


BAD_PARAMETERS = [
    ({"C": 0}, "C=0; it must be"),
    ({"C": -1.0}, "C=-1"),
    ({"C": np.nan}, "C=nan"),
    ({"C": "1"}, "C='1'"),
    ({"tol": 0}, "tol=0"),
    ({"tol": -1e-3}, "tol=-0.001"),
    ({"max_iter": 0}, "max_iter=0"),
    ({"max_iter": 2.5}, "max_iter=2.5"),
    ({"n_jobs": 0}, "n_jobs=0"),
    ({"solver": "sag"}, "choose from 'auto'"),
    ({"class_weight": "even"}, "'balanced' or None"),
    ({"class_weight": {9: 2.0}}, "not a class of y, and leaves out"),
    ({"class_weight": {1.0: -2.0}}, "must be finite and > 0"),
    ({"class_weight": {1.0: np.inf}}, "must be finite and > 0"),
    ({"class_weight": {1.0: 100.0}, "C": 1e308}, "too large a number"),
    ({"fit_intercept": "no"}, "fit_intercept='no'; it must be True or False"),
    ({"warm_start": 1}, "warm_start=1; it must be"),
    ({"verbose": "loud"}, "verbose='loud'"),
    ({"verbose": -1}, "verbose=-1"),
    ({"alpha": -1.0}, "alpha=-1"),
    ({"alpha": np.inf}, "alpha=inf"),
    ({"alpha": "1"}, "alpha='1'"),
    ({"learning_rate": 0.0}, "learning_rate=0.0"),
    ({"learning_rate": None}, "learning_rate=None"),
    ({"decay": 1.5}, "decay=1.5"),
    ({"patience": 0}, "patience=0"),
    ({"shuffle": "yes"}, "shuffle='yes'; it must be True or False"),
    ({"average": 1}, "average=1; it must be"),
    ({"aggressiveness": 1.0}, "aggressiveness=1.0; it must be at least 0 and below 1"),
    ({"aggressiveness": -0.1}, "aggressiveness=-0.1"),
    ({"batch_size": 0}, "batch_size=0; it must be a whole number from 1"),
    ({"batch_size": 40_000}, "batch_size=40000"),
    ({"alpha": 1e-300}, "alpha=1e-300"),
    ({"batch_size": 2.5}, "batch_size=2.5"),
]


@every_estimator
@pytest.mark.parametrize(("parameters", "message"), BAD_PARAMETERS, ids=lambda value: str(value))
def test_bad_parameters(Estimator, parameters, message):
    """Each is a ValueError that names the parameter and what it may be."""
    X, y = noisy(20, 2)
    if not set(parameters) <= set(Estimator().get_params()):
        with pytest.raises(TypeError, match="unexpected keyword"):
            Estimator(**parameters)
        return
    with pytest.raises(ValueError, match=message):
        Estimator(**parameters).fit(X, y)


def test_bad_losses():
    """Unknown, and trivially solved."""
    X, y = noisy(20, 2)
    for parameters, message in (
        ({"loss": "huber"}, "choose from 'hinge'"),
        ({"loss": "perceptron"}, "use loss='hinge'"),
    ):
        with pytest.raises(ValueError, match=message):
            LinearSVM(**parameters).fit(X, y)


X, Y = noisy(6, 2)
BAD_INPUT = [
    (np.where(np.eye(6, 2), np.nan, X), Y, None, "X contains NaN"),
    (np.where(np.eye(6, 2), np.inf, X), Y, None, "X contains infinity"),
    (sp.csr_array(np.where(np.eye(6, 2), np.nan, X)), Y, None, "X contains NaN"),
    (X, np.ones(6), None, "only one class"),
    (X, Y[:5], None, "inconsistent numbers of samples"),
    (X[:, 0], Y, None, "Expected 2D array"),
    (X[:0], Y[:0], None, "0 sample"),
    (X[:, :0], Y, None, "0 feature"),
    (X + 1j, Y, None, "Complex data not supported"),
    (np.array([["a", "b"]] * 6, dtype=object), Y, None, "could not convert"),
    (X, np.linspace(0, 1, 6), None, "Unknown label type"),
    (X, np.where(Y > 0, np.nan, Y), None, "y contains NaN"),
    (X, Y, [1, 1, -1, 1, 1, 1], r"sample_weight\[2\] is -1"),
    (X, Y, [1, 1, np.nan, 1, 1, 1], "sample_weight contains NaN"),
    (X, Y, [1, 1], "sample_weight.shape"),
    (X, Y, np.zeros(6), "no class|zero"),
    (X, Y, (Y > 0).astype(float), "only one class"),
]


@every_estimator
@pytest.mark.parametrize(("X", "y", "sample_weight", "message"), BAD_INPUT, ids=[case[3] for case in BAD_INPUT])
def test_bad_input(Estimator, X, y, sample_weight, message):
    """Each is a ValueError or TypeError that says what is wrong, and nothing is fitted."""
    estimator, weights = Estimator(), {"sample_weight": sample_weight}
    if sample_weight is None:
        weights = {}
    elif not has_fit_parameter(Estimator, "sample_weight"):
        message = "unexpected keyword argument 'sample_weight'"
    with pytest.raises((ValueError, TypeError), match=message):
        estimator.fit(X, y, **weights)
    assert not hasattr(estimator, "classes_")


@every_estimator
def test_broken_sparse_input(Estimator):
    """Indices outside of X, which scikit-learn lets through, and a system too large to build are refused."""
    X, y = text_like(100, d=50)
    for name, value in (("indices", 50), ("indices", -1), ("indptr", -3)):
        broken = X.copy()
        getattr(broken, name)[1] = value
        with pytest.raises(ValueError, match=f"X.{name}"):
            Estimator().fit(broken, y)
    if Estimator is KernelSVM or "solver" not in Estimator().get_params():
        return
    huge = sp.eye_array(25_000, format="csr")
    with pytest.raises(ValueError, match="use solver='auto'"):
        Estimator(solver="interior_point").fit(huge, np.arange(25_000) % 2)


def test_more_values_than_indices():
    """A CSR matrix whose arrays do not fit each other would be read beyond its end."""
    X, y = text_like(100, d=50)
    X.data = X.data[:-40]
    with pytest.raises(ValueError, match=r"X.data has|size of"):
        LinearSVM().fit(X, y)


@every_weighted
def test_rows_of_weight_zero_do_not_touch_anything(Estimator):
    """A row of 1e12 with weight 0 changes neither the answer nor its proof."""
    X, y = noisy(300, 5)
    plain = Estimator().fit(X, y)
    X, y = np.vstack([X, np.full(5, 1e12)]), np.append(y, 1)
    again = Estimator().fit(X, y, np.append(np.ones(300), 0))
    assert again.certificate_.relative_gap <= 1e-3
    assert again.coef_ == pytest.approx(plain.coef_, abs=1e-8)


@overlap_is_no_news
@every_estimator
def test_numpy_booleans_and_structured_fields(Estimator):
    """np.True_ is True, and a field of a structured array is an array."""
    X, y = noisy(50, 2)
    record = np.zeros(50, dtype=[("x", float, 2), ("k", np.int8)])
    record["x"] = X
    switch, default = ("break_ties", np.False_) if Estimator is KernelSVM else ("fit_intercept", np.True_)
    ours = Estimator(**{switch: default}).fit(record["x"], y)
    assert answer(ours, X) == pytest.approx(answer(Estimator().fit(X, y), X))


@overlap_is_no_news
@every_estimator
def test_odd_but_valid_input(Estimator):
    """Empty rows and columns, equal columns, two rows, one column, labels of any type, data frames."""
    X, y = noisy(30, 3)
    X[:, 1], X[4] = 0, 0
    X = np.hstack([X, X[:, :1]])
    names = np.where(y > 0, "yes", "no")
    frame = pd.DataFrame(X, columns=list("abcd"))
    one = Estimator().fit(frame, pd.Series(names))
    assert set(one.predict(frame)) <= {"yes", "no"}
    assert list(one.feature_names_in_) == list("abcd")
    assert hasattr(one, "coef_") == (Estimator is not KernelSVM)
    if hasattr(one, "coef_"):
        assert one.coef_[0, 1] == 0
        assert one.coef_[0, 0] == pytest.approx(one.coef_[0, 3], abs=1e-9)
    swapped = frame.assign(a=np.arange(30.0), d=frame["d"]), frame.assign(a=frame["d"], d=np.arange(30.0))
    assert one.decision_function(swapped[0]) == pytest.approx(one.decision_function(swapped[1]))
    assert Estimator().fit([[0.0], [1.0]], [0, 1]).predict([[0.1], [0.9]]).tolist() == [0, 1]
    assert answer(Estimator().fit(X.astype(np.float16), y), X).dtype == np.float64
    assert Estimator().fit((X * 10).astype(int), y > 0).predict(X).dtype == bool


def exact_objective(X, y, w, b, C):
    """½‖w‖² + C Σ max(0, 1 − y(w·x + b)), without any rounding."""
    w, b = [Fraction(one) for one in w], Fraction(b)
    margins = [Fraction(sign) * (sum(map(mul, w, map(Fraction, x))) + b) for x, sign in zip(X, y, strict=True)]
    return sum(one * one for one in w) / 2 + Fraction(C) * sum(max(Fraction(0), 1 - m) for m in margins)


@pytest.mark.parametrize("shift", [0.0, 10.0, 1e4])
@pytest.mark.parametrize("seed", range(8))
def test_the_gap_covers_the_exact_objective(seed, shift):
    """Rational arithmetic knows the objective at the weights: at most the lower bound plus the gap, whatever C."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 3))
    y = np.where(X @ [1.0, -2.0, 0.5] > 0, 1.0, -1.0)
    X = X + y[:, None] * [0.05, -0.1, 0.025] + shift
    for C in np.geomspace(1e2, 1e16, 8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a gap that rounding keeps open is told
            svm = LinearSVM(C=C, tol=1e-9).fit(X, y)
        proof = svm.certificate_
        exact = exact_objective(X, y, svm.coef_[0], svm.intercept_[0], C)
        assert exact <= Fraction(proof.dual) + Fraction(proof.gap) * (1 + Fraction(1e-12))


@pytest.mark.parametrize("C", np.geomspace(1e4, 1e14, 11))
def test_enormous_strengths_are_the_hard_margin(C):
    """Classes that can be separated, C above every α of the hard margin: its objective, not C times some rounding."""
    X, y = clouds()
    hard = LinearSVM(C=np.inf, tol=1e-12).fit(X, y).certificate_
    proof = LinearSVM(C=C, tol=1e-11).fit(X, y).certificate_
    assert hard.alpha.max() < C
    assert proof.primal == pytest.approx(hard.primal, rel=1e-11)


@overlap_is_no_news
@every_estimator
def test_storages_agree(Estimator):
    """CSC, COO, duplicate entries, unsorted indices and int64 indices give what the dense array gives."""
    X, y = noisy(60, 4)
    sharp = {"tol": 1e-9} if "tol" in Estimator().get_params() else {}
    dense = Estimator(**sharp).fit(X, y)
    csr = sp.csr_array(X)
    doubled = sp.csr_array((np.repeat(csr.data / 2, 2), np.repeat(csr.indices, 2), 2 * csr.indptr), shape=csr.shape)
    wide = sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    flipped = sp.csr_array((csr.data.reshape(60, 4)[:, ::-1].ravel(), np.tile([3, 2, 1, 0], 60), csr.indptr))
    for stored in (csr, sp.csc_array(X), sp.coo_array(X), sp.csr_matrix(X), doubled, wide, flipped):
        fitted = Estimator(**sharp).fit(stored, y)
        assert answer(fitted, X) == pytest.approx(answer(dense, X), abs=1e-7)
        if hasattr(fitted, "coef_"):
            assert fitted.decision_function(stored) == pytest.approx(X @ fitted.coef_[0] + fitted.intercept_[0])
        assert fitted.decision_function(stored) == pytest.approx(fitted.decision_function(X), abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_equals_svc(seed):
    """w and b of SVC(kernel='linear', tol=1e-10) to 1e-6, for C ≤ 1: its kernel values are of single precision, and
    from C = 10 on it is further than that from the optimum, as certify shows.
    """
    X, y = noisy(40 + 5 * seed, 1 + seed % 7, seed=seed)
    C = 10.0 ** (seed % 3 - 2)
    theirs = SVC(kernel="linear", C=C, tol=1e-10).fit(X, y)
    ours = LinearSVM(C).fit(X, y)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-6)
    if 0 < np.abs(theirs.dual_coef_).min() < C * (1 - 1e-9):
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6)


def test_the_bias_is_not_penalised():
    """One-dimensional data around x = 10 with C = 0.01: the accuracy of SVC, not of LinearSVC."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = (10 + 0.8 * (2 * y - 1) + 0.3 * rng.standard_normal(400))[:, None]
    ours = LinearSVM(0.01).fit(X, y).score(X, y)
    assert ours == SVC(kernel="linear", C=0.01).fit(X, y).score(X, y) > 0.95
    assert LinearSVC(C=0.01, loss="hinge", max_iter=100_000).fit(X, y).score(X, y) < 0.9


def test_equals_scikit_learns_logistic_regression():
    """The same objective, minimised by Newton–Cholesky to 1e-10."""
    X, y = noisy(300, 6, seed=2)
    theirs = TheirLogisticRegression(C=0.7, solver="newton-cholesky", tol=1e-10).fit(X, y)
    ours = LogisticRegression(C=0.7).fit(X, y)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-6)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6)
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=1e-6)
    assert np.exp(ours.predict_log_proba(X)) == pytest.approx(ours.predict_proba(X))


@every_weighted
def test_several_classes(Estimator):
    """One against the rest: each row of coef_ is the binary fit of its class, and the certificate covers all."""
    X, y = load_wine(return_X_y=True)
    model = Estimator(0.1).fit(X, y)
    for k in range(3):
        binary = Estimator(0.1).fit(X, y == k)
        assert model.coef_[k] == pytest.approx(binary.coef_[0], rel=1e-6, abs=1e-9)
    assert len(model.certificate_) == len(model.history_) == 3
    assert model.certificate_.relative_gap == max(one.relative_gap for one in model.certificate_) <= 1e-3
    assert model.coef_ == pytest.approx(model.dual_coef_ @ X[model.support_], rel=1e-5, abs=1e-6)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared"])
def test_unscaled_digits(loss):
    """Odd against even, unscaled, C from 1e-4 to 1e4: a relative gap of 1e-6 each."""
    X, y = load_digits(return_X_y=True)
    for C in (1e-4, 1.0, 1e4):
        assert LinearSVM(C, loss=loss, tol=1e-6).fit(X, y % 2).certificate_.relative_gap <= 1e-6


@every_weighted
def test_class_weight_is_sample_weight(Estimator):
    """A class weight multiplies the weights of the class's rows; 'balanced' gives both classes the same total."""
    X, y = noisy(100, 3)
    y[:60] = 1
    heavy = Estimator(class_weight={-1.0: 3.0}).fit(X, y)
    assert heavy.coef_ == pytest.approx(Estimator().fit(X, y, np.where(y < 0, 3.0, 1.0)).coef_, abs=1e-8)
    balanced = Estimator(class_weight="balanced").fit(X, y)
    weights = 50 / np.where(y > 0, (y > 0).sum(), (y < 0).sum())
    assert balanced.coef_ == pytest.approx(Estimator().fit(X, y, weights).coef_, abs=1e-8)


def test_too_few_iterations_warn():
    """A ConvergenceWarning says what was reached, what was asked, and what to do."""
    X, y = noisy(2000, 30, big=100.0)
    with pytest.warns(ConvergenceWarning, match=r"relative gap is .* asked for was tol=1.0e-06; raise max_iter"):
        LinearSVM(solver="dual_cd", tol=1e-6, max_iter=3).fit(X, y)


@every_certified
def test_warm_start_across_parameters(Estimator):
    """Another bias rule, C and tolerance: the warm fit proves what a cold one would."""
    X, y = text_like(3000)
    warm = Estimator(warm_start=True).fit(X, y)
    for change in ({"fit_intercept": False}, {"C": 10.0}, {"fit_intercept": True, "tol": 1e-5}):
        assert warm.set_params(**change).fit(X, y).certificate_.relative_gap <= warm.tol


def test_not_fitted_after_a_failed_fit():
    """A fit that failed leaves no half of a model behind."""
    svm = LinearSVM(C=np.inf)
    with pytest.raises(widemargin.InseparableError):
        svm.fit([[0.0], [0.0]], [0, 1])
    with pytest.raises(NotFittedError):
        svm.predict([[1.0]])


def test_class_weight_of_an_absent_class():
    """A weight for a class that y lacks is no error as long as all classes of y have theirs."""
    X, y = noisy(50, 2)
    assert LinearSVM(class_weight={-1: 1.0, 1: 1.0, 7: 3.0}).fit(X, y).score(X, y) > 0.5


def test_log_probabilities_at_extreme_scores():
    """log σ(−t) = −t for large t."""
    model = LogisticRegression(C=1e6).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    score = model.decision_function([[1e4]])[0]
    assert model.predict_log_proba([[1e4]])[0] == pytest.approx([-score, 0.0])


def test_warm_start_with_more_rows():
    """Rows may be added between fits; the answer is that of a cold fit."""
    X, y = noisy(3000, 10)
    svm = LinearSVM(0.01, warm_start=True, solver="dual_cd", tol=1e-6).fit(X[:2900], y[:2900])
    assert svm.fit(X, y).coef_ == pytest.approx(LinearSVM(0.01, tol=1e-9).fit(X, y).coef_, abs=1e-3)


def test_interrupted_fit_is_usable(monkeypatch):
    """Ctrl-C raises KeyboardInterrupt, and what was reached is there to be used."""
    from widemargin import solvers

    def interrupted(problem, *, tol, seed, start):
        yield from (iterate for _, iterate in zip(range(3), solvers.dual_cd(problem, tol=tol, seed=seed), strict=False))
        raise KeyboardInterrupt

    monkeypatch.setitem(solvers.SOLVERS, "auto", solvers.SOLVERS["auto"]._replace(solve=interrupted))
    monkeypatch.setattr(sys.modules["widemargin.solvers.dual_cd"], "UNSEEN", 0.0)
    X, y = noisy(500, 5)
    svm = LinearSVM(tol=1e-12)
    with pytest.raises(KeyboardInterrupt):
        svm.fit(X, y)
    assert 0 < svm.certificate_.relative_gap < 1
    assert svm.predict(X).shape == (500,)


@overlap_is_no_news
@every_online
def test_partial_fit_is_one_fit(Estimator):
    """Rows brought in pieces, in their order, give the bits of one pass of fit; three classes too."""
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    X, y = X[order], y[order]
    for average in (False, True):
        whole = Estimator(shuffle=False, max_iter=1, average=average).fit(X, y)
        parts = Estimator(average=average)
        for rows in np.split(np.arange(150), [1, 20, 90]):
            parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
        assert np.array_equal(whole.coef_, parts.coef_)
        assert np.array_equal(whole.intercept_, parts.intercept_)
        again = pickle.loads(pickle.dumps(parts)).partial_fit(X, y)
        assert np.array_equal(again.coef_, parts.partial_fit(X, y).coef_)


@every_online
def test_partial_fit_refuses(Estimator):
    """No classes on the first call, one class, other classes later, unknown labels, other columns."""
    X, y = noisy(20, 2)
    for arguments, message in (
        ((X, y), "classes must be given on the first call"),
        ((X, y, [1.0]), "needs at least 2 classes"),
        ((X, y, [1.0, 2.0]), "which is not among the classes"),
    ):
        with pytest.raises(ValueError, match=message):
            Estimator().partial_fit(*arguments)
    begun = Estimator().partial_fit(X, y, [-1.0, 1.0])
    with pytest.raises(ValueError, match="not those of the first call"):
        begun.partial_fit(X, y, [-1.0, 0.0, 1.0])
    with pytest.raises(ValueError, match="features"):
        begun.partial_fit(X[:, :1], y)
    with pytest.raises(ValueError, match="begin with a new estimator"):
        begun.set_params(average=True).partial_fit(X, y)


@every_online
def test_partial_fit_takes_the_proof_back(Estimator):
    """What separated the rows of a fit says nothing of the rows that came later."""
    X, y = np.array([[-2.0], [2.0]]), np.array([0, 1])
    model = Estimator().fit(X, y)
    assert model.separates_
    model.partial_fit(X, 1 - y)
    assert not hasattr(model, "separates_")
    assert not hasattr(model, "margin_")


@every_online
def test_a_given_start(Estimator):
    """From weights that separate already nothing moves; shapes and numbers are checked."""
    X, y = np.array([[-2.0, 0.0], [2.0, 1.0]]), [0, 1]
    model = Estimator().fit(X, y, coef_init=[[3.0, 0.5]], intercept_init=[0.25])
    assert model.coef_.tolist() == [[3.0, 0.5]]
    assert model.intercept_.tolist() == [0.25]
    assert (model.mistakes_, model.separates_) == ([0], True)
    for start, message in (
        (([1.0],), "coef_init has shape"),
        (([np.nan, 1.0],), "NaN"),
        (([1.0, 1.0], [1, 2]), "want"),
    ):
        with pytest.raises(ValueError, match=message):
            Estimator().fit(X, y, *start)
    with pytest.raises(ValueError, match="asks for no bias"):
        Estimator(fit_intercept=False).fit(X, y, [1.0, 1.0], [1.0])


@every_online
def test_overlapping_classes_end_in_patience(Estimator):
    """Classes that overlap: the passes stop without a new minimum of mistakes, and nothing is called separated."""
    X, y = noisy(300, 4)
    with pytest.warns(ConvergenceWarning, match="raise patience, or use LinearSVM if"):
        model = Estimator(patience=5).fit(X, y)
    assert len(model.mistakes_) - 1 - int(np.argmin(model.mistakes_)) == 5
    assert not model.separates_
    assert model.margin_ < 0
    with pytest.warns(ConvergenceWarning, match="raise max_iter, or use LinearSVM if"):
        Estimator(patience=5, max_iter=5).fit(X, y)


class TestCertify:
    def test_own_weights(self):
        """The certificate of our own weights has our own primal and at least our gap's smallness."""
        X, y = noisy(200, 4)
        svm = LinearSVM(0.3).fit(X, y)
        again = certify(X, y, svm.coef_, svm.intercept_, C=0.3)
        assert again.primal == pytest.approx(svm.certificate_.primal, rel=1e-12)
        assert again.relative_gap <= 1e-6
        assert certify(X, y, sp.csr_matrix(svm.coef_), svm.intercept_, C=0.3).primal == again.primal  # as SVC has them

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_linear_svc(self, fit_intercept):
        """For LinearSVC's weights the gap is its true distance, the minimum from the cone solver."""
        X, y = noisy(150, 4, seed=3)
        theirs = LinearSVC(C=0.5, loss="hinge", fit_intercept=fit_intercept, max_iter=100_000).fit(X, y)
        certificate = certify(X, y, theirs.coef_, theirs.intercept_, C=0.5, fit_intercept=fit_intercept)
        true = minimum(make_problem(X, y, 0.5, "hinge", fit_intercept))
        assert certificate.gap == pytest.approx(certificate.primal - true, abs=2e-6 * true)

    def test_sgd_and_logistic_regression(self):
        """SGD with alpha = 1/(nC) is some way off, Newton–Cholesky is not."""
        X, y = noisy(500, 6, seed=4)
        sgd = SGDClassifier(alpha=1 / 500, random_state=0).fit(X, y)
        newton = TheirLogisticRegression(solver="newton-cholesky", tol=1e-8).fit(X, y)
        assert certify(X, y, sgd.coef_, sgd.intercept_).relative_gap > 1e-3
        assert certify(X, y, newton.coef_, newton.intercept_, loss="logistic").relative_gap < 1e-6

    def test_several_classes_and_weights(self):
        """A row of coef per class, sample weights and class weights as in fit."""
        X, y = load_iris(return_X_y=True)
        weights = np.random.default_rng(0).integers(0, 3, 150)
        svm = LinearSVM(class_weight="balanced").fit(X, y, weights)
        proof = certify(X, y, svm.coef_, svm.intercept_, class_weight="balanced", sample_weight=weights)
        assert len(proof) == 3
        assert proof.relative_gap <= 1e-6

    def test_bad_arguments(self):
        """Shapes, NaN and an intercept that the problem does not have."""
        X, y = noisy(20, 2)
        for arguments, message in (
            ({"coef": [1.0, 2.0, 3.0]}, r"coef has shape \(1, 3\)"),
            ({"coef": [np.nan, 1.0]}, "NaN"),
            ({"coef": [1.0, 1.0], "intercept": [1.0, 2.0]}, "intercept has 2 numbers"),
            ({"coef": [1.0, 1.0], "intercept": 1.0, "fit_intercept": False}, "intercept is not 0"),
            ({"coef": [1.0, 1.0], "C": -1}, "C=-1"),
            ({"coef": [1.0, 1.0], "loss": "huber"}, "choose from"),
        ):
            with pytest.raises(ValueError, match=message):
                certify(X, y, **arguments)


@overlap_is_no_news
@every_estimator
def test_clone_and_refit_are_the_same(Estimator):
    """Fitting twice, and fitting a clone, gives the same bits."""
    X, y = noisy(300, 4)
    model = Estimator().fit(X, y)
    first = answer(model, X).copy()
    assert np.array_equal(answer(clone(model).fit(X, y), X), first)
    assert np.array_equal(answer(model.fit(X, y), X), first)


MEMORY = """
import resource, sys
import numpy as np, scipy.sparse as sp
import widemargin
kind, rng = sys.argv[1], np.random.default_rng(0)
n = 400_000
if kind == "csr":
    starts = np.arange(0, 33 * n + 1, 33, dtype=np.int64)
    columns = np.sort(rng.integers(0, 1000, (n, 33)) + 1000 * np.arange(33), axis=1).ravel()
    X = sp.csr_array((rng.random(33 * n, dtype=np.float32), columns, starts), shape=(n, 33_000))
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
else:
    X = np.empty((n, 100), dtype=np.float32, order=kind)
    for j in range(0, n, 10_000):
        X[j : j + 10_000] = rng.random((10_000, 100), dtype=np.float32)
    size = X.nbytes
y = rng.integers(0, 2, n)
widemargin.LinearSVM().fit(X[:1000], y[:1000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
import warnings; warnings.simplefilter("ignore")
widemargin.LinearSVM(0.01, max_iter=4).fit(X, y)
widemargin.LinearSVM(0.01, max_iter=2, solver="interior_point").fit(X, y) if kind != "csr" else None
peak = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
print(peak, size)
"""


@pytest.mark.parametrize("kind", ["C", "F", "csr"])
def test_memory(kind):
    """160 MB of float32 dense in both orders and of CSR with int64 indices: no copy of X."""
    run = subprocess.run([sys.executable, "-c", MEMORY, kind], capture_output=True, text=True, check=True)
    peak, size = map(int, run.stdout.split())
    assert peak <= 0.25 * size + 100e6 < size


def test_import_is_light():
    """Importing the package loads neither scikit-learn nor matplotlib, and every public name is there."""
    code = "import sys, widemargin; print('sklearn' in sys.modules, 'matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "False"]
    assert all(getattr(widemargin, name) for name in widemargin.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = widemargin.nonsense


@pytest.mark.parametrize("level", _core._BUILDS)
def test_the_builds_of_the_core_agree(level):
    """The build of each level that there is and that this machine runs gives the same weights up to rounding."""
    if level > _cpu.level:
        pytest.skip("this machine does not run it")
    code = (
        "import sys; sys.path.insert(0, 'tests')\n"
        "from oracles import noisy; from widemargin import LinearSVM\n"
        "print(*LinearSVM(tol=1e-9).fit(*noisy(300, 5)).coef_[0])"
    )
    environment = {**os.environ, "WIDEMARGIN_CPU_LEVEL": str(level)}
    root = os.path.dirname(os.path.dirname(__file__))
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=root, check=True
    )
    here = LinearSVM(tol=1e-9).fit(*noisy(300, 5)).coef_[0]
    assert np.array(run.stdout.split(), float) == pytest.approx(here, abs=1e-9)


@pytest.mark.parametrize(
    "values", [(0.5, 1.5), (0.0, 1e17), (0.0, 1.0), (False, True), (-1, 1), (3, 2**60), ("a", "b")]
)
@pytest.mark.parametrize("repeats", [1, 10])
def test_labels_are_what_scikit_learn_takes_for_labels(values, repeats):
    """Few of them or many: where it sees a regression, so do we."""
    y = np.array(values * repeats)
    X = np.random.default_rng(0).standard_normal((len(y), 3))
    try:
        check_classification_targets(y)
    except ValueError as theirs:
        with pytest.raises(ValueError, match=re.escape(str(theirs)[:30])):
            LinearSVM().fit(X, y)
    else:
        assert set(LinearSVM().fit(X, y).classes_) == set(values)
