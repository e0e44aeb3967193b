"""Algorithms step by step, from the textbook's generators: every state of a run, for the page to play.

Two runs of one request take the same examples in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from widemargin import LinearSVM, LogisticRegression, SeparableError, textbook, training
from widemargin.explorer.fitting import Attention, wrong
from widemargin.explorer.reading import (
    Floats,
    RefusedError,
    read_choice,
    read_number,
    read_points,
    read_switch,
    read_whole,
)
from widemargin.textbook import Step
from widemargin.textbook.hildreth import permutations

#: The most steps of one run.
MOST_STEPS = 2_000


@dataclass(frozen=True)
class Setting:
    """What a run is given besides the points."""

    C: float
    bias: bool
    draws: list[int]
    n: int

    @property
    def lam(self) -> float:
        """λ of λ/2 ‖w‖² + (1/n) Σ φ, which has the minimum of ½‖w‖² + C Σ φ."""
        return 1 / (self.C * self.n)


@dataclass(frozen=True)
class Algorithm:
    """A generator of the textbook as the page names it."""

    title: str
    hint: str
    run: Callable[[Floats, Floats, Setting], Iterator[Step]]
    #: What it lowers: a loss, with or without the penalty ½‖w‖².
    loss: str = "hinge"
    penalised: bool = True
    #: Whether it has a bias: "none", "either" or "always".
    bias: str = "none"
    #: Whether it takes the examples that are drawn, or all of them, or its own choice.
    drawn: bool = True


def _longest(X: Floats) -> float:
    return max(float(np.square(X).sum(axis=1).max()), 1e-12)


ALGORITHMS = {
    "pegasos": Algorithm(
        "Pegasos",
        "One point at a time: shrink w, then add the point if its margin is below 1. Steps 1/(λt).",
        lambda X, y, s: textbook.pegasos(X, y, s.lam, s.draws, fit_intercept=s.bias),
        bias="either",
    ),
    "pegasos_average": Algorithm(
        "Pegasos, averaged",
        "The mean of all of Pegasos's lines so far: it wobbles less.",
        lambda X, y, s: textbook.pegasos(X, y, s.lam, s.draws, average=True, fit_intercept=s.bias),
        bias="either",
    ),
    "running_sum": Algorithm(
        "SGD by a running sum",
        "Notes 000, as boxed: w is the sum of the points that were late, divided by λ(t + 1).",
        lambda X, y, s: textbook.running_sum(X, y, s.lam, s.draws),
    ),
    "dual_cd": Algorithm(
        "Dual coord. descent",
        "One α at a time: the best value for this point while the others stay, cut to [0, C].",
        lambda X, y, s: textbook.dual_cd(X, y, s.C, s.draws),
    ),
    "smo": Algorithm(
        "SMO",
        "Two α at a time, chosen as the pair that gains most; their sum stays in balance.",
        lambda X, y, s: textbook.smo(X, y, s.C, max_steps=len(s.draws)),
        bias="always",
        drawn=False,
    ),
    "subgradient": Algorithm(
        "Subgradient descent",
        "All points at once: a step of 1/(λt) against the subgradient.",
        lambda X, y, s: textbook.subgradient_descent(X, y, s.lam, len(s.draws), eta=1 / s.lam, power=1.0),
        drawn=False,
    ),
    "perceptron": Algorithm(
        "Perceptron",
        "At a mistake, add the point to w; otherwise nothing happens.",
        lambda X, y, s: textbook.perceptron(X, y, s.draws, fit_intercept=s.bias),
        loss="perceptron",
        penalised=False,
        bias="either",
    ),
    "mira": Algorithm(
        "MIRA",
        "At a mistake, the least change of w that gives this point a margin of 1.",
        lambda X, y, s: textbook.mira(X, y, s.draws, fit_intercept=s.bias),
        penalised=False,
        bias="either",
    ),
    "mira_aggressive": Algorithm(
        "MIRA, aggressive",
        "The same for every point whose margin is below 0.9: it comes near to the widest margin.",
        lambda X, y, s: textbook.mira(X, y, s.draws, p=0.9, fit_intercept=s.bias),
        penalised=False,
        bias="either",
    ),
    "logistic": Algorithm(
        "Logistic, gradient descent",
        "All points pull, those on the wrong side most. On separable points w grows for ever.",
        lambda X, y, s: textbook.logistic_regression(
            X, y, len(s.draws), 4 / (_longest(X) + s.bias), fit_intercept=s.bias
        ),
        loss="logistic",
        penalised=False,
        bias="either",
        drawn=False,
    ),
    "logistic_sgd": Algorithm(
        "Logistic, SGD",
        "One point at a time pulls at w with the probability that it is on the wrong side.",
        lambda X, y, s: textbook.logistic_regression_sgd(X, y, s.draws, 1 / _longest(X)),
        loss="logistic",
        penalised=False,
    ),
    "squares_sgd": Algorithm(
        "Least squares, SGD",
        "One point at a time: a small step that brings its score nearer to its label.",
        lambda X, y, s: textbook.least_squares_sgd(X, y, s.draws, 0.5 / _longest(X)),
        loss="squared",
        penalised=False,
    ),
}


def algorithms() -> dict[str, Any]:
    """What the page offers to play."""
    return {
        name: {
            "title": one.title,
            "hint": one.hint,
            "bias": one.bias,
            "drawn": one.drawn,
            "strength": one.penalised,
        }
        for name, one in ALGORITHMS.items()
    }


def steps(body: dict[str, Any], overtaken: Callable[[], bool] = lambda: False) -> dict[str, Any]:
    """The answer to POST api/steps: one run per algorithm on the same draws. `overtaken` is asked whether to go on."""
    X, y = read_points(body)
    names = body.get("algorithms")
    if not isinstance(names, list) or not 1 <= len(names) <= 2:
        raise RefusedError("algorithms must be a list of one or two names")
    chosen = {name: ALGORITHMS[read_choice(name, "an algorithm", ALGORITHMS)] for name in names}
    count = read_whole(body.get("steps", 200), "steps", 1, MOST_STEPS)
    seed = read_whole(body.get("seed", 0), "seed", 0, 2**31)
    if not ((y > 0).any() and (y < 0).any()):
        return {"waiting": "Add at least one point of each class, then press play."}
    bias = read_switch(body.get("bias", True), "bias") and all(one.bias != "none" for one in chosen.values())
    draws = np.random.default_rng(seed).integers(len(y), size=count).tolist()
    setting = Setting(read_number(body.get("C", 1.0), "C", 1e-6, 1e10), bias, draws, len(y))
    attention = Attention(overtaken)
    runs = [
        _run(name, one, X, y, setting, attention, (k + 1) / len(chosen)) for k, (name, one) in enumerate(chosen.items())
    ]
    return {"runs": runs}


def _run(
    name: str, one: Algorithm, X: Floats, y: Floats, setting: Setting, attention: Attention, share: float
) -> dict[str, Any]:
    """As many steps as this share of the page's patience allows: SMO on 2,000 points does not get far."""
    bias = setting.bias or one.bias == "always"
    objective = Objective(one.loss, one.penalised, setting.C if one.penalised else 1 / setting.n, bias)
    best = objective.best(X, y, attention)
    found = []
    for step in islice(one.run(X, y, setting), len(setting.draws)):
        found.append(step)
        if not attention.lasts(share):
            break
    W, b = np.array([step.w for step in found]).reshape(-1, 2), np.array([step.b for step in found])
    margins = y * (W @ X.T + b[:, None])
    return {
        "algorithm": name,
        "i": [step.i for step in found],
        "w": W,
        "b": b,
        "height": objective.heights(W, margins),
        "mistakes": wrong(margins).sum(axis=1),
        "lowers": objective.shape(),
        "best": best,
    }


