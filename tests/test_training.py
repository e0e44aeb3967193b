import gc
import importlib
import weakref
from itertools import pairwise

import numpy as np
import pytest

from oracles import make_problem, noisy
from widemargin import solvers, training
from widemargin.certificate import certify
from widemargin.solvers import Iterate, Start
from widemargin.training import fit


@pytest.fixture
def problem():
    """A small noisy problem."""
    return make_problem(*noisy(200, 4), 0.1)


def test_a_false_claim_is_refused(problem, monkeypatch):
    """A solver that claims a gap of 0 for w = 0 is resumed, and its honest iterate is taken."""
    honest = fit(problem, tol=1e-9)

    def liar(problem, *, tol, seed, start):
        yield Iterate(np.zeros(4), 0.0, np.zeros(200), 1.0, 1.0, 0.0, 200, 1)
        yield Iterate(honest.w, honest.b, honest.alpha, 1.0, 1.0, 0.0, 200, 2)
        raise AssertionError("went on after the proof")

    monkeypatch.setitem(solvers.SOLVERS, "liar", solvers.SOLVERS["auto"]._replace(solve=liar))
    found = fit(problem, solver="liar", tol=1e-6)
    assert found.iterations == 2
    assert np.array_equal(found.w, honest.w)


@pytest.mark.parametrize("solver", ["auto", "dual_cd"])
def test_iterates_are_gone_with_their_solver(solver):
    """No cycle of references keeps α and w until the garbage collector comes by."""
    iterates = solvers.SOLVERS[solver].solve(make_problem(*noisy(20_000, 4), 0.1), tol=1e-9)
    gc.disable()
    try:
        next(iterates)
        iterate = next(iterates)
        arrays = [weakref.ref(iterate.w), weakref.ref(iterate.alpha)]
        del iterate, iterates
        assert [array() for array in arrays] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_rounding_ends_a_fit(loss):
    """Where only the rounding of the proof is in the way, no more passes are made: they could not help."""
    X, y = noisy(2000, 5)
    found = fit(make_problem(X * 10.0 ** np.arange(-2, 3), y, 1.0, loss), tol=1e-17)
    proof = found.certificate
    assert proof.primal - proof.dual <= proof.rounding
    assert found.iterations < 200


def test_the_best_proof_is_kept(problem, monkeypatch):
    """Of several refused claims the one with the smallest gap is returned."""
    good = fit(problem, solver="dual_cd", tol=1e-4)

    def fickle(problem, *, tol, seed, start):
        yield Iterate(good.w, good.b, good.alpha, 1.0, 1.0, 0.0, 200, 1)
        yield Iterate(np.zeros(4), 0.0, np.zeros(200), 1.0, 1.0, 0.0, 200, 2)

    monkeypatch.setitem(solvers.SOLVERS, "fickle", solvers.SOLVERS["auto"]._replace(solve=fickle))
    found = fit(problem, solver="fickle", tol=1e-12)
    assert found.certificate.relative_gap == good.certificate.relative_gap
    assert found.iterations == 2


def test_a_claim_in_vain_costs_no_certificate(problem, monkeypatch):
    """Of a solver that goes on improving, only claims that may be proved are, and the last word, whatever it is."""
    good = fit(problem, solver="dual_cd", tol=1e-9)
    seen = []

    def improving(problem, *, tol, seed, start):
        points = np.zeros(4), 0.0, np.zeros(200)
        for k, (w, b, alpha) in enumerate([points, (good.w, good.b, good.alpha), points], 1):
            yield Iterate(w, b, alpha, 1.0, good.certificate.dual, 0.0, 200, k, improving=True)

    def counted(*arguments):
        seen.append(certify(*arguments))
        return seen[-1]

    monkeypatch.setattr(training, "certify", counted)
    monkeypatch.setitem(solvers.SOLVERS, "improving", solvers.SOLVERS["auto"]._replace(solve=improving))
    found = fit(problem, solver="improving", tol=1e-6)
    assert (found.iterations, len(seen)) == (2, 1)
    assert [line.proved for line in found.history] == [False, True]
    fit(problem, solver="improving", tol=1e-6, max_iter=1)
    assert len(seen) == 2


def test_two_halves_make_a_proof(problem, monkeypatch):
    """One iterate has the good weights, another the good α: the certificate is that of both together."""
    good, nothing = fit(problem, solver="dual_cd", tol=1e-9), np.zeros(200)

    def halves(problem, *, tol, seed, start):
        for k, (w, b, alpha) in enumerate([(good.w, good.b, nothing), (-good.w, good.b, good.alpha)], 1):
            yield Iterate(w, b, alpha, np.inf, -np.inf, 0.0, 200, k)

    monkeypatch.setitem(solvers.SOLVERS, "halves", solvers.SOLVERS["auto"]._replace(solve=halves))
    assert fit(problem, solver="halves", tol=1e-6).certificate.relative_gap <= 1e-6


