"""PROBLEM: min over w, b of ½‖w‖² + Σ cᵢ φ(yᵢ(w·xᵢ + b)), its dual, and the map between them.

The dual is max over α of −½‖w(α)‖² − Σ cᵢ φ*(−αᵢ/cᵢ) with w(α) = Σ αᵢyᵢxᵢ; an unpenalised bias b adds the constraint
Σ αᵢyᵢ = 0, and b is its multiplier. cᵢ = ∞ is the hard margin: φ becomes the constraint yᵢ(w·xᵢ + b) ≥ 1. Without the
penalty ½‖w‖² (least squares, maximum likelihood) the dual demands w(α) = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.data import Rows
from widemargin.losses import Loss

Floats = NDArray[np.float64]


def inner(a: Floats, b: Floats) -> float:
    """Σ aᵢbᵢ as a sum of short sums: more accurate than BLAS's dot product, whose threads would also go on spinning on
    the cores that the kernels need next.
    """
    return _core.inner(a, b)


#: A smallest margin this little below 1 counts as rounding.
HARD_ROUNDING = 1e-9

#: Σ αᵢyᵢxᵢⱼ this small beside Σ |αᵢxᵢⱼ| is rounding, and counts as 0; each αᵢ may be off by this share of cᵢ.
BALANCED, ROUNDED = 4e-14, 2e-15
#: A slope in b this small beside its range is rounding, and counts as 0.
FLAT = 1e-12
#: Two steps in a row of Newton's method this small, or within the rounding of b, are its last.
ALMOST = 1e-9
#: Once or twice is enough to balance α but for rounding.
BALANCINGS = 5
#: The deviation from its mean, as a share of its size, below which a column counts as constant.
CONSTANT = 1e-13


@dataclass(frozen=True)
class Convention:
    """One way to write the strength of the penalty."""

    where: str
    written: str
    #: What the number is called, "C" or "lam".
    symbol: str
    #: Our C, in words and given that number and the number n of rows.
    ours: str
    convert: Callable[[float, float], float]
    #: Whether our C depends on the number of rows.
    needs_n: bool = False


class Conventions(dict[str, Convention]):
    """Conventions by name; prints as a table."""

    def __str__(self) -> str:
        lines = [("convention", "written as", "our C", "where")]
        lines += [(name, one.written, one.ours, one.where) for name, one in self.items()]
        widths = [max(len(line[k]) for line in lines) for k in range(3)]
        return "\n".join(
            "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3]])
            for line in lines
        )


#: How the lecture notes, and others, write the strength of the penalty.
CONVENTIONS = Conventions(
    slack=Convention("001, slack variables; LinearSVC, SVC", "½‖w‖² + C Σ φ", "C", "C", lambda C, n: C),
    primal=Convention("001, back to the primal", "‖w‖² + C Σ φ", "C", "C/2", lambda C, n: C / 2),
    rule=Convention("000, first page", "λ‖w‖² + (1/n) Σ φ", "lam", "1/(2λn)", lambda lam, n: 1 / (2 * lam * n), True),
    pegasos=Convention(
        "000, SGD; 001, Pegasos; SGDClassifier",
        "λ/2 ‖w‖² + (1/n) Σ φ",
        "lam",
        "1/(λn)",
        lambda lam, n: 1 / (lam * n),
        True,
    ),
    sum=Convention("002; 003; Tikhonov in 000; Ridge", "λ‖w‖² + Σ φ", "lam", "1/(2λ)", lambda lam, n: 1 / (2 * lam)),
    half=Convention("004", "λ/2 ‖w‖² + Σ φ", "lam", "1/λ", lambda lam, n: 1 / lam),
)


def strength(
    *, C: float | None = None, lam: float | None = None, convention: str = "slack", n: int | None = None
) -> float:
    """Our C for a strength that is written in another convention.

    Parameters
    ----------
    C, lam : float
        The number, by the name that the convention has for it.
    convention : {"slack", "primal", "rule", "pegasos", "sum", "half"}, default="slack"
        ``print(widemargin.CONVENTIONS)`` shows what each stands for.
    n : int
        The number of rows, where the convention divides the loss by it.

    Examples
    --------
    >>> from widemargin import strength
    >>> strength(lam=1e-4, convention="pegasos", n=20_000)
    0.5

    """
    if convention not in CONVENTIONS:
        raise ValueError(f"convention={convention!r}; choose from {', '.join(map(repr, CONVENTIONS))}")
    one, given = CONVENTIONS[convention], {"C": C, "lam": lam}
    value = given.pop(one.symbol)
    if value is None or any(other is not None for other in given.values()):
        raise ValueError(f"the convention {convention!r} writes {one.written}; give {one.symbol} and nothing else")
    if not value > 0:
        raise ValueError(f"{one.symbol}={value!r}; it must be a number > 0")
    if (one.needs_n or n is not None) and (not isinstance(n, Integral) or n < 1):
        raise ValueError(f"n={n!r}; the convention {convention!r} writes {one.written}: give the number of rows")
    return float(one.convert(value, n or 1))


@dataclass(frozen=True, eq=False)
class Problem:
    """A loss, strengths and rows. Labels y are ±1; strengths c are ≥ 0, a row of strength 0 is no row."""

    rows: Rows
    y: Floats
    c: Floats
    loss: Loss
    fit_intercept: bool = True
    #: Whether ½‖w‖² is part of the objective.
    penalised: bool = True

    def __post_init__(self) -> None:
        infinite = np.isinf(self.c)
        if infinite.any() and not infinite[self.c > 0].all():
            raise ValueError("some strengths are infinite and some are not; make all of them infinite or none")

    @cached_property
    def hard(self) -> bool:
        """Whether this is the hard margin, C = ∞."""
        return bool(np.isinf(self.c).any())

    @cached_property
    def live(self) -> NDArray[np.intp]:
        """The rows that count: those of positive strength."""
        return np.flatnonzero(self.c > 0)

    def but(self, *, y: Floats | None = None, threads: int | None = None) -> Problem:
        """The same problem with other labels or threads; what it knows of its strengths comes along."""
        rows = self.rows if threads is None else self.rows.with_threads(threads)
        other = replace(self, y=self.y if y is None else y, rows=rows)
        vars(other).update(hard=self.hard, live=self.live, upper=self.upper)
        return other

    def of(self, index: NDArray[np.intp], c: Floats | None = None) -> Problem:
        """The same problem of some of its rows, copied, with strengths of their own if they are given."""
        rows = Rows(self.rows.X[index], self.rows.threads_at_hand)
        own = self.c[index] if c is None else c
        return Problem(rows, self.y[index], own, self.loss, self.fit_intercept, self.penalised)

    def narrow(self, values: Floats) -> Floats:
        """Values of all rows, cut down to those that count; not copied if all do."""
        return values if len(self.live) == self.rows.n else values[self.live]

    def widen(self, values: Floats) -> Floats:
        """Values of the rows that count, with 0 for the others; not copied if all do."""
        if len(values) == self.rows.n:
            return values
        wide = np.zeros(self.rows.n)
        wide[self.live] = values
        return wide

    @cached_property
    def upper(self) -> Floats:
        """The largest αᵢ of each row."""
        if self.loss.upper == 1:
            return self.c
        return self.c * self.loss.upper if np.isfinite(self.loss.upper) else np.where(self.c > 0, np.inf, 0.0)

    def margins(self, w: Floats, b: float) -> Floats:
        """yᵢ(w·xᵢ + b) of every row."""
        return self.y * (self.rows.scores(w) + b)

    def weights(self, alpha: Floats) -> Floats:
        """w(α) = Σ αᵢyᵢxᵢ."""
        if "weights_of_strengths" in vars(self) and np.array_equal(alpha, self.c):
            return self.weights_of_strengths.copy()
        return self.rows.combine(alpha * self.y)

    @cached_property
    def weights_of_strengths(self) -> Floats:
        """w(c): where all α are at their bound, or on the way there."""
        return self.rows.combine(self.c * self.y)

    def implied_alpha(self, margins: Floats) -> Floats:
        """α = −cφ′(m), the dual point that the margins themselves suggest where the loss is smooth."""
        return -self.c * self.loss.slope(margins)

    @property
    def norms(self) -> Floats:
        """‖xᵢ‖² of every row."""
        return self.rows.square_norms

    def check_lengths(self) -> None:
        """Raises where a row is too long to be squared."""
        if not np.isfinite(self.norms).all():
            at = int(np.argmin(np.isfinite(self.norms)))
            raise ValueError(f"row {at} of X is so long that its square overflows; divide X by a large number")

    @cached_property
    def centre(self) -> Floats:
        """The mean of the rows that count."""
        return self.rows.combine(self.widen(np.full(len(self.live), 1 / len(self.live))))

    @cached_property
    def constant(self) -> NDArray[np.bool_]:
        """The columns that a bias makes superfluous, being constant up to rounding; without a bias, the empty ones."""
        if not self.fit_intercept:
            return np.asarray(self.rows.column_sums(self.c) == 0)
        share = self.c / float(self.c.sum())
        size = self.rows.column_sums(share)
        centred = self.rows.column_sums(share, shift=self.rows.combine(share))
        return np.asarray(centred <= CONSTANT * size)

    def primal(self, w: Floats, margins: Floats) -> float:
        """The objective at w, given the margins there.

        For the hard margin: infinite unless all margins are at least 1, up to a rounding that scaling w makes up for.
        """
        if self.hard:
            smallest = np.min(self.narrow(margins))
            if not smallest >= 1 - HARD_ROUNDING:
                return np.inf
            w = w / min(smallest, 1.0)
        penalty = inner(w, w) / 2 if self.penalised else 0.0
        if self.hard:
            return penalty
        return penalty + _core.losses(self.loss.name, margins, self.c, self.rows.threads)

    def dual(self, alpha: Floats, w: Floats, square: float | None = None) -> float:
        """The dual objective at a feasible α, given w = w(α); a lower bound on every primal value.

        ‖w‖² may be known already.

        Without a penalty it is one only if w(α) = 0. That is held column by column, to the rounding of its sum: columns
        that depend on each other but for the last digits of their numbers count as dependent.
        """
        if self.hard:  # any multiple of α is feasible: the best one
            norm = np.linalg.norm(w)
            return float(np.square(alpha.sum() / norm) / 2) if norm > 0 else 0.0
        if not self.penalised:
            rounding = self.rows.column_sums(BALANCED * np.abs(alpha) + ROUNDED * self.c)
            if (np.abs(w) > rounding).any():
                return -np.inf
        penalty = (inner(w, w) if square is None else square) / 2 if self.penalised else 0.0
        return -penalty - _core.conjugates(self.loss.name, alpha, self.c, self.rows.threads)

    def canonical(self, w: Floats, b: float, margins: Floats) -> tuple[Floats, float]:
        """The same hyperplane with its smallest margin scaled to 1, if this is a hard margin that it satisfies.

        Or if C is so large that slacks of mere rounding would cost more than the longer w does.
        """
        if self.hard:
            smallest = float(np.min(self.narrow(margins)))
            return (w / smallest, b / smallest) if smallest > 0 else (w, b)
        if self.loss.name != "hinge" or not abs(float(np.min(self.narrow(margins))) - 1) <= HARD_ROUNDING:
            return w, b
        rounding = self.rounding_of_margins(float(np.linalg.norm(w)), b)
        stretch = 1 / float(np.min(self.narrow(margins - 3 * rounding)))  # what is stretched is rounded too
        longer = inner(w, w) / 2 * (stretch**2 - 1)
        slacks = inner(self.c, self.loss.value(margins - rounding))
        return (stretch * w, stretch * b) if longer < slacks else (w, b)

    def rounding_of_margins(self, size: float, b: float) -> Floats:
        """By how much each margin of a w of that size may be off, to first order."""
        bound = np.sqrt(self.norms)
        bound *= size
        bound += abs(b)
        bound *= 4 * float(np.finfo(np.float64).eps)
        return bound

    def feasible(self, alpha: Floats, margins: Floats | None = None) -> Floats:
        """A dual feasible point near α: inside its bounds and, with a bias, in balance.

        If the margins are known and the loss has a kink, balance is reached where the dual loses least, to first order:
        by lowering rows of the class in excess with large margins, or raising rows of the other with small ones.
        Else by lowering the class in excess, the rows strictly inside their bounds, or all of them in proportion if
        that is not enough. A loss without bounds spreads the excess over all rows instead. An α that is in balance up
        to rounding, as what this returns is, stays as it is.
        """
        alpha = np.minimum(alpha, self.upper)
        np.maximum(alpha, 0.0 if self.loss.lower == 0 else np.where(self.c > 0, self.loss.lower, 0.0), out=alpha)
        if not self.fit_intercept:
            return alpha
        for _ in range(BALANCINGS):
            excess = inner(alpha, self.y)
            if abs(excess) <= 4 * np.finfo(np.float64).eps * float(np.abs(alpha).sum()):
                break
            if np.isinf(self.loss.lower):
                alpha = alpha - self.y * self.c * (excess / float(self.c.sum()))
                continue
            heavy = self.y > 0 if excess > 0 else self.y < 0
            if margins is not None and not self.loss.smooth:
                _balance(alpha, self.upper, heavy, margins - self.loss.kink, abs(excess))
                continue
            inside = heavy & (alpha < self.upper)
            if alpha[inside].sum() < abs(excess):
                inside = heavy
            total = alpha[inside].sum()
            alpha[inside] *= max(0.0, 1 - abs(excess) / total) if total > 0 else 1.0
        return alpha

    @cached_property
    def spread(self) -> float:
        """The root mean squared distance of the rows from their mean; from 0 if there is no bias to take it up."""
        offset = inner(self.centre, self.centre) if self.fit_intercept else 0.0
        return float(np.sqrt(max(float(self.narrow(self.norms).mean()) - offset, 0.0)))

    def hulls_seem_to_meet(self, alpha: Floats, w: Floats) -> bool:
        """Whether the two points that α weighs out of the classes, with w = w(α), have come close to each other."""
        return float(np.linalg.norm(w)) <= 1e-2 * self.spread * float(alpha.sum())

    def best_bias(self, scores: Floats, near: float = 0.0) -> float:
        """The b that minimises Σ cᵢ φ(yᵢ(scoreᵢ + b)), `near` being a guess; the middle one where there are several."""
        if not self.fit_intercept:
            return 0.0
        if self.loss.smooth and not self.hard:
            return _best_bias_of_curve(self, scores, near)
        if self.hard:
            scores, y = self.narrow(scores), self.narrow(self.y)
            nearest = scores[y > 0].min(), scores[y < 0].max()
            return -float(nearest[0] + nearest[1]) / 2
        return _core.best_bias_of_lines(scores, self.y, self.c, self.loss.kink, FLAT * float(self.c.sum()))

    @property
    def bias_of_nothing(self) -> float:
        """The best b where w = 0."""
        if self.loss.smooth or self.hard or not self.fit_intercept:
            return self.best_bias(np.zeros(self.rows.n))
        return self.loss.kink * float(np.sign(inner(self.c, self.y)))


def _balance(alpha: Floats, upper: Floats, heavy: NDArray[np.bool_], beyond: Floats, excess: float) -> None:
    """Lowers α of the `heavy` class and raises it in the other, by `excess` in all, where that costs the dual least.

    To first order, with a margin `beyond` the kink, a unit less of α gains the dual so much, a unit more costs as much.
    """
    room = np.minimum(np.where(heavy, alpha, upper - alpha), excess)
    candidates = np.flatnonzero(room > 0)
    spared = np.where(heavy, beyond, -beyond)[candidates]
    count = 64
    while True:
        count *= 8
        if count >= len(candidates):
            some = np.arange(len(candidates))
            break
        some = np.argpartition(spared, -count)[-count:]
        if room[candidates[some]].sum() >= excess:
            break
    some = candidates[some[np.argsort(-spared[some], kind="stable")]]
    own, most = room[some], upper[some]
    taken = np.clip(excess - (np.cumsum(own) - own), 0.0, own)
    alpha[some] = np.clip(np.where(heavy[some], alpha[some] - taken, alpha[some] + taken), 0.0, most)


def _best_bias_of_curve(problem: Problem, scores: Floats, near: float) -> float:
    """The root of the slope in b, which only rises: Newton's method inside a bracket."""
    m, spare = problem.y * scores, np.empty((2, len(scores)))
    b, low, high, small = near, -np.inf, np.inf, False
    for _ in range(200):
        slope, curvature, _, _ = _core.follow_curve(
            problem.loss.name, m, problem.y, b, problem.c, spare[0], spare[1], problem.rows.threads
        )
        if slope == 0:
            break
        low, high = (b, high) if slope < 0 else (low, b)
        bracketed = np.isfinite(low) and np.isfinite(high)
        reach = (high - low) if bracketed else 2 * (1 + abs(b))
        step = -slope / curvature if curvature > 0 else -np.sign(slope) * reach
        b += float(min(max(step, -reach), reach))
        small, before = abs(step) <= max(ALMOST, 4 * np.finfo(np.float64).eps * abs(b)), small
        if small and before:  # one alone may have come to a kink, behind which all is different
            break
        if not small and bracketed and not low < b < high:
            b = low + (high - low) / 2
    return b
