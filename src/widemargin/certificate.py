"""CERTIFICATE: how good a pair of weights and dual variables is, computed from the problem and from nothing else.

Every primal value is at least every dual value, so their difference bounds how far either is from the optimum. No
solver is imported here, and no solver imports this: what it says depends only on the problem and the points given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.data.labels import text_of
from widemargin.problem import Problem, inner

Floats = NDArray[np.float64]

#: The most non-zeros in a linear program that looks for a separating hyperplane, or for a point in both hulls.
LARGEST_PROGRAM = 10_000_000
#: A dual variable this close to an end of its range, relative to the range, lies on it.
AT_BOUND = 1e-9
#: A dual that exceeds the primal by more than this share of it, and by far more than rounding, proves nothing.
CONTRADICTION = 1e-6
#: Without a penalty w(α) must be 0: a miss that may matter by more than this share of the objective proves nothing.
SLIP = 0.01


def relative(gap: float, dual: float) -> float:
    """gap / dual; a positive gap with nothing proved, or no number at all, is infinite."""
    if gap == 0:
        return 0.0
    return gap / dual if dual > 0 and gap < np.inf else np.inf


@dataclass(frozen=True)
class Kind:
    """One row of the KKT table: the points whose α lies in one part of its range."""

    name: str
    demand: str
    count: int
    worst: float


@dataclass(frozen=True)
class Certificate:
    """The proof that comes with a fit.

    `gap` bounds the distance of the objective from its minimum and, where there is a penalty, √(2·gap) that of the
    weights from the optimal ones.
    It is `primal` − `dual` and what `rounding` may have added or taken. `relative_gap` is gap / dual: infinite where
    nothing is proved.
    """

    primal: float
    dual: float
    #: How much the sums behind `primal` and `dual` may be off.
    rounding: float
    #: How many points lie at α = 0, strictly between, and at the bound, what optimality demands there, the worst miss.
    kkt: tuple[Kind, ...]
    #: Σ of the slacks ξ = max(0, 1 − margin), and how many are positive: margin violations, misclassified among them.
    slack: float
    violations: int
    misclassified: int
    #: How many of the rows that count are predicted as they are labelled; on the hyperplane, as the negative class.
    right: int
    #: ‖w − Σ αᵢyᵢxᵢ‖ / ‖w‖: how far the weights are from those of the dual variables.
    stationarity: float
    #: 2/‖w‖, the distance between the two margin lines.
    width: float
    rows: int
    #: The feasible dual point that proves `dual`, one αᵢ per row.
    alpha: Floats = field(repr=False, compare=False)
    #: The support vectors: the rows with α ≠ 0.
    support: NDArray[np.intp] = field(repr=False, compare=False)

    @property
    def gap(self) -> float:
        """primal − dual, at least 0, and the rounding on top; infinite where they cannot both be right."""
        gap = max(self.primal - self.dual, 0.0) + self.rounding
        contradiction = self.dual - self.primal > 10 * self.rounding + CONTRADICTION * abs(self.dual)
        return np.inf if contradiction or np.isnan(gap) else gap

    @property
    def relative_gap(self) -> float:
        """Gap / dual, which is at least (primal − minimum) / minimum."""
        if self.gap == 0:
            return 0.0
        return self.gap / self.dual if self.dual > 0 else np.inf

    @property
    def kkt_violation(self) -> float:
        """The worst violation of the KKT conditions over all rows."""
        return max(kind.worst for kind in self.kkt)

    def __str__(self) -> str:
        lines = [f"{label:<20}{value:>16}" for label, value in self._facts()]
        lines += ["", f"{'KKT':<12}{'wanted':<14}{'points':>10}{'worst miss':>14}"]
        lines += [f"{kind.name:<12}{kind.demand:<14}{kind.count:>10,}{kind.worst:>14.1e}" for kind in self.kkt]
        return "\n".join(lines)

    def _facts(self) -> list[tuple[str, str]]:
        return [
            ("primal", f"{self.primal:.9g}"),
            ("dual", f"{self.dual:.9g}"),
            ("gap", f"{self.gap:.1e}"),
            ("relative gap", f"{self.relative_gap:.1e}"),
            ("margin width", f"{self.width:.6g}"),
            ("support vectors", f"{len(self.support):,} of {self.rows:,}"),
            ("total slack", f"{self.slack:.6g}"),
            ("inside the margin", f"{self.violations - self.misclassified:,}"),
            ("misclassified", f"{self.misclassified:,}"),
        ]


def certify(
    problem: Problem,
    w: Floats,
    b: float,
    alpha: Floats,
    margins: Floats | None = None,
    implied: Floats | None = None,
    primal: float | None = None,
) -> Certificate:
    """The certificate of (w, b) and of the feasible dual point next to α.

    The margins and the primal value may be known already. So may the weights w(α); then α must be what
    :meth:`Problem.feasible` returned.
    """
    margins = problem.margins(w, b) if margins is None else margins
    if implied is None:
        alpha = problem.feasible(alpha, margins)
        implied = problem.weights(alpha)
    squares = inner(w, w), inner(implied, implied)
    sizes = math.sqrt(squares[0]), math.sqrt(squares[1])
    support, tiny = np.empty(len(alpha), np.uint8), AT_BOUND * max(float(alpha.max()), -float(alpha.min()))
    counts, worst, slack, violations, misclassified, right, rounding = _core.facts_of_rows(
        problem.loss.name,
        margins,
        alpha,
        problem.y,
        problem.c,
        problem.norms,
        *sizes,
        b,
        AT_BOUND,
        tiny,
        support,
        problem.rows.threads,
    )
    primal = problem.primal(w, margins) if primal is None else primal
    names = "α = 0", "0 < α < c", "α = c"
    with np.errstate(divide="ignore"):
        return Certificate(
            primal=primal,
            dual=problem.dual(alpha, implied, squares[1]),
            rounding=rounding + _rounding_of_penalty(problem, primal, *sizes),
            kkt=tuple(Kind(*facts) for facts in zip(names, _demands(problem), counts, worst, strict=True)),
            slack=slack,
            violations=violations,
            misclassified=misclassified,
            right=right,
            stationarity=_stationarity(problem, w, implied, *sizes),
            width=float(np.divide(2.0, sizes[0])),
            rows=len(problem.live),
            alpha=alpha,
            support=np.flatnonzero(support),
        )


def _stationarity(problem: Problem, w: Floats, implied: Floats, size: float, implied_size: float) -> float:
    """‖w − Σ αᵢyᵢxᵢ‖ / ‖w‖; without the penalty, how far the sum is from 0."""
    if not problem.penalised:
        return implied_size
    return _core.distance(w, implied) / size if size else float(implied.any())


def _rounding_of_penalty(problem: Problem, primal: float, size: float, implied_size: float) -> float:
    """A first-order bound on the rounding of ½‖w‖² + ½‖w(α)‖².

    Without the penalty w(α) should be 0; what it is instead may matter to any w of the size of ours.
    """
    if problem.penalised:
        return 4 * float(np.finfo(np.float64).eps) * (size**2 + implied_size**2)
    slip = 2 * implied_size * size
    return slip if slip <= SLIP * primal else np.inf  # the best w may be far larger


def _demands(problem: Problem) -> tuple[str, str, str]:
    loss = problem.loss
    if np.isinf(loss.kink):
        return "–", "α = −cφ′(m)", "–"
    if loss.smooth and not problem.hard:
        return f"m ≥ {loss.kink:g}", "α = −cφ′(m)", "–"
    return f"m ≥ {loss.kink:g}", f"m = {loss.kink:g}", f"m ≤ {loss.kink:g}"


@dataclass(frozen=True)
class Certificates(Sequence[Certificate]):
    """One certificate per class, each for that class against the rest; its gap is the worst of theirs."""

    classes: tuple[object, ...]
    each: tuple[Certificate, ...]

    def __len__(self) -> int:
        return len(self.each)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]  # as Sequence declares it, int or slice
        return self.each[index]

    @property
    def gap(self) -> float:
        """The largest gap."""
        return max(one.gap for one in self.each)

    @property
    def relative_gap(self) -> float:
        """The largest relative gap."""
        return max(one.relative_gap for one in self.each)

    @property
    def kkt_violation(self) -> float:
        """The worst violation of the KKT conditions."""
        return max(one.kkt_violation for one in self.each)

    def __str__(self) -> str:
        columns = ("class", "primal", "dual", "relative gap", "width", "support", "misclassified")
        rows = [
            (
                text_of(name),
                f"{one.primal:.6g}",
                f"{one.dual:.6g}",
                f"{one.relative_gap:.1e}",
                f"{one.width:.4g}",
                f"{len(one.support):,}",
                f"{one.misclassified:,}",
            )
            for name, one in zip(self.classes, self.each, strict=True)
        ]
        widths = [max(len(line[k]) for line in (columns, *rows)) for k in range(len(columns))]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in (columns, *rows)
        ]
        return "\n".join((*lines, f"worst relative gap  {self.relative_gap:.1e}"))


class InseparableError(ValueError):
    """The hard margin does not exist. The proof: weights u over the positive rows and v over the negative rows, none
    negative, each summing to 1, with Σ uᵢxᵢ = Σ vⱼxⱼ = `point`: a point in the convex hulls of both classes.

    Without a bias the hyperplane must pass through 0, and the proof is weights over all rows, summing to 1, with
    Σ uᵢyᵢxᵢ = 0; then `negative_weights` is empty, `positive` holds all rows, and `point` is that sum.
    """

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        parts = self.positive, self.positive_weights, self.negative, self.negative_weights, self.point, self.distance
        return type(self), parts

    def __init__(
        self,
        positive: NDArray[np.intp],
        positive_weights: Floats,
        negative: NDArray[np.intp],
        negative_weights: Floats,
        point: Floats,
        distance: float,
    ) -> None:
        self.positive, self.positive_weights = positive, positive_weights
        self.negative, self.negative_weights = negative, negative_weights
        self.point, self.distance = point, distance
        why = (
            "a weighted mean of some positive rows equals one of some negative rows"
            if len(negative)
            else "a weighted mean of the rows y·x is 0, and there is no bias; try fit_intercept=True"
        )
        super().__init__(
            f"C=inf asks for a hyperplane that separates the classes, and there is none: {why} (the proof is in "
            ".positive, .positive_weights, .negative, .negative_weights and .point); use a finite C"
        )


def prove_inseparable(problem: Problem, candidates: NDArray[np.intp]) -> InseparableError | None:
    """A point common to both hulls, if the candidate rows have one; found by linear programming, then checked."""
    from scipy.optimize import linprog  # slow to import, and rarely needed
    from scipy.sparse import csr_array, vstack

    rows = np.sort(candidates)
    assert (problem.c[rows] > 0).all(), "rows without strength prove nothing"
    y = problem.y[rows]
    if problem.fit_intercept and (y > 0).all() | (y < 0).all():
        return None
    signed = csr_array(problem.rows.X[rows]).astype(np.float64).multiply(y[:, None]).T.tocsr()
    scale = np.maximum(abs(signed).max(axis=1).toarray().ravel(), np.finfo(float).tiny)
    balance = np.array([y > 0, y < 0], dtype=float) if problem.fit_intercept else np.ones((1, len(rows)))
    equations = vstack([signed.multiply(1 / scale[:, None]), csr_array(balance)]).tocsc()
    right = np.append(np.zeros(len(scale)), np.ones(len(balance)))
    found = linprog(
        np.zeros(len(rows)),
        A_eq=equations,
        b_eq=right,
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    if found.status != 0:
        return None
    weights = _sharpened(equations, right, np.maximum(np.asarray(found.x), 0.0))
    used = weights > 0
    index, weights, y = rows[used], weights[used], y[used]
    points = problem.rows.take(index)
    sides = [y > 0, y < 0] if problem.fit_intercept else [np.ones(len(y), bool), np.zeros(len(y), bool)]
    for side in sides:
        weights[side] /= weights[side].sum() if side.any() else 1.0
    difference = (weights * y) @ points
    rounding = 1e-12 * (weights @ np.abs(points))
    if (np.abs(difference) > rounding).any():
        return None
    distance = float(np.linalg.norm(difference))
    point = weights[sides[0]] @ points[sides[0]] if problem.fit_intercept else difference
    return InseparableError(index[sides[0]], weights[sides[0]], index[sides[1]], weights[sides[1]], point, distance)


class SeparableError(ValueError):
    """There is no maximum likelihood. The proof: `w` and `b` with yᵢ(w·xᵢ + b) ≥ 0 for every row and > 0 for some.

    Along them the likelihood rises for ever: any multiple is likelier than the last, and none is the likeliest.
    """

    def __init__(self, w: Floats, b: float, strict: bool) -> None:
        self.w, self.b, self.strict = w, b, strict
        how = "separates the classes" if strict else "has no row on its wrong side, though some lie on it"
        super().__init__(
            f"C=inf asks for the maximum likelihood, and there is none: a hyperplane (in .w and .b) {how}, so that the "
            "likelihood rises with the length of w for ever; use a finite C, or LinearSVM(C=inf) for the widest margin"
        )

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (self.w, self.b, self.strict)


def proof_of_separation(problem: Problem, w: Floats, b: float) -> SeparableError | None:
    """The error that this hyperplane justifies, if it does."""
    margins = problem.narrow(problem.margins(w, b))
    sizes = np.sqrt(problem.narrow(problem.norms)) * float(np.linalg.norm(w)) + abs(b)
    rounding = 16 * float(np.finfo(np.float64).eps) * sizes
    if (margins < -rounding).any() or not (margins > 1e3 * rounding).any():
        return None
    return SeparableError(w, b, strict=bool((margins > rounding).all()))


def find_separation(problem: Problem, alpha: Floats) -> SeparableError | bool:
    """A hyperplane with no row on its wrong side and some on its right side; or whether there is none for certain.

    With Σ αᵢyᵢxᵢ = 0 such a hyperplane has every row of positive αᵢ on it. So it is looked for, by linear programming,
    in the space orthogonal to the rows whose αᵢ is well above 0; mostly that is nothing, and none is needed.
    """
    from scipy.optimize import linprog  # slow to import, and rarely needed

    d, live = problem.rows.d, problem.live
    sure = problem.widen((problem.narrow(alpha) > 1e-6 * problem.narrow(problem.c)).astype(float))
    scale = np.sqrt(problem.rows.column_sums((problem.c > 0).astype(float), power=2))
    scale = np.append(np.where(scale > 0, scale, 1.0), np.sqrt(len(live)))[: d + problem.fit_intercept]
    gram = problem.rows.gram(sure, None, border=problem.fit_intercept) / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(gram)
    free = vectors[:, values <= 1e-9 * max(values[-1], 1e-300)] / scale[:, None]
    if not free.shape[1]:
        return True
    unsure = live[sure[live] == 0]
    if len(unsure) * free.shape[1] > LARGEST_PROGRAM:
        return False
    margins = problem.rows.X[unsure] @ free[:d] + (free[d] if problem.fit_intercept else 0.0)
    margins = problem.y[unsure][:, None] * np.asarray(margins, dtype=np.float64)
    margins /= np.maximum(np.abs(margins).max(initial=0.0), np.finfo(float).tiny)
    found = linprog(
        -margins.sum(axis=0),
        A_ub=np.vstack([margins, -margins]),
        b_ub=np.append(np.ones(len(unsure)), np.zeros(len(unsure))),
        bounds=[(None, None)] * free.shape[1],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    if found.status != 0 or found.x is None:
        return False
    if not float((margins @ found.x).sum()) > 1e-6:
        return True
    direction = free @ found.x
    proof = proof_of_separation(problem, direction[:d], float(direction[d]) if problem.fit_intercept else 0.0)
    return False if proof is None else proof


def _sharpened(equations: Any, right: Floats, weights: Floats) -> Floats:
    """The same solution to the last digits: least squares on the weights that are not 0."""
    used = np.flatnonzero(weights > 0)
    matrix = equations[:, used].toarray()
    sharp = weights.copy()
    sharp[used] += np.linalg.lstsq(matrix, right - matrix @ weights[used], rcond=None)[0]
    return sharp if (sharp >= 0).all() else weights
