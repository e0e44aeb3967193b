"""Certificates of kernel machines: judged in extended precision, by a cone solver, and by closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import KERNELS, exact_kernel, kernel_minimum, kernel_values, make_kernel_problem
from strategies import dual_points, kernel_problems
from widemargin.kernel_certificate import certify, prove_inseparable
from widemargin.kernel_problem import KernelProblem
from widemargin.kernels import Kernel, MatrixGram

#: Relative accuracy of the cone solver's optimal values.
CONE = 1e-7
XOR = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]), np.array([1.0, -1.0, -1.0, 1.0])
SQUARE = Kernel("poly", gamma=1.0, degree=2, coef0=1.0)


def exact_of(problem):
    """The kernel matrix of a problem, by its formula in extended precision."""
    return exact_kernel(problem.gram.kernel, problem.gram.rows.X, problem.gram.rows.X)


@given(st.data())
def test_weak_duality(data):
    """Any α, any weights: the optimum of the cone solver lies between dual and primal, and no farther than the gap."""
    problem = data.draw(kernel_problems())
    certificate = certify(problem, data.draw(dual_points(problem))).certificate
    optimum = kernel_minimum(exact_of(problem).astype(float), problem.y, problem.c)
    off = CONE * max(optimum, certificate.primal * 1e-3) + certificate.rounding
    assert certificate.dual <= optimum + off
    assert certificate.primal >= optimum - off
    assert certificate.gap >= certificate.primal - optimum - off
    assert certificate.gap >= 0


@given(st.data())
def test_primal_and_dual_are_those_of_the_formula(data):
    """Both objectives in extended precision from K by its formula: `rounding` bounds what double precision adds."""
    problem = data.draw(kernel_problems())
    proved = certify(problem, data.draw(dual_points(problem)))
    certificate, y, c = proved.certificate, problem.y, problem.c
    assert (certificate.alpha >= 0).all()
    assert (certificate.alpha <= c).all()
    assert abs(certificate.alpha @ y) <= 1e-14 * certificate.alpha.sum()
    K = exact_of(problem)
    primal, dual = kernel_values(K, y, c, certificate.alpha, proved.b)
    assert abs(certificate.primal - primal) <= certificate.rounding
    assert abs(certificate.dual - dual) <= certificate.rounding
    assert certificate.gap >= primal - dual
    assert certificate.rounding <= 1e-9 * max(primal, dual) * (1 + float(certificate.alpha.sum()))
    coef = certificate.alpha * y
    assert np.array_equal(proved.coef, coef)
    size = float(np.sqrt(max(coef @ K @ coef, 0)))
    if size > 1e-6 * abs(coef).sum():
        assert certificate.width == pytest.approx(2 / size, rel=1e-4)
    near = [kernel_values(K, y, c, certificate.alpha, proved.b + change)[0] for change in (-1e-3, 1e-3)]
    assert min(near) >= primal - certificate.rounding  # of all biases it is the best


@given(st.data())
def test_kkt_table(data):
    """Rows of each kind, their worst misses, slacks and mistakes, counted one by one from the margins."""
    problem = data.draw(kernel_problems())
    proved = certify(problem, data.draw(dual_points(problem)))
    certificate, y, c = proved.certificate, problem.y, problem.c
    margins, alpha = y * (proved.scores + proved.b), certificate.alpha
    kinds = {"α = 0": [], "0 < α < c": [], "α = c": []}
    slack = 0.0
    for m, a, bound in zip(margins, alpha, c, strict=True):
        if bound == 0:
            continue
        slack += max(0.0, 1 - m)
        if a <= min(1e-9 * bound, 1e-9 * alpha.max()):
            kinds["α = 0"].append(max(0.0, 1 - m))
        elif a >= (1 - 1e-9) * bound:
            kinds["α = c"].append(max(0.0, m - 1))
        else:
            kinds["0 < α < c"].append(abs(m - 1))
    for kind in certificate.kkt:
        assert kind.count == len(kinds[kind.name])
        assert kind.worst == pytest.approx(max(kinds[kind.name], default=0.0), rel=1e-9, abs=1e-12)
    assert certificate.slack == pytest.approx(slack, rel=1e-9, abs=1e-12)
    live = c > 0
    assert certificate.misclassified == (margins[live] < 0).sum()
    assert certificate.rows == live.sum()
    assert set(certificate.support) == set(np.flatnonzero(live & (alpha > 1e-9 * np.minimum(c, alpha.max()))))


@given(st.data())
def test_scores_may_be_known_already(data):
    """With the scores of a feasible α, the same certificate as without; with those of another α, not theirs."""
    problem = data.draw(kernel_problems())
    alpha = problem.problem.feasible(data.draw(dual_points(problem)))
    scores = problem.scores(alpha * problem.y)
    assert certify(problem, alpha, scores).certificate == certify(problem, alpha).certificate
    outside = alpha + problem.c
    assert certify(problem, outside, scores).certificate == certify(problem, outside).certificate


@pytest.mark.parametrize("name", ["rbf", "laplacian", "chi2"])
@pytest.mark.parametrize("apart", [1e2, 1e4, 1e6])
def test_distances_that_lost_their_digits(name, apart):
    """Two clusters so far apart that k within each has few digits: in extended precision, `rounding` bounds it."""
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(40, 2))
    X[::2] += apart
    y = np.where(np.arange(40) % 3, 1.0, -1.0)
    problem = make_kernel_problem(Kernel(name, gamma=1.0), X, y)
    K, worst = exact_of(problem), 0.0
    for alpha in rng.random((20, 40)):
        proved = certify(problem, alpha)
        certificate = proved.certificate
        primal, dual = kernel_values(K, y, problem.c, certificate.alpha, proved.b)
        off = max(abs(certificate.primal - primal), abs(certificate.dual - dual))
        assert off <= certificate.rounding
        worst = max(worst, float(off))
    assert worst > 1e-16 * apart


def test_rounding_of_rows_far_from_each_other():
    """K = I but for what is less than 1e-300: the closed form α = 1, b = 0, proved to 1e-13 whatever γ is."""
    X = np.random.default_rng(0).standard_normal((40, 3))
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    for gamma in (1e6, 1e9):
        certificate = certify(make_kernel_problem(Kernel("rbf", gamma=gamma), X, y, 2.0), np.ones(40)).certificate
        assert certificate.primal == certificate.dual == 20
        assert certificate.relative_gap <= 1e-13


def test_hard_margin():
    """XOR with (1 + a·b)²: α = ⅛ of every row, ‖w‖² = ½, in closed form; any multiple of α proves the same."""
    X, y = XOR
    for size in (1 / 8, 1e-3, 40.0):
        problem = make_kernel_problem(SQUARE, X, y, np.inf)
        proved = certify(problem, np.full(4, size))
        certificate = proved.certificate
        assert certificate.primal == pytest.approx(1 / 4, rel=1e-14)
        assert certificate.dual == pytest.approx(1 / 4, rel=1e-14)
        assert certificate.width == pytest.approx(2 / np.sqrt(1 / 2))
        assert certificate.gap <= 1e-13
        assert proved.coef == pytest.approx(y / 8)
        assert proved.b == pytest.approx(0, abs=1e-15)
        assert certificate.kkt_violation <= 1e-14


def test_hard_margin_of_any_weights():
    """The optimum of the cone solver without upper bounds lies between dual and primal, and no farther than the gap."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((25, 2))
    y = np.where((X**2).sum(axis=1) > 1.2, 1.0, -1.0)
    finite = 0
    for name in ("rbf", "poly", "laplacian"):
        problem = make_kernel_problem(KERNELS[name], X, y, np.inf)
        optimum = kernel_minimum(exact_of(problem).astype(float), y, problem.c)
        for scale in (1e-3, 1.0, 1e3):
            for alpha in scale * rng.random((10, 25)) ** 4:
                certificate = certify(problem, alpha).certificate
                assert certificate.dual <= optimum * (1 + CONE)
                assert certificate.primal >= optimum * (1 - CONE)
                assert certificate.gap >= certificate.primal - optimum * (1 + CONE)
                finite += np.isfinite(certificate.primal)
    assert finite


