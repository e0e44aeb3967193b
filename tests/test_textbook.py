"""The textbook's algorithms, each against a closed form, steps done by hand, a cone solver, or another of them."""

from itertools import islice

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from oracles import ORACLE, hard_margin, make_problem, minimum, noisy
from widemargin import textbook
from widemargin.textbook import (
    dual_cd,
    gradient_descent,
    hildreth,
    least_squares,
    least_squares_sgd,
    logistic_regression,
    logistic_regression_sgd,
    mira,
    online_subgradient,
    pegasos,
    perceptron,
    running_sum,
    smo,
    stochastic_gradient,
    subgradient_descent,
    svm_sgd,
    tikhonov,
)
from widemargin.textbook.hildreth import permutations
from widemargin.textbook.kernels import gaussian, linear, polynomial, quadratic_features
from widemargin.textbook.subdifferential import HALF_ABSOLUTE, PARABOLA_THEN_LINE

#: Two ways to compute the same step differ by no more than this.
SAME = 1e-12
#: Every algorithm on the same rows, with draws for those that take them.
ALGORITHMS = {
    "dual_cd": lambda X, y, draws: dual_cd(X, y, 1.0, draws),
    "gradient_descent": lambda X, y, draws: gradient_descent(X, y, 0.1, len(draws), tau=0.1, power=0.5),
    "hildreth": lambda X, y, draws: hildreth(X.T @ X, y[: X.shape[1]], max_steps=len(draws)),
    "least_squares": lambda X, y, draws: least_squares(X, y),
    "least_squares_sgd": lambda X, y, draws: least_squares_sgd(X, y, draws, 0.01),
    "logistic_regression": lambda X, y, draws: logistic_regression(X, y, len(draws), 0.5, fit_intercept=True),
    "logistic_regression_sgd": lambda X, y, draws: logistic_regression_sgd(X, y, draws, 0.5),
    "mira": lambda X, y, draws: mira(X, y, draws, p=0.5, C=1.0, fit_intercept=True),
    "online_subgradient": lambda X, y, draws: online_subgradient(X, y, 0.1, draws, eta=0.1),
    "pegasos": lambda X, y, draws: pegasos(X, y, 0.1, draws, average=True, fit_intercept=True),
    "perceptron": lambda X, y, draws: perceptron(X, y, draws, start=np.ones(X.shape[1]), fit_intercept=True),
    "running_sum": lambda X, y, draws: running_sum(X, y, 0.1, draws, average=True),
    "smo": lambda X, y, draws: smo(X, y, 1.0, max_steps=len(draws)),
    "stochastic_gradient": lambda X, y, draws: stochastic_gradient(X, y, 0.1, draws, 0.1),
    "subgradient_descent": lambda X, y, draws: subgradient_descent(X, y, 0.1, len(draws), eta=0.1),
    "svm_sgd": lambda X, y, draws: svm_sgd(X, y, 3),
    "tikhonov": lambda X, y, draws: tikhonov(X, y, 0.1),
}


def drawn(n, steps, seed=0, size=None):
    """Examples drawn uniformly, one per step or `size` of them."""
    return np.random.default_rng(seed).integers(n, size=steps if size is None else (steps, size)).tolist()


def separable(n, d, seed=0, gap=0.3):
    """Gaussian rows, each pushed by `gap` away from a random hyperplane through 0 that labels them."""
    rng = np.random.default_rng(seed)
    X, u = rng.standard_normal((n, d)), rng.standard_normal(d)
    y = np.where(X @ u > 0, 1.0, -1.0)
    return X + gap * y[:, None] * u / np.linalg.norm(u), y


def with_ones(X):
    """X and a column of ones, whose weight is a bias."""
    return np.hstack([X, np.ones((len(X), 1))])


def last(steps):
    """The last of the steps."""
    *_, step = steps
    return step


def svm_minimum(X, y, C, fit_intercept=False):
    """min ½‖w‖² + C Σ hinge, by the cone solver."""
    return minimum(make_problem(X, y, C, fit_intercept=fit_intercept))


