"""Paths over C, warm starts, fits side by side, predictions without a copy."""

import itertools
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from oracles import make_problem, noisy, text_like
from widemargin import LeastSquaresClassifier, LinearSVM, LogisticRegression, one_against_rest, path
from widemargin.solvers import SOLVERS, Start, side_by_side
from widemargin.training import fit

STRENGTHS = [10.0, 0.01, 0.1, 1.0]


@pytest.mark.parametrize("estimator", [None, LinearSVM(loss="squared_hinge", tol=1e-8), LogisticRegression()])
@pytest.mark.parametrize("data", [noisy(3000, 20), text_like(600)], ids=["tall", "sparse"])
def test_a_path_is_as_good_as_fits_one_by_one(estimator, data):
    """Every C gets the minimum, in the order asked for; the estimator given is not touched."""
    found = path(*data, STRENGTHS, estimator=estimator)
    assert found.Cs == tuple(STRENGTHS)
    plain = LinearSVM() if estimator is None else estimator
    assert not hasattr(plain, "coef_")
    for C, model, certificate in zip(found.Cs, found, found.certificates, strict=True):
        alone = type(plain)(**(plain.get_params() | {"C": C, "warm_start": False})).fit(*data)
        assert model.C == C
        assert model.certificate_ is certificate
        assert certificate.relative_gap <= plain.tol
        assert certificate.primal == pytest.approx(alone.certificate_.primal, rel=2 * plain.tol)
    table = str(found).splitlines()
    assert len(table) == 1 + len(STRENGTHS)
    assert len({len(line) for line in table}) == 1


def test_a_path_of_several_classes():
    """One line per C whatever the number of classes."""
    X, y = load_digits(return_X_y=True)
    found = path(X / 16, y, [0.1, 0.01])
    assert [len(certificates) for certificates in found.certificates] == [10, 10]
    assert len(str(found).splitlines()) == 3


def test_a_path_takes_the_hard_margin():
    """C = ∞ may be part of it."""
    X, y = np.array([[1.0, 1], [2, 1], [-1, 1], [-2, 1]]), [1, 1, 0, 0]
    hard = path(X, y, [1.0, np.inf], sample_weight=[1, 0, 1, 2])[1]
    assert hard.certificate_.width == pytest.approx(2.0, rel=1e-9)


def test_a_path_of_nothing_is_refused():
    """And so is a C that no fit would take."""
    with pytest.raises(ValueError, match=r"Cs=\[\]; give at least one"):
        path(*noisy(20, 2), [])
    with pytest.raises(ValueError, match=r"C=-1\.0; it must be"):
        path(*noisy(20, 2), [1.0, -1.0])
    with pytest.raises(ValueError, match="numbers only"):
        path(*noisy(20, 2), [1.0, np.nan])
    with pytest.raises(ValueError, match=r"Cs=\['a'\]; give at least one"):
        path(*noisy(20, 2), ["a"])
    with pytest.raises(ValueError, match="has no C"):
        path(*noisy(20, 2), [1.0], estimator=LeastSquaresClassifier())


@pytest.mark.parametrize("solver", ["dual_cd", "proximal_newton"])
def test_going_on_from_the_solution_takes_few_steps(solver):
    """A solver that is handed the solution is at its end at once; descent, as soon as it has seen that it is."""
    most = {"dual_cd": 4, "proximal_newton": 2}[solver]
    for seed in range(6):
        problem = make_problem(*noisy(500, 5, seed), 1.0)
        cold = fit(problem, solver=solver, tol=1e-6)
        warm = fit(problem, solver=solver, tol=1e-5, start=Start(cold.alpha, cold.b, hopeful=False))
        assert 0 < warm.iterations <= most < cold.iterations


def test_proximal_newton_forgets_a_bias_that_is_not_asked_for():
    """A start with a bias for a problem without one."""
    X, y = noisy(500, 5)
    start = Start(fit(make_problem(X, y, 1.0), tol=1e-6).alpha, 3.0, hopeful=False)
    problem = make_problem(X, y, 1.0, fit_intercept=False)
    assert fit(problem, solver="proximal_newton", tol=1e-6, start=start).certificate.relative_gap <= 1e-6


def test_a_path_is_warm():
    """Neighbours on a path take fewer passes than fits of their own."""
    X, y = text_like(3000)
    Cs = np.logspace(0, 0.5, 5)
    estimator = LinearSVM(solver="dual_cd", tol=1e-5)
    found = path(X, y, Cs, estimator=estimator)
    alone = [LinearSVM(C, solver="dual_cd", tol=1e-5).fit(X, y).n_iter_ for C in Cs]
    assert sum(model.n_iter_ for model in found) < sum(alone)