def test_of_two_that_prove_nothing_the_lower_objective_is_kept(problem, monkeypatch):
    """Whichever of them comes last."""

    def worse(problem, *, tol, seed, start):
        for k, size in enumerate([3.0, 1.0, 2.0], 1):
            yield Iterate(np.full(4, size), 0.0, np.zeros(200), np.inf, -np.inf, 0.0, 200, k)

    monkeypatch.setitem(solvers.SOLVERS, "worse", solvers.SOLVERS["auto"]._replace(solve=worse))
    found = fit(problem, solver="worse", tol=1e-6)
    each = [
        problem.primal(w, problem.margins(w, b)) for w, b in ((np.full(4, size), found.b) for size in (1.0, 2.0, 3.0))
    ]
    assert found.certificate.primal <= min(each)


@pytest.mark.parametrize("solver", solvers.SOLVERS)
def test_max_iter_stops(solver):
    """No more iterations than asked for, and the certificate says what was reached."""
    problem = make_problem(*noisy(2000, 30), 100.0, solvers.SOLVERS[solver].losses[0])
    found = fit(problem, solver=solver, tol=1e-15, max_iter=2)
    assert found.iterations == (1 if solver in ("qp", "least_squares") else 2)
    assert found.certificate.relative_gap > 1e-15


def test_history_tells_the_way(problem):
    """A line whenever the solver returned, seconds rise, and the last line is the certificate's."""
    found = fit(problem, solver="dual_cd", tol=1e-8)
    lines = found.history
    assert all(a.iteration <= b.iteration and a.seconds <= b.seconds for a, b in pairwise(lines))
    assert {1, found.iterations} <= {line.iteration for line in lines} <= set(range(1, found.iterations + 1))
    assert lines[-1].proved
    assert (lines[-1].primal, lines[-1].gap) == (found.certificate.primal, found.certificate.gap)
    assert all(0 < line.active <= 200 for line in lines)


def test_passes_at_once(problem, monkeypatch):
    """Short passes that are taken several at a time leave the bits of those that are taken one by one."""
    several = fit(problem, solver="dual_cd", tol=1e-8)
    for most in (1, 2, 3):
        assert fit(problem, solver="dual_cd", tol=1e-8, max_iter=most).iterations == most
    monkeypatch.setattr(importlib.import_module("widemargin.solvers.dual_cd"), "UNSEEN", 0.0)
    single = fit(problem, solver="dual_cd", tol=1e-8)
    assert {line.iteration for line in single.history} == set(range(1, single.iterations + 1))
    assert len(several.history) < len(single.history)
    assert (several.w.tobytes(), several.iterations) == (single.w.tobytes(), single.iterations)


def test_interruption_leaves_what_was_reached(problem, monkeypatch):
    """Ctrl-C in the middle returns the last iterate with its certificate."""
    good = fit(problem, solver="dual_cd", tol=1e-4)

    def interrupted(problem, *, tol, seed, start):
        yield Iterate(good.w, good.b, good.alpha, 1.0, 1.0, 1.0, 200, 1)
        raise KeyboardInterrupt

    monkeypatch.setitem(solvers.SOLVERS, "interrupted", solvers.SOLVERS["auto"]._replace(solve=interrupted))
    found = fit(problem, solver="interrupted", tol=1e-12)
    assert found.interrupted
    assert found.certificate.relative_gap == good.certificate.relative_gap


def test_interruption_before_anything_was_reached(problem, monkeypatch):
    """Ctrl-C in the first pass is passed on."""

    def interrupted(problem, *, tol, seed, start):
        raise KeyboardInterrupt
        yield

    monkeypatch.setitem(solvers.SOLVERS, "interrupted", solvers.SOLVERS["auto"]._replace(solve=interrupted))
    with pytest.raises(KeyboardInterrupt):
        fit(problem, solver="interrupted")


@pytest.mark.parametrize("solver", solvers.SOLVERS)
def test_a_start_that_will_do_ends_the_fit(solver):
    """From the optimum no iteration is needed."""
    problem = make_problem(*noisy(200, 5), 1.0, solvers.SOLVERS[solver].losses[0])
    best = fit(problem, tol=1e-9)
    again = fit(problem, solver=solver, tol=1e-6, start=Start(best.alpha, best.b))
    assert again.iterations == 0
    assert again.certificate.relative_gap <= 1e-6


def test_a_good_start_saves_passes():
    """Coordinate descent from the answer at a nearby C needs fewer passes than from scratch."""
    X, y = noisy(2000, 10)
    near = fit(make_problem(X, y, 0.02), solver="dual_cd", tol=1e-5)
    problem = make_problem(X, y, 0.021)
    cold = fit(problem, solver="dual_cd", tol=1e-5)
    warm = fit(problem, solver="dual_cd", tol=1e-5, start=Start(near.alpha, near.b))
    assert warm.iterations < cold.iterations


def test_auto_changes_its_mind(problem):
    """Where coordinate descent crawls, auto ends with the interior point in far fewer iterations."""
    problem = make_problem(*noisy(3000, 40, big=100.0), 1.0)
    assert fit(problem, tol=1e-6).iterations < 100
    crawled = fit(problem, solver="dual_cd", tol=1e-6, max_iter=100)
    assert crawled.certificate.relative_gap > 1e-6
