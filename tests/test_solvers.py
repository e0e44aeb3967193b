"""Every solver on every loss; solvers and losses are found by themselves."""

import importlib
import sys
import warnings
from dataclasses import replace
from itertools import product
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from sklearn.datasets import load_digits, load_wine

from oracles import ORACLE, make_problem, minimum, noisy, text_like
from strategies import problems
from test_rows import storages
from widemargin import _core
from widemargin.data import Rows
from widemargin.losses import LOSSES
from widemargin.solvers import SOLVERS, Pegasos, Sgd, Subgradient, begins_with_descent
from widemargin.solvers.normal_equations import Tall, Wide
from widemargin.training import fit

descent_module = importlib.import_module("widemargin.solvers.dual_cd")
Pace = importlib.import_module("widemargin.solvers.auto").Pace
slow_solvers = [name for name, method in SOLVERS.items() if not method.exact]
every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_pair = pytest.mark.parametrize(
    ("solver", "loss"), [(name, loss) for name, method in SOLVERS.items() for loss in LOSSES if loss in method.losses]
)
every_loss = pytest.mark.parametrize("loss", LOSSES)
with_and_without_bias = pytest.mark.parametrize("fit_intercept", [True, False])


@every_pair
@with_and_without_bias
def test_reaches_the_optimum(solver, loss, fit_intercept):
    """The primal value equals the cone solver's; a stochastic method's is as close as its certificate says."""
    X, y = noisy(150, 6, seed=3)
    problem = make_problem(X, y, 0.1, loss, fit_intercept)
    best = minimum(problem)
    if solver in slow_solvers:
        found = fit(problem, solver=solver, tol=1e-3)
        assert best * (1 - ORACLE) <= found.certificate.primal <= best + found.certificate.gap
        assert found.certificate.primal == pytest.approx(best, rel=2e-3)
        return
    found = fit(problem, solver=solver, tol=1e-7)
    assert found.certificate.relative_gap <= 1e-7
    assert found.certificate.primal == pytest.approx(best, rel=2e-7, abs=ORACLE)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_solver_refuses_what_it_cannot_serve(solver):
    """A loss it is not made for, and C = ∞ where it needs a finite one: the error names those that can."""
    X, y = noisy(30, 2)
    method = SOLVERS[solver]
    for loss in set(LOSSES) - set(method.losses):
        with pytest.raises(ValueError, match=rf"^{solver} needs the .* loss, got '{loss}'; use 'auto'"):
            fit(make_problem(X, y, 1.0, loss), solver=solver)
    if not method.hard and "hinge" in method.losses:
        with pytest.raises(ValueError, match=rf"^{solver} needs a finite C; use 'auto', 'dual_cd'"):
            fit(make_problem(X, y, np.inf), solver=solver)


