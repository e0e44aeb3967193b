"""SOLVER: one algorithm per stem. A solver turns a problem into a generator of iterates and never judges them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from widemargin.problem import Problem
from widemargin.solvers import lanes, side_by_side
from widemargin.solvers.auto import auto, begins_with_descent
from widemargin.solvers.dual_cd import dual_cd
from widemargin.solvers.hildreth import dual_by_hildreth, hildreth
from widemargin.solvers.interior_point import interior_point
from widemargin.solvers.iterate import Iterate, Start, State
from widemargin.solvers.lazy_weights import LazyWeights
from widemargin.solvers.least_squares import least_squares
from widemargin.solvers.mira import MiraRule
from widemargin.solvers.newton_cg import newton_cg
from widemargin.solvers.pegasos import Pegasos
from widemargin.solvers.perceptron import PerceptronRule
from widemargin.solvers.proximal_newton import proximal_newton
from widemargin.solvers.qp import qp
from widemargin.solvers.sgd import Sgd
from widemargin.solvers.smo import smo
from widemargin.solvers.subgradient import Subgradient

__all__ = [
    "SOLVERS",
    "Iterate",
    "LazyWeights",
    "Method",
    "MiraRule",
    "Pegasos",
    "PerceptronRule",
    "Sgd",
    "Solver",
    "Start",
    "State",
    "Subgradient",
    "begins_with_descent",
    "choose",
    "hildreth",
    "lanes",
    "side_by_side",
]


class Solver(Protocol):
    """What all solvers look like from outside."""

    def __call__(self, problem: Problem, *, tol: float, seed: int, start: Start | None) -> Iterator[Iterate]:
        """Iterates that claim a relative gap; those that claim at most `tol` are checked by the caller.

        Not every solver has a use for all three: where nothing is drawn at random `seed` has no part, where the method
        begins at its own point `start` has none, and where the caller alone decides when to stop `tol` has none.
        """


class Method(NamedTuple):
    """A solver and what it can be asked for."""

    solve: Solver
    losses: tuple[str, ...]
    #: Whether it takes C = ∞.
    hard: bool
    #: Whether it reaches any tolerance, or slows down on the way as stochastic methods do.
    exact: bool = True


_ALL = ("hinge", "squared_hinge", "logistic", "squared", "perceptron")
_QUADRATIC = ("hinge", "squared_hinge")

#: Every solver by its name.
SOLVERS: dict[str, Method] = {
    "auto": Method(auto, _ALL, hard=True),
    "dual_cd": Method(dual_cd, _ALL, hard=True),
    "interior_point": Method(interior_point, _ALL, hard=True),
    "newton_cg": Method(newton_cg, ("squared_hinge", "logistic", "squared"), hard=False),
    "proximal_newton": Method(proximal_newton, ("hinge",), hard=False),
    "hildreth": Method(dual_by_hildreth, _QUADRATIC, hard=True),
    "smo": Method(smo, ("hinge",), hard=True),
    "qp": Method(qp, (*_QUADRATIC, "squared"), hard=True),
    "least_squares": Method(least_squares, ("squared",), hard=False),
    "pegasos": Method(Pegasos(), ("hinge",), hard=False, exact=False),
    "sgd": Method(Sgd(), ("hinge", "squared_hinge", "logistic", "squared"), hard=False, exact=False),
    "subgradient": Method(Subgradient(), ("hinge", "squared_hinge", "logistic", "squared"), hard=False, exact=False),
}


def choose(solver: str | Solver, problem: Problem) -> Solver:
    """The solver of that name, or the one given, if it can serve this problem; an error that names those that can."""
    name = solver if isinstance(solver, str) else None if isinstance(solver, type) else getattr(solver, "name", None)
    if name in SOLVERS and _serves(name, problem):
        return SOLVERS[name].solve if isinstance(solver, str) else solver
    able, loss = ", ".join(repr(other) for other in SOLVERS if _serves(other, problem)), problem.loss.name
    if name not in SOLVERS:
        raise ValueError(
            f"solver={solver!r}; choose from {able}, or give an object such as widemargin.solvers.Pegasos(average=True)"
        )
    needs = f"needs the {' or '.join(SOLVERS[name].losses)} loss, got {loss!r}"
    if loss in SOLVERS[name].losses:
        needs = "needs a finite C" if problem.penalised else f"takes no C=inf with the {loss} loss"
    raise ValueError(f"{name} {needs}; use {able}")


def _serves(name: str, problem: Problem) -> bool:
    method, loss = SOLVERS[name], problem.loss.name
    if not problem.penalised:
        return name == "auto" or (name == "least_squares" and loss == "squared")
    return loss in method.losses and (method.hard or not problem.hard)
