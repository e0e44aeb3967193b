"""EVALUATION: how right a classifier's predictions are, in the usual numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import metrics

from widemargin.data.labels import text_of

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ClassEvaluation:
    """One class: how many rows have it, how many were said to, and how well the two agree.

    `precision` is the share of right ones among those predicted, `recall` among those there, `f1` their harmonic mean;
    None where there is nothing to take a share of, the last two where no row has the class. `roc_auc` is the chance
    that a row of the class has a higher score for it than a row of another.
    """

    name: Any
    rows: int
    predicted: int
    precision: float | None
    recall: float | None
    f1: float | None
    roc_auc: float | None


@dataclass(frozen=True)
class Evaluation:
    """Predictions held against labels.

    `confusion[i][j]` counts rows of `classes[i]` that were taken for `classes[j]`. Labels that are none of the classes
    are in `unknown`, with their number of rows: mistakes all of them, so `accuracy` counts them, and so do the
    precisions; where a score or a probability of the right class is needed, they are left out.

    `precision`, `recall` and `f1` are those of the second of two classes; of more, means over the classes that occur in
    the labels. `baseline` is the accuracy of always naming the most frequent of the classes. What cannot be said is
    None.
    """

    rows: int
    right: int
    accuracy: float
    baseline: float
    precision: float | None
    recall: float | None
    f1: float | None
    roc_auc: float | None
    log_loss: float | None
    classes: tuple[Any, ...]
    each: tuple[ClassEvaluation, ...]
    confusion: tuple[tuple[int, ...], ...]
    unknown: dict[str, int]

    @property
    def absent(self) -> tuple[Any, ...]:
        """The classes that no row has."""
        return tuple(one.name for one in self.each if one.rows == 0)

    def to_json(self) -> dict[str, Any]:
        """Numbers, strings, lists and None alone, as ``json.dumps`` takes them."""
        return {**asdict(self), "classes": list(self.classes), "confusion": [list(row) for row in self.confusion]}

    def __str__(self) -> str:
        facts = [
            ("rows", f"{self.rows:,}"),
            ("right", f"{self.right:,}"),
            *((label, _number(getattr(self, field))) for label, field in _FACTS),
        ]
        facts += [("rows of unknown classes", f"{sum(self.unknown.values()):,}")] if self.unknown else []
        lines = [f"{label:<24}{value:>12}" for label, value in facts]
        if len(self.classes) > 2:
            wide = max(5, *(len(str(one.name)) for one in self.each))
            lines += ["", f"{'class':<{wide}}{'rows':>9}{'precision':>11}{'recall':>9}{'F1':>9}"]
            for one in self.each:
                shares = f"{_number(one.precision):>11}{_number(one.recall):>9}{_number(one.f1):>9}"
                lines.append(f"{one.name!s:<{wide}}{one.rows:>9,}{shares}")
        return "\n".join(lines)


_FACTS = (
    ("accuracy", "accuracy"),
    ("most frequent class", "baseline"),
    ("precision", "precision"),
    ("recall", "recall"),
    ("F1", "f1"),
    ("ROC AUC", "roc_auc"),
    ("log loss", "log_loss"),
)


def evaluate(
    y: ArrayLike,
    predicted: ArrayLike,
    scores: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    *,
    classes: ArrayLike,
) -> Evaluation:
    """Hold predictions against labels.

    Parameters
    ----------
    y : array of shape (n,)
        Labels of any type; those that are none of the `classes` are mistakes, and reported.
    predicted : array of shape (n,)
        What the classifier says, each one of the `classes`.
    scores : array of shape (n,) for two classes, (n, classes) for more, optional
        For ROC AUC, as decision_function gives them.
    probabilities : array of shape (n, classes), optional
        For the log loss.
    classes : array
        The classes that the classifier knows, in its order; some may be absent from y.

    Examples
    --------
    >>> from widemargin.evaluation import evaluate
    >>> found = evaluate(["a", "b", "b", "c"], ["a", "b", "a", "b"], classes=["a", "b"])
    >>> found.accuracy, found.recall, found.unknown
    (0.5, 0.5, {'c': 1})

    """
    names = np.asarray(classes).tolist()
    if len(names) < 2:
        raise ValueError(f"classes={names}; a classifier knows at least 2")
    truth, unknown = _places(np.asarray(y), names)
    said, nonsense = _places(np.asarray(predicted), names)
    if len(truth) != len(said):
        raise ValueError(f"y has {len(truth)} labels and predicted {len(said)}; both must have one per row")
    if not len(truth):
        raise ValueError("there are no rows to evaluate")
    if nonsense:
        raise ValueError(f"predicted has {next(iter(nonsense))!r}, which is none of the classes {names}")
    known, every = truth >= 0, np.arange(len(names))
    table = (
        metrics.confusion_matrix(truth[known], said[known], labels=every)
        if known.any()
        else np.zeros((len(names),) * 2)
    )
    table = table.astype(int)
    columns = _columns(scores, len(truth), len(names))
    predictions = np.bincount(said, minlength=len(names))
    each = []
    for k, one in enumerate(names):
        here, meant, hit = int(table[k].sum()), int(predictions[k]), int(table[k, k])
        area = None if columns is None else _area(truth[known] == k, columns[known, k])
        f1 = 2 * hit / (here + meant) if here else None
        each.append(ClassEvaluation(one, here, meant, _share(hit, meant), _share(hit, here), f1, area))
    right = int(np.trace(table))
    told = each[1:] if len(names) == 2 else [one for one in each if one.rows]
    return Evaluation(
        rows=len(truth),
        right=right,
        accuracy=right / len(truth),
        baseline=int(table.sum(axis=1).max()) / len(truth),
        # a class that was never named has no right ones among those named
        precision=_mean([one.precision if one.precision is not None or not one.rows else 0.0 for one in told]),
        recall=_mean([one.recall for one in told]),
        f1=_mean([one.f1 for one in told]),
        roc_auc=_mean([one.roc_auc for one in told]),
        log_loss=_log_loss(truth, probabilities, len(names)),
        classes=tuple(names),
        each=tuple(each),
        confusion=tuple(tuple(int(count) for count in row) for row in table),
        unknown=unknown,
    )


def _places(labels: NDArray[Any], names: list[Any]) -> tuple[NDArray[np.intp], dict[str, int]]:
    """Each label's place among the names, −1 where it has none, and how often each such label occurs."""
    if labels.ndim != 1:
        raise ValueError(f"labels must have one dimension, got an array of shape {labels.shape}")
    place = {one: k for k, one in enumerate(names)}
    found, back = np.unique(labels, return_inverse=True) if labels.dtype != object else _unique(labels)
    places = np.array([place.get(one, -1) for one in found.tolist()], dtype=np.intp)[back]
    lost = np.bincount(back[places < 0], minlength=len(found))
    return places, {text_of(one): int(count) for one, count in zip(found.tolist(), lost, strict=True) if count}