def test_hard_margin_leaves_rows_without_weight_out():
    """Rows of weight 0 with wrong labels: the certificate is that of the others."""
    X, y = XOR
    more, wrong, c = np.vstack([X, X]), np.concatenate([y, -y]), np.repeat([np.inf, 0.0], 4)
    found = certify(make_kernel_problem(SQUARE, more, wrong, c), np.r_[np.ones(4), np.zeros(4)]).certificate
    assert found.primal == pytest.approx(1 / 4, rel=1e-14)
    assert found.rows == 4


def test_the_proof_that_there_is_no_hard_margin():
    """Weights over both classes with the same weighted mean of Φ, checked from K in extended precision."""
    X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0], [5.0, 5.0], [1.0, 1.0]])
    y = np.array([1.0, 1.0, 1.0, 1.0, -1.0, -1.0])
    problem = make_kernel_problem(Kernel("linear"), X, y, np.inf)
    alpha = np.array([1.0, 1.0, 1.0, 1.0, 0.0, 4.0])  # the mean of the corners is the last row
    error = prove_inseparable(problem, alpha, problem.scores(alpha * y))
    assert error.positive.tolist() == [0, 1, 2, 3]
    assert error.negative.tolist() == [5]
    assert error.positive_weights == pytest.approx(np.full(4, 0.25))
    assert error.negative_weights == pytest.approx(np.ones(1))
    assert error.distance <= 1e-7
    weights = np.zeros(6)
    weights[error.positive], weights[error.negative] = error.positive_weights, -error.negative_weights
    assert weights @ exact_of(problem) @ weights <= 1e-14
    apart = np.array([1.0, 1.0, 1.0, 1.0, 4.0, 0.0])
    assert prove_inseparable(problem, apart, problem.scores(apart * y)) is None
    assert prove_inseparable(problem, np.zeros(6), np.zeros(6)) is None