@dataclass(frozen=True)
class Objective:
    """½‖w‖² (or not) + strength Σ φ: what the plane of w has contours of."""

    loss: str
    penalised: bool
    strength: float
    bias: bool

    def shape(self) -> dict[str, Any]:
        """What the page needs to draw it."""
        return {"loss": self.loss, "penalised": self.penalised, "strength": self.strength, "bias": self.bias}

    def heights(self, W: Floats, margins: Floats) -> Floats:
        """The objective at each step's w and b."""
        losses = {
            "hinge": lambda m: np.maximum(0.0, 1 - m),
            "perceptron": lambda m: np.maximum(0.0, -m),
            "logistic": lambda m: np.logaddexp(0.0, -m),
            "squared": lambda m: (1 - m) ** 2,
        }
        heights: Floats = self.strength * losses[self.loss](margins).sum(axis=1)
        if self.penalised:
            heights += np.square(W).sum(axis=1) / 2
        return heights

    def best(self, X: Floats, y: Floats, attention: Attention) -> dict[str, Any] | None:
        """The minimum, where there is one: found by the solvers, so that the page can say how far a run has got."""
        if self.loss == "hinge" and self.penalised:
            model: Any = LinearSVM(C=self.strength, fit_intercept=self.bias, tol=1e-9, n_jobs=1)
        elif self.loss == "squared":
            model = LinearSVM(C=np.inf, loss="squared", fit_intercept=self.bias, n_jobs=1)
        elif self.loss == "logistic":
            model = LogisticRegression(C=np.inf, fit_intercept=self.bias, tol=1e-9, n_jobs=1)
        else:
            return None
        _, (problem,) = model.problems(X, y)
        try:
            w, b = (done := training.fit(problem, tol=model.tol, watch=attention.watch)).w, done.b
        except (SeparableError, TimeoutError):  # the likelihood rises for ever, or it would take too long
            return None
        return {"w": w, "b": b, "height": self.heights(w[None, :], (y * (X @ w + b))[None, :])[0]}