def least_change(X, y, w, C=np.inf):
    """argmin of ½‖v − w‖² with margins ≥ 1 at v, or with C times what is missing to 1, by the cone solver."""
    n, d = X.shape
    rows, eye = sp.csc_matrix(y[:, None] * X), sp.eye(n)
    P, q = sp.eye(d), -w
    A, right = -rows, -np.ones(n)
    if np.isfinite(C):
        P, q = sp.block_diag([P, sp.csc_matrix((n, n))]), np.concatenate([q, np.full(n, C)])
        A = sp.vstack([sp.hstack([-rows, -eye]), sp.hstack([sp.csc_matrix((n, d)), -eye])])
        right = np.concatenate([right, np.zeros(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    cones = [clarabel.NonnegativeConeT(len(right))]
    solver = clarabel.DefaultSolver(sp.csc_matrix(P), q, sp.csc_matrix(A), right, cones, settings)
    return np.array(solver.solve().x[:d])


@pytest.mark.parametrize("name", [name for name in textbook.__all__ if name != "Step"])
def test_steps_are_counted_and_their_arrays_are_the_callers(name):
    """A caller who spoils every array sees the same steps as one who does not."""
    X, y = noisy(12, 3)
    draws = drawn(12, 20)
    kept = list(ALGORITHMS[name](X, y, draws))
    assert [step.t for step in kept] == list(range(1, len(kept) + 1))
    for step, spoilt in zip(kept, ALGORITHMS[name](X, y, draws), strict=True):
        assert np.array_equal(step.w, spoilt.w)
        assert (step.i, step.b, step.objective) == (spoilt.i, spoilt.b, spoilt.objective)
        assert isinstance(step.b, float)
        assert isinstance(step.objective, float)
        spoilt.w[:] = np.nan
        if spoilt.alpha is not None:
            assert np.array_equal(step.alpha, spoilt.alpha)
            spoilt.alpha[:] = np.nan


def test_least_squares_solves_the_normal_equations():
    """The closed form: XᵀXw = Xᵀy."""
    X, y = noisy(50, 4)
    (step,) = least_squares(X, y)
    assert step.w == pytest.approx(np.linalg.solve(X.T @ X, X.T @ y), abs=SAME)
    assert step.objective == pytest.approx(np.mean((X @ step.w - y) ** 2))


@pytest.mark.parametrize("shape", [(50, 6), (5, 8)])
def test_least_squares_of_a_rank_deficient_x_is_the_shortest(shape):
    """Xᵀ(Xw − y) = 0 makes w a minimiser, w = Xᵀv for some v makes it the shortest."""
    X, y = noisy(*shape)
    X[:, -1] = X[:, 0] - X[:, 1]
    (step,) = least_squares(X, y)
    assert X.T @ (X @ step.w - y) == pytest.approx(0, abs=1e-11)
    along = X.T @ np.linalg.lstsq(X.T, step.w, rcond=None)[0]
    assert step.w == pytest.approx(along, abs=1e-11)


def test_least_squares_sgd_step_drops_the_two():
    """The update of 004, by hand: η(w·x − y)x, at w = 0 and then at w = (0.5, 1)."""
    X, y = np.array([[1.0, 2.0], [2.0, 0.0]]), np.array([1.0, -1.0])
    first, second = least_squares_sgd(X, y, [0, 1], 0.5)
    assert first.w == pytest.approx([0.5, 1])
    assert second.w == pytest.approx([-1.5, 1])
    assert second.objective == pytest.approx(((-1.5 + 2 - 1) ** 2 + (-3 + 1) ** 2) / 2)


def test_least_squares_sgd_finds_an_exact_fit():
    """Where Xw = y has a solution every example agrees on it, so that a fixed step converges to the closed form."""
    X, _ = noisy(5, 5)
    X += 6 * np.eye(5)
    y = np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    step = last(least_squares_sgd(X, y, drawn(5, 2000), 0.02))
    assert step.w == pytest.approx(np.linalg.solve(X, y), abs=1e-9)


@pytest.mark.parametrize("shape", [(40, 4), (4, 9)])
def test_tikhonov_has_gradient_zero_and_the_minimum(shape):
    """The gradient 2Xᵀ(Xw − y) + 2λw is 0; the objective is the cone solver's."""
    X, y = noisy(*shape)
    (step,) = tikhonov(X, y, 0.7)
    assert X.T @ (X @ step.w - y) + 0.7 * step.w == pytest.approx(0, abs=1e-11)
    problem = make_problem(X, y, 1 / (2 * 0.7), "squared", fit_intercept=False)
    assert step.objective == pytest.approx(2 * 0.7 * minimum(problem), rel=ORACLE)


@pytest.mark.parametrize("seed", range(4))
def test_perceptron_makes_few_mistakes_on_separable_data(seed):
    """Novikoff: at most (R/γ)² mistakes, after which nothing changes and all is separated."""
    X, y = separable(40, 3, seed)
    gamma = 1 / np.linalg.norm(least_change(X, y, np.zeros(3)))
    steps = list(perceptron(X, y, np.tile(np.arange(40), 60)))
    path = np.array([np.zeros(3), *(step.w for step in steps)])
    mistakes = (path[1:] != path[:-1]).any(axis=1)
    assert 0 < mistakes.sum() <= (np.linalg.norm(X, axis=1).max() / gamma) ** 2
    assert not mistakes[-40:].any()
    assert (y * (X @ steps[-1].w) > 0).all()
    assert steps[-1].objective == 0


def test_perceptron_depends_on_the_start():
    """Two starts, two separating directions; the caller's start is left alone."""
    X, y = separable(40, 3)
    start = np.array([5.0, -5.0, 5.0])
    answers = [last(perceptron(X, y, np.tile(np.arange(40), 60), start=s)).w for s in (None, start)]
    assert all((y * (X @ w) > 0).all() for w in answers)
    one, other = (w / np.linalg.norm(w) for w in answers)
    assert one @ other < 1 - 1e-4
    assert start.tolist() == [5, -5, 5]


def test_perceptron_by_hand():
    """Mistakes at t = 1, since at w = 0 every example is one, and at t = 3, with η/√t; at t = 2 nothing happens."""
    X, y = np.array([[1.0, 0.0], [2.0, 1.0]]), np.array([1.0, -1.0])
    first, second, third = perceptron(X, y, [0, 0, 1], eta=2.0, power=0.5, fit_intercept=True)
    assert (first.w.tolist(), first.b, first.eta) == ([2, 0], 2, 2)
    assert first.objective == 6
    assert (second.w.tolist(), second.b) == ([2, 0], 2)
    eta = 2 / np.sqrt(3)
    assert third.eta == pytest.approx(eta)
    assert third.w == pytest.approx([2 - 2 * eta, -eta])
    assert third.b == pytest.approx(2 - eta)


def test_perceptron_bias_is_the_weight_of_a_column_of_ones():
    """004's w′ = [w; b], x′ = [x; 1]."""
    X, y = noisy(30, 3)
    draws = drawn(30, 100)
    for step, other in zip(
        perceptron(X, y, draws, fit_intercept=True), perceptron(with_ones(X), y, draws), strict=True
    ):
        assert [*step.w, step.b] == pytest.approx(other.w, abs=SAME)


def test_logistic_regression_reaches_gradient_zero():
    """At the end Σ σ(−m)yx = 0 and Σ σ(−m)y = 0; the objective never rises on the way."""
    X, y = noisy(60, 3)
    steps = list(logistic_regression(X, y, 3000, 1.0, fit_intercept=True))
    pull = y / (1 + np.exp(y * (X @ steps[-1].w + steps[-1].b)))
    assert pull @ with_ones(X) == pytest.approx(0, abs=1e-9)
    assert (np.diff([step.objective for step in steps]) <= 1e-15).all()


def test_logistic_regression_bias_is_the_weight_of_a_column_of_ones():
    """004's w′ = [w; b], x′ = [x; 1]."""
    X, y = noisy(30, 3)
    steps = logistic_regression(X, y, 50, 0.5, fit_intercept=True)
    for step, other in zip(steps, logistic_regression(with_ones(X), y, 50, 0.5), strict=True):
        assert [*step.w, step.b] == pytest.approx(other.w, abs=SAME)


def test_logistic_regression_never_stops_growing_on_separable_data():
    """Without a penalty there is no minimum: ‖w‖ grows at every step, the loss falls towards 0."""
    X, y = separable(30, 2)
    steps = list(logistic_regression(X, y, 4000, 1.0))
    norms = np.array([np.linalg.norm(step.w) for step in steps])
    assert (np.diff(norms) > 0).all()
    assert norms[3999] > norms[399] + 1 > norms[39] + 2
    assert (np.diff([step.objective for step in steps]) < 0).all()


def test_logistic_regression_sgd_step():
    """The update of 004: w + ησ(−y w·x)yx, by hand at w = 0, by its formula afterwards; no overflow far out."""
    X, y = noisy(20, 3)
    draws = drawn(20, 30)
    w = np.zeros(3)
    for step in logistic_regression_sgd(X, y, draws, 0.8):
        w = w + 0.8 / (1 + np.exp(y[step.i] * (w @ X[step.i]))) * y[step.i] * X[step.i]
        assert step.w == pytest.approx(w, abs=SAME)
    (first,) = logistic_regression_sgd(X, y, [3], 0.8)
    assert first.w == pytest.approx(0.4 * y[3] * X[3])
    assert np.isfinite(last(logistic_regression_sgd(1e4 * X, y, draws, 1.0)).objective)


def test_gradient_descent_by_hand():
    """Two steps of 002 with τ = ¼ and λ = ½; after the first, the first margin is exactly 1 and its slope 0."""
    X, y = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    first, second = gradient_descent(X, y, 0.5, 2, tau=0.25)
    assert first.w.tolist() == [0.5, -0.25]
    assert first.objective == 0.75 + 0.5 * (0.25 + 0.0625)
    assert second.w == pytest.approx([0.375, -0.4375])


def test_gradient_descent_decreases_to_the_optimum():
    """With 1/(2λt) it comes within 1 % of the cone solver's minimum, never below; with a fixed step it stays off."""
    X, y = noisy(40, 3)
    lam = 2.0
    best = 2 * lam * svm_minimum(X, y, 1 / (2 * lam))
    values = np.array([step.objective for step in gradient_descent(X, y, lam, 4000, tau=1 / (2 * lam), power=1.0)])
    assert (values >= best * (1 - ORACLE)).all()
    assert values[-1] <= 1.01 * best
    assert values[10:100].mean() > values[100:1000].mean() > values[1000:].mean()
    fixed = [step.objective for step in gradient_descent(X, y, lam, 4000, tau=1 / (2 * lam))]
    assert min(fixed[-100:]) > 1.1 * best


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_subgradient_descent_is_gradient_descent_rescaled(power):
    """λ/2‖w‖² + mean hinge is 1/n times Σ hinge + (λn/2)‖w‖²: the steps of 002 with τ = η/n."""
    X, y = noisy(25, 4)
    one = subgradient_descent(X, y, 0.2, 60, eta=0.9, power=power)
    for step, other in zip(one, gradient_descent(X, y, 0.2 * 25 / 2, 60, tau=0.9 / 25, power=power), strict=True):
        assert step.w == pytest.approx(other.w, abs=SAME)
        assert step.objective == pytest.approx(other.objective / 25, rel=SAME)
        assert step.eta == 0.9 / step.t**power


def test_subgradient_descent_reaches_the_optimum():
    """Within 1 % of the cone solver's minimum."""
    X, y = noisy(40, 3)
    best = 0.1 * svm_minimum(X, y, 1 / (0.1 * 40))
    assert last(subgradient_descent(X, y, 0.1, 4000, eta=10.0, power=1.0)).objective == pytest.approx(best, rel=0.01)


def test_online_subgradient_with_the_step_of_pegasos_is_pegasos():
    """η = 1/(λt) in the update of 001."""
    X, y = noisy(25, 4)
    draws = drawn(25, 200)
    one = online_subgradient(X, y, 0.3, draws, eta=1 / 0.3, power=1.0)
    for step, other in zip(one, pegasos(X, y, 0.3, draws), strict=True):
        assert step.w == pytest.approx(other.w, abs=SAME)
        assert step.objective == pytest.approx(other.objective, rel=SAME)


def test_stochastic_gradient_is_online_subgradient_rescaled():
    """004's λ is n times 001's: the same updates, n times the objective."""
    X, y = noisy(25, 4)
    draws = drawn(25, 200)
    one = stochastic_gradient(X, y, 0.3 * 25, draws, 0.05)
    for step, other in zip(one, online_subgradient(X, y, 0.3, draws, eta=0.05), strict=True):
        assert step.w == pytest.approx(other.w, abs=SAME)
        assert step.objective == pytest.approx(25 * other.objective, rel=SAME)


def test_svm_sgd_by_hand():
    """Two epochs: w is turned around at every step of the first and forgotten at every step of the second."""
    X, y = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0])
    steps = list(svm_sgd(X, y, 2))
    assert [step.w.tolist() for step in steps] == [[1, 0], [-1, -2], [1, 0], [0, -2]]
    assert [step.objective for step in steps] == [2, 7, 1.5, 3]
    assert [(step.t, step.i, step.eta) for step in steps] == [(1, 0, 1), (2, 1, 1), (3, 0, 1), (4, 1, 1)]


def test_svm_sgd_runs_all_its_epochs():
    """n steps per epoch, the last with λ = 1/epochs."""
    X, y = noisy(7, 2)
    steps = list(svm_sgd(X, y, 5))
    assert len(steps) == 35
    w = steps[-1].w
    assert steps[-1].objective == pytest.approx(w @ w / 5 + np.maximum(0, 1 - y * (X @ w)).sum())


def test_running_sum_is_the_subgradient_method_with_a_later_step_size():
    """w ← (1 − ηλ)w + ηyx with η = 1/(λ(t+1)), from w = 0."""
    X, y = noisy(25, 4)
    w = np.zeros(4)
    for step in running_sum(X, y, 0.2, drawn(25, 300)):
        assert step.eta == 1 / (0.2 * (step.t + 1))
        violated = y[step.i] * (w @ X[step.i]) < 1
        w = (1 - step.eta * 0.2) * w + step.eta * violated * y[step.i] * X[step.i]
        assert step.w == pytest.approx(w, abs=SAME)


def test_running_sum_is_not_pegasos():
    """After the first step the box has half of what the derivation has."""
    X, y = noisy(25, 4)
    (box,), (derived,) = running_sum(X, y, 0.2, [5]), pegasos(X, y, 0.2, [5])
    assert box.w == pytest.approx(derived.w / 2)


def test_running_sum_average_is_the_mean_of_its_iterates():
    """The mean of what it yields without `average`, at every step."""
    X, y = noisy(25, 4)
    draws = drawn(25, 50)
    path = np.array([step.w for step in running_sum(X, y, 0.2, draws)])
    for step in running_sum(X, y, 0.2, draws, average=True):
        assert step.w == pytest.approx(path[: step.t].mean(axis=0), abs=SAME)


def test_pegasos_is_the_derivation_of_000():
    """w⁽ᵗ⁺¹⁾ = −(1/λt) Σ vⱼ, vⱼ = −yx if y w⁽ʲ⁾·x < 1 and 0 otherwise, step for step."""
    X, y = noisy(25, 4)
    w, v = np.zeros(4), np.zeros(4)
    for step in pegasos(X, y, 0.2, drawn(25, 300)):
        if y[step.i] * (w @ X[step.i]) < 1:
            v = v - y[step.i] * X[step.i]
        w = -v / (0.2 * step.t)
        assert step.w == pytest.approx(w, abs=SAME)
        assert step.eta == 1 / (0.2 * step.t)


def test_pegasos_over_all_examples_is_subgradient_descent():
    """A batch of everything leaves nothing to chance."""
    X, y = noisy(25, 4)
    one = pegasos(X, y, 0.2, [range(25)] * 50)
    for step, other in zip(one, subgradient_descent(X, y, 0.2, 50, eta=1 / 0.2, power=1.0), strict=True):
        assert step.w == pytest.approx(other.w, abs=SAME)
        assert step.i == tuple(range(25))


def test_pegasos_batch_takes_all_margins_at_the_same_w():
    """(1 − 1/t)w + (η/k) Σ yx over the violated, by its formula, with an unshrunk bias and projection onto the ball."""
    X, y = noisy(25, 4)
    w, b, path = np.zeros(4), 0.0, []
    draws = drawn(25, 80, size=3)
    for step in pegasos(X, y, 0.2, draws, project=True, fit_intercept=True):
        chosen = list(step.i)
        violated = y[chosen] * (X[chosen] @ w + b) < 1
        pull = (violated * y[chosen]) / (3 * 0.2 * step.t)
        w, b = (1 - 1 / step.t) * w + pull @ X[chosen], b + pull.sum()
        w *= min(1, 1 / np.sqrt(0.2) / np.linalg.norm(w))
        path.append([*w, b])
        assert [*step.w, step.b] == pytest.approx([*w, b], abs=SAME)
    for step in pegasos(X, y, 0.2, draws, project=True, average=True, fit_intercept=True):
        assert [*step.w, step.b] == pytest.approx(np.mean(path[: step.t], axis=0), abs=SAME)


def test_pegasos_projection_keeps_w_in_the_ball_and_reaches_the_optimum():
    """‖w‖ ≤ 1/√λ at every step, which the plain iterates break; both end within 5 % of the cone solver's minimum."""
    X, y = noisy(25, 4, big=3)
    best = 0.2 * svm_minimum(X, y, 1 / (0.2 * 25))
    for project in (False, True):
        steps = list(pegasos(X, y, 0.2, drawn(25, 5000), project=project))
        longest = max(np.linalg.norm(step.w) for step in steps)
        assert (longest <= 1 / np.sqrt(0.2) + SAME) == project
        assert best * (1 - ORACLE) <= steps[-1].objective <= 1.05 * best


@pytest.mark.parametrize("algorithm", [lambda X, y, draws: pegasos(X, y, 1.0, draws), mira], ids=["pegasos", "mira"])
def test_empty_batches_are_refused(algorithm):
    """The error says which draw and what may be given."""
    X, y = noisy(5, 2)
    with pytest.raises(ValueError, match=r"draw 2 is empty: give an example"):
        list(algorithm(X, y, [[0, 1], []]))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [np.inf, 0.05])
