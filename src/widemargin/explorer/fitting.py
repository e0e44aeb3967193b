"""A fit as the page shows it: the line, each point's part in it, and the proof; or the proof that there is no line."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from widemargin import training
from widemargin.certificate import AT_BOUND, Certificate, InseparableError, prove_inseparable
from widemargin.explorer.models import MODELS, Choice
from widemargin.explorer.reading import Floats, RefusedError, read_points

#: The seconds that a fit may take before it is given up.
PATIENCE = 2.0
#: Filters of warnings belong to the process, not to a thread.
_ONE_AT_A_TIME = Lock()


class OvertakenError(Exception):
    """A newer request of the same page has come: nobody waits for this answer any more."""


def fit(body: dict[str, Any], overtaken: Callable[[], bool] = lambda: False) -> dict[str, Any]:
    """The answer to POST api/fit. `overtaken` is asked now and then whether to go on."""
    X, y = read_points(body)
    choice = Choice.read(body)
    answer: dict[str, Any] = {"hulls": {"positive": hull(X, y > 0), "negative": hull(X, y < 0)}}
    if not ((y > 0).any() and (y < 0).any()):
        missing = "each class" if not len(y) else "the orange class" if (y > 0).any() else "the blue class"
        return answer | {"waiting": f"Add a point of {missing}: a line needs two classes to tell apart."}
    began = time.perf_counter()
    try:
        found = _certified(choice, X, y, overtaken, began) if MODELS[choice.model].loss else _online(choice, X, y)
    except InseparableError as proof:
        found = {"inseparable": _inseparable(proof)}
    return answer | found | {"milliseconds": 1e3 * (time.perf_counter() - began)}


def _certified(choice: Choice, X: Floats, y: Floats, overtaken: Callable[[], bool], began: float) -> dict[str, Any]:
    """What `estimator.fit` does, but one that can be left in the middle."""
    estimator = choice.estimator()
    _, (problem,) = estimator.problems(X, y)
    if problem.hard and choice.solver != "auto":  # others may take long to notice
        proof = prove_inseparable(problem, problem.live)
        if proof is not None:
            raise proof

    def watch(*_: float) -> None:
        if overtaken():
            raise OvertakenError
        if time.perf_counter() - began > PATIENCE:
            raise RefusedError(f"{choice.solver} takes more than {PATIENCE:g} s here; choose the automatic solver", 503)

    done = training.fit(problem, solver=choice.solver, tol=estimator.tol, max_iter=estimator.max_iter, watch=watch)
    certificate = done.certificate
    bound = problem.c[0] * problem.loss.upper
    answer = (
        _line(X, y, done.w, done.b, certificate.alpha, float(bound))
        | _proof(certificate)
        | {"iterations": done.iterations}
    )
    if choice.model == "hard" and choice.bias:
        answer["nearest"] = [_mean(X, certificate.alpha, y > 0), _mean(X, certificate.alpha, y < 0)]
    if certificate.relative_gap > estimator.tol:
        answer["note"] = "Not yet the optimum: the gap is still open."
        answer["more"] = (
            f"The method was stopped after {done.iterations} iterations at a relative gap of "
            f"{certificate.relative_gap:.1e}. Methods marked as rough come near slowly."
        )
    return answer


def _online(choice: Choice, X: Floats, y: Floats) -> dict[str, Any]:
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the answer has a note instead
        model = choice.estimator().fit(X, y)
    answer = _line(X, y, model.coef_[0], float(model.intercept_[0]), None, np.inf)
    answer |= {"iterations": model.n_iter_, "changes": int(sum(model.mistakes_))}
    if not model.separates_:
        answer["note"] = "It never stops making mistakes: the classes overlap."
        answer["more"] = (
            f"It was stopped after {model.n_iter_} passes without a better one. Some classes that a line separates are "
            "so close that it takes longer than that."
        )
    return answer


def _line(X: Floats, y: Floats, w: Floats, b: float, alpha: Floats | None, bound: float) -> dict[str, Any]:
    """The hyperplane, and every point's margin, slack, α and kind."""
    margins = y * (X @ w + b)
    slack = np.maximum(0.0, 1 - margins)
    norm = float(np.linalg.norm(w))
    return {
        "w": w,
        "b": b,
        "width": 2 / norm if norm > 0 else np.inf,
        "margins": margins,
        "xi": slack,
        "alpha": alpha,
        "bound": bound,
        "kinds": [_kind(one, None if alpha is None else alpha[k]) for k, one in enumerate(slack.tolist())],
        "misclassified": int((margins <= 0).sum()),
    }


def _kind(slack: float, alpha: float | None) -> str:
    """Where a point lies, in a word; the page has its sentence."""
    if slack > AT_BOUND:
        return "wrong" if slack > 1 else "inside"
    return "edge" if alpha is not None and alpha > AT_BOUND else "free"


def _proof(proof: Certificate) -> dict[str, Any]:
    return {
        "primal": proof.primal,
        "dual": proof.dual,
        "gap": proof.gap,
        "relative_gap": proof.relative_gap,
        "support": proof.support,
        "slack": proof.slack,
        "violations": proof.violations,
        "kkt": [
            {"name": kind.name, "demand": kind.demand, "count": kind.count, "worst": kind.worst} for kind in proof.kkt
        ],
    }


def _inseparable(proof: InseparableError) -> dict[str, Any]:
    return {
        "point": proof.point,
        "distance": proof.distance,
        "positive": proof.positive,
        "positive_weights": proof.positive_weights,
        "negative": proof.negative,
        "negative_weights": proof.negative_weights,
        "message": str(proof),
    }


def _mean(X: Floats, alpha: Floats, side: Any) -> Floats | None:
    """The point of a class's hull that its α weigh out: the one nearest to the other hull."""
    weights = np.where(side, alpha, 0.0)
    return np.asarray(weights @ X / weights.sum()) if weights.sum() > 0 else None


def hull(X: Floats, chosen: Any) -> list[int]:
    """The corners of the convex hull of the chosen points, in order: Andrew's monotone chain (1979)."""
    order, places = [int(k) for k in np.lexsort((X[:, 1], X[:, 0])) if chosen[k]], X.tolist()
    if len(order) < 3:
        return order

    def chain(indices: list[int]) -> list[int]:
        corners: list[int] = []
        for k in indices:
            while len(corners) > 1 and _turn(places[corners[-2]], places[corners[-1]], places[k]) <= 0:
                corners.pop()
            corners.append(k)
        return corners[:-1]

    return chain(order) + chain(order[::-1])


def _turn(a: list[float], b: list[float], c: list[float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
