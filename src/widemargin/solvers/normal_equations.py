"""The linear system of a Newton step, shared by everything that takes one.

Given weights D ≥ 0 on the rows, find Δw, Δb and Δα with

    Δw = XᵀYΔα − r_w,    yᵀΔα = −r_b,    Δα = D(r − Δm),    Δm = Y(XΔw + Δb)

(without a penalty: 0 = XᵀYΔα − r_w, for tall data only).
Eliminating Δα leaves d + 1 unknowns (tall data), eliminating Δw leaves n (wide data); either way the matrix is positive
definite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.data import Rows
from widemargin.problem import Problem, inner

Floats = NDArray[np.float64]

#: From this share of non-zeros on, Gram matrices are those of dense rows, and centred columns cost no more than others.
DENSE_ENOUGH = 0.27

#: Below this share, a random part of the rows hardly shows some columns: those whose square sum is so much too small.
SPARSE, RARE = 0.2, 1.5

#: The curvature comes from so many rows per unknown, and from this share of them at least.
PER_UNKNOWN, LEAST = 60, 1 / 8

#: The most unknowns of the linear system: beyond, its matrix would take more than 3 GB.
LARGEST_SYSTEM = 20_000


def refuse_if_too_large(solver: str, unknowns: int) -> None:
    """Raises where the system would not fit into memory."""
    if unknowns > LARGEST_SYSTEM:
        raise ValueError(
            f"{solver} would need a matrix of {unknowns:,} × {unknowns:,} for these rows and columns; "
            "use solver='auto' or 'dual_cd'"
        )


def share_of_nonzeros(rows: Rows) -> float:
    """Among all elements."""
    return rows.nonzeros / max(rows.n * rows.d, 1)


def share_of_rows(problem: Problem, rows: float, growth: float = 1.0) -> float:
    """The share of so many rows whose curvature does for a step; more than half of them might as well be all."""
    share = growth * max(LEAST, PER_UNKNOWN * (problem.rows.d + 1) / rows)
    return share if share <= 0.5 else 1.0


class Step(NamedTuple):
    """The solution: Δw, Δb, Δα and Δm."""

    w: Floats
    b: float
    alpha: Floats
    m: Floats


class NormalEquations(ABC):
    """`weigh(D)` factors the system, then `solve(r, r_w, r_b)` answers any number of right-hand sides."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.y = problem.y

    @abstractmethod
    def weigh(self, weights: Floats) -> None:
        """Factor the system for these weights D of the rows."""

    @abstractmethod
    def solve(self, r: Floats, r_w: Floats, r_b: float) -> Step:
        """The step for these residuals."""

    def newton_step(self, r_w: Floats, r_b: float) -> tuple[Floats, float, Floats]:
        """Δw, Δb and Δm where r = 0."""
        dw, db, _, dm = self.solve(np.zeros(self.problem.rows.n), r_w, r_b)
        return dw, db, dm


class ByColumns(NormalEquations):
    """Eliminates Δα: the unknowns are Δw and Δb."""

    weights: Floats

    @abstractmethod
    def direction(self, right: Floats, last: float) -> tuple[Floats, float]:
        """Δw and Δb for this right-hand side, `last` being its component of the bias."""

    def solve(self, r: Floats, r_w: Floats, r_b: float) -> Step:
        rows, weighted = self.problem.rows, self.weights * r
        dw, db = self.direction(rows.combine(self.y * weighted) - r_w, inner(self.y, weighted) + r_b)
        dm = self.along(dw, db)
        return Step(dw, db, self.weights * (r - dm), dm)

    def newton_step(self, r_w: Floats, r_b: float) -> tuple[Floats, float, Floats]:
        dw, db = self.direction(-r_w, r_b)
        return dw, db, self.along(dw, db)

    def along(self, dw: Floats, db: float) -> Floats:
        """Δm of a step."""
        dm = self.problem.rows.scores(dw)
        dm += db
        dm *= self.y
        return dm