def test_mira_single_step_is_the_solution_of_its_qp(fit_intercept, C):
    """The cone solver's least change of (w, b), at every step that changes anything."""
    X, y = noisy(20, 3)
    Z = with_ones(X) if fit_intercept else X
    w, updates = np.zeros(Z.shape[1]), 0
    for step in mira(X, y, drawn(20, 40), p=0.5, C=C, fit_intercept=fit_intercept):
        new = np.append(step.w, step.b) if fit_intercept else step.w
        if y[step.i] * (w @ Z[step.i]) <= 0.5:
            expected = least_change(Z[[step.i]], y[[step.i]], w, C)
            updates += 1
        else:
            expected = w
        assert new == pytest.approx(expected, abs=1e-7)
        assert step.eta == pytest.approx(np.linalg.norm(new - w) / np.linalg.norm(Z[step.i]), abs=SAME)
        w = new
    assert 0 < updates < 40


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [np.inf, 0.1])
def test_mira_batch_step_is_the_solution_of_its_qp(fit_intercept, C):
    """The cone solver's least change of (w, b) that serves all the examples that are late."""
    X, y = separable(20, 6)
    Z = with_ones(X) if fit_intercept else X
    w, updates = np.zeros(Z.shape[1]), 0
    for step in mira(X, y, drawn(20, 12, size=4), p=0.3, C=C, fit_intercept=fit_intercept):
        chosen = np.array(step.i)
        late = chosen[y[chosen] * (Z[chosen] @ w) <= 0.3]
        expected = least_change(Z[late], y[late], w, C) if len(late) else w
        w = np.append(step.w, step.b) if fit_intercept else step.w
        assert w == pytest.approx(expected, abs=1e-6)
        assert np.isnan(step.eta)
        if np.isinf(C):
            assert (y[late] * (Z[late] @ w) >= 1 - 1e-12).all()
        updates += len(late) > 1
    assert updates


