"""The loop for kernel machines: block SMO on rows of the kernel matrix, and certificates that it cannot reach.

The solver works with a gradient that it carries along, from kernel rows in float32 where these will do. Whenever it
claims the accuracy asked for, the certificate computes all scores in float64. If the claim is refused, the solver goes
on from the exact gradient, as in iterative refinement: what float32 loses shrinks with the steps that are left.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.certificate import Certificate, relative
from widemargin.kernel_certificate import SAME_POINT, Proved, certify, prove_inseparable
from widemargin.kernel_problem import KernelProblem, own_scores
from widemargin.kernels.gram import ROUNDED, Source
from widemargin.solvers import State
from widemargin.solvers.kernel_refinement import refine
from widemargin.training import Fit, Keep, OneBlasThread, Record, Watch

Floats = NDArray[np.float64]
#: Its rows, the rounds in which they came, how many rows there is room for, and the places of those that were active.
WorkingSet = tuple[list[int], list[int], int, list[int]]

#: Rows of the largest working set. More make fewer rounds, each with more steps of O(rows) and a larger matrix.
LARGEST = 8192
#: Rows of the largest problem that Newton steps on the free rows may follow.
REFINED = 2048
#: Rows of the largest that they follow whatever the accuracy asked for: they take a millisecond, and rows of weight 2
#: are then as good as repeated ones to the last digits.
SMALL = 200
#: Rounds between two looks at the clock and at Ctrl-C.
ROUNDS = 4
#: Claims that may be refused, or stalls, without the gap falling to half, before rows are computed in float64.
PATIENCE = 3
#: Looks in a row without growth of the dual beyond rounding after which the solver is at its end, whatever it claims.
FLAT = 2
#: A solver that takes this many times the work so far, and neither its gap nor its violation has halved, is at its end:
#: from there on a digit would cost ten times all that was spent.
STAGNANT = 4
#: A relative gap beyond this is no progress, however it falls: the dual is next to nothing beside the primal.
HOPELESS = 1e6
#: The violation of the KKT conditions at α = 0: a larger one is no progress, either.
AT_ZERO = 2.0
#: Work that every solver may take in any case, in steps of SMO: some seconds, seldom a minute.
LEAST_WORK = 1 << 22
#: Steps of SMO that a round counts for, beside its own.
ROUND = 1024
#: The relative gap from which Newton steps on the free rows are tried, where more is asked for.
ROUGH = 1e-3
#: A relative gap that no solver reaches: it goes on until nothing is left to gain.
NEVER = -1e300
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class NegativeCurvature:
    """Rows and weights v, Σ v = 0 and ‖v‖ = 1, with vᵀKv = `value` < 0: no inner product of features is like that."""

    value: float
    rows: NDArray[np.intp]
    weights: Floats

    def __str__(self) -> str:
        if len(self.rows) == 2:
            i, j = self.rows
            return f"k(xᵢ, xᵢ) + k(xⱼ, xⱼ) − 2k(xᵢ, xⱼ) is {2 * self.value:.3g} for the rows i = {i} and j = {j}"
        heaviest = self.rows[np.argsort(-np.abs(self.weights))[:3]]
        shown = ", ".join(map(str, heaviest))
        return f"vᵀKv = {self.value:.3g} for a v with ‖v‖ = 1 and Σ v = 0, largest on the rows {shown}"


@dataclass
class KernelFit:
    """f = Σ coefⱼ k(xⱼ, ·) and b with their proof, and how they came about."""

    proved: Proved
    #: The rows of the problem in the kernel matrix.
    index: NDArray[np.intp] = field(repr=False)
    iterations: int
    history: list[Record] = field(repr=False)
    #: Why nothing is proved, if the kernel is not positive semidefinite.
    curvature: NegativeCurvature | None = None
    interrupted: bool = False

    @property
    def certificate(self) -> Certificate:
        """The proof."""
        return self.proved.certificate

    @property
    def alpha(self) -> Floats:
        """The dual variables that the certificate vouches for."""
        return self.certificate.alpha

    @property
    def support(self) -> NDArray[np.intp]:
        """The rows of the problem that f consists of, however small their α: the certificate is for all of them."""
        return np.flatnonzero(self.proved.coef)

    def follow(self, earlier: Fit) -> None:
        """Counts what the linear solvers did before, from whose α this fit began."""
        seconds = earlier.history[-1].seconds if earlier.history else 0.0
        self.history = earlier.history + [
            one._replace(iteration=one.iteration + earlier.iterations, seconds=one.seconds + seconds)
            for one in self.history
        ]
        self.iterations += earlier.iterations
        self.interrupted |= earlier.interrupted


@dataclass
class Stagnation:
    """Whether a solver is at its end: its dual grows no more, or much work halves neither its gap nor its violation.

    Without a finite gap, as of a hard margin, a dual that doubles counts as progress, too.
    """

    flat: int = 0
    dual: float = -math.inf
    #: Work so far, and work, gap, violation and dual when one of them was last halved or doubled.
    work: float = 0.0
    since: tuple[float, float, float, float] = 0.0, HOPELESS, AT_ZERO, 0.0

    def look(self, core: Any, steps: int, rounds: int, *, hard: bool = False) -> None:
        """Takes note of what the solver sees after so many steps and rounds."""
        _, primal, dual, violation, _ = core.status
        self.flat = 0 if dual > self.dual + 4 * EPSILON * abs(self.dual) else self.flat + 1
        self.dual, self.work = dual, float(steps + ROUND * rounds)
        _, gap, before, least = self.since
        now = relative(max(primal - dual, 0.0), dual)
        if now < gap / 2 or violation < before / 2 or (hard and dual > 2 * least):
            self.since = self.work, min(gap, now), min(before, violation), dual

    @property
    def reached(self) -> bool:
        """Whether it makes no sense to go on, as with costs and kernel values beyond all scales."""
        return self.flat >= FLAT or self.work > STAGNANT * self.since[0] + LEAST_WORK


class _Run:
    """One problem on its way: its solver, its best proof, its history."""

    def __init__(
        self, problem: KernelProblem, start: Floats | None, began: float, tol: float, *, refined: bool
    ) -> None:
        self.problem, self.began, self.tol = problem, began, tol
        #: Whether Newton steps on the free rows follow a claim.
        sharp = tol < ROUGH or problem.hard  # SMO would take the more steps the narrower a margin is
        self.refinable = refined and problem.n <= REFINED
        self.refined = self.refinable and (problem.n <= SMALL or sharp)
        #: The relative gap to claim: below `tol` once a claim of `tol` was refused.
        self.goal = max(tol, ROUGH) if self.refined else tol
        self.stagnation = Stagnation()
        self.alpha = np.zeros(problem.n) if start is None else problem.problem.feasible(start)
        self.e, self.gradient_known = problem.y.copy(), not self.alpha.any()
        self.core: Any = None
        self.earlier = self.refused = self.earlier_steps = 0
        self.best: Proved | None = None
        self.history: list[Record] = []
        self.done = False
        #: The pair of rows of the smallest curvature that earlier solvers met, and it as a share of k(i, i) + k(j, j).
        self.met: tuple[int, int, float] = (-1, -1, math.inf)

    def employ(self, source: Source, largest: int, threads: int, working_set: WorkingSet | None) -> None:
        """Gives the solver its rows of the kernel matrix, and the working set of a run that was stopped."""
        single = isinstance(source, _core.KernelRows32)
        kind = _core.KernelSmo32 if single else _core.KernelSmo64
        problem = self.problem
        self.core = kind(source, problem.segments, problem.y, problem.c, self.alpha, self.e, largest, threads)
        if not self.gradient_known:
            self.core.compute_gradient()
            self.gradient_known = True
        if working_set is not None:
            self.core.working_set = working_set

    def withdraw(self) -> None:
        """Takes the solver away, which frees its memory, and remembers what it counted."""
        if self.core is not None:
            self.earlier, self.earlier_steps, self.met = self.iterations, self.steps, self.worst
            self.core = None

    @property
    def iterations(self) -> int:
        return self.earlier + (0 if self.core is None else int(self.core.status[0]))

    @property
    def worst(self) -> tuple[int, int, float]:
        """The pair of rows of the smallest curvature that was met, and it as a share of k(i, i) + k(j, j)."""
        if self.core is None:
            return self.met
        met: tuple[int, int, float] = min(self.met, self.core.worst, key=lambda pair: pair[2])
        return met

    @property
    def steps(self) -> int:
        """Steps of SMO so far."""
        return self.earlier_steps + (0 if self.core is None else int(self.core.steps))

    @property
    def claim(self) -> float:
        """The relative gap that the solver sees."""
        if self.core is None:
            return math.inf
        _, primal, dual, _, _ = self.core.status
        return relative(max(primal - dual, 0.0), dual)

    @property
    def exhausted(self) -> bool:
        """Whether no step can be made, none that the dual gains from, or too many without progress."""
        if self.core is None:
            return False
        return bool(self.core.status[4]) or self.stagnation.reached

    def stationary(self, tol: float) -> bool:
        """Whether the KKT conditions hold up to `tol`: all there is to reach where the kernel is not semidefinite."""
        return self.exhausted or self.problem.hard or (self.core is not None and self.core.status[3] <= tol)

    @property
    def hulls_meet(self) -> bool:
        """Whether the hulls of a hard margin's classes seem to have a point in common: √(2/dual) is their distance."""
        if not self.problem.hard or self.core is None:
            return False
        largest = float(self.problem.square_lengths.max(initial=0.0))
        return bool(self.core.status[2] * SAME_POINT**2 * largest >= 2)

    @property
    def overdue(self) -> bool:
        """Whether 8, 16, 32 … rounds made no claim: Newton steps may go on where SMO crawls, as it does at a large C.

        Or there is a proof that a hard margin does not exist.
        """
        looks = self.iterations // ROUNDS
        if self.core is None:
            return False
        helpless = self.refinable or (self.problem.hard and np.isinf(self.core.status[1]))
        return helpless and looks > 1 and looks & (looks - 1) == 0

    def look(self) -> None:
        """Writes down what the solver sees."""
        if not np.isfinite(self.alpha.max(initial=0.0)):
            pair = np.isinf(self.alpha).astype(np.float64)  # two rows of different classes with no distance
            inseparable = prove_inseparable(self.problem, pair, self.problem.scores(pair * self.problem.y))
            if inseparable is not None:
                raise inseparable
            raise ValueError(
                "α grows without end: the kernel is not positive semidefinite; use a finite C or another one"
            )
        self.stagnation.look(self.core, self.steps, self.iterations, hard=self.problem.hard)
        _, primal, dual, _, _ = self.core.status
        self._record(primal, dual, max(primal - dual, 0.0), proved=False)

    def prove(self, scores: Floats, *, semidefinite: bool) -> Proved:
        """Judges α, given its exact scores, and lets the solver go on from the exact gradient."""
        proved = certify(self.problem, self.alpha, scores, semidefinite=semidefinite)
        certificate = proved.certificate
        self._record(certificate.primal, certificate.dual, certificate.gap, proved=True)
        np.subtract(self.problem.y, scores, out=self.e)
        self.gradient_known = True
        before = self.best
        if before is None or _rank(certificate) <= _rank(before.certificate):
            self.best = proved
        hopeful = certificate.relative_gap < HOPELESS or self.problem.hard
        halved = before is None or (hopeful and certificate.gap < before.certificate.gap / 2)
        if before is not None and self.problem.hard and np.isinf(certificate.gap):  # the hulls come closer
            halved |= certificate.dual > 2 * before.certificate.dual
        if self.claim <= self.goal or self.exhausted or self.hulls_meet:
            self.refused = 0 if halved else self.refused + 1
            self.goal = self.tol if self.goal > self.tol else min(self.goal, self.claim) / 2
        self.stagnation.flat = 0
        return proved

    def doubt(self) -> None:
        """Takes back what was proved: the kernel turned out not to be positive semidefinite."""
        if self.best is not None:
            self.best = certify(self.problem, self.best.certificate.alpha, self.best.scores, semidefinite=False)

    def _record(self, primal: float, dual: float, gap: float, *, proved: bool) -> None:
        seconds = time.perf_counter() - self.began
        self.history.append(Record(self.iterations, seconds, primal, dual, gap, self.problem.n, proved))

    def state(self) -> State:
        """All that the next round depends on."""
        rows, came, size, active = ([], [], 0, []) if self.core is None else self.core.working_set
        return {
            "alpha": self.alpha.copy(),
            "e": self.e.copy(),
            "working_set": (*(np.array(some, dtype=np.int64) for some in (rows, came, active)), size),
            "iterations": self.iterations,
            "refused": self.refused,
            "progress": (self.goal, self.steps, self.stagnation.flat, self.stagnation.dual, self.stagnation.work),
            "since": self.stagnation.since,
            "best": None if self.best is None else {"alpha": self.best.certificate.alpha, "scores": self.best.scores},
            "worst": self.worst,
            "done": self.done,
        }

    def resume(self, state: State, *, semidefinite: bool) -> None:
        """Takes up such a state."""
        self.alpha, self.e, self.gradient_known = np.array(state["alpha"]), np.array(state["e"]), True
        self.earlier, self.refused, self.done = state["iterations"], state["refused"], state["done"]
        self.goal, self.earlier_steps, flat, dual, work = state["progress"]
        self.stagnation = Stagnation(flat, dual, work, tuple(state["since"]))
        self.met = tuple(state["worst"])
        if state["best"] is not None:
            self.best = certify(self.problem, **state["best"], semidefinite=semidefinite)


