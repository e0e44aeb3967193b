"""The textbook's algorithms with a kernel, against the compiled linear ones on the features Φ, and against LIBSVM.

(1 + x·z)² is the inner product of `quadratic_features`: on the rows Φ(x) a linear algorithm takes the steps that its
kernel version takes on x. w(α) = Σ αᵢyᵢΦ(xᵢ) is what the two have in common.
"""

from itertools import islice

import numpy as np
import pytest
from sklearn.datasets import make_circles, make_moons
from sklearn.metrics import pairwise
from sklearn.svm import SVC

import widemargin
from oracles import make_problem, noisy
from widemargin import _core
from widemargin.data import Rows
from widemargin.solvers import LazyWeights, PerceptronRule
from widemargin.solvers.smo import SmoState
from widemargin.textbook import dual_cd, hildreth, perceptron, smo
from widemargin.textbook.hildreth import permutations
from widemargin.textbook.kernels import chi2, gaussian, laplacian, linear, polynomial, quadratic_features, sigmoid

#: Largest relative difference of two computations of the same steps.
SAME = 1e-10
#: LIBSVM's kernel values are of single precision: decision values agree to this.
LIBSVM = 1e-5
N = 60
X, _ = noisy(N, 3, seed=4)
#: The sphere ‖x‖² = 2.4 and some noise decide the labels: no plane separates them, and Φ not quite.
Y = np.where((X**2).sum(axis=1) + np.random.default_rng(1).normal(0, 0.3, N) > 2.4, 1.0, -1.0)
PHI = quadratic_features(X)
QUADRATIC = polynomial(2, 1.0)
STEPS = 400
DRAWS = np.random.default_rng(0).integers(0, N, STEPS)
XOR = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]), np.array([1.0, -1.0, -1.0, 1.0])


def circles():
    """Two concentric circles, the inner one positive."""
    rows, labels = make_circles(80, factor=0.5, noise=0.05, random_state=0)
    return rows, 2.0 * labels - 1


def weights(step):
    """w = Σ αᵢyᵢΦ(xᵢ) of a step with the quadratic kernel."""
    return (step.alpha * Y) @ PHI


def assert_close(found, expected):
    """Equal but for rounding, in norm."""
    assert np.linalg.norm(found - expected) <= SAME * max(1.0, np.linalg.norm(expected))


@pytest.mark.parametrize("power", [0.0, 0.5])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_kernel_perceptron_is_the_compiled_one_on_features(power, fit_intercept):
    """The compiled perceptron on Φ(x): the same w and b after every single step."""
    rule, lazy, rows, y = PerceptronRule(0.7, power), LazyWeights(PHI.shape[1]), Rows(PHI), Y.copy()
    steps = perceptron(X, Y, DRAWS, eta=0.7, power=power, fit_intercept=fit_intercept, kernel=QUADRATIC)
    for t, step in enumerate(steps):
        rule(lazy, rows, y, DRAWS[t : t + 1].copy(), bias=fit_intercept)
        assert_close(weights(step), lazy.w)
        assert step.b == pytest.approx(lazy.b, abs=SAME)
    assert step.t == STEPS


def test_kernel_dual_cd_is_the_compiled_one_on_features():
    """The compiled dual coordinate descent on Φ(x), no shrinking, no bias: the same α and w after every step."""
    rows, C = Rows(PHI), 0.3
    alpha, w = np.zeros(N), np.zeros(PHI.shape[1])
    for step in dual_cd(X, Y, C, DRAWS, kernel=QUADRATIC):
        once = np.zeros(N, np.uint8), 0.0, 0.0, 0, 0, 0.0, 0.0, 0, False, 1, 1, _core.Workspace()
        visit = 0.0, 0.0, 0.0, np.array([step.i]), 1, np.arange(1), 4, np.inf, -np.inf, *once
        _core.dual_cd_pass("hinge", rows.core, Y, np.full(N, C), rows.square_norms, alpha, w, *visit)
        assert_close(step.alpha, alpha)
        assert_close(weights(step), w)
        assert step.objective == pytest.approx(alpha.sum() - w @ w / 2, rel=SAME)
    assert 0 < (alpha == C).sum() < N


@pytest.mark.parametrize("order", ["cyclic", "back_and_forth", "random", "greedy"])
def test_kernel_hildreth_is_the_compiled_one_on_features(order):
    """The compiled Hildreth on the inner products of Φ(x): the same α after 1, 7 and 400 steps, in all four orders."""
    signs, b = np.outer(Y, Y), -np.ones(N)
    draws = permutations(N, 3) if order == "random" else None
    steps = list(
        islice(hildreth(signs * QUADRATIC(X, X), b, upper=0.3, order=order, draws=draws, max_steps=STEPS), STEPS)
    )
    for count in (1, 7, STEPS):
        found = widemargin.hildreth(signs * (PHI @ PHI.T), b, upper=0.3, order=order, max_steps=count, seed=3)
        assert_close(found.alpha, steps[min(count, len(steps)) - 1].alpha)


