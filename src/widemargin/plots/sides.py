"""A classifier seen as one class against another or the rest: the scores, the slacks and the support vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.exceptions import NotFittedError

from widemargin.certificate import AT_BOUND, Certificate, Certificates
from widemargin.data import Rows
from widemargin.losses import LOSSES
from widemargin.plots.look import class_label
from widemargin.plots.pairs import best_of_others, elected, in_pairs, pairs, scores_of, smallest_margins

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: As many rows are enough to find the main direction.
MANY = 10_000
#: Sums over the same rows agree to this share of their terms; sums over other rows do not.
SAME = 1e-6
#: A slack below this share of half the margin cannot be seen.
UNSEEN = 0.01


@dataclass(frozen=True)
class Verdicts:
    """What a classifier says of every row that is drawn."""

    #: The place of each row's class in `names`.
    which: NDArray[np.intp]
    #: What the classes are called.
    names: tuple[str, ...]
    #: y(w·x + b) of every row; of more classes, told apart in pairs, the smallest over the pairs of the row's class.
    margins: Floats
    #: Which rows are predicted as another class.
    misclassified: Flags
    #: Which rows are support vectors; None if the classifier has none, or was fitted to other rows.
    support: Flags | None
    #: How far from the edge of the band a row may be and still count as on it.
    tolerance: float
    #: Which of the rows given are drawn: those of the classes that are told apart.
    rows: Flags

    @property
    def slack(self) -> Floats:
        """ξ = max(0, 1 − margin)."""
        return np.maximum(0.0, 1 - self.margins)

    @property
    def inside(self) -> Flags:
        """0 < ξ ≤ 1: on the right side, but inside the margin."""
        slack = self.slack
        return np.asarray((slack > self.tolerance) & (slack <= 1))

    @property
    def wrong(self) -> Flags:
        """ξ > 1: on the wrong side."""
        return np.asarray(self.slack > 1)


@dataclass(frozen=True)
class Side(Verdicts):
    """The score that tells the positive rows from the others, and what it says of every row."""

    #: Weights and bias of the score w·x + b; None where it is no linear function of x.
    w: Floats | None
    b: float
    #: The score of every row.
    scores: Floats
    #: Where the classifier has several scores, the column of this one, and −1 where its sign is turned, else 1.
    column: int
    sign: float

    @property
    def positive(self) -> Flags:
        """Which rows are of the positive class."""
        return np.asarray(self.which == 1)

    def score(self, scores: Floats) -> Floats:
        """Its own score, out of all that `scores_of` has."""
        return self.sign * (scores if scores.ndim == 1 else scores[:, self.column])


@dataclass(frozen=True)
class Several(Verdicts):
    """Several classes at once, told apart in pairs or each from the rest."""

    by_pairs: bool
    #: Whether scores decide between classes with as many votes.
    break_ties: bool

    def predicted(self, scores: Floats) -> NDArray[np.intp]:
        """The class that is predicted, by the scores that `scores_of` has."""
        if self.by_pairs:
            return elected(scores, len(self.names), break_ties=self.break_ties)
        return np.asarray(np.argmax(scores, axis=1))

    def class_margins(self, scores: Floats) -> Floats:
        """The margin that a row of each class would have: the smallest over the problems that the class is in."""
        return smallest_margins(scores, len(self.names), by_pairs=self.by_pairs)

    def leads(self, scores: Floats) -> Floats:
        """By how much each class is ahead of the best of the others, a column each; by pairs, its smallest margin."""
        return self.class_margins(scores) if self.by_pairs else scores - best_of_others(scores)


def check_fit(clf: Any, display: str, *, kernels: bool = False) -> None:
    """Raises unless it is a fitted linear classifier or, where such are drawn, one with a kernel."""
    kind = type(clf).__name__
    if hasattr(clf, "steps"):
        raise ValueError(
            f"{display} draws linear classifiers, not a {kind}; give its last step, clf[-1], and the X that this step "
            "sees, clf[:-1].transform(X)"
        )
    if not hasattr(clf, "classes_"):
        raise NotFittedError(f"{display} draws fitted classifiers, and this {kind} is not fitted yet; call fit first")
    if not hasattr(clf, "coef_") and not (kernels and hasattr(clf, "dual_coef_")):
        raise ValueError(f"{display} draws linear classifiers, which have a coef_; this {kind} has none")


def check_columns(clf: Any, matrix: Any, label: str = "clf") -> None:
    """Raises unless the rows have the features of the classifier."""
    features = _features(clf, matrix)
    if matrix.ndim != 2:
        raise ValueError(f"X has shape {matrix.shape}; give rows of {features} features")
    if matrix.shape[1] != features:
        raise ValueError(
            f"X has {matrix.shape[1]} columns and {label} {features} features; give the columns of its fit"
        )


def _features(clf: Any, matrix: Any) -> int:
    """How many features the classifier was fitted to; where it does not say, those of the rows."""
    if hasattr(clf, "coef_"):
        return int(dense(clf.coef_).shape[-1])
    return int(getattr(clf, "n_features_in_", np.shape(matrix)[-1]))


def feature_names(X: Any, clf: Any = None) -> list[str] | None:
    """What the features are called, by the fit or by the data frame; None if by neither."""
    names = list(getattr(clf, "feature_names_in_", getattr(X, "columns", [])))
    return names if names and all(isinstance(one, str) for one in names) else None


def side_of(clf: Any, X: Any, y: Any, target: object, display: str) -> Side:
    """The side of `target`: the second of two classes; of more, one that must be named, or a pair of classes if it is
    pairs that `clf` tells apart.

    Its support vectors are those of the fit, if these are the rows of the fit.
    """
    check_columns(clf, matrix_of(X))
    first, second, column, sign = _sides(clf, target, display)
    which, scores = labels_and_scores(clf, X, y)
    rows = np.ones(len(which), dtype=bool) if first is None else (which == first) | (which == second)
    names = "the rest" if first is None else class_label(clf.classes_[first]), class_label(clf.classes_[second])
    mine, positive = sign * (scores if scores.ndim == 1 else scores[:, column]), which == second
    w, b = None, 0.0
    if hasattr(clf, "coef_"):
        weights, intercept = dense(clf.coef_), np.ravel(clf.intercept_)
        w = sign * np.asarray(weights[column], dtype=np.float64)
        b = sign * float(np.broadcast_to(intercept, len(weights))[column])
    if hasattr(clf, "coef_") and not hasattr(clf, "support_vectors_"):
        support, tolerance = _support(clf, column, walkable(X), sign * np.where(positive, 1.0, -1.0), sign * mine)
    else:
        support, tolerance = kernel_support(clf, X, which, scores, column)
    margins = np.where(positive, mine, -mine)
    return Side(
        which=positive[rows].astype(np.intp),
        names=names,
        margins=margins[rows],
        misclassified=(np.maximum(0.0, 1 - margins) > 1)[rows],
        support=None if support is None else support[rows],
        tolerance=tolerance,
        rows=rows,
        w=w,
        b=b,
        scores=mine[rows],
        column=column,
        sign=sign,
    )


def several_of(clf: Any, X: Any, y: Any) -> Several:
    """All classes of a classifier of more than two; a row's margin is the smallest over the problems of its class."""
    check_columns(clf, matrix_of(X))
    which, scores = labels_and_scores(clf, X, y)
    by_pairs, k = in_pairs(clf), len(clf.classes_)
    support: Flags | None = None
    if hasattr(clf, "support_vectors_"):
        support, tolerance = kernel_support(clf, X, which, scores, None)
    else:
        rows = walkable(X)
        found = [_support(clf, c, rows, np.where(which == c, 1.0, -1.0), scores[:, c]) for c in range(k)]
        tolerance = max(one for _, one in found)
        flags = [one for one, _ in found if one is not None]
        support = np.any(flags, axis=0) if len(flags) == k else None
    seen = Several(
        which=which,
        names=tuple(map(class_label, clf.classes_)),
        margins=smallest_margins(scores, k, by_pairs=by_pairs)[np.arange(len(which)), which],
        misclassified=np.zeros(len(which), dtype=bool),
        support=support,
        tolerance=tolerance,
        rows=np.ones(len(which), dtype=bool),
        by_pairs=by_pairs,
        break_ties=bool(getattr(clf, "break_ties", False)),
    )
    return replace(seen, misclassified=seen.predicted(scores) != which)