def fit(
    problems: list[KernelProblem],
    *,
    tol: float = 1e-3,
    max_iter: int | None = None,
    memory: float = 1e9,
    working_memory: float = 1e9,
    threads: int = 1,
    starts: list[Floats] | None = None,
    refined: bool = True,
    judge_starts: bool = False,
    watch: Watch | None = None,
    resumed: State | None = None,
    keep: Keep | None = None,
) -> list[KernelFit]:
    """One fit per problem, all of one kernel matrix, trained together so that its rows are shared.

    `memory` is what may be kept of the kernel matrix, in bytes; `working_memory` is for the working sets of all
    problems together, and the only one of the two that the last digits depend on. Where `refined`, small problems end
    with Newton steps. `judge_starts` proves these, which may be good enough, before any solver is at work. `watch` and
    `keep` are those of :func:`widemargin.training.fit`, called after every few rounds; `resumed` is a state that was
    kept. An interrupt ends all of them with what they have.
    """
    gram, began = problems[0].gram, time.perf_counter()
    ways = [None] * len(problems) if starts is None else starts
    runs = [_Run(problem, start, began, tol, refined=refined) for problem, start in zip(problems, ways, strict=True)]
    # The narrower the margin of a hard margin, the more digits of K it takes.
    single = gram.single and not (gram.n <= REFINED and any(problem.hard for problem in problems))
    curvature, interrupted = None, False
    working_sets: list[WorkingSet | None] = [None] * len(runs)
    if resumed is not None:
        single = resumed["single"]
        if resumed["curvature"] is not None:
            curvature = NegativeCurvature(**resumed["curvature"])
        sets = [state["working_set"] for state in resumed["runs"]]
        working_sets = [(rows.tolist(), came.tolist(), int(size), active.tolist()) for rows, came, active, size in sets]
        for run, before in zip(runs, resumed["runs"], strict=True):
            run.resume(before, semidefinite=curvature is None)
    threads_apart = 0  # of problems side by side

    def employ() -> None:
        nonlocal threads_apart
        size = 4 if single else 8
        # Several problems share the whole matrix, where it fits, and have a thread each.
        whole = len(runs) > 1 and gram.n**2 * size <= working_memory
        threads_apart = threads if whole else 0
        source = gram.source(single=single, memory=memory, whole=whole)
        largest = largest_working_set(working_memory / len(runs) / size)
        for run, working_set in zip(runs, working_sets, strict=True):
            run.employ(source, largest, 1 if whole else threads, working_set)

    def state() -> State:
        found = None if curvature is None else vars(curvature)
        return {"single": single, "curvature": found, "runs": [run.state() for run in runs]}

    employed = False
    try:
        with OneBlasThread():
            if judge_starts and resumed is None:
                _prove(runs, tol, max_iter, semidefinite=gram.semidefinite)
            while active := [run for run in runs if not run.done]:
                if not employed:
                    employ()
                    employed = True
                goal = min(run.goal for run in active) if curvature is None else NEVER
                _advance(active, goal, max_iter, threads_apart)
                claims = [
                    run
                    for run in active
                    if (run.claim <= run.goal if curvature is None else run.stationary(tol))
                    or run.exhausted
                    or run.hulls_meet
                    or run.overdue
                    or _spent(run, max_iter)
                ]
                if claims:
                    if curvature is None:
                        curvature = find_negative_curvature(problems, claims)
                        for run in runs if curvature is not None else ():
                            run.doubt()
                    _prove(claims, tol, max_iter, semidefinite=curvature is None)
                if single and any(run.refused >= PATIENCE and not run.done for run in runs):
                    single, working_sets, employed = False, [None] * len(runs), False
                    for run in runs:
                        run.withdraw()  # a state that is kept now begins with the new solvers, too
                _tell(active, watch)
                if keep is not None:
                    keep(state)
    except KeyboardInterrupt:
        interrupted = True
        rest = [run for run in runs if not run.done]
        with OneBlasThread():
            curvature = curvature or find_negative_curvature(problems, rest)
            for run in runs if curvature is not None else ():
                run.doubt()
            _prove(rest, tol, 0, semidefinite=curvature is None)
    return [
        KernelFit(run.best, run.problem.index, run.iterations, run.history, curvature, interrupted)
        for run in runs
        if run.best is not None
    ]


