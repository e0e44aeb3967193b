"""Each algorithm as one would read it and as one would run it: the same weights after 1, 7 and 1000 steps."""

import sys
from itertools import repeat

import numpy as np
import pytest
import scipy.sparse as sp

from oracles import make_problem, noisy, text_like
from widemargin import _core, hildreth, textbook
from widemargin.data import Rows
from widemargin.losses import LOSSES
from widemargin.solvers import LazyWeights, MiraRule, Pegasos, PerceptronRule, Sgd, Subgradient
from widemargin.solvers.least_squares import solve
from widemargin.solvers.sgd import rates
from widemargin.solvers.smo import SmoState
from widemargin.solvers.subgradient import descent
from widemargin.textbook.hildreth import permutations

N, D, LAM = 120, 9, 0.01
STEPS = (1, 7, 1000)
X, Y = noisy(N, D, seed=11)
DRAWS = np.random.default_rng(0).integers(0, N, STEPS[-1])
T = np.arange(1.0, STEPS[-1] + 1)
#: Largest relative difference of two computations of the same steps.
SAME = 1e-12

both_storages = pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])


def states(generator):
    """What a textbook algorithm says after each number of steps, the last if it ended before."""
    every = [step for _, step in zip(range(STEPS[-1]), generator, strict=False)]
    return [every[min(steps, len(every)) - 1] for steps in STEPS]


def assert_same(expected, found):
    """The same w and b, and the same α where the algorithm has one, at each of the three stops."""
    for step, (w, b, alpha) in zip(expected, found, strict=True):
        assert np.linalg.norm(w - step.w) <= SAME * np.linalg.norm(step.w)
        assert b == pytest.approx(step.b, rel=SAME, abs=SAME)
        if step.alpha is not None and alpha is not None:
            assert np.linalg.norm(alpha - step.alpha) <= SAME * np.linalg.norm(step.alpha)


def lazily(storage, walk, **options):
    """The compiled weights after 1, 7 and 1000 steps; `walk(weights, rows, piece)` takes the steps of that piece."""
    weights, rows = LazyWeights(D, **options), Rows(storage(X))
    for begin, end in zip((0, *STEPS), STEPS, strict=False):
        walk(weights, rows, slice(begin, end))
        yield weights.w, weights.b, None


def sgd(storage, rule, eta, shrink, *, draws=DRAWS, average=False, **options):
    """The compiled stochastic steps with these rates."""
    eta, shrink = np.broadcast_to(eta, T.shape), np.broadcast_to(shrink, T.shape)

    def walk(weights, rows, piece):
        chosen = np.ascontiguousarray(draws[piece]).ravel()
        weights.sgd(rule, rows, Y, chosen, eta[piece].copy(), shrink[piece].copy(), **options)

    return lazily(storage, walk, average=average)


@both_storages
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("k", [1, 5])
def test_pegasos(storage, average, project, fit_intercept, k):
    """Pegasos, with and without projection, average, bias and mini-batches."""
    draws = DRAWS if k == 1 else np.random.default_rng(1).integers(0, N, (STEPS[-1], k))
    options = {"average": average, "fit_intercept": fit_intercept, "project": project}
    eta, radius = 1 / (LAM * T), LAM**-0.5 if project else np.inf
    compiled = sgd(
        storage,
        "hinge",
        eta,
        1 - 1 / T,
        draws=draws,
        average=average,
        bias=fit_intercept,
        batch=k,
        radius=radius,
        norms=np.sum(X**2, axis=1),
    )
    assert_same(states(textbook.pegasos(X, Y, LAM, draws, **options)), compiled)