def test_a_nearby_start_saves_newton_steps():
    """Newton's method begins at the start's w."""
    X, y = noisy(500, 5)
    near = fit(make_problem(X, y, 1.0, "logistic"), solver="interior_point", tol=1e-12)
    problem = make_problem(X, y, 1.1, "logistic")
    warm = fit(problem, solver="interior_point", tol=1e-6, start=Start(near.alpha, near.b, near.w))
    assert warm.iterations < fit(problem, solver="interior_point", tol=1e-6).iterations


def test_classes_side_by_side_give_the_same_bits(monkeypatch):
    """One class per thread or one after the other."""
    X, y = load_digits(return_X_y=True)
    monkeypatch.setattr(side_by_side, "LITTLE", 0)
    alone = LinearSVM(0.1).fit(X / 16, y)
    monkeypatch.setattr(one_against_rest, "LITTLE", 0)
    one, four = (LinearSVM(0.1, n_jobs=jobs).fit(X / 16, y) for jobs in (1, 4))
    assert (one.coef_ == four.coef_).all()
    assert (one.coef_ == alone.coef_).all()
    assert (one.intercept_ == four.intercept_).all()


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_ends_all_classes(monkeypatch, failing):
    """No class goes on training when another has failed: here for ever, if it were not told to stop."""
    for place in (one_against_rest, side_by_side):
        monkeypatch.setattr(place, "LITTLE", 0)
    X, y = load_digits(return_X_y=True)
    solve, order = SOLVERS["dual_cd"].solve, itertools.count()

    def endless(problem, *, tol, seed, start):
        iterate = next(solve(problem, tol=tol, seed=seed, start=start))
        iterate.claim = np.inf
        if next(order) == failing:
            yield iterate
            raise RuntimeError("one class fails")
        while True:
            yield iterate

    monkeypatch.setitem(SOLVERS, "dual_cd", SOLVERS["dual_cd"]._replace(solve=endless))
    with pytest.raises(RuntimeError, match="one class fails"):
        LinearSVM(solver="dual_cd", n_jobs=2).fit(X, y)


@pytest.mark.parametrize("as_given", [np.asarray, np.asfortranarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_read_x_as_it_is(as_given, dtype):
    """The same scores as for X that needs a conversion."""
    X, y = noisy(200, 5)
    svm = LinearSVM().fit(X, y)
    given = as_given(X.astype(dtype))
    assert svm.decision_function(given) == pytest.approx(svm.decision_function(X.astype(dtype).tolist()), rel=1e-12)
    assert (svm.predict(given) == svm.classes_[(svm.decision_function(given) > 0).astype(int)]).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_array])
def test_predictions_refuse_what_is_no_number(as_given, bad):
    """Even where the weight is 0."""
    X, y = noisy(200, 5)
    X[:, 4] = 0.0
    svm = LinearSVM().fit(X, y)
    X[7, 4] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        svm.predict(as_given(X))
    with pytest.raises(ValueError, match="expecting 5 features"):
        svm.predict(as_given(X[:, :4]))


def test_proximal_newton_gives_way_where_it_gets_nowhere(monkeypatch):
    """auto goes on with the interior point when the steps run out."""
    monkeypatch.setattr(sys.modules["widemargin.solvers.proximal_newton"], "STEPS", 1)
    monkeypatch.setattr(sys.modules["widemargin.solvers.auto"], "AT_ONCE", 0.0)
    problem = make_problem(*noisy(2000, 30), 100.0)
    found = fit(problem, tol=1e-9)
    assert found.certificate.relative_gap <= 1e-9
    assert [line.iteration for line in found.history if not line.proved] == sorted(
        {line.iteration for line in found.history if not line.proved}
    )


def test_proximal_newton_refuses_a_system_that_is_too_large():
    """It says what to use instead."""
    X, y = text_like(30, d=30_000)
    with pytest.raises(ValueError, match="use solver='auto' or 'dual_cd'"):
        fit(make_problem(X, y), solver="proximal_newton")


def test_auto_warns_when_nothing_helps():
    """A gap that no method reaches is told, not hidden."""
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        LinearSVM(tol=1e-300).fit(*noisy(300, 3))


def test_a_number_is_a_path_of_one():
    """A number stands for the list that holds it."""
    X, y = noisy(60, 3)
    (alone,), (listed,) = path(X, y, 0.5), path(X, y, [0.5])
    assert alone.coef_.tobytes() == listed.coef_.tobytes()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_models_share_no_memory(loss):
    """Weights of a model of a path, or of a warm start, are its own."""
    X, y = noisy(300, 4)
    models = path(X, y, [1.0, 1.000001, 1.000002], estimator=LinearSVM(loss=loss)).models
    warm = LinearSVM(loss=loss, warm_start=True).fit(X, y)
    before = warm.coef_
    warm.set_params(C=1.000001).fit(X, y)
    for one, other in [*itertools.combinations([model.coef_ for model in models], 2), (before, warm.coef_)]:
        assert not np.shares_memory(one, other)
