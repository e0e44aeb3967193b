"""Kernel machines, trained: judged in extended precision, by SVC and a cone solver, and by the textbook's SMO."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from oracles import KERNELS, exact_kernel, kernel_minimum, kernel_values, make_kernel_problem, sharpened
from widemargin import InseparableError, KernelSVM, _core, kernel_training
from widemargin.kernel_certificate import certify
from widemargin.kernel_problem import KernelProblem
from widemargin.kernel_training import fit
from widemargin.kernels import Kernel, MatrixGram
from widemargin.textbook import kernels as textbook
from widemargin.textbook import smo

SEMIDEFINITE = [kernel for kernel in KERNELS.values() if kernel.semidefinite]
XOR = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]), np.array([1.0, -1.0, -1.0, 1.0])
SQUARE = Kernel("poly", gamma=1.0, degree=2, coef0=1.0)


def drawn(seed):
    """Rows ≥ 0, labels, one of the kernels, C from 1e-3 to 1e4, weights, and whether classes are balanced."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 61)), int(rng.integers(1, 9))
    X = rng.exponential(size=(n, d))
    y = np.where(X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1, -1
    weights = rng.exponential(size=n) if seed % 3 else np.ones(n)
    return X, y, SEMIDEFINITE[seed % 7], 10.0 ** rng.uniform(-3, 4), weights, "balanced" if seed % 2 else None


def estimator(kernel, C, **options):
    """The estimator with this kernel."""
    numbers = {"gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}
    return KernelSVM(C, kernel=kernel.name, **numbers, **options)


def moons(n, seed=0, noise=0.3):
    """Two half circles with noise, and labels ±1, in no order."""
    rng = np.random.default_rng(seed)
    angles, y = np.pi * rng.random(n), np.where(rng.random(n) < 0.5, 1.0, -1.0)
    rows = np.column_stack([np.cos(angles) + (y < 0), y * np.sin(angles) + 0.5 * (y < 0)])
    return rows + noise * rng.standard_normal((n, 2)), y


@pytest.mark.parametrize("seed", range(50))
def test_the_optimum(seed):
    """SVC(tol=1e-10) and extended precision: the objective to 1e-9, decision values to 1e-6, and no gap too small."""
    X, y, kernel, C, weights, balance = drawn(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # C = 1e4 and the like: the rounding of its sums is more than 1e-10
        model = estimator(kernel, C, class_weight=balance, tol=1e-10).fit(X, y, weights)
    c = C * weights
    if balance:
        c = c * np.where(y > 0, 1 / weights[y > 0].sum(), 1 / weights[y < 0].sum()) * weights.sum() / 2
    certificate, K = model.certificate_, exact_kernel(kernel, X, X)
    assert certificate.relative_gap <= 2e-9
    primal, dual = kernel_values(K, y, c, certificate.alpha, model.intercept_[0])
    alpha, b = sharpened(K, y, c, certificate.alpha)
    highest, lowest = kernel_values(K, y, c, alpha, b)
    assert ((alpha >= -1e-12 * c) & (alpha <= c * (1 + 1e-12))).all()
    assert highest - lowest <= 1e-13 * lowest  # so this is the optimum
    assert certificate.gap >= primal - lowest
    assert certificate.gap >= highest - dual
    assert abs(primal - lowest) <= 1e-9 * lowest
    # b may be any number of an interval; f is one function.
    exact, found = K @ (alpha * y), model.decision_function(X) - model.intercept_[0]
    assert abs((found - found[0]) - (exact - exact[0])).max() <= 1e-6 * max(1.0, float(abs(exact).max()))

    theirs = SVC(kernel="precomputed", tol=1e-10, max_iter=10**7).fit(K.astype(float), y, c)
    alpha = np.zeros(len(y))
    alpha[theirs.support_] = abs(theirs.dual_coef_[0])
    upper, lower = kernel_values(K, y, c, alpha, theirs.intercept_[0])
    assert lower <= lowest * (1 + 1e-9)
    if C < 1000:  # beyond, what LIBSVM loses by kernel values in single precision is more
        assert lower >= lowest * (1 - 1e-9)
    assert upper >= lowest * (1 - 1e-12)
    # ½‖f − f*‖² is at most primal − minimum: as far as SVC's f may be from the optimal one, it may be from ours.
    apart = found - K @ (alpha * y)
    longest = float(np.sqrt(np.diag(K) + K[0, 0] - 2 * K[0]).max())
    reach = longest * np.sqrt(2 * float(max(upper - lowest, 0)))
    assert abs(apart - apart[0]).max() <= reach + 1e-6 * max(1.0, float(abs(exact).max()))
    best = kernel_minimum(K.astype(float), y, c)  # which at such C may give up
    assert (best is None and C > 1000) or abs(best - lowest) <= 1e-9 * lowest


@pytest.mark.parametrize("seed", range(8))
def test_the_hard_margin(seed):
    """The cone solver without upper bounds, on classes that Φ separates; the width is that of the optimum."""
    kernel = [KERNELS["rbf"], KERNELS["laplacian"], KERNELS["poly"], SQUARE][seed % 4]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 2))
    y = np.where((X**2).sum(axis=1) + 0.1 * rng.standard_normal(40) * (seed % 4 < 2) > 1.2, 1.0, -1.0)
    model = estimator(kernel, np.inf, tol=1e-8).fit(X, y)
    K = exact_kernel(kernel, X, X)
    best = kernel_minimum(K.astype(float), y, np.full(40, np.inf))
    certificate = model.certificate_
    assert certificate.relative_gap <= 1e-8
    assert certificate.primal == pytest.approx(best, rel=3e-8)
    assert certificate.width == pytest.approx(2 / np.sqrt(2 * best), rel=3e-8)
    assert (y * model.decision_function(X)).min() == pytest.approx(1, abs=1e-9)


def test_no_hard_margin():
    """Two equal rows with two labels, or a row amid the others: weights of both classes with the same mean of Φ."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = np.where(rng.random(80) < 0.5, 1.0, -1.0)
    y[:2] = 1, -1
    twice = X.copy()
    twice[50] = twice[0]
    y[50] = -y[0]
    hulls = X.copy()
    hulls[50] = X[y == y[0]].mean(axis=0)  # in the hull of the other class
    for kernel, rows in (
        (KERNELS["rbf"], twice),
        (KERNELS["laplacian"], twice),
        (KERNELS["additive_chi2"], abs(twice)),
        (KERNELS["cosine"], hulls),
        (Kernel("linear"), X),
        (SQUARE, X),
    ):
        with pytest.raises(InseparableError) as caught:
            fit([make_kernel_problem(kernel, rows, y, np.inf)])
        error = caught.value
        assert (y[error.positive] > 0).all()
        assert (y[error.negative] < 0).all()
        weights = np.zeros(80, np.longdouble)
        weights[error.positive], weights[error.negative] = error.positive_weights, -error.negative_weights
        K = exact_kernel(kernel, rows, rows)
        assert weights @ K @ weights <= 1e-13 * (abs(weights) @ abs(K).max(axis=1))
        assert weights[weights > 0].sum() == pytest.approx(1)
        assert weights[weights < 0].sum() == pytest.approx(-1)


@pytest.mark.parametrize(
    ("book", "kernel", "C", "seed"),
    [
        (textbook.gaussian(0.7), Kernel("rbf", 0.7), 0.1, 3),
        (textbook.gaussian(0.7), Kernel("rbf", 0.7), 0.1, 9),
        (textbook.laplacian(0.5), Kernel("laplacian", 0.5), 10.0, 2),
        (textbook.laplacian(0.5), Kernel("laplacian", 0.5), 10.0, 8),
    ],
)
def test_smo_is_the_textbook_s(book, kernel, C, seed):
    """The textbook's SMO on rows without ties: the same α after every round, hundreds of steps of pairs alone.

    The working set is all rows. Where two e are equal but for rounding, the textbook takes the first, the compiled one
    the larger: other steps to the same end, which the other tests judge.
    """
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((60, 3)), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    steps = list(smo(X, y, C, kernel=book, max_steps=1000, tol=1e-9))
    alpha, e = np.zeros(60), y.copy()
    source = make_kernel_problem(kernel, X, y).gram.source(single=False, memory=0)
    solver = _core.KernelSmo64(source, [(0, 60)], y, np.full(60, C), alpha, e, 100, 1)
    solver.conjugate = False
    compared = []
    while solver.steps < len(steps):
        before = solver.steps
        solver.run(1, 0.0)
        assert solver.steps > before
        if solver.steps <= len(steps):
            assert abs(alpha - steps[solver.steps - 1].alpha).max() <= 1e-10 * C
            compared.append(solver.steps)
    assert len(compared) >= 8
    assert compared[-1] > 80


@pytest.mark.parametrize("kind", ["32", "64"])
def test_conjugate_steps(kind):
    """Steps of pairs alone: the same optimum at a large C, in at most four fifths of the steps."""
    X, y = moons(400)
    gram = make_kernel_problem(Kernel("rbf", 1.0), X, y).gram
    optimum = fit([make_kernel_problem(Kernel("rbf", 1.0), X, y, 1000.0)], tol=1e-9)[0].certificate
    taken = {}
    for conjugate in (False, True):
        alpha, e = np.zeros(400), y.copy()
        source = gram.source(single=kind == "32", memory=0)
        solver = getattr(_core, f"KernelSmo{kind}")(source, [(0, 400)], y, np.full(400, 1000.0), alpha, e, 400, 1)
        solver.conjugate = conjugate
        while solver.status[1] - solver.status[2] > 1e-3 * solver.status[2] or not solver.steps:
            solver.run(1, 1e-3)
        taken[conjugate] = solver.steps
        assert 0 <= alpha.min() <= alpha.max() <= 1000
        assert abs(alpha @ y) <= 1e-9 * alpha.sum()
        assert optimum.dual * (1 - 2e-3) <= alpha.sum() - alpha * y @ (y - e) / 2 <= optimum.primal * (1 + 1e-5)
    assert taken[True] <= 0.8 * taken[False]


def bits(found):
    """What is compared to the last bit."""
    return [(one.alpha.tobytes(), one.proved.b, one.proved.scores.tobytes(), one.iterations) for one in found]


@pytest.mark.parametrize("n", [300, 5000])
def test_sources_agree(n):
    """Rows computed, kept, or given; float32 and float64 reach the same optimum, within the sum of their gaps."""
    X, y = moons(n)
    more = np.column_stack([X, np.zeros((n, 70))])  # so many columns that rows are kept
    kernel = Kernel("rbf", gamma=1.0)
    tol = 1e-6
    problems = [make_kernel_problem(kernel, rows, y, 3.0) for rows in (X, X.astype(np.float32), more)]
    if n < 1000:
        K = kernel.matrix(X, X)
        problems += [make_kernel_problem(None, one, y, 3.0) for one in (K, K.astype(np.float32) + 0.0)]
        problems[-1] = KernelProblem.of(MatrixGram(problems[-1].gram.K, 1), ((0, n),), y, np.full(n, 3.0))
        problems[-1].gram.semidefinite = True  # but for the rounding of float32
    found = [fit([problem], tol=tol)[0] for problem in problems]
    best = max(one.certificate.dual for one in found)
    for one in found:
        assert one.certificate.relative_gap <= tol
        assert one.certificate.primal <= best * (1 + 2e-6)
        assert one.certificate.dual >= best * (1 - 2e-6)
        assert (np.sign(one.proved.scores + one.proved.b) == y).mean() > 0.85


@pytest.mark.parametrize("single", [True, False])
def test_little_memory_gives_the_same_bits(single, monkeypatch):
    """The fit with room for all rows: the same bits with 64, 67, 101 and 700 of them, through many rounds."""
    monkeypatch.setattr(kernel_training, "LARGEST", 256)
    monkeypatch.setattr(kernel_training, "REFINED", 0)
    X, y = moons(700)
    X = np.column_stack([X, np.zeros((700, 70))])
    problem = make_kernel_problem(Kernel("rbf", gamma=1.0), X, y, 10.0)
    problem.gram.single = single
    row = 704 * (4 if single else 8)
    found = [bits(fit([problem], tol=1e-7, memory=rows * row, refined=False)) for rows in (10_000, 64, 67, 101, 700)]
    assert found.count(found[0]) == len(found)


@pytest.mark.parametrize("n", [400, 3000])
def test_threads_change_nothing(n):
    """One thread: the same bits at 2 and 8; dense and sparse."""
    X, y = moons(n)
    X[abs(X) < 0.4] = 0
    for rows in (X, sp.csr_array(np.column_stack([X, np.zeros((n, 5))]))):
        found = [
            bits(fit([make_kernel_problem(Kernel("rbf"), rows, y, 10.0, threads)], tol=1e-5, threads=threads))
            for threads in (1, 2, 8)
        ]
        assert found.count(found[0]) == 3


def pairs(gram):
    """Problems of two stretches of the rows each."""
    thirds = [(k * (gram.n // 3), gram.n // 3) for k in range(3)]
    problems = []
    for first, second in ((0, 1), (0, 2), (1, 2)):
        labels = np.repeat([1.0, -1.0], gram.n // 3)
        problems.append(KernelProblem.of(gram, (thirds[first], thirds[second]), labels, np.full(len(labels), 2.0)))
    return problems


@pytest.mark.parametrize(("n", "working_memory"), [(300, 1e9), (300, 3e5), (4500, 5e7)])
def test_a_problem_of_some_rows_is_the_problem_of_these_rows_alone(n, working_memory):
    """Three pairs of classes, on one kernel matrix or, where it does not fit, its rows: the optimum of each alone."""
    X, _ = moons(n)
    X = X[np.argsort(X[:, 0] + 0.3 * np.random.default_rng(0).standard_normal(n))]
    gram = make_kernel_problem(Kernel("laplacian", gamma=0.7), X, np.ones(n)).gram
    problems, tol = pairs(gram), 1e-8
    together = fit(problems, tol=tol, working_memory=working_memory)
    assert len(together) == 3
    for problem, found in zip(problems, together, strict=True):
        index = problem.index
        alone = fit([make_kernel_problem(gram.kernel, X[index], problem.y, problem.c)], tol=tol)[0]
        assert np.array_equal(found.index, index)
        assert found.certificate.relative_gap <= tol
        assert found.certificate.dual == pytest.approx(alone.certificate.dual, rel=2 * tol)
        reach = np.sqrt(2 * (found.certificate.gap + alone.certificate.gap))  # k(x, x) = 1
        apart = found.proved.scores - alone.proved.scores
        assert abs(apart - apart.mean()).max() <= 4 * reach
        again = certify(make_kernel_problem(gram.kernel, X[index], problem.y, problem.c), found.alpha)
        rounding = again.certificate.rounding + found.certificate.rounding
        assert abs(again.certificate.gap - found.certificate.gap) <= rounding


@pytest.mark.parametrize("threads", [2, 8])
def test_pairs_together_do_not_depend_on_threads(threads):
    """One thread: the same bits, whether the whole matrix is shared or rows are computed."""
    X, _ = moons(300)
    for working_memory in (1e9, 3e5):
        found = []
        for some in (1, threads):
            gram = make_kernel_problem(Kernel("rbf"), X, np.ones(300), 1.0, some).gram
            found.append(bits(fit(pairs(gram), threads=some, working_memory=working_memory)))
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("n", "largest", "options"),
    [
        (300, 8192, {}),
        (1500, 128, {}),
        (5000, 8192, {}),
        (300, 64, {"memory": 0}),
        (900, 8192, {"pairs": True}),
        (900, 8192, {"pairs": True, "working_memory": 1e6}),
    ],
)
def test_going_on_from_a_kept_state(n, largest, options, monkeypatch):
    """The undisturbed run: the same bits from every state that it keeps."""
    monkeypatch.setattr(kernel_training, "LARGEST", largest)
    monkeypatch.setattr(kernel_training, "ROUNDS", 1)
    options = dict(options)
    X, y = moons(n)
    X = np.column_stack([X, np.zeros((n, 70))])  # rows are kept while there is room
    whole = make_kernel_problem(Kernel("rbf", gamma=1.0), X, y, 10.0)
    problems = pairs(whole.gram) if options.pop("pairs", False) else [whole]
    options = {"tol": 1e-5, **options}
    states = []
    undisturbed = bits(fit(problems, keep=lambda state: states.append(state()), **options))
    assert len(states) >= 2
    for state in states[:: max(1, len(states) // 6)]:
        assert bits(fit(problems, resumed=state, **options)) == undisturbed


@pytest.mark.parametrize(("gamma", "C", "noise"), [(1.0, 1e3, 0.1), (30.0, 10.0, 0.4)])
def test_going_on_in_float64(gamma, C, noise, monkeypatch):
    """The undisturbed run: the same bits from every state, also from those kept where rows in float32 no longer do."""
    monkeypatch.setattr(kernel_training, "PATIENCE", 1)
    monkeypatch.setattr(kernel_training, "ROUNDS", 1)
    X, y = moons(900, noise=noise)
    problems, states = pairs(make_kernel_problem(Kernel("rbf", gamma=gamma), X, y).gram), []
    problems = [KernelProblem.of(one.gram, one.segments, one.y, C * one.c) for one in problems]
    options = {"tol": 1e-11, "refined": False, "working_memory": 2e6, "max_iter": 60}
    undisturbed = bits(fit(problems, keep=lambda state: states.append(state()), **options))
    precise = [state["single"] for state in states]
    assert True in precise
    assert False in precise
    at = precise.index(False)
    for state in states[at - 1 : at + 2]:
        assert bits(fit(problems, resumed=state, **options)) == undisturbed


def test_going_on_with_a_kernel_that_is_not_semidefinite():
    """The undisturbed run: nothing is proved, and the same bits, from every state that it keeps."""
    X, y = moons(400)
    problem = make_kernel_problem(Kernel("sigmoid", gamma=1.0, coef0=-1.0), X, y, 10.0)
    states = []
    (undisturbed,) = fit([problem], tol=1e-4, keep=lambda state: states.append(state()))
    assert undisturbed.certificate.gap == np.inf
    assert undisturbed.curvature.value < 0
    for state in states:
        (found,) = fit([problem], tol=1e-4, resumed=state)
        assert bits([found]) == bits([undisturbed])
        assert found.certificate.gap == np.inf
        assert str(found.curvature) == str(undisturbed.curvature)


@pytest.mark.parametrize("n", [300, 2500])
def test_negative_curvature(n):
    """A sigmoid: vᵀKv < 0 in extended precision for the rows and weights that are named; the KKT conditions hold."""
    X, y = moons(n)
    kernel = Kernel("sigmoid", gamma=1.0, coef0=-1.0)
    (found,) = fit([make_kernel_problem(kernel, X, y, 10.0)], tol=1e-4)
    proof = found.curvature
    K = exact_kernel(kernel, X[proof.rows], X[proof.rows])
    assert float(proof.weights @ K @ proof.weights) == pytest.approx(proof.value, rel=1e-6)
    assert proof.value < 0
    assert abs(proof.weights.sum()) < 1e-9
    assert found.certificate.relative_gap == np.inf
    assert found.certificate.kkt_violation <= 1e-3


def test_every_claim_is_proved():
    """The last line of the history is the certificate's; gaps that are proved bound what the solver saw of the dual."""
    X, y = moons(600)
    for tol in (1e-1, 1e-3, 1e-6):
        (found,) = fit([make_kernel_problem(Kernel("rbf"), X, y, 10.0)], tol=tol)
        last = found.history[-1]
        assert last.proved
        assert (last.primal, last.dual, last.gap) == (
            found.certificate.primal,
            found.certificate.dual,
            found.certificate.gap,
        )
        assert found.certificate.relative_gap <= tol
        duals = [record.dual for record in found.history]
        assert max(duals) <= found.certificate.primal * (1 + 1e-6)


@pytest.mark.parametrize("tol", [1e-13, 1e-16, 0.0])
def test_accuracy_beyond_rounding(tol):
    """It ends where rounding is all that is left of the gap, and the optimum of the cone solver is within it."""
    X, y = moons(150)
    for C in (0.1, 10.0, 1e5):
        problem = make_kernel_problem(Kernel("rbf"), X, y, C)
        (found,) = fit([problem], tol=tol)
        certificate = found.certificate
        assert certificate.relative_gap <= 1e-8
        best = kernel_minimum(problem.gram.block(problem.index, problem.index), y, problem.c)
        assert (best is None and C > 1000) or abs(certificate.dual - best) <= 1e-9 * best


@pytest.mark.parametrize("name", ["cosine", "linear"])
def test_a_large_cost(name):
    """C = 1e7 on classes that overlap, for which SMO alone takes thousands of rounds: optimal in extended precision."""
    rng = np.random.default_rng(74)
    X = rng.exponential(size=(60, 4))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0.7, 1.0, -1.0)
    problem = make_kernel_problem(KERNELS[name], X, y, 1e7)
    (found,) = fit([problem], tol=1e-4, max_iter=100)
    assert found.certificate.relative_gap <= 1e-4  # rounding, of slacks times C
    K = exact_kernel(KERNELS[name], X, X)
    primal, dual = kernel_values(K, y, problem.c, *sharpened(K, y, problem.c, found.alpha))
    assert abs(primal - dual) <= 1e-10 * dual
    assert abs(found.certificate.dual - dual) <= 1e-8 * dual


