"""A certificate for anybody's kernel machine, of its own α."""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.certificate import Certificate, Certificates
from widemargin.data.labels import text_of
from widemargin.estimators.kernel_svm import IndefiniteKernelWarning, KernelSVM
from widemargin.kernel_certificate import certify
from widemargin.kernel_problem import own_scores
from widemargin.kernel_training import NegativeCurvature
from widemargin.kernels import Gram, Kernel
from widemargin.model_kernel import KernelModel, kernel_of, row_keys

Floats = NDArray[np.float64]

#: What a kernel machine knows; as attributes of an estimator with an underscore behind.
PARTS = ("classes", "support_vectors", "dual_coef", "intercept", "n_support")
#: What its problem is told.
TASK = ("kernel", "gamma", "degree", "coef0", "class_weight")
#: Coefficients beyond 0 ≤ α ≤ c by more than this share of c are not rounding but those of another problem: solvers in
#: float32 round to 1e-7 of c.
BEYOND = 1e-4
GIVE_THE_ROWS = "give the rows of its training, in their order"


def is_kernel_machine(clf: Any) -> bool:
    """Whether it has a kernel or, fitted, support vectors and their coefficients."""
    return hasattr(clf, "kernel") or (hasattr(clf, "dual_coef_") and hasattr(clf, "support_vectors_"))


def certify_kernel_machine(
    clf: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    C: float | None = None,
    n_jobs: int | None = None,
) -> Certificate | Certificates:
    """How far the machine's own α, f and b are from the optimum of its problem on these rows, those of its training."""
    name = "the model" if isinstance(clf, KernelModel) else type(clf).__name__
    machine = _of_model(clf) if isinstance(clf, KernelModel) else _of_estimator(clf)
    C, classes = machine["C"] if C is None else C, np.asarray(machine["classes"])
    if C is None:
        raise ValueError(f"{name} says no C; say which with C=")
    task = KernelSVM(float(C), n_jobs=n_jobs, **{part: machine[part] for part in TASK if part in machine})
    rows, live, pairs, problems = task._problems(X, y, sample_weight)
    labels = np.ravel(np.asarray(y))
    n, labels = len(labels), labels[live]
    if not np.array_equal(pairs.classes, classes):
        shown = [", ".join(map(text_of, names[:6].tolist())) for names in (pairs.classes, classes)]
        raise ValueError(f"y has the classes {shown[0]}, and {name} knows {shown[1]}; {GIVE_THE_ROWS}")
    if isinstance(clf, KernelModel):
        at = clf.find_support(rows, labels)
    else:
        at = _places(machine, rows, labels, live, n, name)
    table = np.zeros((len(classes) - 1, len(live)))
    table[:, at] = machine["dual_coef"]
    curvature = _negative_curvature(problems[0].gram, np.argsort(pairs.order)[at])
    if curvature is not None:
        numbered = replace(curvature, rows=live[pairs.order][curvature.rows])
        warnings.warn(
            f"the kernel is not positive semidefinite: {numbered}. Nothing is proved of the fit; use another kernel "
            "or other parameters",
            IndefiniteKernelWarning,
            stacklevel=4,
        )
    alphas = []
    for (i, j), problem in zip(combinations(range(len(classes)), 2), problems, strict=True):
        index = pairs.order[problem.index]
        alpha = np.where(pairs.place[index] == i, table[j - 1, index], table[i, index]) * problem.y
        _check_bounds(alpha, problem.c, live[index], name)
        alphas.append(problem.problem.feasible(alpha))
    ends = zip(problems, alphas, own_scores(problems, alphas), np.ravel(machine["intercept"]), strict=True)
    each = tuple(
        certify(problem, alpha, scores, b=float(bias), semidefinite=curvature is None).certificate
        for problem, alpha, scores, bias in ends
    )
    return each[0] if len(each) == 1 else Certificates(pairs.names, each)


def _of_model(model: KernelModel) -> dict[str, Any]:
    """What a model says of itself; which rows its support vectors are has to be found."""
    kernel, weight = model.kernel, (model.certificate or {}).get("class_weight")
    return {
        **_named(kernel),
        "C": model.C,
        "class_weight": dict(weight) if isinstance(weight, list) else weight,
        **{part: getattr(model, part) for part in PARTS},
    }