@pytest.mark.parametrize("C", [0.1, 5.0])
def test_kernel_smo_is_the_compiled_one_on_features(C):
    """The compiled SMO on Φ(x): the same pair and α at every single step, down to a violation of 1e-6."""
    state, alpha = SmoState(make_problem(PHI, Y, C)), np.zeros(N)
    for step in smo(X, Y, C, kernel=QUADRATIC, tol=1e-6):
        assert state.run(1, 1e-6)[0] == 1
        assert set(np.flatnonzero(state.alpha != alpha)) == set(step.i)
        assert_close(step.alpha, state.alpha)
        alpha = state.alpha.copy()
    assert state.run(1, 1e-6)[0] == 0
    assert step.t > 30


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_perceptron_with_the_linear_kernel_is_the_perceptron(start, fit_intercept):
    """On whole numbers nothing is rounded: bit for bit the linear generator's w, b and objective, from any start."""
    whole = np.round(3 * X)
    alpha = np.arange(N) % 3.0 if start else None
    first = None if alpha is None else (alpha * Y) @ whole
    plain = perceptron(whole, Y, DRAWS, start=first, fit_intercept=fit_intercept)
    kernel = perceptron(whole, Y, DRAWS, start=alpha, fit_intercept=fit_intercept, kernel=linear)
    for one, other in zip(plain, kernel, strict=True):
        assert ((other.alpha * Y) @ whole).tolist() == one.w.tolist()
        assert (other.t, other.i, other.b, other.eta, other.objective) == (one.t, one.i, one.b, one.eta, one.objective)
        assert (one.alpha, other.w.size) == (None, 0)


def test_dual_cd_with_the_linear_kernel_is_dual_cd():
    """The linear generator's α, also of an empty row, whose α goes to C; and Hildreth's on the same matrix."""
    some = X.copy()
    some[3] = 0
    steps = list(dual_cd(some, Y, 0.5, DRAWS, kernel=linear))
    for one, other in zip(dual_cd(some, Y, 0.5, DRAWS), steps, strict=True):
        assert_close(other.alpha, one.alpha)
        assert other.objective == pytest.approx(one.objective, rel=SAME)
        assert (other.t, other.i, other.b, other.w.size) == (one.t, one.i, 0.0, 0)
    assert steps[-1].alpha[3] == 0.5
    matrix = np.outer(Y, Y) * linear(some, some)
    for one, other in zip(hildreth(matrix, -np.ones(N), upper=0.5, draws=DRAWS), steps, strict=False):
        assert_close(other.alpha, one.alpha)


def test_smo_with_the_linear_kernel_is_smo():
    """Bit for bit the linear generator: the same matrix of inner products."""
    for one, other in zip(smo(X, Y, 1.0), smo(X, Y, 1.0, kernel=linear), strict=True):
        assert (one.i, one.b, one.objective, one.alpha.tolist()) == (
            other.i,
            other.b,
            other.objective,
            other.alpha.tolist(),
        )
        assert other.w.size == 0


KERNELS = {
    "linear": (linear, {"kernel": "linear"}),
    "poly": (polynomial(3, 0.5, 0.3), {"kernel": "poly", "degree": 3, "coef0": 0.5, "gamma": 0.3}),
    "rbf": (gaussian(0.7), {"kernel": "rbf", "gamma": 0.7}),
    "laplacian": (laplacian(0.5), {"kernel": laplacian(0.5)}),
}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("C", [0.5, 5.0])
def test_kernel_smo_ends_where_libsvm_does(name, C):
    """SVC(tol=1e-10): the same decision values, of the rows and of new ones, to the rounding of its kernel values."""
    kernel, options = KERNELS[name]
    *_, last = smo(X, Y, C, kernel=kernel)
    theirs = SVC(C=C, tol=1e-10, **options).fit(X, Y)
    Z = np.vstack([X, noisy(40, 3, seed=9)[0]])
    scores = (last.alpha * Y) @ kernel(X, Z) + last.b
    expected = theirs.decision_function(Z)
    assert np.abs(scores - expected).max() <= LIBSVM * np.abs(expected).max()
    coef = np.zeros(N)
    coef[theirs.support_] = theirs.dual_coef_[0]
    dual = np.abs(coef).sum() - coef @ kernel(X, X) @ coef / 2
    assert last.objective == pytest.approx(dual, rel=LIBSVM)
    assert last.objective >= dual - SAME * abs(dual)


@pytest.mark.parametrize("kernel", [polynomial(2), gaussian(1.0)], ids=["polynomial", "gaussian"])
@pytest.mark.parametrize("rows", [XOR, circles()], ids=["xor", "circles"])
def test_kernel_perceptron_separates_what_no_line_does(rows, kernel):
    """All right in the end, with no more mistakes than Novikoff's (R/γ)² in Φ; the linear one is never done."""
    points, y = rows
    n = len(y)
    draws = np.tile(np.arange(n), 100)
    steps = list(perceptron(points, y, draws, kernel=kernel))
    assert steps[-1].objective == 0
    assert (y * ((steps[-1].alpha * y) @ kernel(points, points)) > 0).all()
    assert steps[-n - 1].alpha.tolist() == steps[-1].alpha.tolist()
    # The bound holds with the geometric margin of any w that separates; that of a fit with C = ∞ is the tightest.
    *_, hard = dual_cd(points, y, np.inf, draws, kernel=kernel)
    K = kernel(points, points)
    margin = (y * ((hard.alpha * y) @ K)).min()
    norm = (hard.alpha * y) @ K @ (hard.alpha * y)
    assert margin > 0
    assert steps[-1].alpha.sum() <= K.diagonal().max() * norm / margin**2
    *_, last = perceptron(points, y, draws, fit_intercept=True)
    assert (y * (points @ last.w + last.b) <= 0).any()


