"""Dual coordinate descent: one αᵢ at a time, in cheap passes over data of any shape. The kernel is `dual_cd.hpp`.

min over α of ½‖Σ αᵢyᵢxᵢ‖² + Σ cᵢφ*(−αᵢ/cᵢ). Rows whose αᵢ seems settled at a bound are left out of the next passes
(shrinking) until the others are solved, and rows that are slow to settle get visits of their own. The unpenalised bias
is the multiplier b of Σ αᵢyᵢ = 0, found on the way by an augmented Lagrangian, at no extra cost.

Rows that are not all at hand come part by part, each visited as if it were all there is, the parts in a new order in
every pass: Yu, Hsieh, Chang and Lin 2010.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.data import Rows
from widemargin.data.kept_rows import KeptRows
from widemargin.problem import Problem, inner
from widemargin.solvers.iterate import Iterate, Start, State

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: 1/ρ of the augmented Lagrangian, at most, as a share of a typical squared norm: larger, and all rows compete for the
#: balance Σ αᵢyᵢ; smaller, and b lags behind. Less where rows have little in common, and would not compete otherwise,
#: as so many of them tell, or up to twice as many.
BALANCE, SAMPLED = 1 / 30, 128
#: Neighbouring rows are visited together, up to so many, as long as there are so many blocks to shuffle.
BLOCK, BLOCKS = 32, 2000
#: Data with more non-zeros in play than this is worth two threads: in two shards that run side by side.
MANY = 60_000
#: So few rows in play that differ are solved in terms of their products with each other, unless there are more columns
#: than this, and products take long.
VERY_FEW, WIDEST = 60, 100_000
#: Rows are long, and cut in two halves instead, if a visit takes this many nanoseconds of a typical machine.
LONG = 450
#: Shards are merged when each has seen this many times as many non-zeros as there are columns, and at least so many.
MERGE, BETWEEN = 4, 10_000
#: αᵢ at a bound is left out of the next passes if its gradient is beyond a share of the largest that the last one met:
#: of BOLD as long as the relative gap is above ROUGH, of SHY from then on. (Passes over few rows that the kernel goes
#: on with by itself are shyer: all of the largest.)
ROUGH, BOLD, SHY = 0.03, 0.1, 0.5
#: All rows come back into play when the gap of those still in play has fallen to some share of the last whole gap, the
#: first of these in the beginning. To solve them better than what the others hide is in vain: from the second time on
#: the share is so much of what the whole gap fell to the last time, at least the first and at most the last of these.
#: (lanes.hpp, where rows come back for eight classes at once, stays with the first.)
LEAST_RETURN, WORTH, MOST_RETURN = 0.01, 0.5, 0.3
#: After a pass, the rows whose gradient is more than this share of the largest are visited again, up to so many times:
#: a few rows that depend on each other often hold up all others.
SLOW, AGAIN = 0.03, 30
#: If rows come part by part, such rows are kept until all parts were seen: up to this share of all non-zeros, at most
#: so many, and then visited no more often than this.
KEPT, MOST_KEPT, VISITS = 1 / 8, 1 << 27, 10
#: Such parts may be rough, in numbers of 32 bits, as long as the relative gap to reach is above this: less is read.
ROUGHLY = 1e-5
#: A claim this close to tol is worth a proof, which costs less than a pass, unless rows come part by part.
NEAR = 0.9
#: With no more non-zeros than this, a gap that would do is looked at in full first: that takes less time than to ask.
#: Not where a strength is above the other: the caller knows better what is mere rounding of margins times C.
SURE, SOFT = 300_000, 1e4
#: Nanoseconds of visits, as a typical machine takes them, that may go by without a return to Python.
UNSEEN = 2e6
#: α = c is tried at first where, of all its multiples, the best would be this many times as large, as every sixteenth
#: row suggests, or so many of them: margins at w(c) are well below 1 then.
AMPLE, EVERY, SAMPLE = 4.0, 16, 512
#: With a bias, not where the classes' strengths differ by more than this share; up to the other they are in balance.
UNEVEN, NEXT_TO_NOTHING = 0.1, 0.01
#: The relative gap at which the mean rows of the classes are solved well enough, and the passes that may take.
PRECISE, AT_MOST = 1e-6, 1000
#: 1/ρ is so many times as large there: two rows do not mind, and come to this balance. Shares of c smaller than the
#: least are no better than 0.
FIRM, EVEN, LEAST = 30.0, 1e-2, 1e-20
#: After this many passes' worth of work the solver gives up.
PASSES = 3000


#: Those that the kernel goes by, for rows that are at hand and for rows that come part by part.
HABITS, IN_PARTS = (
    _core.Habits(BOLD, SHY, ROUGH, LEAST_RETURN, WORTH, MOST_RETURN, SLOW, near, AGAIN) for near in (NEAR, 1.0)
)


@dataclass
class Memory:
    """All that one pass leaves to the next."""

    alpha: Floats
    w: Floats
    #: The rows in play of each part, numbered within it, at the beginning of its stretch; and how many they are.
    active: Integers
    actives: Integers
    slow: NDArray[np.uint8]
    #: Whether rows that come part by part may be rough.
    rough: bool
    #: What of it are numbers that the kernel keeps.
    course: _core.Course
    #: How many passes the caller would take at once.
    at_once: int = 1

    def state(self, at_once: int) -> State:
        """A copy that can be written down."""
        numbers = {name: getattr(self.course, name) for name in _core.Course.names}
        arrays = {name: getattr(self, name).copy() for name in ("alpha", "w", "active", "actives", "slow")}
        return {**arrays, "rough": self.rough, "course": numbers, "at_once": at_once}

    @classmethod
    def of(cls, state: State) -> Memory:
        """What such a copy was made of."""
        course = _core.Course()
        for name, value in state["course"].items():
            setattr(course, name, value)
        return cls(**{**state, "course": course})


def dual_cd(problem: Problem, *, tol: float, seed: int = 0, start: Start | None = None) -> Iterator[Iterate]:
    """Iterates of dual coordinate descent, one per pass and the extra visits that follow it.

    Or one for several passes, if the caller would take them at once and they are short.
    """
    rows, live = problem.rows, problem.live
    if start is not None and start.state is not None:
        at = Memory.of(start.state)
    else:
        at = _cold(problem, tol) if start is None else _warm(problem, tol, start)
    descent = _InParts(problem, at, seed) if len(rows.parts) > 1 else _AtHand(problem, at, seed)
    course, resumed = at.course, at.course.passes
    if not resumed:
        descent.all_play()

    def iterate(primal: float, claim: float, playing: int, **more: Any) -> Iterate:
        shown = primal, course.dual, claim, playing, course.passes
        return Iterate(at.w, course.b, at.alpha, *shown, state=at.state, **more)

    if not course.passes and course.dual > 0:  # α = c, but for the balance, may be all there is to find
        course.passes = 1
        yield iterate(np.inf, 0.0, len(live), improving=True)
    while course.visited < PASSES * len(live):
        playing, visits = descent.go_on(1 if problem.hard else at.at_once)
        hopeless = problem.hard and course.passes % 64 == 0 and problem.hulls_seem_to_meet(at.alpha, at.w)
        seen = course.dual + course.gap, course.near, playing
        yield (now := iterate(*seen, visits=visits, inseparable=hopeless, improving=True))
        at.at_once = now.at_once
    if resumed and course.passes == resumed:  # it had come to its end: once more where it ended
        yield iterate(course.dual + course.gap, course.near, len(live))


class _Descent(ABC):
    """What both ways to go through the rows have in common."""

    def __init__(self, problem: Problem, at: Memory, seed: int, *, firm: float = 1.0) -> None:
        rows = problem.rows
        self.problem, self.at, self.seed, self.work = problem, at, seed, _core.Workspace()
        self.shift, self.inverse_rho = shift_of(len(problem.live)), firm * inverse_rho_of(problem)
        per_row = max(rows.nonzeros / rows.n, 1e-9)
        self.many = math.ceil(max(MANY, 16 * rows.d) / per_row)  # rows that are worth two shards
        self.apart = math.ceil(max(MERGE * rows.d, BETWEEN) / per_row)

    @abstractmethod
    def all_play(self) -> None:
        """Lets all rows that count into play."""

    @abstractmethod
    def go_on(self, passes: int) -> tuple[int, int]:
        """So many passes at most, and at least one; how many rows the last one began with, and the visits of all."""


class _AtHand(_Descent):
    """All rows are in memory: the kernel goes on by itself where passes are short."""

    def __init__(self, problem: Problem, at: Memory, seed: int, *, firm: float = 1.0) -> None:
        super().__init__(problem, at, seed, firm=firm)
        rows = problem.rows
        very_few = VERY_FEW if rows.d <= WIDEST else 0
        a_visit = (0.3 if rows.nonzeros == rows.n * rows.d else 2) * rows.nonzeros / rows.n + 30
        self.at_once = int(UNSEEN / a_visit)
        if a_visit >= LONG and self.work.cut(rows.core, rows.threads):
            self.many = math.ceil(MANY * rows.n / rows.nonzeros)
        self.kernel = _core.Descent(
            problem.loss.name,
            rows.core,
            problem.y,
            problem.c,
            problem.norms,
            at.alpha,
            at.w,
            self.inverse_rho,
            at.active,
            int(at.actives[0]),
            problem.live,
            problem.hard,
            self.shift,
            at.slow,
            at.course,
            HABITS,
            very_few,
            self.many,
            rows.nonzeros <= SURE and float(problem.c.max()) <= SOFT,
            seed,
            rows.threads,
            self.apart,
            self.work,
        )

    def all_play(self) -> None:
        self.kernel.all_play()
        self.at.actives = np.array([len(self.problem.live)])

    def go_on(self, passes: int) -> tuple[int, int]:
        playing, visits = self.kernel.go_on(passes, self.at_once)
        self.at.actives[0] = self.kernel.actives
        return playing, visits


def at_the_beginning(problem: Problem, tol: float, seed: int) -> _AtHand:
    """Descent that has not made a pass yet."""
    descent = _AtHand(problem, _cold(problem, tol), seed)
    descent.all_play()
    return descent


class _InParts(_Descent):
    """Rows come part by part, each visited as if it were all there is, the parts in a new order in every pass."""

    def __init__(self, problem: Problem, at: Memory, seed: int) -> None:
        super().__init__(problem, at, seed)
        self.edges = np.searchsorted(problem.live, [0, *(part.stop for part in problem.rows.parts)])
        self.stretches = [slice(*pair) for pair in pairwise(self.edges.tolist())]

    def all_play(self) -> None:
        at, live = self.at, self.problem.live
        for own, part in zip(self.stretches, self.problem.rows.parts, strict=True):
            np.subtract(live[own], part.start, out=at.active[own])
        at.actives = np.diff(self.edges)

    def go_on(self, passes: int) -> tuple[int, int]:
        problem, at, course = self.problem, self.at, self.at.course
        if at.rough and course.doubted:
            at.rough, at.w = False, problem.weights(at.alpha)
        playing, course.passes = int(at.actives.sum()), course.passes + 1
        gap, largest, smallest, visits = self._pass(playing)
        course.visited, course.unseen = course.visited + visits, course.unseen + visits
        if course.unseen >= len(problem.live):  # the dual costs O(n): no more often than a pass's worth of rows
            self._look_at_dual()
        course.judge(gap, largest, smallest, 0.0, int(at.actives.sum()), IN_PARTS)
        if course.near <= course.goal and course.unseen:  # the proof begins with it
            self._look_at_dual()
        if course.whole:  # the caller was not content, or those in play are solved far better than the others may be
            self.all_play()
        return playing, visits

    def _look_at_dual(self) -> None:
        problem, at, course = self.problem, self.at, self.at.course
        balance = 0.0 if problem.hard else course.b * course.s  # what that costs or gains, to first order
        course.dual, course.unseen = problem.dual(at.alpha, at.w) - balance, 0

    def _pass(self, playing: int) -> tuple[float, float, float, int]:
        rows, at, course = self.problem.rows, self.at, self.at.course
        everything = _Numbers(self.problem.y, self.problem.c, self.problem.norms, at.alpha, at.slow)
        gap, largest, smallest, visits = 0.0, -np.inf, np.inf, 0
        room = KEPT * rows.nonzeros * (1 if at.rough else 2 / 3)  # values of 64 bits take up more
        kept = KeptRows(rows.d, min(math.ceil(room), MOST_KEPT))
        order = np.random.default_rng((self.seed, course.passes))
        parts = order.permutation(len(rows.parts))
        for k, part in rows.walk(parts[at.actives[parts] > 0].tolist(), rough=at.rough):
            here, own, mine = rows.parts[k], at.active[self.stretches[k]], int(at.actives[k])
            seen, highest, lowest, at.actives[k], visited = self._visit(
                part,
                everything.of(here),
                own,
                mine,
                order,
                bounds=(course.above, course.below),
                slow_from=SLOW * course.worst,
                proof=course.tol * course.dual * mine / playing,
                enough=course.dual * course.enough(IN_PARTS) if course.dual > 0 else 0.0,
            )
            gap, visits = gap + seen, visits + visited
            largest, smallest = max(largest, highest), min(smallest, lowest)
            left = own[: at.actives[k]]
            kept.add(part, left[at.slow[here][left] > 0], here.start)
        places = kept.index
        if count := len(places):
            copies = everything.of(places)
            whole = kept.rows(rows.threads)
            *_, visited = self._visit(
                whole, copies, np.arange(count), count, order, most=VISITS * count, split=count >= self.many
            )
            at.alpha[places] = copies.alpha
            visits += visited
        return gap, largest, smallest, visits

    def _visit(
        self,
        some: Rows,
        own: _Numbers,
        active: Integers,
        count: int,
        order: np.random.Generator,
        *,
        bounds: tuple[float, float] = (np.inf, -np.inf),
        slow_from: float = np.inf,
        proof: float = 0.0,
        enough: float = 0.0,
        most: int = 0,
        split: bool = False,  # two shards of a part are merged too seldom
    ) -> tuple[float, float, float, int, int]:
        course = self.at.course
        course.b, course.s, gap, _, largest, smallest, left, visits = _core.dual_cd_pass(
            self.problem.loss.name,
            some.core,
            own.y,
            own.c,
            own.norms,
            own.alpha,
            self.at.w,
            course.b,
            course.s,
            self.inverse_rho,
            active,
            count,
            order.permutation(-(-count >> self.shift)),
            self.shift,
            *bounds,
            own.slow,
            slow_from,
            SLOW,
            0,
            self.many,
            proof,
            enough,
            most,
            split,
            self.problem.rows.threads,
            self.apart,
            self.work,
        )
        return gap, largest, smallest, left, visits


def shift_of(count: int) -> int:
    """How many neighbours of so many rows are visited together: 2 to this power."""
    return min(max(count // BLOCKS, 1), BLOCK).bit_length() - 1


def inverse_rho_of(problem: Problem) -> float:
    """1/ρ, which is 0 without a bias; any will do where all rows are empty.

    To rows it is one more column of that square: no burden if it is no larger than what rows have in common, or than an
    even share of a row's square for each direction that rows may take. A row's square is that of the mean length: a few
    long rows do not count for many short ones, nor short ones for nothing.
    """
    if not problem.fit_intercept:
        return 0.0
    rows, lengths = problem.rows, np.sqrt(problem.narrow(problem.norms))
    share, typical = BALANCE, float(lengths.mean()) ** 2
    if len(rows.parts) == 1:  # else all of them would be read
        share = min(share, max(2 * _likeness(problem), 1 / min(len(problem.live), rows.d)))
    return share * typical or 1.0


def _likeness(problem: Problem) -> float:
    """The mean cosine of two rows, as some of them suggest it."""
    some = problem.live[:: max(1, len(problem.live) // SAMPLED)]
    some = some[problem.norms[some] > 0]
    if (count := len(some)) < 2:
        return 1.0
    unit = np.zeros(problem.rows.n)
    unit[some] = 1 / np.sqrt(problem.norms[some])
    total = problem.rows.combine(unit)
    return (inner(total, total) - count) / (count * (count - 1))


class _Numbers(NamedTuple):
    """What rows have beside X."""

    y: Floats
    c: Floats
    norms: Floats
    alpha: Floats
    slow: NDArray[np.uint8]

    def of(self, rows: slice | Integers) -> _Numbers:
        return _Numbers(self.y[rows], self.c[rows], self.norms[rows], self.alpha[rows], self.slow[rows])


def _warm(problem: Problem, tol: float, start: Start) -> Memory:
    alpha = np.clip(start.alpha, problem.loss.lower, problem.upper)
    return _begin(problem, tol, alpha, problem.weights(alpha), start.b if problem.fit_intercept else 0.0)


def _begin(problem: Problem, tol: float, alpha: Floats, w: Floats, b: float) -> Memory:
    course = _core.Course()
    course.goal = course.tol = tol
    course.b, course.s = b, inner(alpha, problem.y)
    active, slow = np.empty(len(problem.live), np.int64), np.zeros(problem.rows.n, np.uint8)
    rough = problem.rows.rough and tol > ROUGHLY
    return Memory(alpha, w, active, np.zeros(1, np.int64), slow, rough, course)


def _cold(problem: Problem, tol: float) -> Memory:
    """α = 0 or, where of all its multiples that is the best by far, c, with a bias in balance.

    Or what the mean rows of the classes suggest, where the loss keeps α away from both ends.
    """
    if problem.loss.smooth and np.isfinite(problem.loss.upper):
        at = _from_means(problem, tol)
        if at is not None:
            return at
    elif _guess_of_square(problem) * AMPLE < (total := float(problem.c.sum())):
        far = problem.weights_of_strengths
        if inner(far, far) * AMPLE < total:
            at = _begin(problem, tol, *_balanced(problem, far))
            at.course.dual = problem.dual(at.alpha, at.w)
            return at
    return _begin(problem, tol, np.zeros(problem.rows.n), np.zeros(problem.rows.d), problem.bias_of_nothing)


def _balanced(problem: Problem, far: Floats) -> tuple[Floats, Floats, float]:
    """α = c, but for as much of the class in excess as costs least at w(c) = `far`; w(α), and the best b for it.

    If that is next to nothing, α = c, and the proof will see to it.
    """
    if not problem.fit_intercept or abs(inner(problem.c, problem.y)) <= NEXT_TO_NOTHING * float(problem.c.sum()):
        return problem.c.copy(), far.copy(), problem.bias_of_nothing
    alpha = problem.feasible(problem.c, problem.margins(far, 0.0))
    w = far - problem.rows.combine((problem.c - alpha) * problem.y)
    return alpha, w, problem.best_bias(problem.rows.scores(w))


def _from_means(problem: Problem, tol: float) -> Memory | None:
    """The solution of the problem of two rows, each the mean of a class and as strong as all of it."""
    c, positive = problem.c, problem.y > 0
    with np.errstate(over="ignore"):
        totals = np.array([inner(c, side.astype(float)) for side in (positive, ~positive)])
        shares = np.divide(1.0, totals, out=np.zeros(2), where=totals > 0)
    if not (np.isfinite(totals) & np.isfinite(shares)).all():
        return None
    means = problem.rows.combine_by_sign(c * np.where(positive, shares[0], -shares[1]))
    pair = Problem(_same_products(*means), np.array([1.0, -1.0]), totals, problem.loss, problem.fit_intercept)
    at = _begin(pair, PRECISE, np.zeros(2), np.zeros(2), pair.bias_of_nothing)
    descent = _AtHand(pair, at, 0, firm=FIRM)
    descent.all_play()
    descent.go_on(AT_MOST)
    if problem.fit_intercept and abs(at.alpha[0] - at.alpha[1]) > EVEN * at.alpha.sum():
        return None  # numbers too large for their sums
    a, w = at.alpha * shares, Rows(means).combine(at.alpha * pair.y)
    return _begin(problem, tol, np.where(positive, *a) * c, w, at.course.b) if a.max() > LEAST else None


def _same_products(one: Floats, other: Floats) -> Rows:
    """Two rows of two numbers with the products that these have, with themselves and with each other."""
    size, across = math.sqrt(inner(one, one)), inner(one, other)
    along = across / size if size > 0 else 0.0
    return Rows(np.array([[size, 0.0], [along, math.sqrt(max(inner(other, other) - along**2, 0.0))]]))


def _guess_of_square(problem: Problem) -> float:
    """‖w(c)‖², as some of the rows suggest it; ∞ where α = c is no solution, nor close to one in balance."""
    rows, c = problem.rows, problem.c
    if problem.hard or problem.loss.upper != 1 or len(rows.parts) > 1:
        return np.inf
    if problem.fit_intercept and abs(inner(c, problem.y)) > UNEVEN * c.sum():
        return np.inf
    with np.errstate(over="ignore"):
        alone = inner(c * c, problem.norms)  # what the rows would make of it if they were at right angles
    if alone >= c.sum():  # on average a row, visited alone, would not go to its bound
        return np.inf
    some, every = np.zeros(rows.n), max(EVERY, rows.n // SAMPLE)
    some[::every] = c[::every]
    w, share = problem.weights(some), float(some.sum() / c.sum())
    if share == 0:
        return np.inf
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.float64(inner(w, w) / share - (1 - share) * alone) / share)