def _sides(clf: Any, target: object, display: str) -> tuple[int | None, int, int, float]:
    """The negative class, None for the rest, and the positive one, the column of their score and its sign."""
    classes = np.asarray(clf.classes_).tolist()
    if not in_pairs(clf):
        second = class_of(clf, target, display)
        if len(classes) > 2:
            return None, second, second, 1.0
        return 1 - second, second, 0, 1.0 if second == 1 else -1.0
    if not isinstance(target, tuple | list) or len(target) != 2 or target[0] == target[1]:
        raise ValueError(
            f"{display} draws two classes, clf has {len(classes)} and tells them apart in pairs; name two of them: "
            f"target=({classes[0]!r}, {classes[1]!r}), or draw all of them by DecisionDisplay"
        )
    for one in target:
        if one not in classes:
            raise ValueError(f"target={target!r}: {one!r} is no class of clf; choose from {classes}")
    first, second = (classes.index(one) for one in target)
    low, high = sorted((first, second))
    # the score of a pair is positive for its first class
    return first, second, pairs(len(classes)).index((low, high)), -1.0 if first == low else 1.0


def labels_and_scores(clf: Any, X: Any, y: Any) -> tuple[NDArray[np.intp], Floats]:
    """The place of each row's label among the classes, and its scores; raises where there is no such class."""
    y, classes = np.asarray(y), np.asarray(clf.classes_)
    known = is_known(y, classes)
    if not known.all():
        at = int(np.argmin(known))
        raise ValueError(f"y[{at}] is {y[at]!r}, which is no class of clf: {classes.tolist()}; leave such rows out")
    scores = scores_of(clf, X)
    if len(scores) != len(y):
        raise ValueError(f"X has {len(scores)} rows and y has {len(y)} labels")
    place = {one: k for k, one in enumerate(classes.tolist())}
    return np.fromiter((place[one] for one in y.tolist()), dtype=np.intp, count=len(y)), scores


