"""A linear classifier seen as one class against the rest: the scores, the slacks and the support vectors."""

from __future__ import annotations

from dataclasses import dataclass
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

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: As many rows are enough to find the main direction.
MANY = 10_000
#: Sums over the same rows agree to this share of their terms; sums over other rows do not.
SAME = 1e-6
#: A slack below this share of half the margin cannot be seen.
UNSEEN = 0.01


@dataclass(frozen=True)
class Side:
    """w and b that tell the positive rows from the others, and what they say of every row."""

    w: Floats
    b: float
    #: w·x + b of every row.
    scores: Floats
    #: Which rows are of the positive class.
    positive: Flags
    #: What the negative and the positive class are called.
    names: tuple[str, str]
    #: Which rows are support vectors; None if the classifier has none, or was fitted to other rows.
    support: Flags | None
    #: How far from the edge of the band a row may be and still count as on it.
    tolerance: float

    @property
    def margins(self) -> Floats:
        """y(w·x + b)."""
        return np.where(self.positive, self.scores, -self.scores)

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
        """ξ > 1: misclassified."""
        return np.asarray(self.slack > 1)


def check_fit(clf: Any, display: str) -> None:
    """Raises unless it is a fitted linear classifier."""
    kind = type(clf).__name__
    if hasattr(clf, "steps"):
        raise ValueError(
            f"{display} draws linear classifiers, not a {kind}; give its last step, clf[-1], and the X that this step "
            "sees, clf[:-1].transform(X)"
        )
    if not hasattr(clf, "classes_"):
        raise NotFittedError(f"{display} draws fitted classifiers, and this {kind} is not fitted yet; call fit first")
    if not hasattr(clf, "coef_"):
        raise ValueError(f"{display} draws linear classifiers, which have a coef_; this {kind} has none")


def check_columns(clf: Any, matrix: Any, label: str = "clf") -> None:
    """Raises unless the rows have the features of the classifier."""
    features = dense(clf.coef_).shape[-1]
    if matrix.ndim != 2:
        raise ValueError(f"X has shape {matrix.shape}; give rows of {features} features")
    if matrix.shape[1] != features:
        raise ValueError(
            f"X has {matrix.shape[1]} columns and {label} {features} features; give the columns of its fit"
        )


def feature_names(X: Any, clf: Any = None) -> list[str] | None:
    """What the features are called, by the fit or by the data frame; None if by neither."""
    names = list(getattr(clf, "feature_names_in_", getattr(X, "columns", [])))
    return names if names and all(isinstance(one, str) for one in names) else None


def side_of(clf: Any, X: Any, y: Any, target: object, display: str) -> Side:
    """The side of `target`: the second of two classes; of more, one that must be named.

    Its support vectors are those of the fit, if these are the rows of the fit.
    """
    check_fit(clf, display)
    check_columns(clf, matrix_of(X))
    classes = np.asarray(clf.classes_)
    which = class_of(clf, target, display)
    y = np.asarray(y)
    known = is_known(y, classes)
    if not known.all():
        at = int(np.argmin(known))
        raise ValueError(f"y[{at}] is {y[at]!r}, which is no class of clf: {classes.tolist()}; leave such rows out")
    weights = dense(clf.coef_)
    scores = np.asarray(clf.decision_function(X), dtype=np.float64)
    if len(scores) != len(y):
        raise ValueError(f"X has {len(scores)} rows and y has {len(y)} labels")
    if len(classes) == 2:
        row, sign, names = (
            0,
            1.0 if which == 1 else -1.0,
            (class_label(classes[1 - which]), class_label(classes[which])),
        )
    else:
        scores, row, sign, names = scores[:, which], which, 1.0, ("the rest", class_label(classes[which]))
    intercept = np.broadcast_to(np.ravel(clf.intercept_), len(weights))
    w, b, positive = np.asarray(weights[row], dtype=np.float64), float(intercept[row]), y == classes[which]
    signs = sign * np.where(positive, 1.0, -1.0)
    support, tolerance = _support(clf, row, walkable(X), signs, scores)
    return Side(sign * w, sign * b, sign * scores, positive, names, support, tolerance)


def _support(clf: Any, row: int, rows: Rows, signs: Floats, scores: Floats) -> tuple[Flags | None, float]:
    """The support vectors, and how far one may be from the edge of the band and still count as on it.

    There are none where the loss leaves no row out, or where these are not the rows that clf was fitted to.
    """
    loss = LOSSES.get(getattr(clf, "loss", "hinge"))
    if not hasattr(clf, "support_") or loss is None or not np.isfinite(loss.kink):
        return None, AT_BOUND
    flags = np.zeros(len(signs), dtype=bool)
    if not hasattr(clf, "certificate_"):
        if not _weigh_up_to_coef(clf, rows):
            return None, AT_BOUND
        flags[np.asarray(clf.support_)] = True
        return flags, AT_BOUND
    proof = clf.certificate_[row] if isinstance(clf.certificate_, Certificates) else clf.certificate_
    if not is_about(proof, dense(clf.coef_)[row], rows, signs, scores):
        return None, AT_BOUND
    flags[proof.support] = True
    between = proof.kkt[1]  # where the demand is m = 1, the worst miss is what the fit left open
    return flags, float(np.clip(between.worst, AT_BOUND, UNSEEN)) if between.demand.startswith("m =") else AT_BOUND


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


def _weigh_up_to_coef(clf: Any, rows: Rows) -> bool:
    """Whether the rows of a fit without a certificate are these: its dual coefficients give its weights."""
    support = np.asarray(clf.support_)
    if not hasattr(clf, "dual_coef_") or (len(support) and support.max() >= rows.n):
        return False
    weights = dense(clf.coef_)
    implied = dense(clf.dual_coef_) @ rows.take(support)
    return implied.shape == weights.shape and bool(
        np.allclose(implied, weights, rtol=0, atol=SAME * abs(weights).max())
    )


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