def test_mira_of_a_batch_of_one_is_mira_of_one():
    """The same w either way."""
    X, y = noisy(20, 3)
    draws = drawn(20, 40)
    for one, other in zip(mira(X, y, draws), mira(X, y, [[i] for i in draws]), strict=True):
        assert np.array_equal(one.w, other.w)
        assert other.i == (one.i,)


def test_mira_leaves_an_empty_row_alone():
    """x = 0 has margin 0 whatever w: no update without a bias, one of b alone with it."""
    X, y = np.zeros((1, 2)), np.ones(1)
    (step,) = mira(X, y, [0])
    assert (step.w.tolist(), step.b, step.eta, step.objective) == ([0, 0], 0, 0, 1)
    (step,) = mira(X, y, [0], fit_intercept=True)
    assert (step.w.tolist(), step.b, step.eta, step.objective) == ([0, 0], 1, 1, 0)


@pytest.mark.parametrize("seed", range(4))
def test_mira_aggressive_comes_near_the_hard_margin(seed):
    """With a bias: as p → 1 its direction comes within 1 % of the cone solver's, and closer than at p = 0."""
    X, y = separable(30, 2, seed)
    w, _ = hard_margin(X, y)
    cosines = []
    for p in (0.0, 0.5, 0.99):
        u = last(mira(X, y, np.tile(np.arange(30), 40), p=p, fit_intercept=True)).w
        cosines.append(u @ w / np.linalg.norm(u) / np.linalg.norm(w))
    assert cosines[2] >= 0.99
    assert cosines[2] > cosines[0]