def _support(clf: Any, row: int, rows: Rows, signs: Floats, scores: Floats) -> tuple[Flags | None, float]:
    """The support vectors, and how far one may be from the edge of the band and still count as on it.

    There are none where the loss leaves no row out, or where these are not the rows that clf was fitted to.
    """
    loss = LOSSES.get(getattr(clf, "loss", "hinge"))
    if not hasattr(clf, "certificate_") or loss is None or not np.isfinite(loss.kink):
        return None, AT_BOUND
    proof = clf.certificate_[row] if isinstance(clf.certificate_, Certificates) else clf.certificate_
    if not is_about(proof, dense(clf.coef_)[row], rows, signs, scores):
        return None, AT_BOUND
    flags = np.zeros(len(signs), dtype=bool)
    flags[proof.support] = True
    return flags, left_open(proof)


def left_open(proof: Certificate) -> float:
    """How far from margin 1 a fit left the rows that belong there, by the KKT table of its certificate.

    The margins drawn are summed in another order than the certificate's: AT_BOUND on top is more than that changes.
    """
    between = proof.kkt[1]
    return min(between.worst + AT_BOUND, UNSEEN) if between.demand.startswith("m =") else AT_BOUND


def kernel_support(
    clf: Any, X: Any, which: NDArray[np.intp], scores: Floats, column: int | None
) -> tuple[Flags | None, float]:
    """As `_support`, of a classifier with a kernel: of one pair of classes, or of all if `column` is None."""
    if not hasattr(clf, "support_vectors_") or not _are_rows_of_fit(clf, X, which, scores):
        return None, AT_BOUND
    flags = np.zeros(len(which), dtype=bool)
    for pair in range(len(pairs(len(clf.classes_)))) if column is None else [column]:
        flags |= _alpha(clf, which, pair) > 0
    if not hasattr(clf, "certificate_"):
        return flags, float(np.clip(getattr(clf, "tol", AT_BOUND), AT_BOUND, UNSEEN))
    proofs = clf.certificate_ if isinstance(clf.certificate_, Certificates) else [clf.certificate_]
    return flags, max(left_open(one) for one in (proofs if column is None else [proofs[column]]))


def _alpha(clf: Any, which: NDArray[np.intp], pair: int) -> Floats:
    """|α| of every row in the problem of one pair of classes.

    In ``dual_coef_`` a support vector of class i has its α of the pair (i, j) in row j − 1 if i < j, else in row j.
    """
    i, j = pairs(len(clf.classes_))[pair]
    support, alpha = np.asarray(clf.support_), np.zeros(len(which))
    coefficients = np.abs(dense(clf.dual_coef_))
    for own, row in ((i, j - 1), (j, i)):
        mine = which[support] == own
        alpha[support[mine]] = coefficients[row, mine]
    return alpha


def _are_rows_of_fit(clf: Any, X: Any, which: NDArray[np.intp], scores: Floats) -> bool:
    """Whether a classifier with a kernel was fitted to these rows: its support vectors are where it says.

    A classifier that keeps no support vectors, since its kernel is a matrix or a function, has rows with α > 0 at
    margins of at most 1, and the others at no less.
    """
    support = np.asarray(clf.support_)
    if not len(support) or support.max() >= len(which):
        return False
    if not np.array_equal(which[support], np.repeat(np.arange(len(clf.classes_)), np.asarray(clf.n_support_))):
        return False
    vectors = clf.support_vectors_
    if vectors.shape[0] == len(support) and vectors.shape[1:] == np.shape(X)[1:]:
        theirs, own = dense(vectors), dense(matrix_of(rows_of(X, support)))
        return bool(np.allclose(own, theirs, rtol=SAME, atol=0))
    if len(which) != getattr(clf, "shape_fit_", np.shape(X))[0]:
        return False
    for pair, ends in enumerate(pairs(len(clf.classes_))):
        first, second = ends if scores.ndim > 1 else ends[::-1]  # of two classes the score is positive for the second
        score, alpha = scores if scores.ndim == 1 else scores[:, pair], _alpha(clf, which, pair)
        margins = np.where(which == first, score, -score)
        late = np.where(alpha > 0, margins - 1, 1 - margins)
        if late[(which == first) | (which == second)].max() > UNSEEN:
            return False
    return True


