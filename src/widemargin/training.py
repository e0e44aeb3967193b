"""The loop: a solver and a problem make a Fit, whose certificate no solver can reach.

Solvers are generators of iterates that claim a relative gap. This loop checks the claims that would do, and stops at
the first that is proved. The clock is read for the record and decides nothing.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import LibController, ThreadpoolController

from widemargin.certificate import (
    LARGEST_PROGRAM,
    Certificate,
    SeparableError,
    certify,
    find_separation,
    proof_of_separation,
    prove_inseparable,
    relative,
)
from widemargin.problem import Problem
from widemargin.solvers import Iterate, Solver, Start, State, choose

Floats = NDArray[np.float64]
#: Is told whenever the solver returned which iteration it was, the seconds so far, the relative gap and how many rows
#: it went over.
Watch = Callable[[int, float, float, int], None]
#: Is offered what returns the state whenever the solver returned, and keeps it or not.
Keep = Callable[[Callable[[], State | None]], None]


#: Iterations that may go by unseen, if they are short.
UNSEEN = 1000


class Record(NamedTuple):
    """One line of a fit's history: as the solver saw it or, where a claim was checked, as it was `proved`."""

    iteration: int
    seconds: float
    primal: float
    dual: float
    gap: float
    active: int
    proved: bool


@dataclass
class Fit:
    """Weights with their proof, and how they came about."""

    w: Floats
    b: float
    certificate: Certificate
    iterations: int
    history: list[Record] = field(repr=False)
    interrupted: bool = False

    @property
    def alpha(self) -> Floats:
        """The dual variables that the certificate vouches for."""
        return self.certificate.alpha


def fit(
    problem: Problem,
    *,
    solver: str | Solver = "auto",
    tol: float = 1e-3,
    max_iter: int | None = None,
    seed: int = 0,
    start: Start | None = None,
    watch: Watch | None = None,
    resumed: State | None = None,
    keep: Keep | None = None,
    limited: bool = False,
) -> Fit:
    """Train until the relative gap is proved to be at most `tol`, or until the solver has nothing more to give.

    `watch` and `keep` are called whenever the solver returned, see :data:`Watch` and :data:`Keep`; `resumed`, a state
    that was kept, lets the fit go on as if it had never stopped. If BLAS's threads are `limited` already, that is not
    done again: it takes as long as a small fit.
    """
    chosen = choose(solver, problem)
    problem.check_lengths()
    loop = _Loop(problem, tol, watch, start)
    if resumed is not None:
        start = loop.resume(resumed)
    if problem.hard and not problem.fit_intercept:
        empty = problem.live[problem.norms[problem.live] == 0]
        loop.raise_if_inseparable(empty)  # 0 is on no side of a hyperplane through 0
    if start is not None and start.hopeful and loop.accept(_warm(problem, start), final=True):
        return loop.result()
    iterates = chosen(problem, tol=tol, seed=seed, start=start)
    last: Iterate | None = None
    try:
        with nullcontext() if limited else OneBlasThread():
            for last in iterates:
                last.iterations += loop.earlier
                if loop.accept(last, final=last.claim <= tol, doubted=last.improving):
                    return loop.result()
                if loop.exhausted or (max_iter is not None and last.iterations >= max_iter):
                    break
                last.at_once = UNSEEN if max_iter is None else max_iter - last.iterations
                if keep is not None:
                    keep(partial(loop.state, last))
    except KeyboardInterrupt:
        loop.interrupted = True
    if last is None and loop.best is None:
        raise KeyboardInterrupt  # before anything was reached
    if last is not None:
        loop.accept(last, final=True)
    if not problem.penalised and not loop.interrupted:
        loop.raise_if_separable()
    if problem.hard and not loop.interrupted and not np.isfinite(loop.result().certificate.primal):
        loop.raise_if_inseparable(problem.live)
    return loop.result()


def judge(problem: Problem, w: Floats, b: float, alpha: Floats, iterations: int) -> Fit:
    """The fit of a solution that was found in one piece."""
    certificate = certify(problem, w, b, alpha)
    seen = certificate.primal, certificate.dual, certificate.gap
    return Fit(w, b, certificate, iterations, [Record(iterations, 0.0, *seen, problem.rows.n, proved=True)])