def _unique(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The same as ``np.unique`` for labels that have no order, such as numbers beside words."""
    seen: dict[Any, int] = {}
    back = np.array([seen.setdefault(one, len(seen)) for one in labels.tolist()], dtype=np.intp)
    found = np.empty(len(seen), dtype=object)
    found[:] = list(seen)
    return found, back


def _columns(scores: ArrayLike | None, n: int, classes: int) -> Floats | None:
    """One column of scores per class."""
    if scores is None:
        return None
    scores = np.asarray(scores, dtype=np.float64)
    if scores.shape not in ((n,), (n, classes)):
        raise ValueError(
            f"scores has shape {scores.shape}; {n} rows and {classes} classes want {(n,)} or {(n, classes)}"
        )
    if scores.ndim == 2:
        return scores
    if classes > 2:
        raise ValueError(f"scores has shape {scores.shape}; {classes} classes want one column each")
    return np.column_stack([-scores, scores])


def _area(positive: NDArray[np.bool_], scores: Floats) -> float | None:
    """The area under the ROC curve; None if one side has no rows."""
    if not len(positive) or positive.all() or not positive.any() or not np.isfinite(scores).all():
        return None
    return float(metrics.roc_auc_score(positive, scores))


def _log_loss(truth: NDArray[np.intp], probabilities: ArrayLike | None, classes: int) -> float | None:
    if probabilities is None:
        return None
    chances = np.asarray(probabilities, dtype=np.float64)
    if chances.shape != (len(truth), classes):
        raise ValueError(f"probabilities has shape {chances.shape}; wanted is {(len(truth), classes)}")
    known = truth >= 0
    if not known.any():
        return None
    return float(metrics.log_loss(truth[known], chances[known], labels=np.arange(classes)))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: list[float | None]) -> float | None:
    """The mean of those that there are."""
    numbers = [one for one in values if one is not None]
    return float(np.mean(numbers)) if numbers else None


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"