def test_solvers_with_parameters_of_their_own():
    """An object in place of the name: its parameters act, and its mistakes are told when it is made."""
    X, y = noisy(100, 3)
    plain, averaged = (
        fit(make_problem(X, y), solver=solver, max_iter=5).w for solver in ("pegasos", Pegasos(average=True))
    )
    assert not np.array_equal(plain, averaged)
    for wrong, message in (
        (lambda: Pegasos(batch_size=0), "batch_size=0; it must be a whole number ≥ 1"),
        (lambda: Sgd(rate=-1.0), "rate=-1.0; it must be a finite number > 0"),
        (lambda: Sgd(power=2.0), "power=2.0"),
        (lambda: Sgd(power=0.5), "with power=0.5 give a rate"),
        (lambda: Sgd(rate="fast"), "rate='fast'"),
        (lambda: fit(make_problem(X, y), solver=Pegasos), "choose from 'auto'"),
        (lambda: fit(make_problem(X, y, 1.0, "squared"), solver=Sgd(rate=100.0, power=0.0)), "steps diverged in pass"),
        (lambda: Sgd(offset=-1.0), "offset=-1.0"),
        (lambda: Subgradient(rate=0.0), "rate=0.0"),
        (lambda: fit(make_problem(X, y), solver=lambda problem: None), "choose from 'auto'"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


@pytest.mark.parametrize("seed", range(20))
@with_and_without_bias
def test_dual_solvers_agree(seed, fit_intercept):
    """smo, qp, hildreth, dual_cd and interior_point: the same w to 1e-6, and certificates that agree on the optimum."""
    X, y = noisy(30 + 4 * seed, 2 + seed % 5, seed=seed)
    problem = make_problem(X, y, 10.0 ** (seed % 4 - 2), fit_intercept=fit_intercept)
    fits = {
        solver: fit(problem, solver=solver, tol=1e-13 if solver != "qp" else 1e-9)
        for solver in ("interior_point", "smo", "qp", "hildreth", "dual_cd")
    }
    best = fits["interior_point"].certificate
    for solver, found in fits.items():
        assert found.w == pytest.approx(fits["interior_point"].w, abs=1e-6), solver
        assert found.certificate.primal == pytest.approx(best.primal, rel=1e-8), solver
        assert found.certificate.dual == pytest.approx(best.dual, rel=1e-8), solver
        assert found.certificate.relative_gap <= 1e-8, solver


@pytest.mark.parametrize("solver", ["smo", "hildreth", "qp"])
@with_and_without_bias
def test_dual_solvers_find_the_hard_margin(solver, fit_intercept):
    """C = ∞ is α ≥ 0 without an upper end: the width of the interior point."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = np.where(X @ [1, -2, 0.5] > 0, 1.0, -1.0)
    problem = make_problem(X, y, np.inf, fit_intercept=fit_intercept)
    found, best = fit(problem, solver=solver, tol=1e-6), fit(problem, solver="interior_point", tol=1e-9)
    assert found.certificate.width == pytest.approx(best.certificate.width, rel=1e-5)


def test_smo_at_any_scale():
    """Rows a hundred million times smaller, C as much larger: the same number of rounds and the same margins."""
    X, y = noisy(80, 3)
    for fit_intercept in (True, False):
        one = fit(make_problem(X, y, 1.0, fit_intercept=fit_intercept), solver="smo", tol=1e-9)
        small = fit(make_problem(1e-8 * X, y, 1e16, fit_intercept=fit_intercept), solver="smo", tol=1e-9)
        assert small.certificate.relative_gap <= 1e-9
        assert 1e-8 * small.w == pytest.approx(one.w, abs=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_too_long_to_square_are_refused(solver):
    """1e160 squared overflows: an error that names the row, from every solver."""
    X, y = noisy(40, 2)
    X[7] *= 1e160
    with pytest.raises(ValueError, match="row 7 of X is so long that its square overflows"):
        fit(make_problem(X, y, 1.0, SOLVERS[solver].losses[0]), solver=solver)


def test_hildreth_refuses_to_build_too_much():
    """A matrix of 20,000 × 20,000 is not built; the error names who can do without."""
    rng = np.random.default_rng(0)
    problem = make_problem(rng.standard_normal((20_000, 2)), np.where(np.arange(20_000) % 2, 1, -1))
    with pytest.raises(ValueError, match="use solver='auto' or 'dual_cd'"):
        fit(problem, solver="hildreth")


@settings(max_examples=150)
@given(problems())
def test_auto_leaves_no_case_out(problem):
    """Any small problem at all reaches a relative gap of 1e-6."""
    if len(np.unique(problem.y[problem.live])) < 2:
        return
    assert fit(problem, tol=1e-6).certificate.relative_gap <= 1e-6


@every_loss
@with_and_without_bias
@pytest.mark.parametrize("C", [0.01, 1, 100, 1e4])
@pytest.mark.parametrize("big", [1.0, 100.0, 1e4])
def test_any_scaling_and_any_strength(loss, fit_intercept, C, big):
    """Relative gap 1e-6 on noisy data with one column scaled, with no knob but tol."""
    X, y = noisy(2000, 20, big=big)
    assert fit(make_problem(X, y, C, loss, fit_intercept), tol=1e-6).certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("C", [1e-10, 1e-5, 1e5, 1e10])
def test_extreme_strengths(C):
    """From almost no loss to almost no penalty."""
    X, y = noisy(300, 5)
    assert fit(make_problem(X, y, C), tol=1e-6).certificate.relative_gap <= 1e-6


@with_and_without_bias
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_columns_far_from_zero(loss, fit_intercept):
    """Columns at 1e5 ± 1 are as good as centred ones."""
    X, y = noisy(500, 5)
    problem = make_problem(X + 1e5, y, 1.0, loss, fit_intercept)
    assert fit(problem, tol=1e-6).certificate.relative_gap <= 1e-6


@every_solver
def test_storage_does_not_matter(solver):
    """Dense in any order, CSR, 32 and 64 bits: the same numbers give the same w."""
    X, y = noisy(200, 5, seed=5)
    loss = SOLVERS[solver].losses[0]
    answers = [fit(make_problem(stored, y, 0.5, loss), solver=solver, tol=1e-9, max_iter=50) for stored in storages(X)]
    for other in answers[1:]:
        assert other.w == pytest.approx(answers[0].w, abs=1e-4 if solver in ("dual_cd", "hildreth") else 1e-9)


@every_loss
def test_order_of_rows_does_not_matter(loss):
    """A permutation of the rows gives the same w."""
    X, y = noisy(120, 4, seed=6)
    order = np.random.default_rng(0).permutation(120)
    one, other = (fit(make_problem(X[i], y[i], 0.5, loss), tol=1e-9) for i in (slice(None), order))
    assert one.w == pytest.approx(other.w, abs=1e-8)
    assert one.b == pytest.approx(other.b, abs=1e-8)


@every_loss
def test_weights_are_repeated_rows(loss):
    """Strength 2c is the row twice, strength 0 is no row."""
    X, y = noisy(90, 4, seed=7)
    times = np.arange(90) % 3
    weighted = fit(make_problem(X, y, 0.4 * times, loss), tol=1e-9)
    index = np.repeat(np.arange(90), times)
    repeated = fit(make_problem(X[index], y[index], 0.4, loss), tol=1e-9)
    assert weighted.w == pytest.approx(repeated.w, abs=1e-8)
    assert weighted.b == pytest.approx(repeated.b, abs=1e-8)
    assert weighted.certificate.primal == pytest.approx(repeated.certificate.primal, rel=1e-9, abs=1e-12)


@every_loss
@with_and_without_bias
def test_wide_data(loss, fit_intercept):
    """More columns than rows, dense and sparse: machine precision by the Gram matrix."""
    rng = np.random.default_rng(8)
    X = sp.random_array((60, 3000), density=0.05, rng=rng, format="csr")
    y = np.where(rng.random(60) < 0.4, 1.0, -1.0)
    for stored in (X, X.toarray()):
        found = fit(make_problem(stored, y, 10.0, loss, fit_intercept), solver="interior_point", tol=1e-3)
        assert found.certificate.relative_gap <= 1e-10


@with_and_without_bias
def test_both_linear_systems_give_the_same_step(fit_intercept):
    """Eliminating Δα or Δw is a choice of size, not of answer."""
    rng = np.random.default_rng(9)
    X, y = noisy(12, 12, seed=9)
    problem = make_problem(X, y, 1.0, fit_intercept=fit_intercept)
    weights = 10 ** rng.uniform(-3, 3, 12)
    residuals = rng.standard_normal(12), rng.standard_normal(12), 0.7 * fit_intercept
    steps = []
    for system in (Tall(problem), Wide(problem)):
        system.weigh(weights)
        steps.append(system.solve(*residuals))
    for one, other in zip(*steps, strict=True):
        assert one == pytest.approx(other, abs=1e-7)
    r, r_w, r_b = residuals
    dw, db, dalpha, dm = steps[0]
    assert dw == pytest.approx(X.T @ (y * dalpha) - r_w, abs=1e-8)
    assert dm == pytest.approx(y * (X @ dw + db), abs=1e-8)
    assert dalpha == pytest.approx(weights * (r - dm), abs=1e-6)
    if fit_intercept:
        assert y @ dalpha == pytest.approx(-r_b, abs=1e-8)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_shards_give_the_same_bits_on_any_number_of_threads(loss, monkeypatch):
    """Two shards: one, two and three threads agree to the last bit, and with another number of shards they do not."""
    X, y = text_like(30_000)
    fits = [fit(make_problem(X, y, 1.0, loss, threads=threads), solver="dual_cd", tol=1e-3) for threads in (1, 2, 3)]
    monkeypatch.setattr(descent_module, "MANY", 1_000_000_000)
    whole = fit(make_problem(X, y, 1.0, loss), solver="dual_cd", tol=1e-3)
    assert fits[0].certificate.relative_gap <= 1e-3
    assert not np.array_equal(fits[0].w, whole.w)
    for other in fits[1:]:
        assert np.array_equal(fits[0].w, other.w)
        assert np.array_equal(fits[0].alpha, other.alpha)
        assert fits[0].b == other.b


#: Factors of rows: of all sizes, a few far longer than all others, a third next to empty.
SIZES = {
    "all": lambda rng: 10 ** rng.uniform(-1, 1, 2000),
    "few long": lambda _: np.where(np.arange(2000) < 20, 100.0, 1.0),
    "next to empty": lambda _: np.where(np.arange(2000) % 3 == 0, 1e-6, 1.0),
}


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("sizes", SIZES)
def test_a_bias_costs_little_where_rows_have_little_in_common(loss, sizes):
    """Random sparse rows, three in ten positive: descent takes no more than twice the passes that it takes without."""
    rng = np.random.default_rng(0)
    X = sp.random_array((2000, 5000), density=0.01, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = X @ rng.standard_normal(5000) + rng.standard_normal(2000)
    X, y = sp.diags_array(SIZES[sizes](rng)).tocsr() @ X, np.where(scores > np.quantile(scores, 0.7), 1.0, -1.0)
    without, bias = (
        fit(make_problem(X, y, 1.0, loss, fit_intercept=bias), solver="dual_cd", tol=1e-6) for bias in (False, True)
    )
    assert bias.certificate.relative_gap <= 1e-6
    assert bias.iterations <= 2 * without.iterations


@pytest.mark.parametrize("size", [0.0, 1.6e-162, 1.0])
def test_a_bias_has_a_weight_whatever_the_rows(size):
    """1/ρ is 0 for no bias alone: not for empty rows, nor where the square of a length is no number."""
    problem = make_problem(np.full((4, 1), size), [1, 1, -1, -1])
    assert descent_module.inverse_rho_of(problem) > 0
    assert descent_module.inverse_rho_of(replace(problem, fit_intercept=False)) == 0


@pytest.mark.parametrize("C", [1.0, 1e4, 1e9])
@pytest.mark.parametrize("data", [noisy(200, 1000), text_like(300)], ids=["dense", "sparse"])
def test_the_interior_point_at_any_strength_of_wide_data(data, C):
    """Classes that can be separated, so that α is far from c: proved to 1e-6, in no more than forty steps."""
    found = fit(make_problem(*data, C), solver="interior_point", tol=1e-6)
    assert found.certificate.relative_gap <= 1e-6
    assert found.iterations <= 40


def counts_of_all_lengths(n, d):
    """Sparse rows of 1 to d numbers, most of them short, and noisy labels."""
    rng = np.random.default_rng(0)
    lengths = np.minimum(d, 5 * rng.pareto(1.0, n) + 1).astype(int)
    places = np.repeat(np.arange(n), lengths), rng.integers(0, d, lengths.sum())
    X = sp.csr_array((rng.exponential(size=lengths.sum()), places), shape=(n, d))
    return X, np.where(X @ rng.standard_normal(d) + rng.standard_normal(n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_where_descent_comes_to_its_end_other_methods_go_on(loss, monkeypatch):
    """After as many passes as it may take, far from the goal; stopped at any moment, they come to the same bits."""
    problem, states = make_problem(*counts_of_all_lengths(400, 1000), 1e4, loss), []
    monkeypatch.setattr(descent_module, "PASSES", 20)
    monkeypatch.setattr(descent_module, "UNSEEN", 0.0)
    monkeypatch.setattr(sys.modules["widemargin.solvers.auto"], "_is_solved_at_once", lambda _: False)
    monkeypatch.setattr(Pace, "crawls", lambda *_: False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = fit(problem, solver="dual_cd", tol=1e-6)
    assert alone.certificate.relative_gap > 1e-6
    whole = fit(problem, tol=1e-6, keep=lambda state: states.append(state()))
    assert whole.certificate.relative_gap <= 1e-6
    for state in states:
        assert np.array_equal(fit(problem, tol=1e-6, resumed=state).w, whole.w)


@pytest.mark.parametrize(("solver", "loss"), [("proximal_newton", "hinge"), ("interior_point", "logistic")])
def test_newton_steps_give_the_same_bits_on_any_number_of_threads(solver, loss, monkeypatch):
    """A start, walks over the rows, Gram matrices and the best bias: one to three threads agree to the last bit."""
    X, y = noisy(20_000, 40)
    monkeypatch.setattr(sys.modules["widemargin.solvers.interior_point"], "SMALL", 0)
    one, *others = (fit(make_problem(X, y, 1.0, loss, threads=n), solver=solver, tol=1e-6) for n in (1, 2, 3))
    for other in others:
        assert np.array_equal(one.w, other.w)
        assert np.array_equal(one.alpha, other.alpha)
        assert one.b == other.b


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_newton_with_the_curvature_of_some_rows(loss, C, monkeypatch):
    """Rare columns included, it ends where all rows' curvature leads, and most Gram matrices are of few rows."""
    rng = np.random.default_rng(12)
    X = sp.csr_array((rng.random((30_000, 40)) < np.geomspace(3e-4, 0.5, 40)).astype(float))
    y = np.where(X @ rng.standard_normal(40) + rng.standard_normal(30_000) > 0, 1.0, -1.0)
    problem, used = make_problem(X, y, C, loss), []
    gram = Tall._gram
    monkeypatch.setattr(sys.modules["widemargin.solvers.interior_point"], "SMALL", 0)

    def noted(self, weights):
        if len(weights) == len(y):  # not of the rows that it sets out from
            used.append((weights > 0).mean())
        return gram(self, weights)

    monkeypatch.setattr(Tall, "_gram", noted)
    some = fit(problem, solver="interior_point", tol=1e-6)
    assert np.median(used) < 0.2
    monkeypatch.setattr(sys.modules["widemargin.solvers.normal_equations"], "LEAST", 1.0)
    whole = fit(problem, solver="interior_point", tol=1e-9)
    assert some.certificate.relative_gap <= 1e-6
    assert some.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-6)


@pytest.mark.parametrize("C", [1e4, 1e8])
def test_steep_sparse_data_begins_with_descent(C):
    """Where a step of a method of second order takes as long as thousands of passes: solved, and without a warning."""
    X = sp.random_array((3000, 2500), density=0.005, format="csr", rng=np.random.default_rng(0))
    problem = make_problem(X, np.random.default_rng(1).choice([-1.0, 1.0], 3000), C)
    assert begins_with_descent(problem)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit(problem, tol=1e-6).certificate.relative_gap <= 1e-6


def test_auto_looks_at_what_descent_has_reached_before_it_changes_its_mind():
    """Slacks of mere rounding keep descent from claiming anything at such a C, but its point is the solution."""
    X = sp.random(2000, 3000, 0.01, format="csr", random_state=0)
    problem = make_problem(X, np.where(np.random.default_rng(2).random(2000) < 0.4, 1.0, -1.0), 1e8)
    with mock.patch.object(Wide, "weigh", side_effect=AssertionError("there was no need for it")):
        assert fit(problem, tol=1e-8).certificate.relative_gap <= 1e-8


def test_steep_tall_data_does_not():
    """There a few steps of the proximal point method take no longer than a few passes."""
    assert not begins_with_descent(make_problem(*noisy(50_000, 20), 1e4))


def at_its_bounds(kind, fit_intercept=False):
    """Rows of a small C whose α = c is the solution, seems to be, or is but for a few."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((1600, 30)), rng.choice([-1.0, 1.0], 1600)
    if kind == "seems to be":
        X[np.arange(1600) % 16 != 0] *= 100
    if kind == "is but for a few":
        X[5:8] *= 500
    return make_problem(X, y, 1e-4, fit_intercept=fit_intercept)


@pytest.mark.parametrize("kind", ["is", "seems to be", "is but for a few"])
def test_all_at_their_bounds(kind):
    """Found at first sight where it is the solution, and no trap where it is not."""
    problem = at_its_bounds(kind)
    found = fit(problem, solver="dual_cd", tol=1e-6)
    assert found.certificate.relative_gap <= 1e-6
    assert found.certificate.primal == pytest.approx(minimum(problem), rel=1e-5)
    assert (found.alpha == problem.c).all() == (kind == "is")
    assert (found.iterations == 1) == (kind == "is")


@pytest.mark.parametrize("kind", ["is", "seems to be", "is but for a few"])
def test_all_at_their_bounds_but_for_the_balance(kind):
    """With a bias and classes of nearly the same size the same, up to what the larger class must give away."""
    problem = at_its_bounds(kind, fit_intercept=True)
    for tol in (1e-3, 1e-6):
        found = fit(problem, solver="dual_cd", tol=tol)
        assert found.certificate.relative_gap <= tol
        assert found.certificate.primal == pytest.approx(minimum(problem), rel=2 * tol)
    assert (fit(problem, solver="dual_cd", tol=1e-3).iterations == 1) == (kind == "is")


def test_descent_sets_out_in_balance():
    """From α = c, where the classes differ by some per cent: w is that of α, b the best for it."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((1600, 30)), np.where(np.arange(1600) < 830, 1.0, -1.0)
    problem = make_problem(X, y, 1e-4)
    start = next(SOLVERS["dual_cd"].solve(problem, tol=1e-3))
    assert start.alpha @ problem.y == pytest.approx(0, abs=1e-12 * problem.c.sum())
    assert (start.alpha == problem.c).sum() >= 1500
    assert start.w == pytest.approx(problem.weights(start.alpha), abs=1e-12)
    assert start.b == pytest.approx(problem.best_bias(problem.rows.scores(start.w)))


def test_rows_come_back_when_it_is_worth_it():
    """As soon as those in play are solved to half of what the whole gap fell to the last time, within bounds."""
    habits = _core.Habits(
        bold=0.1, shy=0.5, rough=0.03, least_return=0.01, worth=0.5, most_return=0.3, slow=0.03, near=0.9, again=30
    )
    course = _core.Course()
    course.goal = course.tol = 1e-9
    course.dual = 1.0

    def judge(gap):
        course.judge(gap, 1.0, -1.0, 0.0, 100, habits)
        return course.whole

    assert course.enough(habits) == np.inf
    assert not judge(1.0)  # all rows; fewer from now on
    assert course.enough(habits) == pytest.approx(0.01)
    assert not judge(0.02)
    assert judge(0.01)
    assert not judge(0.2)  # all rows: what they hid was 0.2 of the whole
    assert course.returns == pytest.approx(0.1)
    assert not judge(0.03)
    assert judge(0.02)
    assert not judge(0.2)  # nothing was gained
    assert course.returns == 0.3
    assert judge(0.06)
    assert not judge(1e-4)
    assert course.returns == 0.01


def test_descent_is_not_judged_by_a_gap_that_rose():
    """Rows that come back bring theirs along: what it will take shows in the next pass."""
    pace = Pace(make_problem(*noisy(50, 3)))
    pace.other = 100.0
    falling = [(0.0, np.inf), (10.0, 1.0), (20.0, 0.5), (30.0, 0.4)]
    assert pace.crawls(falling, 1e-6)
    assert not pace.crawls([*falling[:-1], (30.0, 0.6)], 1e-6)
    assert pace.crawls([*falling[:-1], (101.0, 0.6)], 1e-6)
    assert not pace.crawls([(0.0, np.inf), (10.0, 1.0), (20.0, 1e-3), (30.0, 1e-6)], 1e-6)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_the_proximal_point_method_on_dense_rows_with_rare_columns(C):
    """Some rows say nothing about columns that few rows have: steps along these are soon taken with all rows."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((30_000, 40))
    X[:, 25:] = 0.0
    for column in range(25, 40):
        X[rng.choice(30_000, 12, replace=False), column] = 30.0
    y = np.where(X @ rng.standard_normal(40) + rng.standard_normal(30_000) > 0, 1.0, -1.0)
    found = fit(make_problem(X, y, C), solver="proximal_newton", tol=1e-3, max_iter=60)
    assert found.certificate.relative_gap <= 1e-3


def test_stiff_problems_are_not_tried_by_descent():
    """Where the loss is far steeper than the penalty; nor do several classes share lanes there."""
    X, y = noisy(50_000, 60)
    assert begins_with_descent(make_problem(X, y, 0.01))
    assert not begins_with_descent(make_problem(X, y, 10.0))
    whole, chosen = (fit(make_problem(X, y, 10.0), solver=solver) for solver in ("proximal_newton", "auto"))
    assert whole.w.tobytes() == chosen.w.tobytes()


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_proximal_point_method_begins_with_some_rows(C, monkeypatch):
    """The first steps, which nearly all rows bend, take the curvature of few of them; the end is the same."""
    X, y = noisy(40_000, 20)
    problem, used, gram = make_problem(X, y, C), [], Tall._gram
    monkeypatch.setattr(Tall, "_gram", lambda self, weights: used.append((weights > 0).mean()) or gram(self, weights))
    some = fit(problem, solver="proximal_newton", tol=1e-6)
    assert used[0] < 0.2
    monkeypatch.setattr(sys.modules["widemargin.solvers.normal_equations"], "LEAST", 1.0)
    used.clear()
    whole = fit(problem, solver="proximal_newton", tol=1e-9)
    assert used[0] > 0.5
    assert some.certificate.relative_gap <= 1e-6
    assert some.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_newton_with_enormous_strengths(loss):
    """C as large as a number can be overflows nothing on the way."""
    X, y = noisy(200, 3)
    for C in (1e153, 1e200):
        with np.errstate(over="ignore", invalid="ignore"):
            assert np.isfinite(fit(make_problem(X, y, C, loss), solver="interior_point", max_iter=20).w).all()


@pytest.mark.parametrize("loss", ["squared_hinge", "squared"])
def test_no_dual_above_the_primal_at_the_largest_strengths(loss):
    """4c would be no number any more."""
    problem = make_problem([[0.0], [1e-5]], [1, -1], 6e307, loss, fit_intercept=False)
    with np.errstate(over="ignore"):
        seen = fit(problem, solver="auto", max_iter=20).certificate
    assert seen.dual <= seen.primal * (1 + 1e-12)


@every_solver
def test_same_seed_same_bits(solver):
    """Nothing but the seed decides."""
    X, y = noisy(3000, 30, seed=10)
    problem = make_problem(X, y, 1.0, SOLVERS[solver].losses[0])
    one, other = (fit(problem, solver=solver, tol=1e-3, seed=3, max_iter=30) for _ in range(2))
    assert np.array_equal(one.w, other.w)


@every_pair
def test_degenerate_rows(solver, loss):
    """All rows equal, all rows empty, two rows, one column: still a proof; stochastic methods come near."""
    if loss == "perceptron":
        return
    for X in ([[1.0], [1.0], [1.0], [1.0]], [[0.0], [0.0], [0.0], [0.0]], [[0.0, 0.0], [1.0, 0.0]], [[5.0], [5.0]]):
        even, uneven = [1, -1] * (len(X) // 2), [1] * (len(X) - 1) + [-1]
        for y, fit_intercept in product((even, uneven), (True, False)):
            problem = make_problem(X, y, 1.0, loss, fit_intercept)
            found = fit(problem, solver=solver, tol=1e-6).certificate
            if solver in slow_solvers:
                assert found.primal == pytest.approx(fit(problem).certificate.primal, rel=2e-2)
                assert found.relative_gap < 1
            else:
                assert found.relative_gap <= 1e-6


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("C", [1e-30, 1e-6, 1.0, 1e6, 1e40, 1e120])
def test_logistic_descent_sets_out_from_the_mean_rows(C, fit_intercept):
    """α is the same share of c for all rows of a class; no other two shares, a little larger or smaller, have a higher
    dual. With a bias they are in balance. The weights are those of α, where one class is empty too.
    """
    X, y = noisy(200, 5)
    problem = replace(make_problem(X, y, C, "logistic", fit_intercept), c=C * np.random.default_rng(0).random(len(y)))
    at = descent_module._cold(problem, 1e-3)
    np.testing.assert_allclose(at.w, problem.weights(at.alpha), rtol=1e-9, atol=1e-12 * np.abs(at.w).max())
    assert np.isfinite(at.course.b)
    shares = at.alpha / problem.c
    for sign in (1, -1):
        assert np.ptp(shares[y == sign]) <= 1e-12
    total = problem.c.sum()
    if fit_intercept:
        assert abs(at.alpha @ y) <= 1e-2 * at.alpha.sum() + 1e-12 * total
    elif C <= 1e6:  # beyond it may set out from 0
        best = problem.dual(at.alpha, at.w)
        for up, down in product((0.97, 1.0, 1.03), repeat=2):
            near = np.minimum(at.alpha * np.where(y > 0, up, down), problem.c)
            assert problem.dual(near, problem.weights(near)) <= best + 1e-9 * abs(best)
    alone = descent_module._cold(replace(problem, c=np.where(y > 0, problem.c, 0.0)), 1e-3)
    np.testing.assert_allclose(alone.w, problem.weights(alone.alpha), rtol=1e-9, atol=1e-12 * np.abs(alone.w).max())
    assert not alone.alpha[y < 0].any()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_a_bias_costs_no_passes(loss, C):
    """Of text with one row in twenty in its class: as many as without, give or take one."""
    X, _ = text_like(4000)
    scores = X @ np.random.default_rng(0).standard_normal(X.shape[1])
    y = np.where(scores > np.quantile(scores, 0.95), 1.0, -1.0)
    without, with_bias = (
        fit(make_problem(X, y, C, loss, bias), solver="dual_cd", tol=1e-4).iterations for bias in (False, True)
    )
    assert with_bias <= without + 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("C", [1e-320, 1e307])
def test_logistic_descent_sets_out_from_nothing_where_sums_overflow(C):
    """α = 0 where a sum of strengths, or its reciprocal, is no number; without a warning."""
    X, _ = noisy(40, 3)
    at = descent_module._cold(make_problem(X, np.repeat([1.0, -1.0], [37, 3]), C, "logistic"), 1e-3)
    assert not at.alpha.any()
    assert not at.w.any()


@pytest.mark.parametrize("spread", [5, 8])
@pytest.mark.parametrize("n", [300, 2000])
def test_strengths_of_all_sizes(n, spread):
    """Weights of many orders of magnitude: proved, as the proximal point method by itself proves it."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 6))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0.2, 1.0, -1.0)
    problem = replace(make_problem(X, y), c=10 ** rng.uniform(-spread, spread, n))
    assert fit(problem, tol=1e-3).certificate.relative_gap <= 1e-3


@pytest.mark.parametrize("C", [1e6, 1e8, 1e10])
def test_auto_is_no_worse_than_the_interior_point(C):
    """Where nothing is proved either: the best that any of its solvers saw is kept."""
    X, digit = load_digits(return_X_y=True)
    problem = make_problem(X, np.where(digit == 8, 1.0, -1.0), C, "logistic")
    auto, alone = (fit(problem, solver=solver).certificate for solver in ("auto", "interior_point"))
    assert auto.primal <= alone.primal * (1 + 1e-9)


def test_the_proximal_point_method_with_no_row_near_the_margin():
    """All α at their bounds: the gap falls to rounding, whatever is asked for."""
    rng = np.random.default_rng(0)
    problem = make_problem(rng.standard_normal((2000, 5)), rng.choice([-1.0, 1.0], 2000), 1e-6, fit_intercept=False)
    assert fit(problem, solver="proximal_newton", tol=1e-15).certificate.relative_gap <= 1e-12


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_proximal_point_method_on_rows_near_the_margin(fit_intercept, monkeypatch):
    """The same optimum as over all rows, in the same number of steps or nearly so; rows without strength are none."""
    X, y = noisy(4000, 5)
    problem = replace(make_problem(X, y, 0.1, fit_intercept=fit_intercept), c=np.where(np.arange(4000) % 3, 0.1, 0.0))
    narrow = fit(problem, solver="proximal_newton", tol=1e-9)
    monkeypatch.setattr(sys.modules["widemargin.solvers.proximal_newton"], "FEW", 0.0)
    whole = fit(problem, solver="proximal_newton", tol=1e-9)
    assert narrow.certificate.relative_gap <= 1e-9
    assert abs(narrow.iterations - whole.iterations) <= 5
    assert narrow.w == pytest.approx(whole.w, abs=1e-6)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [({"active": np.arange(8) + 1}, IndexError), ({"order": np.array([0, 0]), "shift": 2}, ValueError)],
)
def test_rows_that_do_not_exist_are_refused(wrong, error):
    """Nor may a block be visited twice: what it left of its rows' numbers are marks."""
    one, zeros = np.ones(8), np.zeros(8)
    right = {
        "loss": "hinge", "rows": Rows(np.eye(8)).core, "y": one, "c": one, "norms": one, "alpha": zeros, "b": 0.0,
        "s": 0.0, "w": np.zeros(8), "inverse_rho": 0.0, "active": np.arange(8), "actives": 8, "order": np.array([0]),
        "shift": 3, "shrink_above": np.inf, "shrink_below": -np.inf, "slow": np.zeros(8, np.uint8), "slow_from": np.inf,
        "share": 0.03, "times": 0, "many": 10, "proof": 0.0, "enough_gap": 0.0, "enough_visits": 0, "split": False,
        "threads": 1, "apart": 10, "work": _core.Workspace(),
    }  # fmt: skip
    _core.dual_cd_pass(**(right | {"alpha": zeros.copy()}))
    with pytest.raises(error):
        _core.dual_cd_pass(**(right | wrong))
    assert not zeros.any()