def largest_working_set(values: float) -> int:
    """Rows, for whose kernel matrix and its copies of active rows alone there is room for so many kernel values.

    Active rows are copied where they are at most half of the rows: (1 + ¼ + ¼² + …) q² = 4/3 q².
    """
    return min(LARGEST, 1 << int(math.log2(max(values * 3 / 4, 4)) / 2))


def _advance(active: list[_Run], tol: float, max_iter: int | None, threads: int) -> None:
    """A few rounds of each, on a thread of its own if there are `threads` for it."""
    rounds = ROUNDS if max_iter is None else min(ROUNDS, *(max_iter - run.iterations for run in active))
    if threads:
        type(active[0].core).run_all([run.core for run in active], rounds, tol, threads)
    else:
        for run in active:
            run.core.run(rounds, tol)
    for run in active:
        run.look()


def _spent(run: _Run, max_iter: int | None) -> bool:
    return max_iter is not None and run.iterations >= max_iter


def _prove(claims: list[_Run], tol: float, max_iter: int | None, *, semidefinite: bool) -> None:
    """Judges these, all scores in one go over the kernel matrix; one that is good enough, or at its end, is done."""
    if not claims:
        return
    exact = _exact_scores(claims)
    if semidefinite and _refine(claims, exact, max_iter):
        exact = _exact_scores(claims)
    for run, scores in zip(claims, exact, strict=True):
        problem, spent = run.problem, _spent(run, max_iter)
        certificate = run.prove(scores, semidefinite=semidefinite).certificate
        if problem.hard and certificate.relative_gap > tol:
            inseparable = prove_inseparable(problem, run.alpha, scores)
            if inseparable is not None:
                raise inseparable
        if semidefinite:
            # Whatever the solver does, the certificate cannot be sharper than the rounding of its own sums.
            sharpest = certificate.rounding > max(tol * certificate.dual, certificate.primal - certificate.dual)
            run.done = certificate.relative_gap <= tol or sharpest or run.refused >= 2 * PATIENCE or spent
        else:
            if run.core is not None:
                run.core.run(0, NEVER)  # for the violation of the exact gradient
            run.done = spent or run.stationary(tol)