def test_rounds_that_are_limited():
    """max_iter rounds and no more, and the certificate of what they reached."""
    X, y = moons(5000)
    problem = make_kernel_problem(Kernel("rbf"), X, y, 100.0)
    before = np.inf
    for rounds in (1, 2, 5):
        (found,) = fit([problem], tol=1e-9, max_iter=rounds)
        assert found.iterations == rounds
        assert found.certificate.gap == certify(problem, found.alpha).certificate.gap
        assert found.certificate.dual > 0
        before = min(before, found.certificate.relative_gap)
    assert 1e-9 < before < 1


def test_a_start_is_gone_on_from():
    """From the optimum: the same optimum in at most a round; from any other point, too."""
    X, y = moons(400)
    problem = make_kernel_problem(Kernel("rbf"), X, y, 10.0)
    (cold,) = fit([problem], tol=1e-8)
    (warm,) = fit([problem], tol=1e-8, starts=[cold.alpha])
    assert warm.iterations <= 1
    assert warm.certificate.relative_gap <= 1e-8
    (other,) = fit([problem], tol=1e-8, starts=[20 * np.random.default_rng(0).random(400) - 5])
    for one in (warm, other):
        assert one.certificate.dual == pytest.approx(cold.certificate.dual, rel=2e-8)


def test_interrupted(monkeypatch):
    """Ctrl-C after two looks: the best α so far with its certificate."""
    monkeypatch.setattr(kernel_training, "ROUNDS", 1)
    X, y = moons(5000)
    problem = make_kernel_problem(Kernel("rbf"), X, y, 100.0)
    looks = []

    def watch(*seen):
        looks.append(seen)
        if len(looks) == 2:
            raise KeyboardInterrupt

    (found,) = fit([problem], tol=1e-9, watch=watch)
    assert found.interrupted
    assert found.iterations == 2
    assert found.certificate.gap == certify(problem, found.alpha).certificate.gap < np.inf
