from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import widemargin.problem
from oracles import ROUNDING, make_problem, noisy
from strategies import dual_points, primal_points, problems
from widemargin.problem import CONVENTIONS, strength
from widemargin.training import fit


@given(st.data())
def test_weak_duality(data):
    """Every dual value is at most every primal value."""
    problem = data.draw(problems())
    w, b = data.draw(primal_points(problem))
    alpha = problem.feasible(data.draw(dual_points(problem)))
    primal, dual = problem.primal(w, problem.margins(w, b)), problem.dual(alpha, problem.weights(alpha))
    assert dual <= primal + ROUNDING * (1 + abs(primal) + abs(dual))


@given(st.data())
def test_feasible_is_feasible(data):
    """Within the bounds, 0 on rows without strength, and in balance if there is a bias."""
    problem = data.draw(problems())
    alpha = problem.feasible(data.draw(dual_points(problem)))
    assert (alpha <= problem.upper).all()
    assert (alpha >= problem.loss.lower).all()
    assert not alpha[problem.c == 0].any()
    if problem.fit_intercept:
        assert alpha @ problem.y == pytest.approx(0, abs=1e-12 * (1 + np.abs(alpha).sum()))


@given(st.data())
def test_feasible_keeps_feasible_points(data):
    """A point that is feasible already stays where it is."""
    problem = data.draw(problems())
    alpha = problem.feasible(data.draw(dual_points(problem)))
    assert problem.feasible(alpha) == pytest.approx(alpha, abs=1e-12 * (1 + np.abs(alpha).max()))


@given(st.data())
def test_best_bias_is_best(data):
    """No b does better than best_bias, as Brent's method searches."""
    problem = data.draw(problems().filter(lambda problem: problem.fit_intercept))
    w, _ = data.draw(primal_points(problem))
    if not (problem.y[problem.live] > 0).any() or not (problem.y[problem.live] < 0).any():
        return
    scores = problem.rows.scores(w)

    def objective(b):
        return problem.primal(w, problem.y * (scores + b))

    b = problem.best_bias(scores)
    reach = np.abs(scores).max() + 60
    for low, high in ((-reach, reach), (b - 1, b + 1)):
        best = minimize_scalar(objective, bounds=(low, high), method="bounded", options={"xatol": 1e-10})
        assert objective(b) <= best.fun * (1 + 1e-10) + 1e-12


@given(st.data())
def test_best_bias_of_many_rows(data):
    """Where rows are too many to sort all, those around a guess, good or bad, have the same answer."""
    problem = data.draw(problems())
    scores = problem.rows.scores(data.draw(primal_points(problem))[0])
    if problem.hard or problem.loss.smooth or len(np.unique(problem.y[problem.live])) < 2:
        return
    near = data.draw(st.floats(-1e3, 1e3))
    with patch.object(widemargin.problem, "BLOCK", 1):
        b = problem.best_bias(scores, near)
    assert b == pytest.approx(problem.best_bias(scores), rel=1e-12, abs=1e-12)


def test_best_bias_is_the_middle_of_a_flat_stretch():
    """Two equal classes and w = 0: every b in [−1, 1] is as good, and 0 is chosen."""
    problem = make_problem([[0.0], [0.0]], [1, -1])
    assert problem.best_bias(np.zeros(2)) == 0


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_six_ways_to_write_the_strength(convention):
    """Each of the notes' objectives, minimised as written by a general-purpose method, has our w for its C."""
    from scipy.optimize import minimize

    X, y = noisy(60, 3, seed=4)
    one, number = CONVENTIONS[convention], 0.7
    penalty, terms = one.written.split(" + ")
    factor = {"½‖w‖²": 0.5, "‖w‖²": 1.0, "λ‖w‖²": number, "λ/2 ‖w‖²": number / 2}[penalty]
    share = {"C Σ φ": number, "(1/n) Σ φ": 1 / len(y), "Σ φ": 1.0}[terms]

    def objective(w):
        m = y * (X @ w)
        value = factor * w @ w + share * np.logaddexp(0, -m).sum()
        return value, 2 * factor * w - share * X.T @ (y / (1 + np.exp(m)))

    theirs = minimize(objective, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    C = strength(**{one.symbol: number}, convention=convention, n=len(y))
    problem = make_problem(X, y, C, "logistic", fit_intercept=False)
    assert fit(problem, tol=1e-12).w == pytest.approx(theirs, abs=1e-7)


def test_the_table_of_conventions_prints():
    """One aligned line per convention, with what it writes and our C."""
    head, *lines = str(CONVENTIONS).splitlines()
    assert head.split() == ["convention", "written", "as", "our", "C", "where"]
    assert [line.split()[0] for line in lines] == list(CONVENTIONS)
    column = head.index("our C")
    for line, one in zip(lines, CONVENTIONS.values(), strict=True):
        assert line[column:].startswith(one.ours + " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lam": 1.0, "convention": "liblinear"}, "choose from 'slack', 'primal'"),
        ({"lam": 1.0}, "give C and nothing else"),
        ({"C": 1.0, "lam": 1.0}, "give C and nothing else"),
        ({"C": 1.0, "convention": "pegasos", "n": 5}, "give lam and nothing else"),
        ({"lam": 1.0, "convention": "pegasos"}, "give the number of rows"),
        ({"lam": 1.0, "convention": "rule", "n": 0}, "give the number of rows"),
        ({"lam": -1.0, "convention": "sum"}, "lam=-1.0; it must be a number > 0"),
        ({"C": float("nan")}, "C=nan"),
    ],
)
def test_strength_refuses(arguments, message):
    """The error names the convention and what it wants."""
    with pytest.raises(ValueError, match=message):
        strength(**arguments)