@both_storages
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("project", [False, True])
def test_pegasos_solver_draws_uniformly(storage, project, fit_intercept):
    """LinearSVM's solver is the textbook's Pegasos on n uniform draws per pass, for λ = 1/(nC)."""
    problem = make_problem(storage(X), Y, 1 / (LAM * N), fit_intercept=fit_intercept)
    order = np.random.default_rng(5)
    draws = np.concatenate([order.integers(0, N, N) for _ in range(3)])
    *_, last = textbook.pegasos(X, Y, LAM, draws, project=project, fit_intercept=fit_intercept)
    iterates = Pegasos(project=project)(problem, tol=1e-3, seed=5)
    iterate = [next(iterates) for _ in range(3)][-1]
    assert iterate.w == pytest.approx(last.w, rel=SAME, abs=SAME)
    assert iterate.b == pytest.approx(last.b, rel=SAME)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("radius", [np.inf, 3.0])
def test_pegasos_dual_variables(average, radius):
    """w = Σ αᵢyᵢxᵢ at every step, averaged, projected, folded: the dual point belongs to its w."""
    weights, rows = LazyWeights(D, duals=N, average=average), Rows(X)
    for begin in range(0, 1000, 250):
        eta = rates(1 / LAM, 1.0, 0.0, weights.steps, 250)
        shrink = 0.9 * (1 - eta * LAM)
        weights.sgd(
            "hinge", rows, Y, DRAWS[begin : begin + 250].copy(), eta, shrink, radius=radius, norms=rows.square_norms
        )
        assert (weights.alpha * Y) @ X == pytest.approx(weights.w, rel=1e-9, abs=1e-12)


@both_storages
@pytest.mark.parametrize("average", [False, True])
def test_running_sum(storage, average):
    """The running sum of 000 is the stochastic step with η = 1/(λ(t+1))."""
    eta = 1 / (LAM * (T + 1))
    expected = states(textbook.running_sum(X, Y, LAM, DRAWS, average=average))
    assert_same(expected, sgd(storage, "hinge", eta, 1 - eta * LAM, average=average))


@both_storages
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_online_subgradient(storage, power):
    """The online subgradient of 001 with a fixed rate, 1/√t and 1/t."""
    eta = rates(0.3, power, 0.0, 0, STEPS[-1])
    expected = states(textbook.online_subgradient(X, Y, LAM, DRAWS, eta=0.3, power=power))
    assert_same(expected, sgd(storage, "hinge", eta, 1 - eta * LAM))


@both_storages
def test_svm_sgd(storage):
    """SVM_SGD of 003: η = 1, λ = 1/epoch, rows in order."""
    epoch = np.arange(STEPS[-1]) // N + 1
    expected = states(textbook.svm_sgd(X, Y, int(epoch[-1])))
    assert_same(expected, sgd(storage, "hinge", 1.0, 1 - 2 / epoch, draws=np.arange(STEPS[-1]) % N))


@both_storages
def test_stochastic_gradient(storage):
    """The SGD of 004 with λ/n."""
    expected = states(textbook.stochastic_gradient(X, Y, 0.5, DRAWS, 0.1))
    assert_same(expected, sgd(storage, "hinge", 0.1, 1 - 0.1 * 0.5 / N))


@both_storages
def test_logistic_regression_sgd(storage):
    """SGD for logistic regression, without a penalty."""
    expected = states(textbook.logistic_regression_sgd(X, Y, DRAWS, 0.2))
    assert_same(expected, sgd(storage, "logistic", 0.2, 1.0))


@both_storages
def test_least_squares_sgd(storage):
    """SGD for least squares; 004 drops the 2 of the gradient, our loss has it."""
    expected = states(textbook.least_squares_sgd(X, Y, DRAWS, 0.02))
    assert_same(expected, sgd(storage, "squared", 0.02 / 2, 1.0))


@both_storages
@pytest.mark.parametrize(("power", "start", "fit_intercept"), [(0.0, None, True), (0.5, 3, False), (0.5, None, False)])
def test_perceptron(storage, power, start, fit_intercept):
    """A fixed and a decaying rate, from 0 and from a random start, with and without a bias."""
    start = None if start is None else np.random.default_rng(start).standard_normal(D)
    rule = PerceptronRule(0.7, power)
    options = {"eta": 0.7, "power": power, "start": start, "fit_intercept": fit_intercept}

    def walk(weights, rows, piece):
        rule(weights, rows, Y, DRAWS[piece], bias=fit_intercept)

    assert_same(states(textbook.perceptron(X, Y, DRAWS, **options)), lazily(storage, walk, start=start))