def hildreth(body: dict[str, Any]) -> dict[str, Any]:
    """The answer to POST api/hildreth: the coordinate steps on two variables, max −½αᵀQα − αᵀb over 0 ≤ α ≤ upper."""
    Q = np.array([[_entry(body.get("Q"), "Q", i, j) for j in range(2)] for i in range(2)])
    b = np.array([_entry([body.get("b")], "b", 0, j) for j in range(2)])
    if Q[0, 1] != Q[1, 0] or np.linalg.eigvalsh(Q)[0] < -1e-9 * abs(Q).max():
        raise RefusedError("Q must be symmetric with no negative eigenvalue")
    upper = body.get("upper")
    bound = np.inf if upper is None else read_number(upper, "upper", 0.0, 1e12)
    order = read_choice(body.get("order", "cyclic"), "order", ("cyclic", "back_and_forth", "random", "greedy"))
    count = read_whole(body.get("steps", 40), "steps", 1, 200)
    draws = None
    if order == "random":
        seed = read_whole(body.get("seed", 0), "seed", 0, 2**31)
        draws = islice(permutations(2, seed), count)
    try:
        found = list(textbook.hildreth(Q, b, upper=bound, order=order, draws=draws, max_steps=count))
    except ValueError as error:
        raise RefusedError(str(error)) from None
    return {
        "i": [step.i for step in found],
        "alpha": [step.alpha for step in found],
        "objective": [step.objective for step in found],
    }


def _entry(rows: Any, name: str, i: int, j: int) -> float:
    if not isinstance(rows, list) or len(rows) <= i or not isinstance(rows[i], list) or len(rows[i]) != 2:
        raise RefusedError(f"{name} must hold two numbers in each row")
    return read_number(rows[i][j], f"{name}[{i}][{j}]", -1e12, 1e12)