@pytest.mark.parametrize("p", [0.0, 0.5, 0.9, 0.99])
def test_mira_aggressive_has_its_share_of_the_margin(p):
    """Without a bias, once nothing changes: margin at least p/(1 + p) of the largest, the cone solver's."""
    for seed in range(4):
        X, y = separable(20, 3, seed)
        largest = 1 / np.linalg.norm(least_change(X, y, np.zeros(3)))
        steps = list(mira(X, y, np.tile(np.arange(20), 100), p=p))
        assert not any(step.eta for step in steps[-20:])
        w = steps[-1].w
        assert (y * (X @ w)).min() / np.linalg.norm(w) >= p / (1 + p) * largest


def test_mira_aggressive_need_not_arrive_at_the_hard_margin_but_a_full_batch_is_there():
    """By hand: (0.6, 0.8), (1, 0) end at (1, 0.8) one by one, at (1, 0.5) together."""
    X, y = np.array([[0.6, 0.8], [1.0, 0.0]]), np.ones(2)
    for p in (0.61, 0.9, 0.999999):
        assert last(mira(X, y, [0, 1] * 50, p=p)).w == pytest.approx([1, 0.8])
    (step,) = mira(X, y, [[0, 1]])
    assert step.w == pytest.approx([1, 0.5])


