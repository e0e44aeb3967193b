"""THE CERTIFICATE IN A KERNEL'S OWN SPACE: computed in float64 from α and the kernel matrix, whatever a solver did.

No solver is imported here. `scores` are f(xᵢ) = Σ αⱼyⱼ k(xⱼ, xᵢ) for all rows, n × (support vectors) kernel values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.certificate import AT_BOUND, Certificate, InseparableError, Kind
from widemargin.kernel_problem import KernelProblem
from widemargin.problem import inner

Floats = NDArray[np.float64]

#: The distance of two points of the hulls, beside the length of their rows, below which they are the same but for
#: the rounding of kernel values.
SAME_POINT = 1e-7
EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Proved:
    """A certificate, and the decision function that it is for: f = Σ coefⱼ k(xⱼ, ·), and b."""

    certificate: Certificate
    coef: Floats
    b: float
    #: Σ αⱼyⱼ k(xⱼ, xᵢ) of every row, for the certificate's α.
    scores: Floats


def certify(
    problem: KernelProblem,
    alpha: Floats,
    scores: Floats | None = None,
    *,
    b: float | None = None,
    semidefinite: bool = True,
) -> Proved:
    """The certificate of the feasible dual point next to α, and of its own f with this bias, or else the best one.

    `scores`, Σ αⱼyⱼ k(xⱼ, xᵢ), may be known already if α is feasible. Where the kernel is not positive semidefinite, no
    dual value bounds the primal: the gap is infinite.
    """
    dual_problem, y, c = problem.problem, problem.y, problem.c
    feasible = dual_problem.feasible(alpha)
    if scores is None or not np.array_equal(feasible, alpha):
        scores = problem.scores(feasible * y)
    alpha = feasible
    coef = alpha * y
    square = inner(coef, scores)
    if semidefinite or problem.hard:  # else it may well be negative
        square = max(square, 0.0)
    b = dual_problem.best_bias(scores) if b is None else b
    margins = y * (scores + b)
    stretch = 1.0
    if problem.hard:  # the same f and b, scaled so that the smallest margin is 1
        smallest = float(np.min(dual_problem.narrow(margins)))
        stretch = 1 / smallest if smallest > 0 else 1.0
        margins = margins * stretch
    total = float(alpha.sum())
    if problem.hard:
        primal = square * stretch**2 / 2 if smallest > 0 else np.inf
        dual = total**2 / square / 2 if square > 0 else 0.0
    else:
        primal = square / 2 + _core.losses("hinge", margins, c, problem.gram.threads)
        dual = total - square / 2
    support = np.empty(len(alpha), np.uint8)

    def facts(off: Floats) -> Any:
        """Counts and bounds of the rows, and the rounding of primal − dual, if scores miss by `off` units of 2⁻⁵⁰."""
        largest = float(off.max(initial=0.0))
        shares = np.square(off / largest) if largest > 0 else np.zeros(len(off))
        numbers = largest * stretch, largest * stretch, b * stretch, AT_BOUND, AT_BOUND * float(alpha.max(initial=0.0))
        threads = problem.gram.threads
        *found, rounding = _core.facts_of_rows("hinge", margins, alpha, y, c, shares, *numbers, support, threads)
        if problem.hard and 0 < square < np.inf > primal:  # of the smallest margin, which scales f, and of ‖f‖² in both
            rounding = 2 * stretch * primal + (primal + dual) * total / square
            rounding *= 4 * EPSILON * (largest + abs(b))
        return *found, rounding + 4 * EPSILON * primal  # and of the last sums

    sizes = np.sqrt(problem.sizes)
    found = facts(sizes * inner(np.abs(coef), sizes))
    if semidefinite and found[-1] > max(primal - dual, 0.0):  # then rounding is what the gap consists of: more sharply
        sharper = problem.rounding(coef)
        found = found if sharper is None else facts(sharper)
    counts, worst, slack, violations, misclassified, right, rounding = found
    names, demands = ("α = 0", "0 < α < c", "α = c"), ("m ≥ 1", "m = 1", "m ≤ 1")
    size = math.sqrt(max(square, 0.0)) * stretch
    certificate = Certificate(
        primal=primal,
        dual=dual,
        rounding=rounding if semidefinite else np.inf,
        kkt=tuple(Kind(*facts) for facts in zip(names, demands, counts, worst, strict=True)),
        slack=slack,
        violations=violations,
        misclassified=misclassified,
        right=right,
        stationarity=0.0,
        width=2 / size if size > 0 else np.inf,
        rows=len(dual_problem.live),
        alpha=alpha,
        support=np.flatnonzero(support),
    )
    return Proved(certificate, coef * stretch, b * stretch, scores)


def prove_inseparable(problem: KernelProblem, alpha: Floats, scores: Floats) -> InseparableError | None:
    """The proof that there is no hard margin, if α weighs out the same point of both classes' hulls, but for rounding.

    Their distance is ‖Σ uᵢΦ(xᵢ) − Σ vⱼΦ(xⱼ)‖ with the weights u and v that α has in the two classes.
    """
    y, half = problem.y, float(alpha.sum()) / 2
    if not half > 0:
        return None
    weights = alpha / half
    square = max(inner(weights * y, scores / half), 0.0)
    length = float(np.sqrt(inner(weights, problem.square_lengths) / 2))
    distance = math.sqrt(square)
    if not distance <= SAME_POINT * length:
        return None
    positive, negative = np.flatnonzero((y > 0) & (weights > 0)), np.flatnonzero((y < 0) & (weights > 0))
    return InseparableError(
        problem.index[positive], weights[positive], problem.index[negative], weights[negative], np.zeros(0), distance
    )
