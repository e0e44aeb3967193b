"""A fit as the page shows it: the line or curve, each point's part in it, and the proof; or why there is no line."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from widemargin import kernel_training, training
from widemargin.certificate import AT_BOUND, Certificate, InseparableError, prove_inseparable
from widemargin.data import Rows
from widemargin.explorer.models import MODELS, Choice
from widemargin.explorer.reading import Floats, RefusedError, read_points
from widemargin.kernel_problem import KernelProblem
from widemargin.kernels import Kernel, PointsGram, gamma_of
from widemargin.losses import LOSSES, Loss
from widemargin.model_kernel import KernelModel
from widemargin.plots.hulls import convex_hull
from widemargin.plots.sides import left_open

#: The seconds that an answer may take before it is given up.
PATIENCE = 2.0
#: Filters of warnings belong to the process, not to a thread.
_ONE_AT_A_TIME = Lock()


class OvertakenError(Exception):
    """A newer request of the same page has come: nobody waits for this answer any more."""


class Attention:
    """Somebody waits for an answer: until a newer request overtakes this one, and no longer than PATIENCE."""

    def __init__(self, overtaken: Callable[[], bool]) -> None:
        self.overtaken, self.began = overtaken, time.perf_counter()

    def lasts(self, share: float = 1.0) -> bool:
        """Whether this share of the patience is left; raises if nobody waits any more."""
        if self.overtaken():
            raise OvertakenError
        return self.seconds <= share * PATIENCE

    @property
    def seconds(self) -> float:
        """For how long it has lasted."""
        return time.perf_counter() - self.began

    def watch(self, *_: float) -> None:
        """Ends a fit that takes too long."""
        if not self.lasts():
            raise TimeoutError


def fit(body: dict[str, Any], overtaken: Callable[[], bool] = lambda: False) -> dict[str, Any]:
    """The answer to POST api/fit. `overtaken` is asked now and then whether to go on."""
    X, y = read_points(body)
    choice = Choice.read(body)
    answer: dict[str, Any] = {"hulls": {"positive": hull(X, y > 0), "negative": hull(X, y < 0)}}
    if not ((y > 0).any() and (y < 0).any()):
        boundary = "curve" if MODELS[choice.model].kernelised else "line"
        missing = "each class" if not len(y) else "the orange class" if (y > 0).any() else "the blue class"
        more = f"A {boundary} needs two classes to tell apart."
        return answer | {"waiting": f"Add a point of {missing}.", "more": more}
    attention = Attention(overtaken)
    try:
        found = _answered(choice, X, y, attention)
    except InseparableError as proof:
        found = {"inseparable": _inseparable(proof)}
    except TimeoutError:
        reason = f"{choice.solver} takes more than {PATIENCE:g} s here; choose the automatic solver"
        raise RefusedError(reason, 503) from None
    return answer | found | {"milliseconds": 1e3 * attention.seconds}


def _answered(choice: Choice, X: Floats, y: Floats, attention: Attention) -> dict[str, Any]:
    model = MODELS[choice.model]
    if model.kernelised:
        return _curved(choice, X, y, attention)
    return _certified(choice, X, y, attention) if model.loss else _online(choice, X, y)


def _certified(choice: Choice, X: Floats, y: Floats, attention: Attention) -> dict[str, Any]:
    """What `estimator.fit` does, but one that can be left in the middle."""
    estimator = choice.estimator()
    _, (problem,) = estimator.problems(X, y)
    if problem.hard and choice.solver != "auto":  # others may take long to notice
        proof = prove_inseparable(problem, problem.live)
        if proof is not None:
            raise proof
    done = training.fit(
        problem, solver=choice.solver, tol=estimator.tol, max_iter=estimator.max_iter, watch=attention.watch
    )
    certificate = done.certificate
    line = _line(X, y, done.w, done.b)
    answer = line | _proof(certificate, problem.loss) | {"iterations": done.iterations, "tol": estimator.tol}
    answer["kinds"] = _kinds(line["xi"], certificate, problem.loss)
    if choice.model == "hard" and choice.bias:
        answer["nearest"] = [_mean(X, certificate.alpha, y > 0), _mean(X, certificate.alpha, y < 0)]
    if certificate.relative_gap > estimator.tol:
        answer |= _open_gap(certificate, done.iterations, "Methods marked as rough come near slowly.")
    return answer


def _curved(choice: Choice, X: Floats, y: Floats, attention: Attention) -> dict[str, Any]:
    """What `KernelSVM.fit` does, but one that can be left in the middle, and that ends with what it has when the
    patience does: the page draws Σⱼ coefⱼ k(xⱼ, x) + b at any place, and the proof is that of feature space.
    """
    estimator, rows, loss = choice.estimator(), Rows(X, 1), LOSSES["hinge"]
    gamma = gamma_of(estimator.gamma, rows)
    kernel = Kernel(estimator.kernel, gamma, estimator.degree, estimator.coef0)
    problem = KernelProblem.of(PointsGram(kernel, rows), ((0, len(y)),), y, np.full(len(y), choice.C))

    def watch(*_: float) -> None:
        if not attention.lasts():
            raise KeyboardInterrupt  # the fit ends with its best and the gap that is open

    (done,) = kernel_training.fit([problem], tol=estimator.tol, watch=watch)
    certificate, coef, b = done.certificate, done.proved.coef, done.proved.b
    support = certificate.support[np.argsort(y[certificate.support], kind="stable")]  # by class, as in the estimator
    counts, classes = np.array([(y[support] < 0).sum(), (y[support] > 0).sum()]), np.array([-1, 1])
    model = KernelModel(X[support], coef[support][None], np.array([b]), counts, classes, kernel)
    margins, edge = y * model.pair_scores(rows)[:, 0], left_open(certificate)
    answer = _violations(margins, edge) | _proof(certificate, loss)
    answer["kinds"] = _kinds(answer["xi"], certificate, loss, edge)
    answer |= {
        "kernel": {"name": kernel.name, "gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0},
        "rows": support,
        "coef": coef[support],
        "b": b,
        "norm": 2 / certificate.width,
        "width": certificate.width,
        "iterations": done.iterations,
        "tol": estimator.tol,
    }
    if certificate.relative_gap > estimator.tol:
        answer |= _open_gap(certificate, answer["iterations"])
    return answer


def _open_gap(certificate: Certificate, iterations: int, more: str = "") -> dict[str, Any]:
    gap = f"The method was stopped after {iterations} iterations at a relative gap of {certificate.relative_gap:.1e}."
    return {"note": "Not yet the optimum: the gap is still open.", "more": f"{gap} {more}".strip()}


def _online(choice: Choice, X: Floats, y: Floats) -> dict[str, Any]:
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the answer has a note instead
        model = choice.estimator().fit(X, y)
    answer = _line(X, y, model.coef_[0], float(model.intercept_[0]))
    answer["kinds"] = _kinds(answer["xi"], None, None)
    answer |= {"iterations": model.n_iter_, "changes": int(sum(model.mistakes_))}
    if not model.separates_:
        answer["note"] = f"Not separated after {model.n_iter_} passes."
        answer["more"] = (
            "It stops when many passes bring no better one. Either the classes overlap, or they are so close that it "
            "takes longer; the hard margin tells which."
        )
    return answer


def _line(X: Floats, y: Floats, w: Floats, b: float) -> dict[str, Any]:
    """The hyperplane, every point's margin and slack, and how many are late as the certificate counts them."""
    norm = float(np.linalg.norm(w))
    return {"w": w, "b": b, "width": 2 / norm if norm > 0 else np.inf} | _violations(y * (X @ w + b))