@both_storages
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    ("p", "C", "k"), [(0.0, np.inf, 1), (0.9, np.inf, 1), (0.5, 0.1, 1), (0.0, 0.5, 4), (0.9, 0.1, 6)]
)
def test_mira(storage, p, C, k, fit_intercept):
    """Plain, aggressive, bounded, and in mini-batches."""
    draws = DRAWS if k == 1 else np.array([np.random.default_rng(t).permutation(N)[:k] for t in range(STEPS[-1])])
    rule = MiraRule(p, C, k)

    def walk(weights, rows, piece):
        rule(weights, rows, Y, np.ascontiguousarray(draws[piece]).ravel(), bias=fit_intercept)

    assert_same(states(textbook.mira(X, Y, draws, p=p, C=C, fit_intercept=fit_intercept)), lazily(storage, walk))


def descended(storage, loss, g, lam, eta, fit_intercept=False):
    """The compiled batch steps."""
    problem = make_problem(storage(X), Y, 1.0, loss, fit_intercept)
    for t, (w, b, _) in enumerate(descent(problem, np.full(N, g), lam, iter(eta)), 1):
        if t in STEPS:
            yield w, b, None


@both_storages
@pytest.mark.parametrize(("tau", "power"), [(1e-3, 0.0), (1e-2, 0.5), (0.5, 1.0)])
def test_gradient_descent(storage, tau, power):
    """002's batch subgradient descent on the sum, with a fixed τ, 1/√t and 1/(λt)."""
    lam = 2.0
    found = descended(storage, "hinge", 1.0, 2 * lam, rates(tau, power, 0.0, 0, STEPS[-1]))
    assert_same(states(textbook.gradient_descent(X, Y, lam, STEPS[-1], tau=tau, power=power)), found)


@both_storages
@pytest.mark.parametrize(("eta", "power"), [(0.5, 0.0), (0.5, 0.5), (1 / LAM, 1.0)])
def test_subgradient_descent(storage, eta, power):
    """001's batch subgradient descent on the mean, and LinearSVM's solver on the same problem."""
    expected = states(textbook.subgradient_descent(X, Y, LAM, STEPS[-1], eta=eta, power=power))
    assert_same(expected, descended(storage, "hinge", 1 / N, LAM, rates(eta, power, 0.0, 0, STEPS[-1])))
    problem = make_problem(storage(X), Y, 1 / (LAM * N), fit_intercept=False)
    iterates = Subgradient(eta, power)(problem, tol=0.0)
    assert [next(iterates).w for _ in range(7)][-1] == pytest.approx(expected[1].w, rel=1e-9, abs=1e-12)


@both_storages
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_logistic_regression(storage, fit_intercept):
    """Batch gradient descent for logistic regression, without a penalty."""
    expected = states(textbook.logistic_regression(X, Y, STEPS[-1], 0.5, fit_intercept=fit_intercept))
    assert_same(expected, descended(storage, "logistic", 1 / N, 0.0, repeat(0.5, STEPS[-1]), fit_intercept))