def solution(fit: Fit) -> State:
    """What :func:`judge` makes the fit of."""
    return {"w": fit.w, "b": fit.b, "alpha": fit.alpha, "iterations": fit.iterations}


class OneBlasThread:
    """From where it is made to the end of its `with`: BLAS's own threads would change the last bits, and spin on the
    cores that the kernels need.
    """

    def __init__(self) -> None:
        self.before = [(one, one.get_num_threads()) for one in _blas()]
        for one, _ in self.before:
            one.set_num_threads(1)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        for one, count in self.before:
            one.set_num_threads(count)


@cache
def _blas() -> list[LibController]:
    """The BLAS libraries in this process; finding them takes a while."""
    return [*ThreadpoolController().select(user_api="blas").lib_controllers]


class _Loop:
    """Checks claims, keeps the best proof and the history."""

    def __init__(self, problem: Problem, tol: float, watch: Watch | None, start: Start | None) -> None:
        self.problem, self.tol, self.watch = problem, tol, watch
        # Before the solver's first, unless it goes on counting.
        self.earlier = 0 if start is None or start.state is not None else start.iterations
        self.began = time.perf_counter() - (0.0 if start is None else start.seconds)
        self.best: Fit | None = None
        self.history: list[Record] = []
        self.iterations = self.suspicions = 0
        self.interrupted = False

    def accept(self, iterate: Iterate, *, final: bool, doubted: bool = False) -> bool:
        """Whether this iterate is proved good enough; one that is not `final` is only written down.

        One that is `doubted` is spared the rest of its proof as soon as that seems in vain.
        """
        self.iterations = iterate.iterations
        if iterate.inseparable:
            self.suspicions += 1
            if self.suspicions & (self.suspicions - 1) == 0:  # the first, second, fourth, eighth … time
                live = self.problem.live
                heaviest = live[np.argsort(-iterate.alpha[live])[: min(4 * self.problem.rows.d + 4, 5000)]]
                self.raise_if_inseparable(heaviest)
                self.raise_if_inseparable(live)
        if iterate.separates:
            proof = proof_of_separation(self.problem, iterate.w, iterate.b)
            if proof is not None:
                raise proof
        if not final:
            self._record(iterate, iterate.primal, iterate.dual, max(iterate.primal - iterate.dual, 0.0), proved=False)
            return False
        alpha, implied = iterate.alpha, None
        # Both products in one walk, where rows have to be read for it, and where the primal, for which one would do,
        # seldom refuses the claim: one in eight of a smooth loss, but half of those of the hinge.
        if len(self.problem.rows.parts) > 1 or self.problem.loss.smooth:
            alpha = self.problem.feasible(alpha)
            scores, implied = self.problem.rows.scores_and_combine(iterate.w, alpha * self.problem.y)
        else:
            scores = self.problem.rows.scores(iterate.w)
        b = self.problem.best_bias(scores, iterate.b)
        scores += b
        scores *= self.problem.y
        margins = scores
        w, b = self.problem.canonical(iterate.w, b, margins)
        if w is not iterate.w:
            margins = self.problem.margins(w, b)
        primal = self.problem.primal(w, margins)
        if doubted and self._falls_short(iterate, primal):
            self._record(iterate, iterate.primal, iterate.dual, max(iterate.primal - iterate.dual, 0.0), proved=False)
            return False
        certificate = certify(self.problem, w, b, alpha, margins, implied, primal)
        # Where the loss is smooth the margins suggest another dual point, which may be better.
        suggested = self.problem.loss.smooth and not self.problem.hard and not doubted
        if suggested and certificate.relative_gap > self.tol:
            own = certify(self.problem, w, b, self.problem.implied_alpha(margins), margins, primal=primal)
            certificate = min(certificate, own, key=lambda one: one.gap)
        self._record(iterate, certificate.primal, certificate.dual, certificate.gap, proved=True)
        found = Fit(w, b, certificate, iterate.iterations, self.history)
        if self.best is None or certificate.relative_gap <= self.tol:
            self.best = found
        else:
            self.best = self._better(found, self.best)
        if self.best.certificate.relative_gap > self.tol:
            if self.best is found:
                self.best.w = w.copy()  # the solver goes on
            return False
        self.raise_if_separable()
        return True

    def _better(self, one: Fit, other: Fit) -> Fit:
        """The better of two fits or, where one has the lower objective, the other the higher bound, both together."""
        low = min(one, other, key=lambda fit: fit.certificate.primal)
        high = max(one, other, key=lambda fit: fit.certificate.dual)
        fits = [one, other]
        if low is not high:
            proof = certify(self.problem, low.w, low.b, high.alpha)
            fits.append(Fit(low.w.copy(), low.b, proof, one.iterations, self.history))
        return min(fits, key=lambda fit: _rank(fit.certificate))

    @property
    def exhausted(self) -> bool:
        """Whether nothing but the rounding of its sums keeps the best proof from being good enough."""
        if self.best is None:
            return False
        proof = self.best.certificate
        return proof.primal - proof.dual <= proof.rounding < np.inf and proof.rounding > self.tol * proof.dual > 0

    def _falls_short(self, iterate: Iterate, primal: float) -> bool:
        """Whether the primal is too far from what the solver itself takes for the dual."""
        if self.problem.hard or not iterate.dual > 0:
            return False
        return primal - iterate.dual > self.tol * iterate.dual

    def state(self, last: Iterate) -> State | None:
        """All that the next iteration depends on; None if the solver can only begin anew."""
        if last.state is None:
            return None
        best = None if self.best is None else solution(self.best)
        solver = last.state(last.at_once)
        return {"solver": solver, "best": best, "suspicions": self.suspicions, "earlier": self.earlier}

    def resume(self, state: State) -> Start:
        """Takes up such a state; where the solver goes on."""
        self.suspicions, self.earlier = state["suspicions"], state["earlier"]
        if state["best"] is not None:
            self.best = judge(self.problem, **state["best"])
            self.best.history = self.history
        return Start(np.zeros(0), 0.0, hopeful=False, state=state["solver"])

    def raise_if_separable(self) -> None:
        """Raises the proof that there is no maximum likelihood, where that is what is asked for.

        A hyperplane with all rows on its right side would have Σ αᵢmᵢ > 0, which Σ αᵢyᵢxᵢ = 0 forbids.
        """
        problem = self.problem
        if problem.penalised or not np.isfinite(problem.loss.upper) or self.interrupted:
            return
        answer = find_separation(problem, self.result().certificate.alpha)
        if isinstance(answer, SeparableError):
            raise answer
        if not answer:
            warnings.warn(
                "whether the maximum likelihood exists was not decided: some hyperplane may have all rows on its right "
                "side; use a finite C",
                RuntimeWarning,
                stacklevel=2,
            )

    def _record(self, iterate: Iterate, primal: float, dual: float, gap: float, *, proved: bool) -> None:
        seconds = time.perf_counter() - self.began
        self.history.append(Record(iterate.iterations, seconds, primal, dual, gap, iterate.active, proved))
        if self.watch is not None:
            self.watch(iterate.iterations, seconds, relative(gap, dual), iterate.visits or iterate.active)

    def raise_if_inseparable(self, candidates: NDArray[np.intp]) -> None:
        """Raises the proof that these rows have no hard margin, unless looking for it would take too long."""
        rows = self.problem.rows
        if len(candidates) * rows.nonzeros <= LARGEST_PROGRAM * rows.n:
            proof = prove_inseparable(self.problem, candidates) if len(candidates) else None
            if proof is not None:
                raise proof

    def result(self) -> Fit:
        assert self.best is not None
        self.best.iterations, self.best.interrupted = self.iterations, self.interrupted
        return self.best


def _rank(certificate: Certificate) -> tuple[float, float]:
    """What is better comes first: the smaller gap or, of two that prove nothing, the smaller objective."""
    return certificate.relative_gap, certificate.primal if np.isinf(certificate.relative_gap) else 0.0


def _warm(problem: Problem, start: Start) -> Iterate:
    alpha = problem.feasible(start.alpha)
    w = problem.weights(alpha) if start.w is None else start.w.copy()
    return Iterate(w, start.b, alpha, np.inf, -np.inf, 0.0, problem.rows.n, start.iterations)