def test_the_rows_of_a_proof_are_those_of_the_kernel_matrix():
    """A problem of rows 3 … 4 and 7 … 8 of ten: of equal rows with two labels, 4 and 7 are named."""
    K = np.eye(10)
    K[4, 7] = K[7, 4] = 1.0
    problem = KernelProblem.of(MatrixGram(K, 1), ((3, 2), (7, 2)), np.array([1.0, 1.0, -1.0, -1.0]), np.full(4, np.inf))
    alpha = np.array([0.0, 1.0, 1.0, 0.0])
    error = prove_inseparable(problem, alpha, problem.scores(alpha * problem.y))
    assert (error.positive.tolist(), error.negative.tolist(), error.distance) == ([4], [7], 0.0)


def test_nothing_is_proved_without_positive_semidefiniteness():
    """Where the kernel is known not to be: the gap is infinite, whatever primal and dual are."""
    problem = make_kernel_problem(None, np.eye(4), [1, -1, 1, -1])
    sound, unsound = (certify(problem, np.ones(4), semidefinite=known).certificate for known in (True, False))
    assert sound.gap < 1e-13
    assert unsound.gap == unsound.relative_gap == np.inf
    assert (sound.primal, sound.dual, sound.kkt) == (unsound.primal, unsound.dual, unsound.kkt)


@given(st.data())
def test_a_given_bias(data):
    """The primal at that bias, in extended precision, and the dual of the best one: weak duality holds for any."""
    problem, b = data.draw(kernel_problems()), data.draw(st.floats(-5, 5))
    alpha = data.draw(dual_points(problem))
    best, given_one = certify(problem, alpha).certificate, certify(problem, alpha, b=b)
    certificate = given_one.certificate
    primal, dual = kernel_values(exact_of(problem), problem.y, problem.c, certificate.alpha, b)
    assert given_one.b == b
    assert abs(certificate.primal - primal) <= certificate.rounding
    assert certificate.gap >= primal - dual
    assert certificate.dual == best.dual
    assert certificate.primal >= best.primal - best.rounding


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_given_matrix(kind):
    """The certificate of a given matrix is that of its numbers, taken as exact."""
    rng = np.random.default_rng(4)
    X, y, c = rng.standard_normal((30, 2)), np.where(rng.random(30) < 0.5, 1.0, -1.0), rng.exponential(size=30)
    K = Kernel("rbf").matrix(X, X).astype(kind)
    for alpha in rng.random((5, 30)):
        proved = certify(make_kernel_problem(None, K, y, c), alpha)
        primal, dual = kernel_values(K.astype(np.longdouble), y, c, proved.certificate.alpha, proved.b)
        assert abs(proved.certificate.primal - primal) <= proved.certificate.rounding <= 1e-12 * primal
        assert abs(proved.certificate.dual - dual) <= proved.certificate.rounding


def test_threads_change_nothing():
    """One thread: the same bits at 2 and 8."""
    rng = np.random.default_rng(5)
    X, alpha = rng.standard_normal((6000, 3)), rng.random(6000)
    y = np.where(rng.random(6000) < 0.5, 1.0, -1.0)
    found = [certify(make_kernel_problem(Kernel("rbf"), X, y, 1.0, threads), alpha) for threads in (1, 2, 8)]
    for other in found[1:]:
        assert other.certificate == found[0].certificate
        assert np.array_equal(other.scores, found[0].scores)
        assert other.b == found[0].b