class Tall(ByColumns):
    """(I + ZᵀDZ)(Δw, Δb) = …, where Z is X with centred columns and, for the bias, a column of ones."""

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem)
        self.seed, rows, border = seed, problem.rows, problem.fit_intercept
        filled = share_of_nonzeros(rows)
        self.sparse = filled < SPARSE
        # Columns far from 0 make the bias nearly a combination of them; the bias takes up the shift at no cost.
        self.shift = problem.centre if border and filled >= DENSE_ENOUGH else None
        # Without a penalty, columns that the bias makes superfluous have weight 0.
        self.idle = None if problem.penalised else np.flatnonzero(problem.constant)

        #: ZᵀDZ, and the D that it is for.
        self.products = np.zeros((0, 0))
        self.known: Floats | None = None
        self.factor: Factor | None = None

    def weigh(self, weights: Floats, ridge: float = 1.0) -> None:
        """Factor ridge·I + ZᵀDZ."""
        self._update(weights)
        self._factorise(self.products, weights, ridge)

    def weigh_some(self, weights: Floats, share: float, ridge: float = 1.0) -> None:
        """Factor ridge·I + ZᵀDZ as a random share of the rows suggests it, drawn in proportion to what they weigh.

        A step along a column that few of these rows have would be far too long: such columns get their true diagonal.
        Dense rows are spared that walk: if they have such columns, short steps will ask for more rows.
        """
        with np.errstate(over="ignore", divide="ignore"):
            per_weight = share * np.count_nonzero(weights) / weights.sum()
        if not 0 < per_weight < np.inf:  # weights of next to nothing, or almost too large
            self.weigh(weights, ridge)
            return
        drawn = self.draws < per_weight * weights
        matrix = self._gram(np.where(drawn, np.maximum(weights, 1 / per_weight), 0.0))
        if self.sparse:
            seen, whole = np.einsum("ii->i", matrix)[: self.problem.rows.d], self.problem.rows.combine_squares(weights)
            np.copyto(seen, whole, where=whole > RARE * seen)
        self._factorise(matrix, weights, ridge)

    @cached_property
    def draws(self) -> Floats:
        """A number between 0 and 1 for each row."""
        return np.random.default_rng(self.seed).random(self.problem.rows.n)

    def _factorise(self, matrix: Floats, weights: Floats, ridge: float = 1.0) -> None:
        self.weights = weights
        if self.factor is None:
            self.factor = Factor(len(matrix))
        own = self.factor.matrix
        np.copyto(own, matrix)
        diagonal = np.einsum("ii->i", own)
        diagonal[: self.problem.rows.d] += ridge if self.problem.penalised else 0.0
        if self.idle is not None:
            own[self.idle] = own[:, self.idle] = 0.0
            diagonal[self.idle] = 1.0
        try:
            self.factor.refresh()
        except np.linalg.LinAlgError:
            self.known = None  # nothing to go on from
            raise

    def _update(self, weights: Floats) -> None:
        """ZᵀDZ anew or, where few rows changed their weight, by what they change."""
        more = None if self.known is None else weights - self.known
        self.known = weights
        if more is None or 2 * np.count_nonzero(more) > np.count_nonzero(weights):
            self.products = self._gram(weights)
            return
        self.products += self._gram(more)  # rows of negative weight count for nothing
        self.products -= self._gram(-more)

    def _gram(self, weights: Floats) -> Floats:
        return self.problem.rows.gram(weights, self.shift, self.problem.fit_intercept)

    def direction(self, right: Floats, last: float) -> tuple[Floats, float]:
        assert self.factor is not None
        if self.idle is not None:
            right[self.idle] = 0.0
        if not self.problem.fit_intercept:
            return self.factor.solve(right), 0.0
        if self.shift is None:
            solution = self.factor.solve(np.append(right, last))
            return solution[:-1], float(solution[-1])
        right = right - last * self.shift
        if self.idle is not None:
            right[self.idle] = 0.0
        solution = self.factor.solve(np.append(right, last))
        return solution[:-1], float(solution[-1]) - inner(self.shift, solution[:-1])


class Wide(NormalEquations):
    """(I + D½QD½)z = …, Δα = D½z, where Q = YXXᵀY is computed once."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.products = problem.rows.outer() * np.outer(self.y, self.y)
        self.factor = Factor(len(self.products))

    def weigh(self, weights: Floats) -> None:
        self.root, matrix = np.sqrt(weights), self.factor.matrix
        np.multiply(self.products, self.root[:, None], out=matrix)
        matrix *= self.root
        np.einsum("ii->i", matrix)[...] += 1.0
        self.factor.refresh()
        self.border = self.root * self.y
        self.solved_border = self.factor.solve(self.border)

    def solve(self, r: Floats, r_w: Floats, r_b: float) -> Step:
        problem = self.problem
        pull = self.y * problem.rows.scores(r_w) if r_w.any() else 0.0
        z, db = self.factor.solve(self.root * (r + pull)), 0.0
        if problem.fit_intercept:
            norm = inner(self.border, self.solved_border)
            db = (inner(self.border, z) + r_b) / norm if norm > 0 else 0.0
            z = z - db * self.solved_border
        dalpha = self.root * z
        dm = self.products @ dalpha - pull + self.y * db
        return Step(problem.weights(dalpha) - r_w, db, dalpha, dm)


class Factor:
    """Cholesky factor of a positive definite matrix, its diagonal scaled to 1, with one step of refinement.

    Whoever fills `matrix` refreshes the factor. The memory is kept: fresh pages would take longer than the factor.
    """

    def __init__(self, size: int) -> None:
        self.matrix, self.room = np.empty((size, size)), np.empty((size, size))

    def refresh(self) -> None:
        """Scales the matrix and factors it."""
        from scipy.linalg.lapack import dpotrf  # slow to import, and coordinate descent does without it

        matrix, diagonal = self.matrix, np.diagonal(self.matrix)
        self.scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        _core.scale_both_ways(matrix, self.scale, self.room)
        ridge = 1e-15
        # Symmetric, it is its own transpose, which lies as LAPACK would have it. What is no number fails.
        while (factored := dpotrf(self.room.T, lower=True, clean=False, overwrite_a=True))[1]:
            if not ridge < 1:
                raise np.linalg.LinAlgError("the matrix of a Newton step is not positive definite")
            np.copyto(self.room, matrix)
            np.einsum("ii->i", self.room)[...] += ridge
            ridge *= 10
        self.factor = factored[0]

    def solve(self, right: Floats) -> Floats:
        """The solution for this right-hand side."""
        from scipy.linalg.lapack import dpotrs

        scaled = right * self.scale
        solution, _ = dpotrs(self.factor, scaled, lower=True)
        more, _ = dpotrs(self.factor, scaled - self.matrix @ solution, lower=True)
        solution += more
        solution *= self.scale
        return np.asarray(solution)


def normal_equations(problem: Problem, seed: int = 0) -> NormalEquations:
    """The smaller of the two systems."""
    return Tall(problem, seed) if problem.rows.d <= problem.rows.n else Wide(problem)