@both_storages
def test_dual_cd(storage):
    """Dual coordinate descent: the same visits, no shrinking, no bias."""
    rows, c = Rows(storage(X)), 0.7
    alpha, w, found = np.zeros(N), np.zeros(D), []
    for begin, end in zip((0, *STEPS), STEPS, strict=False):
        visits = DRAWS[begin:end].copy()
        blocks = np.arange(-(-len(visits) // 16))
        again = np.zeros(N, np.uint8), 0.0, 0.0, 0, 0, 0.0, 0.0, 0, False, 1, 1, _core.Workspace()
        numbers = 0.0, 0.0, 0.0, visits, len(visits), blocks, 4, np.inf, -np.inf, *again
        _core.dual_cd_pass("hinge", rows.core, Y, np.full(N, c), rows.square_norms, alpha, w, *numbers)
        found.append((w.copy(), 0.0, alpha.copy()))
    assert_same(states(textbook.dual_cd(X, Y, c, DRAWS)), found)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("split", [False, True])
def test_few_rows_in_play(split, dtype):
    """Descent over one row in eight, copied side by side: α, w and Σ αy agree, and the threads leave no trace."""
    made, y = text_like(4000)
    rows, found = Rows(made.astype(dtype), 2), []
    start = np.random.default_rng(0).uniform(0, 1, rows.n)

    def gap_in_play(w, b, s, alpha):
        m = y * (rows.scores(w) + b + 0.01 * s)
        return (np.maximum(0, 1 - m) - alpha + alpha * m)[5::8].sum()

    for threads in (1, 2):
        alpha, w, active = start.copy(), rows.combine(start * y), np.arange(5, rows.n, 8)
        many, limits = len(active) // 3, (np.inf, -np.inf, np.zeros(rows.n, np.uint8), 0.1, 0.03, 30)
        count, blocks = len(active), np.arange(-(-len(active) // 4))
        b, s, gap, before, *_, left, visits = _core.dual_cd_pass(
            "hinge", rows.core, y, np.ones(rows.n), rows.square_norms, alpha, w, 0.0, float(start @ y), 0.01, active,
            count, blocks, 2, *limits, many, 0.0, 0.0, rows.n, split, threads, 80, _core.Workspace(),
        )  # fmt: skip
        untouched = np.setdiff1d(np.arange(rows.n), np.arange(5, rows.n, 8))
        assert (alpha[untouched] == start[untouched]).all()
        assert w == pytest.approx(rows.combine(alpha * y), abs=1e-9)
        assert s == pytest.approx(float(alpha @ y), abs=1e-9)
        assert (np.diff(active[:left]) > 0).all()
        assert set(active[:left]) <= set(range(5, rows.n, 8))
        assert visits > 2 * count
        assert min(abs(gap), before) < 1
        assert gap_in_play(w, b, s, alpha) < gap_in_play(rows.combine(start * y), 0.0, float(start @ y), start) / 10
        found.append((b, s, alpha, w))
    for one, two in zip(*found, strict=True):
        assert np.array_equal(one, two)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_slow_rows_are_visited_again(split, threads):
    """Once more, those that the pass has marked: as many more visits as there are marks among the rows in play."""
    made, y = text_like(4000)
    rows, start = Rows(made, threads), np.random.default_rng(0).uniform(-0.5, 1.5, 4000).clip(0, 1)

    def visited(times, slow_from):
        alpha, w, active, slow = start.copy(), rows.combine(start * y), np.arange(rows.n), np.zeros(rows.n, np.uint8)
        *_, left, visits = _core.dual_cd_pass(
            "hinge", rows.core, y, np.ones(rows.n), rows.square_norms, alpha, w, 0.0, 0.0, 0.0, active, rows.n,
            np.arange(rows.n // 4), 2, 0.1, -0.1, slow, slow_from, 0.03, times, rows.n // 8, 0.0, 0.0, 0, split,
            threads, 80, _core.Workspace(),
        )  # fmt: skip
        assert 0 < left < rows.n
        return int(slow[active[:left]].sum()), left, visits

    marks, left, visits = visited(0, 1.0)
    assert 0 < 2 * marks < left
    assert visits == rows.n
    assert visited(1, 1.0)[2] == rows.n + marks
    marks, left, _ = visited(0, 1e-3)
    assert 2 * marks > left
    assert visited(1, 1e-3)[2] == rows.n  # the next pass will do


@pytest.mark.parametrize("active", [[3, 3], [2, 1]])
def test_rows_in_play_must_ascend_where_threads_share_them(active):
    """Two threads would move the same α."""
    again = np.zeros(N, np.uint8), 0.0, 0.0, 0, 0, 0.0, 0.0, 0, True, 2, 1, _core.Workspace()
    numbers = 0.0, 0.0, 0.0, np.array(active), 2, np.arange(1), 4, np.inf, -np.inf, *again
    rows = Rows(X)
    with pytest.raises(ValueError, match="must ascend"):
        _core.dual_cd_pass("hinge", rows.core, Y, np.ones(N), rows.square_norms, np.zeros(N), np.zeros(D), *numbers)


@both_storages
def test_smo(storage):
    """SMO: the same pairs, the same α; b lies between the last violators."""
    problem = make_problem(storage(X), Y, 5.0)
    state, found = SmoState(problem), []
    for begin, end in zip((0, *STEPS), STEPS, strict=False):
        state.run(end - begin, 1e-12)
        up = np.where(Y > 0, state.alpha < 5, state.alpha > 0)
        low = np.where(Y > 0, state.alpha > 0, state.alpha < 5)
        b = (state.f[up].max() + state.f[low].min()) / 2
        found.append((problem.weights(state.alpha), b, state.alpha.copy()))
    assert_same(states(textbook.smo(X, Y, 5.0)), found)


@both_storages
@pytest.mark.parametrize("order", ["cyclic", "back_and_forth", "random", "greedy"])
def test_hildreth(storage, order):
    """Hildreth's algorithm on the dual of the hinge loss: all four orders, and the box."""
    rows = Rows(storage(X))
    Q, b = rows.outer() * np.outer(Y, Y), -np.ones(N)
    draws = permutations(N, 3) if order == "random" else None
    expected = states(textbook.hildreth(Q, b, upper=0.4, order=order, draws=draws))
    found = [hildreth(Q, b, upper=0.4, order=order, max_steps=steps, seed=3).alpha for steps in STEPS]
    assert_same(expected, [(alpha, 0.0, alpha) for alpha in found])


@both_storages
@pytest.mark.parametrize("lam", [0.0, 3.0])
def test_least_squares_and_tikhonov(storage, lam):
    """The closed forms: w = (XᵀX + λI)⁻¹XᵀY."""
    (expected,) = textbook.tikhonov(X, Y, lam) if lam else textbook.least_squares(X, Y)
    c = 1 / (2 * lam) if lam else 1.0
    found = solve(Rows(storage(X)), Y[:, None], np.full(N, c), penalty=float(lam > 0), fit_intercept=False)
    assert np.linalg.norm(found.w[0] - expected.w) <= SAME * np.linalg.norm(expected.w)


@both_storages
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared"])
@pytest.mark.parametrize("average", [False, True])
def test_sgd_solver(storage, loss, average):
    """LinearSVM's sgd, against its formula in five lines of NumPy: rates, importances, bias, average."""
    c = np.random.default_rng(2).uniform(0.5, 2, N)
    c[3] = 0
    problem = make_problem(storage(X), Y, c, loss)
    draws = []
    module = sys.modules["widemargin.solvers.sgd"]
    original = module.shuffled_blocks

    def remember(rows, order):
        draws.append(original(rows, order))
        return draws[-1]

    module.shuffled_blocks = remember
    try:
        iterates = Sgd(rate=0.2, power=0.5, offset=3.0, average=average)(problem, tol=1e-3, seed=1)
        iterate = [next(iterates) for _ in range(3)][-1]
    finally:
        module.shuffled_blocks = original
    order = np.concatenate(draws)
    assert sorted(order) == sorted(np.repeat(np.delete(np.arange(N), 3), 3))
    w, b, path = np.zeros(D), 0.0, []
    for t, i in enumerate(order, 1):
        eta = 0.2 / (t + 3) ** 0.5
        pull = -eta * c[i] / c[c > 0].mean() * LOSSES[loss].slope(np.array([Y[i] * (X[i] @ w + b)]))[0] * Y[i]
        w, b = (1 - eta / c.sum()) * w + pull * X[i], b + pull
        path.append(np.append(w, b))
    expected = np.mean(path, axis=0) if average else path[-1]
    assert np.append(iterate.w, iterate.b) == pytest.approx(expected, rel=1e-10, abs=1e-12)
