import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from oracles import ROUNDING, make_problem, noisy
from strategies import dual_points, primal_points, problems
from widemargin import _core
from widemargin.problem import CONVENTIONS, inner, strength
from widemargin.training import fit


@given(st.data())
def test_weak_duality(data):
    """Every dual value is at most every primal value."""
    problem = data.draw(problems())
    w, b = data.draw(primal_points(problem))
    alpha = problem.feasible(data.draw(dual_points(problem)))
    primal, dual = problem.primal(w, problem.margins(w, b)), problem.dual(alpha, problem.weights(alpha))
    assert dual <= primal + ROUNDING * (1 + abs(primal) + abs(dual))


@pytest.mark.parametrize("n", [0, 1, 511, 513, 100_000])
def test_inner_products_keep_their_digits(n):
    """However long, and whatever cancels."""
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal(n), rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4, n)
    assert inner(a, b) == pytest.approx(math.fsum(a * b), rel=0, abs=1e-15 * (1 + np.abs(a * b).sum()))


@given(st.data())
def test_feasible_is_feasible(data):
    """Within the bounds, 0 on rows without strength, in balance if there is a bias, margins known or not."""
    problem = data.draw(problems())
    margins = problem.margins(*data.draw(primal_points(problem))) if data.draw(st.booleans()) else None
    alpha = problem.feasible(data.draw(dual_points(problem)), margins)
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


@pytest.mark.parametrize("far", [0.0, 1e8, 1e10])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_best_bias_far_from_zero(loss, far):
    """As good, up to the rounding of b, as the best bias of scores that are moved back."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(500) < 0.3, 1.0, -1.0)
    problem = make_problem(np.zeros((500, 1)), y, 1.0, loss)
    moved = far + 3 * rng.standard_normal(500)
    scores = moved - far  # exactly so
    best = problem.primal(np.zeros(1), y * (scores + problem.best_bias(scores)))
    b = problem.best_bias(moved)
    assert problem.primal(np.zeros(1), y * (scores + (b + far))) <= best * (1 + 1e-12 + 1e-10 * (far > 1e9))


@pytest.mark.parametrize("heavy", [1.0, 1e10, 1e12])
def test_best_bias_behind_the_kink_of_a_heavy_row(heavy):
    """The squared hinge: a step to the kink of one row is tiny, the minimum, 0 at b = 2, is far."""
    problem = make_problem(np.zeros((4, 1)), np.array([1.0, 1.0, 1.0, -1.0]), 1.0, "squared_hinge")
    problem = replace(problem, c=np.array([heavy, 1.0, 1.0, 1.0]))
    scores = np.array([1 - 1e-10, -1.0, -1.0, -3.0])
    b = problem.best_bias(scores)
    assert problem.primal(np.zeros(1), problem.y * (scores + b)) <= 1e-12


def test_best_bias_of_a_curve_takes_few_walks(monkeypatch):
    """Newton's method doubles its digits: a handful of walks over the rows, not as many as rounding lets it wander."""
    walks, follow = [], _core.follow_curve
    monkeypatch.setattr(_core, "follow_curve", lambda *args: walks.append(1) or follow(*args))
    rng = np.random.default_rng(0)
    for loss in ("logistic", "squared_hinge"):
        for C in (1e-3, 1.0, 1e3):
            X, y = rng.standard_normal((5000, 1)), np.where(rng.random(5000) < 0.03, 1.0, -1.0)
            problem = make_problem(X, y, C, loss)
            scores = 3 * rng.standard_normal(5000)
            walks.clear()
            b = problem.best_bias(scores)
            assert len(walks) <= 12
            slope = y * problem.loss.slope(y * (scores + b))
            assert abs(slope.sum()) <= 1e-9 * np.abs(slope).sum()


@given(st.data())
def test_best_bias_of_lines_is_where_the_slope_passes_zero(data):
    """What parting finds is what sorting finds, with turns that coincide and rows that do not count."""
    n = data.draw(st.integers(1, 60))
    whole = st.lists(st.integers(-4, 4), min_size=n, max_size=n)
    scores, c = np.array(data.draw(whole), float), np.abs(np.array(data.draw(whole), float))
    y = np.array(data.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    if not c.any():
        return
    live = c > 0
    order = np.argsort((y - scores)[live], kind="stable")
    turns, slope = (y - scores)[live][order], np.cumsum(c[live][order]) - c[y > 0].sum()
    flat, last = 1e-9, len(turns) - 1
    ends = [min(int(np.argmax(reached)) if reached.any() else last, last) for reached in (slope >= -flat, slope > flat)]
    assert _core.best_bias_of_lines(scores, y, c, 1.0, flat) == turns[ends].mean()


def test_best_bias_in_an_order_made_to_deceive():
    """Turns that rise to the middle and fall again, each half of its own: no pivot out of three is any good."""
    n = 4001
    half = np.empty(n)
    half[::2], half[1::2] = np.arange(n)[: (n + 1) // 2], np.arange(n)[: n // 2][::-1]
    for turns in (half, np.minimum(np.arange(n), np.arange(n)[::-1]).astype(float), np.zeros(n)):
        y = np.where(np.arange(n) % 2, 1.0, -1.0)
        assert _core.best_bias_of_lines(y - turns, y, np.ones(n), 1.0, 0.5) == pytest.approx(np.median(turns), abs=1)


@given(st.data())
def test_balance_is_found_where_it_costs_the_dual_least(data):
    """Where margins are known and the loss has a kink, no row moves while one that spares the dual more could go on."""
    problem = data.draw(problems().filter(lambda one: one.fit_intercept and not one.loss.smooth and not one.hard))
    before = np.clip(data.draw(dual_points(problem)), 0, problem.upper)
    margins = problem.margins(*data.draw(primal_points(problem)))
    after = problem.feasible(before, margins)
    towards = -np.sign(before @ problem.y) * problem.y
    moved, could = towards * (after - before), np.where(towards < 0, after, problem.upper - after)
    spared = towards * (problem.loss.kink - margins)
    small = 1e-12 * problem.c.sum()
    assert (moved >= -small).all()
    assert spared[could > small].max(initial=-np.inf) <= spared[moved > small].min(initial=np.inf)


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