Q_OF_001, B_OF_001 = np.array([[4.0, 1.0], [1.0, 2.0]]), np.array([-6.0, -4.0])


def test_hildreth_on_the_example_of_001():
    """The first four steps by hand, and the maximum (8/7, 10/7) to the last bits, where it stops by itself."""
    steps = list(hildreth(Q_OF_001, B_OF_001))
    path = [[1.5, 0], [1.5, 1.25], [1.1875, 1.25], [1.1875, 1.40625]]
    assert [step.alpha.tolist() for step in steps[:4]] == path
    assert [step.i for step in steps[:4]] == [0, 1, 0, 1]
    assert steps[0].objective == 4.5
    assert steps[-1].alpha == pytest.approx([8 / 7, 10 / 7], abs=1e-15)
    assert steps[-1].objective == pytest.approx((6 * 8 / 7 + 4 * 10 / 7) / 2)
    assert len(steps) < 100


@pytest.mark.parametrize("rank", [6, 3])
@pytest.mark.parametrize("upper", [np.inf, 0.7])
def test_hildreth_orders_agree_and_ascend(rank, upper):
    """On positive definite and singular Q: one maximum by all four orders, no step down, a projected gradient of 0."""
    rng = np.random.default_rng(rank)
    A = rng.standard_normal((6, rank))
    Q, b = A @ A.T, -A @ rng.standard_normal(rank)
    ends = []
    for order in ("cyclic", "back_and_forth", "random", "greedy"):
        draws = permutations(6, 0) if order == "random" else None
        steps = list(hildreth(Q, b, upper=upper, order=order, draws=draws, max_steps=40_000))
        assert (np.diff([0.0, *(step.objective for step in steps)]) >= -1e-13).all()
        alpha, gradient = steps[-1].alpha, Q @ steps[-1].alpha + b
        assert (alpha >= 0).all()
        assert (alpha <= upper).all()
        assert np.clip(alpha - gradient, 0, upper) == pytest.approx(alpha, abs=1e-6)
        ends.append(steps[-1])
    assert [end.objective for end in ends] == pytest.approx([ends[0].objective] * 4, abs=1e-10)
    if rank == 6:
        assert np.array([end.alpha for end in ends]) == pytest.approx(np.array([ends[0].alpha] * 4), abs=1e-10)


def test_hildreth_orders_as_the_slide_writes_them():
    """1 … n, 1 … n; 1 … n, n−1 … 1, 2 …; permutations; the coordinate with the largest gain, the first of equals."""
    Q, b = np.eye(4) + 0.1, -np.array([1.0, 3.0, 3.0, 2.0])

    def picked(**how):
        return [step.i for step in islice(hildreth(Q, b, **how), 8)]

    assert picked() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert picked(order="back_and_forth") == [0, 1, 2, 3, 2, 1, 0, 1]
    random = picked(order="random", draws=permutations(4, 0))
    assert sorted(random[:4]) == sorted(random[4:]) == [0, 1, 2, 3]
    assert picked(order="greedy")[:2] == [1, 2]
    assert picked(draws=[2, 2, 0]) == [2, 2, 0]