def is_about(proof: Certificate, w: Floats, rows: Rows, signs: Floats, scores: Floats) -> bool:
    """Whether a certificate of w is about these rows, y = ±1 being their `signs` and w·x + b their `scores`.

    They are if their slacks add up to what it counted, and if its α weighs them up to a w(α) as far from w as it says.
    """
    if len(proof.alpha) != len(signs):
        return False
    slack = float(np.maximum(0.0, 1 - signs * scores).sum())
    if proof.rows == len(signs) and abs(slack - proof.slack) > SAME * (1 + proof.slack):
        return False
    pulls, size = proof.alpha * signs, float(np.linalg.norm(w))
    implied = rows.combine(pulls)
    terms = float(np.abs(pulls) @ np.sqrt(rows.square_norms)) + size
    with_penalty = float(np.linalg.norm(w - implied)), proof.stationarity * size
    without_penalty = float(np.linalg.norm(implied)), proof.stationarity
    return any(abs(found - stated) <= SAME * terms for found, stated in (with_penalty, without_penalty))


def is_known(y: NDArray[Any], classes: NDArray[Any]) -> Flags:
    """Which labels are among the classes; the word "1" is not the number 1."""
    names = set(classes.tolist())
    return np.fromiter((one in names for one in y.tolist()), dtype=bool, count=len(y))


def class_of(clf: Any, target: object, display: str) -> int:
    """The index of the class to tell from the rest."""
    classes = np.asarray(clf.classes_).tolist()
    if target is not None:
        if target not in classes:
            raise ValueError(f"target={target!r} is no class of clf; choose from {classes}")
        return int(classes.index(target))
    if len(classes) != 2:
        raise ValueError(
            f"{display} draws two classes, clf has {len(classes)}; name the one to tell from the rest: target=…"
        )
    return 1


def main_coordinate(X: Any, w: Floats | None) -> Floats:
    """Each row's place along the first principal component of X without its part along w; 0 if nothing is left.

    Of very many rows, a part is asked for the direction.
    """
    n, d = X.shape
    length = 0.0 if w is None else float(np.linalg.norm(w))
    unit = np.zeros(d) if w is None or length == 0 else w / length
    if n > MANY:
        part = np.sort(np.random.default_rng(0).choice(n, MANY, replace=False))
        direction = _main_direction(rows_of(X, part), unit)
    else:
        direction = _main_direction(X, unit)
    along = np.asarray(X @ (direction - unit * (unit @ direction)))
    return np.asarray(along - along.mean())


def _main_direction(X: Any, unit: Floats) -> Floats:
    """The first principal component of X without its part along the unit vector; 0 if nothing is left."""
    d = X.shape[1]

    def places(v: Floats) -> Floats:
        along = X @ (v.ravel() - unit * (unit @ v.ravel()))
        return np.asarray(along - along.mean())

    def back(u: Floats) -> Floats:
        v = X.T @ (u.ravel() - u.mean())
        return np.asarray(v - unit * (unit @ v))

    trial = np.random.default_rng(0).standard_normal(max(X.shape))
    left = np.linalg.norm(places(trial[:d]))
    if left <= 1e-12 * np.linalg.norm(X @ trial[:d]):
        return np.zeros(d)
    if min(X.shape) == 1:
        return np.ones(d)
    operator = LinearOperator(X.shape, matvec=places, rmatvec=back, dtype=np.float64)
    _, _, components = svds(operator, k=1, v0=trial[: min(X.shape)], tol=0 if X.shape[0] < MANY else 1e-3)
    upwards = np.sign(components[0, np.argmax(abs(components[0]))])  # the same side up on every machine
    return np.asarray(upwards * components[0])


def rows_of(X: Any, which: NDArray[Any]) -> Any:
    """Some rows of an array, a sparse matrix or a data frame."""
    if hasattr(X, "iloc"):
        return X.iloc[np.arange(len(X))[which]]
    return X.tocsr()[which] if hasattr(X, "tocsr") else np.asarray(X)[which]


def matrix_of(X: Any) -> Any:
    """X as products with it need it: sparse as it is, else float64."""
    return X if issparse(X) else np.asarray(X, dtype=np.float64)


def walkable(X: Any) -> Rows:
    """X with the products of our kernels."""
    matrix = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    return Rows(matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64))


def dense(weights: Any) -> NDArray[Any]:
    """Weights as an array, which some classifiers keep sparse."""
    return np.asarray(weights.toarray() if hasattr(weights, "toarray") else weights)