def _refine(claims: list[_Run], exact: list[Floats], max_iter: int | None) -> bool:
    """Takes those of them that are small to their optimum; whether any has moved."""
    moved = False
    for run, scores in zip(claims, exact, strict=True):
        if not (run.refined or (run.refinable and run.overdue)) or _spent(run, max_iter):
            continue
        better = refine(run.problem, run.alpha, scores)
        if better is not None:
            run.alpha[:] = run.problem.problem.feasible(better)
            moved = True
    return moved


def _exact_scores(claims: list[_Run]) -> list[Floats]:
    """Σ αⱼyⱼ k(xⱼ, xᵢ) of the rows of each."""
    return own_scores([run.problem for run in claims], [run.alpha for run in claims])


def find_negative_curvature(problems: list[KernelProblem], runs: list[_Run]) -> NegativeCurvature | None:
    """Where the kernel is not positive semidefinite: the pair of rows that a solver met, or some more rows."""
    gram = problems[0].gram
    if gram.semidefinite:
        return None
    for run in runs:
        i, j, share = run.worst
        if share < 0:
            rows = run.problem.index[[i, j]]
            K = gram.block(rows, rows)
            value = float(K[0, 0] + K[1, 1] - K[0, 1] - K[1, 0]) / 2
            if value < -ROUNDED * float(np.abs(np.diag(K)).mean()):
                return NegativeCurvature(value, rows, np.array([1.0, -1.0]) / np.sqrt(2))
    support = np.unique(np.concatenate([run.problem.index[run.alpha > 0] for run in runs]))
    found = gram.negative_curvature(support)
    return None if found is None else NegativeCurvature(found[0], found[2], found[1])


def _tell(runs: list[_Run], watch: Watch | None) -> None:
    if watch is not None:
        worst = max(runs, key=lambda run: run.claim)
        watch(max(run.iterations for run in runs), worst.history[-1].seconds, worst.claim, 0)


def _rank(certificate: Certificate) -> tuple[float, float]:
    """What is better comes first: the smaller gap or, of two that prove nothing, the larger dual."""
    return certificate.relative_gap, -certificate.dual if np.isinf(certificate.relative_gap) else 0.0
