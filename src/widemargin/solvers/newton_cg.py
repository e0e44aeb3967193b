"""Newton's method for smooth losses without a matrix: conjugate gradients ask for products with the curvature alone.

Each costs two walks over the rows, however many columns there are; how many a step takes depends on the data. Steihaug
1983; Lin, Weng and Keerthi 2008. Every column is scaled by its own curvature.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from widemargin.problem import Problem, inner
from widemargin.solvers.interior_point import newton
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.normal_equations import ByColumns

Floats = NDArray[np.float64]

#: The share of the slope that a step may leave: the gap falls with its square.
ROUGH = 0.1
#: A step that takes so many products is the last, and so is this one.
PRODUCTS, STEPS = 10_000, 1000


def newton_cg(
    problem: Problem,
    *,
    tol: float,
    seed: int = 0,
    start: Start | None = None,
    products: int = PRODUCTS,
    steps: int = STEPS,
) -> Iterator[Iterate]:
    """Iterates until the caller is content, nothing can be gained, or it took so many `products` a step, or `steps`."""
    curvature = _Curvature(problem, products)
    for iterate in newton(problem, curvature, tol, start, whole=True, most=steps):
        yield iterate
        if curvature.exhausted:
            return


class _Curvature(ByColumns):
    """(I + ZᵀDZ)(Δw, Δb) = …, roughly, where Z is X and, for the bias, a column of ones."""

    def __init__(self, problem: Problem, most: int) -> None:
        super().__init__(problem)
        self.most, self.exhausted = most, False

    def weigh(self, weights: Floats) -> None:
        self.weights = weights
        diagonal = np.append(1 + self.problem.rows.combine_squares(weights), weights.sum())
        self.inverse = 1 / np.where(diagonal > 0, diagonal, 1.0)

    def direction(self, right: Floats, last: float) -> tuple[Floats, float]:
        rest = np.append(right, last if self.problem.fit_intercept else 0.0)
        found, along = np.zeros_like(rest), self.inverse * rest
        slope = inner(rest, along)
        enough = ROUGH**2 * slope
        for _ in range(self.most):
            if not slope > enough:
                break
            image = self._product(along)
            length = slope / inner(along, image)
            found += length * along
            rest -= length * image
            scaled = self.inverse * rest
            before, slope = slope, inner(rest, scaled)
            along *= slope / before
            along += scaled
        else:
            self.exhausted = True
        return found[:-1], float(found[-1])

    def _product(self, step: Floats) -> Floats:
        rows, dw, db = self.problem.rows, step[:-1], step[-1]
        scores = rows.scores(dw)
        scores += db
        scores *= self.weights
        return np.append(rows.combine(scores) + dw, scores.sum() if self.problem.fit_intercept else 0.0)