def test_kernel_perceptron_counts_its_mistakes():
    """With η = 1, αᵢ is the number of mistakes on example i, counted by hand from the scores before each step."""
    points, y = make_moons(40, noise=0.1, random_state=1)
    y, kernel, mistakes, b = 2.0 * y - 1, gaussian(2.0), np.zeros(40), 0.0
    for step in perceptron(points, y, np.arange(400) % 40, fit_intercept=True, kernel=kernel):
        if y[step.i] * ((mistakes * y) @ kernel(points, points[step.i : step.i + 1])[:, 0] + b) <= 0:
            mistakes[step.i] += 1
            b += y[step.i]
        assert (step.alpha.tolist(), step.b) == (mistakes.tolist(), b)


def test_smo_takes_the_first_of_equal_rows():
    """Ties, by the rule as it is written: every row twice, and the second of two is never taken before the first."""
    points, y = XOR
    (first, *_) = smo(np.vstack([points, points]), np.concatenate([y, y]), 1.0, kernel=polynomial(2))
    assert first.i == (0, 1)
    taken = [step.i for step in smo(np.vstack([points, points]), np.concatenate([y, y]), 0.05, kernel=polynomial(2))]
    assert taken[:2] == [(0, 1), (3, 2)]


def test_smo_with_a_row_where_every_feature_is_0():
    """k(x, x) = 0: no curvature against another such row, the step goes to the bound; the primal equals the dual."""
    some = X.copy()
    some[[2, 5]] = 0.0
    y = Y.copy()
    y[[2, 5]] = 1.0, -1.0
    *_, last = smo(some, y, 0.5)
    primal = last.w @ last.w / 2 + 0.5 * np.maximum(0, 1 - y * (some @ last.w + last.b)).sum()
    assert primal == pytest.approx(last.objective, rel=1e-9)


@pytest.mark.parametrize("generator", ["perceptron", "dual_cd", "smo"])
def test_steps_with_a_kernel_are_the_callers(generator):
    """A caller who spoils every array sees the same steps as one who does not; w is empty, α is there."""
    run = {
        "perceptron": lambda: perceptron(X, Y, DRAWS[:50], kernel=QUADRATIC, fit_intercept=True),
        "dual_cd": lambda: dual_cd(X, Y, 1.0, DRAWS[:50], kernel=QUADRATIC),
        "smo": lambda: smo(X, Y, 1.0, kernel=QUADRATIC, max_steps=50),
    }[generator]
    kept = list(run())
    assert [step.t for step in kept] == list(range(1, len(kept) + 1))
    for step, spoilt in zip(kept, run(), strict=True):
        assert np.array_equal(step.alpha, spoilt.alpha)
        assert step.objective == spoilt.objective
        assert step.w.size == 0
        spoilt.alpha[:] = np.nan


def test_kernels_equal_those_of_scikit_learn():
    """sklearn.metrics.pairwise, on non-negative rows with empty columns, as chi2 wants them."""
    A, B = np.maximum(X[:20], 0), np.maximum(X[20:45], 0)
    assert polynomial(3, 0.5, 0.2)(A, B) == pytest.approx(pairwise.polynomial_kernel(A, B, 3, 0.2, 0.5))
    assert gaussian(0.7)(A, B) == pytest.approx(pairwise.rbf_kernel(A, B, 0.7))
    assert laplacian(0.7)(A, B) == pytest.approx(pairwise.laplacian_kernel(A, B, 0.7))
    assert chi2(0.7)(A, B) == pytest.approx(pairwise.chi2_kernel(A, B, 0.7))
    assert sigmoid(0.3, -0.5)(A, B) == pytest.approx(pairwise.sigmoid_kernel(A, B, 0.3, -0.5))
    with pytest.raises(ValueError, match="≥ 0"):
        chi2(1.0)(-A, B)


def test_a_sigmoid_need_not_be_an_inner_product():
    """A Φ would make every aᵀKa = ‖Σ aᵢΦ(xᵢ)‖² at least 0; the smallest eigenvalue is below it."""
    assert np.linalg.eigvalsh(sigmoid(1.0, -1.0)(X, X)).min() < -1e-3
    for kernel in (linear, polynomial(3), gaussian(0.7), laplacian(0.7)):
        assert np.linalg.eigvalsh(kernel(X, X)).min() > -1e-9
    counts = np.abs(X)
    assert np.linalg.eigvalsh(chi2(0.7)(counts, counts)).min() > -1e-9
