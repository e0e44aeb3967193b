"""Newton's method for smooth losses without a matrix: conjugate gradients ask for products with the curvature alone.

Each costs two walks over the rows, however many columns there are; how many a step takes depends on the data. Steihaug
1983; Lin, Weng and Keerthi 2008. Every column is scaled by its own curvature.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from widemargin.problem import Problem, inner
from widemargin.solvers.iterate import Iterate, Start
from widemargin.solvers.newton import newton
from widemargin.solvers.normal_equations import ByColumns

Floats = NDArray[np.float64]

#: The share of the slope that a step may leave: the gap falls with its square.
ROUGH = 0.1
#: Curvature that is no less than this can be divided by.
TINY = 1e-300
#: The most products that all steps together may take.
PRODUCTS = 100_000


def newton_cg(
    problem: Problem,
    *,
    tol: float,
    seed: int = 0,
    start: Start | None = None,
    products: int = PRODUCTS,
) -> Iterator[Iterate]:
    """Iterates until the caller is content, nothing can be gained, or so many `products` were taken."""
    curvature = _Curvature(problem, products)
    for iterate in newton(problem, curvature, tol, start, whole=True, most=np.inf):
        yield iterate
        if curvature.left == 0:
            return


class _Curvature(ByColumns):
    """(I + ZᵀDZ)(Δw, Δb) = …, roughly, where Z is X and, for the bias, a column of ones."""

    def __init__(self, problem: Problem, products: int) -> None:
        super().__init__(problem)
        self.left = products

    def weigh(self, weights: Floats) -> None:
        self.weights = weights
        total = float(weights.sum()) if self.problem.fit_intercept else 1.0
        diagonal = np.append(1 + self.problem.rows.combine_squares(weights), total)
        self.inverse = 1 / np.maximum(diagonal, TINY)

    def direction(self, right: Floats, last: float) -> tuple[Floats, float]:
        rest = np.append(right, last if self.problem.fit_intercept else 0.0)
        found, along = np.zeros_like(rest), self.inverse * rest
        slope = inner(rest, along)
        enough = ROUGH**2 * slope
        while self.left > 0 and slope > enough:
            self.left -= 1
            image = self._product(along)
            curvature = inner(along, image)
            if not curvature > 0:  # of a bias that no row has any weight for, or no number
                break
            length = slope / curvature
            found += length * along
            rest -= length * image
            scaled = self.inverse * rest
            before, slope = slope, inner(rest, scaled)
            along *= slope / before
            along += scaled
        return found[:-1], float(found[-1])

    def _product(self, step: Floats) -> Floats:
        rows, dw, db = self.problem.rows, step[:-1], step[-1]
        scores = rows.scores(dw)
        scores += db
        scores *= self.weights
        return np.append(rows.combine(scores) + dw, scores.sum() if self.problem.fit_intercept else 0.0)