def _violations(margins: Floats, edge: float = AT_BOUND) -> dict[str, Any]:
    """The slacks that belong to these margins, and how many points are inside the band and on the wrong side.

    A slack of up to `edge` counts as none.
    """
    slack = np.maximum(0.0, 1 - margins)
    misclassified = int(wrong(margins).sum())
    return {
        "margins": margins,
        "xi": slack,
        "inside": int((slack > edge).sum()) - misclassified,
        "misclassified": misclassified,
    }


def wrong(margins: Floats) -> Any:
    """Which points are on the wrong side, as the certificate counts them: a slack above 1. One on the line is not."""
    return 1 - margins > 1


def _kinds(slack: Floats, proof: Certificate | None, loss: Loss | None, edge: float = AT_BOUND) -> list[str]:
    """Where each point lies and whether it pulls at the line, in a word; the page has its sentence.

    A slack of up to `edge` counts as none.
    """
    outside = _outside(proof, loss) if proof is not None and loss is not None else ["outside"] * len(slack)
    return [
        "wrong" if xi > 1 else "inside" if xi > edge else kind for xi, kind in zip(slack.tolist(), outside, strict=True)
    ]


def _outside(proof: Certificate, loss: Loss) -> list[str]:
    """What each point is if it is not inside the band. A loss without a kink pulls there too, either way."""
    words, alpha = ["idle"] * len(proof.alpha), proof.alpha.tolist()
    for k in proof.support.tolist():
        words[k] = "edge" if loss.kink < np.inf else "pulls" if alpha[k] > 0 else "attracts"
    return words


def _proof(proof: Certificate, loss: Loss) -> dict[str, Any]:
    between = "0 < α < c" if loss.lower == 0 else "α ≠ 0"
    names = ("α = 0", between, "α = c")
    return {
        "primal": proof.primal,
        "dual": proof.dual,
        "gap": proof.gap,
        "alpha": proof.alpha,
        "support": proof.support,
        "slack": proof.slack,
        "kkt": [
            {"name": name, "demand": kind.demand, "count": kind.count, "worst": kind.worst}
            for name, kind in zip(names, proof.kkt, strict=True)
        ],
    }


def _inseparable(proof: InseparableError) -> dict[str, Any]:
    return {
        "point": proof.point,
        "positive": proof.positive,
        "positive_weights": proof.positive_weights,
        "negative": proof.negative,
        "negative_weights": proof.negative_weights,
    }


def _mean(X: Floats, alpha: Floats, side: Any) -> Floats | None:
    """The point of a class's hull that its α weigh out: the one nearest to the other hull."""
    weights = np.where(side, alpha, 0.0)
    return np.asarray(weights @ X / weights.sum()) if weights.sum() > 0 else None


def hull(X: Floats, chosen: Any) -> list[int]:
    """The corners of the convex hull of the chosen points, in order."""
    index = dict(zip(map(tuple, X[chosen].tolist()), np.flatnonzero(chosen).tolist(), strict=True))
    return [index[tuple(corner)] for corner in convex_hull(X[chosen]).tolist()]