def test_hildreth_stops():
    """By itself once nothing changes, by the gain of n steps, by the number of steps: each where it says."""
    assert [step.i for step in hildreth(np.eye(3), np.ones(3))] == [0, 1, 2]
    assert list(hildreth(np.eye(3), np.ones(3), order="greedy")) == []
    steps = list(hildreth(Q_OF_001, B_OF_001, tol=1e-3))
    values = [0.0, *(step.objective for step in steps)]
    gains = [values[t] - values[t - 2] for t in range(2, len(values))]
    assert gains[-1] <= 1e-3 < min(gains[:-1])
    assert len(list(hildreth(Q_OF_001, B_OF_001, max_steps=5))) == 5


def test_hildreth_goes_on_until_every_coordinate_was_tried():
    """Back and forth over four: 3, then 2, 1, 2, 3 without change, while 4 still has to follow 3."""
    Q = np.eye(4)
    Q[2, 3] = Q[3, 2] = 0.5
    b = np.array([0.0, 0.0, -1.0, -1.0])
    assert last(hildreth(Q, b, order="back_and_forth")).alpha == pytest.approx([0, 0, 2 / 3, 2 / 3], abs=1e-10)


@pytest.mark.parametrize("order", ["cyclic", "greedy"])
def test_hildreth_where_q_is_zero(order):
    """A straight line: up to the bound if it rises, 0 if it falls, unbounded without a bound."""
    Q, b = np.diag([0.0, 1.0, 0.0, 0.0]), np.array([-2.0, -0.5, 3.0, 0.0])
    assert last(hildreth(Q, b, order=order, upper=4.0)).alpha.tolist() == [4, 0.5, 0, 0]
    with pytest.raises(ValueError, match="unbounded"):
        list(hildreth(Q, b, order=order))


def test_hildreth_refuses_what_it_does_not_know():
    """The errors name what may be given."""
    with pytest.raises(ValueError, match=r"unknown order 'sideways'.*'back_and_forth'"):
        next(hildreth(np.eye(2), np.ones(2), order="sideways"))
    with pytest.raises(ValueError, match=r"'random' needs draws"):
        next(hildreth(np.eye(2), np.ones(2), order="random"))


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_dual_cd_optimum(C):
    """The dual value ends at the cone solver's primal minimum and never falls; w = Σ αyx throughout."""
    X, y = noisy(40, 4)
    steps = list(dual_cd(X, y, C, np.tile(np.arange(40), 400)))
    best = svm_minimum(X, y, C)
    values = [step.objective for step in steps]
    assert values[-1] == pytest.approx(best, rel=ORACLE)
    assert (np.diff(values) >= -1e-12 * best).all()
    assert steps[-1].w == pytest.approx((steps[-1].alpha * y) @ X, abs=1e-9)


def test_dual_cd_is_hildreth_on_the_dual():
    """Hildreth with Qᵢⱼ = yᵢyⱼ xᵢ·xⱼ, b = −1 and the bound C, step for step; an empty row goes to C in both."""
    X, y = noisy(15, 4)
    X[3] = 0
    Z = y[:, None] * X
    draws = drawn(15, 200)
    other = hildreth(Z @ Z.T, -np.ones(15), upper=0.5, draws=draws)
    for step, twin in zip(dual_cd(X, y, 0.5, draws), other, strict=False):
        assert step.alpha == pytest.approx(twin.alpha, abs=SAME)
        assert step.objective == pytest.approx(twin.objective, abs=SAME)
    assert step.alpha[3] == 0.5


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_smo_optimum(C):
    """Dual and primal value end at the cone solver's minimum; every step ascends and is feasible."""
    X, y = noisy(40, 4)
    steps = list(smo(X, y, C))
    best = svm_minimum(X, y, C, fit_intercept=True)
    end = steps[-1]
    assert end.objective == pytest.approx(best, rel=ORACLE)
    assert end.w @ end.w / 2 + C * np.maximum(0, 1 - y * (X @ end.w + end.b)).sum() == pytest.approx(best, rel=ORACLE)
    assert (np.diff([0.0, *(step.objective for step in steps)]) >= -1e-12 * best).all()
    for step in steps:
        assert step.alpha @ y == pytest.approx(0, abs=1e-12 * C * 40)
        assert step.alpha.min() >= 0
        assert step.alpha.max() <= C
    assert len(steps) < 10_000


def test_smo_choices():
    """i is the largest f that may go up, j the partner with the largest uncut gain, b the middle, all by definition."""
    X, y = noisy(15, 2, seed=2)
    C, alpha = 0.8, np.zeros(15)

    def extremes(alpha):
        f = y - X @ ((alpha * y) @ X)
        up = [k for k in range(15) if (alpha[k] < C if y[k] > 0 else alpha[k] > 0)]
        low = [k for k in range(15) if (alpha[k] > 0 if y[k] > 0 else alpha[k] < C)]
        return f, up, low

    for step in smo(X, y, C, tol=1e-6):
        (i, j), (f, up, low) = step.i, extremes(alpha)
        assert i in up
        assert f[i] == pytest.approx(f[up].max(), abs=SAME)
        gains = {k: (f[i] - f[k]) ** 2 / np.sum((X[i] - X[k]) ** 2) for k in low if f[k] < f[i]}
        assert gains[j] == pytest.approx(max(gains.values()), rel=1e-9)
        assert set(np.flatnonzero(step.alpha != alpha)) == {i, j}
        alpha = step.alpha
        f, up, low = extremes(alpha)
        assert step.b == pytest.approx((f[up].max() + f[low].min()) / 2, abs=SAME)