@pytest.mark.parametrize("order", [[1], [-1]])
def test_blocks_that_do_not_exist_are_refused(order):
    """Before anything is read or written there."""
    one, zeros = np.ones(8), np.zeros(8)
    with pytest.raises(IndexError, match="block"):
        _core.dual_cd_pass(
            loss="hinge", rows=Rows(np.eye(8)).core, y=one, c=one, norms=one, alpha=zeros, w=zeros.copy(), b=0.0, s=0.0,
            inverse_rho=0.0, active=np.arange(8), actives=8, order=np.array(order), shift=3, shrink_above=np.inf,
            shrink_below=-np.inf, slow=np.zeros(8, np.uint8), slow_from=np.inf, share=0.03, times=0, many=10, proof=0.0,
            enough_gap=0.0, enough_visits=0, split=False, threads=1, apart=10, work=_core.Workspace(),
        )  # fmt: skip
    assert not zeros.any()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [1e6, 1e8, 1e10])
def test_the_squared_hinge_is_nearly_a_hard_margin_where_it_is_strong(C, fit_intercept):
    """Classes that can be separated, columns of any size: Newton's method comes to rest too early there."""
    X, kind = load_wine(return_X_y=True)
    y = np.where(kind == 0, 1.0, -1.0)
    soft = fit(make_problem(X, y, C, "squared_hinge", fit_intercept), tol=1e-8).certificate
    hard = fit(make_problem(X, y, np.inf, "hinge", fit_intercept), tol=1e-8).certificate
    assert soft.relative_gap <= 1e-8
    assert soft.primal == pytest.approx(hard.primal, rel=1e-4)
    assert soft.primal <= hard.primal * (1 + 1e-8)