def _of_estimator(clf: Any) -> dict[str, Any]:
    """What a fitted estimator says of itself."""
    name = type(clf).__name__
    missing = [attribute for attribute in (f"{part}_" for part in (*PARTS, "support")) if not hasattr(clf, attribute)]
    if missing:
        raise ValueError(f"{name} has no {missing[0]}; give a fitted classifier, such as SVC or KernelSVM")
    if hasattr(clf, "approximate_certificate_"):
        raise ValueError(
            f"{name}(solver='nystroem') has coefficients of landmarks, and no α to judge; its certificate_ says how "
            "far it is from the exact optimum"
        )
    if getattr(clf, "nu", 0):
        raise ValueError(f"{name} has nu in the place of C and solves another problem; certify an SVC or a KernelSVM")
    given = getattr(clf, "kernel", None)
    same = {"kernel": given} if callable(given) or given == "precomputed" else _named(kernel_of(clf))
    classes, weight = np.asarray(clf.classes_), getattr(clf, "class_weight", None)
    if hasattr(clf, "class_weight_"):  # of SVC, as numbers: its "balanced" takes no heed of sample weights
        weight = dict(zip(classes.tolist(), np.ravel(clf.class_weight_).tolist(), strict=True))
    parts = {part: getattr(clf, f"{part}_") for part in PARTS}
    return {
        **same,
        **{
            name: part.toarray() if name == "dual_coef" and hasattr(part, "toarray") else part
            for name, part in parts.items()
        },
        "C": getattr(clf, "_fitted_C", clf.C),
        "class_weight": weight,
        "support": np.asarray(clf.support_, dtype=np.intp),
        "rows": clf.shape_fit_[0] if hasattr(clf, "shape_fit_") else None,
    }


def _named(kernel: Kernel) -> dict[str, Any]:
    return {"kernel": kernel.name, "gamma": kernel.gamma, "degree": kernel.degree, "coef0": kernel.coef0}


def _places(
    machine: dict[str, Any], X: Any, y: NDArray[Any], live: NDArray[np.intp], n: int, name: str
) -> NDArray[np.intp]:
    """Where the support vectors stand among the rows of positive weight, which X and y are; n is how many all are.

    SVC counts rows of weight 0 in its `shape_fit_`, and leaves them out in its `support_`.
    """
    support, vectors = machine["support"], machine["support_vectors"]
    classes = machine["classes"]
    # Of two classes sklearnex has its support vectors in the order of the rows, not class by class.
    grouped = np.repeat(np.arange(len(classes)), machine["n_support"])
    expected = classes[grouped if len(classes) > 2 else np.asarray(machine["dual_coef"][0] > 0, dtype=np.intp)]
    fitted = machine["rows"]
    if fitted not in (None, n, len(live)):
        raise ValueError(f"X has {n:,} rows, {name} was fitted to {fitted:,}; {GIVE_THE_ROWS}")
    if len(support) and support.max() >= n:
        raise ValueError(f"X has {n:,} rows, {name} has row {support.max():,} as a support vector; {GIVE_THE_ROWS}")
    place = np.full(n, -1)
    place[live] = np.arange(len(live))
    complaint = ""
    for at in (place[support], support):
        if at.min(initial=0) < 0 or at.max(initial=0) >= len(live):
            complaint = complaint or f"a support vector of {name} has the weight 0; give the weights of its training"
            continue
        wrong = np.flatnonzero(y[at] != expected)
        if len(wrong):
            k = wrong[0]
            what = f"support vector {k + 1:,} is row {support[k]:,}, of class {text_of(expected[k])}, and y has"
            complaint = complaint or f"{name}: {what} {text_of(y[at[k]])} there; {GIVE_THE_ROWS}"
            continue
        if vectors.shape[0] and vectors.shape[1] != X.shape[1]:
            raise ValueError(
                f"X has {X.shape[1]:,} columns, {name} was fitted to {vectors.shape[1]:,}; {GIVE_THE_ROWS}"
            )
        if vectors.shape[0]:
            own = zip(row_keys(X[at].astype(vectors.dtype)), row_keys(vectors), strict=True)
            k = next((k for k, (here, there) in enumerate(own) if here != there), -1)
            if k >= 0:
                complaint = (
                    complaint or f"{name}: support vector {k + 1:,} is not row {support[k]:,} of X; {GIVE_THE_ROWS}"
                )
                continue
        return np.asarray(at, dtype=np.intp)
    raise ValueError(complaint)


def _negative_curvature(gram: Gram, support: NDArray[np.intp]) -> NegativeCurvature | None:
    """Where the kernel is seen not to be positive semidefinite, looked for among these rows first."""
    found = gram.negative_curvature(np.sort(support))
    return None if found is None else NegativeCurvature(found[0], found[2], found[1])


def _check_bounds(alpha: Floats, c: Floats, rows: NDArray[np.intp], name: str) -> None:
    """Refuses coefficients that are outside of 0 ≤ α ≤ c by more than rounding."""
    size = np.where(np.isinf(c), np.abs(alpha).max(initial=0.0), c)
    beyond = np.maximum(alpha - c, -alpha) - BEYOND * size
    if len(beyond) and beyond.max() > 0:
        i = int(beyond.argmax())
        raise ValueError(
            f"{name}: a support vector's α is {alpha[i]:.6g}, outside of 0 ≤ α ≤ {c[i]:.6g}, C times its weights (row "
            f"{rows[i]:,}, counted from 0); give the labels, C, class weights and sample weights of its training"
        )