def test_smo_on_the_slides_of_001():
    """The exact w and b of three slides: C = 1 with (−.1, −.1), 1e10 with (−.01, −.01), 1 with (−2, 0)."""
    corners = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]
    y = np.array([1.0, 1.0, -1.0, -1.0, 1.0])
    for point, C, w, b in (
        ([-0.1, -0.1], 1.0, (1, 0), 0),
        ([-0.01, -0.01], 1e10, (200 / 99, 0), 101 / 99),
        ([-2.0, 0.0], 1.0, (1, 0), 0),
    ):
        end = last(smo(np.array([*corners, point]), y, C))
        assert end.w == pytest.approx(w, abs=1e-10)
        assert end.b == pytest.approx(b, abs=1e-10)


def test_smo_with_a_kernel_is_smo_on_its_features():
    """(1 + x·z)² and the Φ of which it is the inner product: ten equal steps, and the cone solver's minimum for both.

    Not all steps: fᵢ = fⱼ after a step that was not cut, and rounding decides which of the two comes next.
    """
    X, _ = noisy(25, 2)
    y = np.where((X**2).sum(axis=1) > 1.5, 1.0, -1.0)
    features = quadratic_features(X)
    one, other = list(smo(X, y, 2.0, kernel=polynomial(2))), list(smo(features, y, 2.0))
    for step, twin in zip(one[:10], other[:10], strict=True):
        assert step.alpha == pytest.approx(twin.alpha, abs=SAME)
        assert step.b == pytest.approx(twin.b, abs=SAME)
        assert step.w.size == 0
    best = svm_minimum(features, y, 2.0, fit_intercept=True)
    assert one[-1].objective == pytest.approx(best, rel=ORACLE)
    assert other[-1].objective == pytest.approx(best, rel=ORACLE)


def test_smo_has_nothing_to_do_with_one_class():
    """Σ αy = 0 leaves α = 0 only."""
    X, _ = noisy(5, 2)
    assert list(smo(X, np.ones(5), 1.0)) == []
    assert list(smo(X, -np.ones(5), 1.0)) == []


def test_smo_kernels():
    """Each kernel by its formula on one pair; symmetric and positive semidefinite; Φ(x)·Φ(z) = (1 + x·z)²."""
    X, _ = noisy(8, 3)
    a, b = X[:1], X[1:2]
    assert linear(a, b).item() == pytest.approx(a[0] @ b[0])
    assert polynomial(3, 0.5)(a, b).item() == pytest.approx((0.5 + a[0] @ b[0]) ** 3)
    assert gaussian(0.7)(a, b).item() == pytest.approx(np.exp(-0.7 * np.sum((a - b) ** 2)))
    assert quadratic_features(X) @ quadratic_features(X).T == pytest.approx(polynomial(2)(X, X))
    for kernel in (linear, polynomial(2), gaussian(0.7)):
        K = kernel(X, X)
        assert np.allclose(K, K.T)
        assert np.linalg.eigvalsh(K).min() >= -1e-10


@pytest.mark.parametrize(
    ("f", "at_the_kink", "elsewhere"),
    [
        (HALF_ABSOLUTE, (-0.5, 0.5), {0.0: -0.5, 3.0: 0.5}),
        (PARABOLA_THEN_LINE, (1.0, 4.0), {-2.0: -2.0, 0.5: 0.5, 1.5: 4.0}),
    ],
    ids=["half_absolute", "parabola_then_line"],
)
def test_subdifferential_of_the_examples_of_002(f, at_the_kink, elsewhere):
    """The notes' intervals; a slope is in the set if and only if its line stays below f on a grid."""
    assert tuple(f.subdifferential(1.0)) == at_the_kink
    for x, slope in elsewhere.items():
        assert tuple(f.subdifferential(x)) == (slope, slope)
    grid = np.linspace(-4, 6, 2001)
    values = np.array([f.value(x) for x in grid])
    for x in (1.0, *elsewhere):
        for slope in np.linspace(-3, 5, 81).round(12).tolist():
            below = bool((values >= f.value(x) + slope * (grid - x) - 1e-12).all())
            assert (slope in f.subdifferential(x)) == below


def test_subdifferential_functions_do_not_jump():
    """Left and right meet at the kink; the notes' 4x would be 4 there and not ½."""
    for f in (HALF_ABSOLUTE, PARABOLA_THEN_LINE):
        assert f.left(f.kink) == f.right(f.kink) == f.value(f.kink)
    assert PARABOLA_THEN_LINE.value(1.0) == 0.5
