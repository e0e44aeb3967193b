"""KERNEL MODEL: support vectors, their coefficients and a kernel, what they say of rows, and their files.

Every pair (i, j), i < j, of k classes has a score f(x) = Σ coefₛ k(xₛ, x) + b over the support vectors xₛ of the two.
Pairs stand in the order (0, 1), (0, 2), …, (k − 2, k − 1). The arrays have scikit-learn's and LIBSVM's layout: support
vectors are grouped by class, and one of class i has its coefficient of the pair with class j in row j − 1 of
`dual_coef` if i < j, else in row j. Of two classes f > 0 speaks for the second; of more, for the first of the pair.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from widemargin import model_liblinear, model_libsvm, model_safetensors
from widemargin.data import Rows
from widemargin.data.labels import text_of
from widemargin.data.rows import as_csr
from widemargin.kernels import Kernel
from widemargin.model import LinearModel, ascend, certificate_summary
from widemargin.model_files import ModelError, kind

__all__ = ["KernelModel", "load_model", "one_vs_rest_scores"]

Floats = NDArray[np.float64]

#: The formats of `KernelModel.save`.
FORMATS = {"safetensors": model_safetensors, "libsvm": model_libsvm}
#: Those of `load_model`.
READERS = {**FORMATS, "liblinear": model_liblinear}
#: Columns are counted in 32 bits, by LIBSVM and by the compiled kernels.
MOST_COLUMNS = (1 << 31) - 1
#: svm-train writes the values of support vectors with so many digits.
LIBSVM_DIGITS = 8
#: The kernels of scikit-learn's SVC.
SVC_KERNELS = ("linear", "poly", "rbf", "sigmoid")
#: How far the scores of an SVC made of a model may be from the model's own, relative to the largest.
SAME_SCORES = 1e-6


@dataclass(frozen=True, eq=False)
class KernelModel:
    """A classifier of pairs of classes by a kernel; classes ascend. What else is known about it goes into its file too.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.svm import SVC
    >>> from widemargin.model_kernel import KernelModel
    >>> X, y = [[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]], ["same", "same", "opposite", "opposite"]
    >>> model = KernelModel.from_estimator(SVC(C=10, gamma=0.5).fit(X, y))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/xor.safetensors")
    ...     again = KernelModel.load(f"{folder}/xor.safetensors")
    >>> str(again.kernel), again.C, again.n_support.tolist()
    ('rbf(gamma=0.5)', 10.0, [2, 2])
    >>> again.choose(again.scores(Rows(np.array(X)))).tolist()
    ['same', 'same', 'opposite', 'opposite']

    """

    #: A dense array or a CSR matrix, of float32 or float64.
    support_vectors: Any
    dual_coef: Floats
    #: b of every pair.
    intercept: Floats
    #: How many support vectors each class has.
    n_support: NDArray[np.int64]
    classes: NDArray[Any]
    kernel: Kernel
    #: A name for each column of the support vectors.
    feature_names: tuple[str, ...] | None = None
    #: How raw columns become features, as plain JSON; whoever reads the data knows what it says.
    encoding: dict[str, Any] | None = None
    C: float | None = None
    #: What `certificate_summary` says of the proof; None if there was none.
    certificate: dict[str, Any] | None = None
    #: Whether the svmlight text that it was trained on counts columns from 0; None if there was none.
    zero_based: bool | None = None
    #: Whether scores decide among classes with equally many votes; else the first of them is chosen.
    break_ties: bool = False
    #: The places of the classes in the order in which the first is chosen, if they do not ascend: LIBSVM's is that of
    #: the rows it was trained on.
    tie_order: tuple[int, ...] | None = None

    @classmethod
    def from_estimator(cls, clf: Any, *, encoding: dict[str, Any] | None = None) -> Self:
        """The model of a fitted KernelSVM, or of a SVC or NuSVC of scikit-learn."""
        name = type(clf).__name__
        for needed in ("classes_", "support_vectors_", "dual_coef_", "intercept_", "n_support_"):
            if not hasattr(clf, needed):
                raise ValueError(
                    f"{name} has no {needed}; fit it first, and give the classifier itself: the last step of a "
                    "pipeline, the best_estimator_ of a search"
                )
        vectors = clf.support_vectors_
        vectors = as_csr(vectors) if hasattr(vectors, "toarray") else np.asarray(vectors)
        coef, classes = clf.dual_coef_, np.asarray(clf.classes_)
        coef = np.array(coef.toarray() if hasattr(coef, "toarray") else coef, dtype=np.float64, ndmin=2)
        counts = np.array(clf.n_support_, dtype=np.int64)
        # Of two classes sklearnex has its support vectors in the order of the rows, not class by class. Coefficients of
        # landmarks may have any sign.
        of_landmarks = getattr(clf, "approximate_certificate_", None) is not None
        if len(classes) == 2 and not of_landmarks and (np.diff((coef[0] > 0).astype(int)) < 0).any():
            order = np.argsort(coef[0] > 0, kind="stable")
            vectors, coef = vectors[order], coef[:, order]
        names = getattr(clf, "feature_names_in_", None)
        C = getattr(clf, "_fitted_C", getattr(clf, "C", None))
        model = cls(
            vectors if vectors.dtype in (np.float32, np.float64) else vectors.astype(np.float64),
            coef,
            np.array(clf.intercept_, dtype=np.float64, ndmin=1),
            counts,
            classes,
            kernel_of(clf),
            feature_names=None if names is None else tuple(map(str, names)),
            encoding=encoding,
            C=float(C) if C else None,  # that of NuSVC is 0
            certificate=_stated(clf, classes),
            break_ties=bool(getattr(clf, "break_ties", False)),
        )
        complaint = model.complaint()
        if complaint:
            raise ValueError(f"{name}: {complaint}")
        return model

    def to_sklearn(self) -> Any:
        """A fitted SVC of scikit-learn that gives the same scores and predictions (but for a `tie_order`).

        SVC keeps most of its fit in private attributes; whether the installed version understands those that are set
        here is checked by its scores of a few support vectors.
        """
        from scipy.sparse import csr_matrix
        from sklearn.svm import SVC

        if self.kernel.name not in SVC_KERNELS:
            raise ValueError(
                f"SVC has no kernel {self.kernel.name!r}; it has {', '.join(map(repr, SVC_KERNELS))}: use the model's "
                "own scores and choose"
            )
        clf = SVC(
            C=1.0 if self.C is None else self.C,
            kernel=self.kernel.name,
            gamma=self.kernel.gamma,
            degree=self.kernel.degree,
            coef0=self.kernel.coef0,
            break_ties=self.break_ties,
        )
        sparse, count = not isinstance(self.support_vectors, np.ndarray), int(self.n_support.sum())
        sign = -1.0 if len(self.classes) == 2 else 1.0  # inside of SVC two classes are as in LIBSVM
        vectors, coef = self.support_vectors.astype(np.float64), self.dual_coef.copy()
        fitted = {
            "classes_": self.classes.copy(),
            "support_": np.arange(count, dtype=np.int32),
            "support_vectors_": csr_matrix(vectors) if sparse else np.ascontiguousarray(vectors),
            "dual_coef_": _all_stored(coef) if sparse else coef,
            "intercept_": self.intercept.copy(),
            "n_features_in_": self.columns,
            "class_weight_": np.ones(len(self.classes)),
            "fit_status_": 0,
            "shape_fit_": (count, self.columns),
            "_dual_coef_": _all_stored(sign * coef) if sparse else sign * coef,
            "_intercept_": sign * self.intercept,
            "_n_support": self.n_support.astype(np.int32),
            "_gamma": float(self.kernel.gamma),
            "_sparse": sparse,
            "_num_iter": np.zeros(len(self.intercept), dtype=np.int32),
            "_probA": np.empty(0),
            "_probB": np.empty(0),
            "_effective_probability": False,
        }
        for name, value in fitted.items():
            setattr(clf, name, value)
        few = self.support_vectors[np.unique(np.linspace(0, count - 1, 10).astype(int))]
        ours, theirs = self.scores(Rows(few)), clf.decision_function(csr_matrix(few) if sparse else few)
        if not np.allclose(ours, theirs, rtol=0, atol=SAME_SCORES * max(1.0, float(np.abs(ours).max()))):
            raise NotImplementedError(
                "this version of scikit-learn keeps the fit of an SVC in another way; use the model's own scores"
            )
        if self.feature_names is not None:
            clf.feature_names_in_ = np.array(self.feature_names, dtype=object)
        return clf

    @property
    def columns(self) -> int:
        """How many features it was trained on; where its file does not say, as many as the support vectors need."""
        return int(self.support_vectors.shape[1])

    @property
    def loss(self) -> str:
        """The hinge: there is no other for kernels."""
        return "hinge"

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of classes, by their places, in the order of their scores."""
        return list(combinations(range(len(self.classes)), 2))

    def weights(self) -> Floats:
        """w of every pair of classes, of shape (pairs, columns): there are such for the linear kernel alone."""
        if self.kernel.name != "linear":
            raise ValueError(f"the {self.kernel.name} kernel has no weights of features; use the scores")
        sums = [np.asarray(self.dual_coef[:, where] @ X, dtype=np.float64) for where, X in self._by_class]
        return np.array([sums[i][j - 1] + sums[j][i] for i, j in self.pairs])

    @cached_property
    def _by_class(self) -> list[tuple[slice, Any]]:
        """The support vectors of each class, and where they stand."""
        ends = np.cumsum(self.n_support).tolist()
        slices = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
        return [(where, self.support_vectors[where]) for where in slices]

    def pair_scores(self, rows: Rows) -> Floats:
        """f(x) of every row, a column for each pair of classes.

        Rows may have more columns than the support vectors, which are 0 there, as in LIBSVM.
        """
        if not self.columns <= rows.d <= MOST_COLUMNS:
            raise ValueError(
                f"X has {rows.d:,} columns, the model has {self.columns:,}; use the columns it was trained on"
            )
        if rows.d > self.columns:
            wider = as_csr(self.support_vectors).copy()
            wider.resize(wider.shape[0], rows.d)
            return replace(self, support_vectors=wider, feature_names=None).pair_scores(rows)
        found = np.tile(self.intercept, (rows.n, 1))
        for part, here in rows.walk(range(len(rows.parts))):
            out = found[rows.parts[part]]
            # of class i, its coefficients of the pairs with all others at once: its kernel values are needed only once
            sums = [
                self.kernel.scores(here, X, np.ascontiguousarray(self.dual_coef[:, where].T), rows.threads_at_hand)
                if where.start < where.stop
                else np.zeros((here.n, len(self.dual_coef)))
                for where, X in self._by_class
            ]
            for column, (i, j) in enumerate(self.pairs):
                out[:, column] += sums[i][:, j - 1] + sums[j][:, i]
        return found

    def scores(self, rows: Rows) -> Floats:
        """Of two classes f(x), of shape (n,); of more, votes and a little of the pairs' scores, of shape (n, classes).

        These are the values of SVC's decision_function with decision_function_shape="ovr".
        """
        found = self.pair_scores(rows)
        return found[:, 0] if len(self.classes) == 2 else one_vs_rest_scores(found, len(self.classes))

    def choose(self, scores: Floats) -> NDArray[Any]:
        """The class that each row's scores speak for; of more than two, the one that wins most pairs."""
        if scores.ndim == 1:
            chosen = (scores > 0).astype(np.intp)
        elif self.break_ties:
            chosen = scores.argmax(axis=1)
        else:  # what the scores add to the votes is less than a third
            order = np.arange(len(self.classes)) if self.tie_order is None else np.array(self.tie_order)
            chosen = order[np.rint(scores[:, order]).argmax(axis=1)]
        return np.asarray(self.classes[chosen])

    def find_support(self, X: Any, y: NDArray[Any]) -> NDArray[np.intp]:
        """The numbers of the rows of X that are its support vectors, in their order: equal rows with the same label.

        Support vectors that svm-train wrote with 8 digits are found by as many. Raises where one is no row of X: then
        these are not the rows of the training.
        """
        missing = ""
        for digits in (None, LIBSVM_DIGITS):
            rows, vectors = row_keys(X, digits), row_keys(self.support_vectors, digits)
            found = []
            for label, (where, _) in zip(self.classes.tolist(), self._by_class, strict=True):
                places: dict[bytes, list[int]] = {}
                for i in np.flatnonzero(y == label)[::-1].tolist():
                    places.setdefault(rows[i], []).append(i)
                for k in range(where.start, where.stop):
                    if not (here := places.get(vectors[k])):
                        missing = missing or f"support vector {k + 1:,}, of class {text_of(label)}, is none of the rows"
                        break
                    found.append(here.pop())
            if len(found) == len(vectors):
                return np.array(found, dtype=np.intp)
        raise ValueError(f"{missing}; give the rows that the model was trained on")

    def probabilities(self, scores: Floats) -> Floats:
        """Not known: raises, as for every loss without them."""
        raise ValueError("a kernel model has scores but no probabilities; use its scores")

    def save(self, path: str | os.PathLike[str], *, format: str = "safetensors") -> None:
        """Write the model to one file, which has its name only once it is complete.

        Parameters
        ----------
        path : str or path
            The file; one of that name is replaced.
        format : {"safetensors", "libsvm"}, default="safetensors"
            "safetensors" keeps every bit and all that is known (it needs ``pip install 'widemargin[cli]'``).
            "libsvm" is LIBSVM's text: a linear, poly, rbf or sigmoid kernel, classes that are whole numbers, numbers
            that come back to the bit; names, encoding, C and certificate are left out.

        """
        if format not in FORMATS:
            raise ValueError(f"format={format!r}; a kernel model has {', '.join(map(repr, FORMATS))}")
        complaint = self.complaint()
        if complaint:
            raise ModelError(f"{os.fspath(path)}: not written: {complaint}")
        FORMATS[format].save(self, Path(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model from a file that `save` or LIBSVM's svm-train wrote; which of them is seen from its content.

        No code is run, and no room made that the file does not fill. A file that is no kernel model, a damaged or a
        hostile one raises a `ModelError` that says what is wrong with it.
        """
        model = load_model(path)
        if not isinstance(model, cls):
            raise ModelError(f"{os.fspath(path)}: a linear model, which has weights; load it with LinearModel.load")
        return model

    def complaint(self) -> str:
        """What is wrong with the model and what to do, empty if all is well."""
        classes, k, shape = self.classes, len(self.classes), self.support_vectors.shape
        if classes.ndim != 1 or k < 2:
            return f"classes of shape {classes.shape}; a classifier has two or more"
        if not ascend(classes):
            return "the classes are not in ascending order, each once; order them, and the support vectors with them"
        if len(shape) != 2 or shape[0] < 1 or not 1 <= shape[1] <= MOST_COLUMNS:
            return f"support vectors of shape {shape}; they must be rows of at least one column"
        if self.n_support.shape != (k,) or self.n_support.min() < 0 or self.n_support.sum() != shape[0]:
            return f"the classes do not share the {shape[0]:,} support vectors; train the model again"
        if self.dual_coef.shape != (k - 1, shape[0]):
            return f"coefficients of shape {self.dual_coef.shape}; they must be {k - 1} × {shape[0]:,}"
        if self.intercept.shape != (k * (k - 1) // 2,):
            return f"biases of shape {self.intercept.shape}; they must be one per pair of classes: {k * (k - 1) // 2}"
        X = self.support_vectors
        values = X if isinstance(X, np.ndarray) else X.data
        if not all(np.isfinite(numbers).all() for numbers in (values, self.dual_coef, self.intercept)):
            return "a support vector, a coefficient or a bias is NaN or infinite; train the model again"
        if self.feature_names is not None and len(self.feature_names) != shape[1]:
            return f"{len(self.feature_names):,} feature names for {shape[1]:,} columns; name every one once, or none"
        if self.tie_order is not None and sorted(self.tie_order) != list(range(k)):
            return "its tie_order does not name every class once; leave it out"
        if not self.kernel.degree < 1 << 31:
            return f"degree={self.kernel.degree}, which is beyond 32 bits; train with a smaller one"
        try:
            self.kernel.check(Rows(X))
        except ValueError as error:
            return str(error)
        return ""


def one_vs_rest_scores(pair_scores: Floats, k: int) -> Floats:
    """The scores of all pairs of k > 2 classes as one score per class, in the way of scikit-learn.

    A class has a vote for every pair that it wins, and s/(3(|s| + 1)) more, s being the sum of its pairs' scores: less
    than a vote, and in the order of the sums.
    """
    votes, sums = np.zeros((2, len(pair_scores), k))
    for column, (i, j) in enumerate(combinations(range(k), 2)):
        f = pair_scores[:, column]
        votes[:, i] += f >= 0
        votes[:, j] += f < 0
        sums[:, i] += f
        sums[:, j] -= f
    return np.asarray(votes + sums / (3 * (np.abs(sums) + 1)))


def load_model(path: str | os.PathLike[str]) -> LinearModel | KernelModel:
    """The model in a file of any format: safetensors, LIBLINEAR's text or LIBSVM's.

    Examples
    --------
    >>> import tempfile
    >>> from widemargin import LinearModel
    >>> from widemargin.model_kernel import load_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     LinearModel(np.ones((1, 2)), np.zeros(1), np.array([0, 1])).save(f"{folder}/m")
    ...     load_model(f"{folder}/m").columns
    2

    """
    fields = READERS[kind(Path(path))].load(Path(path))
    model = KernelModel(**fields) if "kernel" in fields else LinearModel(**fields)
    complaint = model.complaint()
    if complaint:
        raise ModelError(f"{os.fspath(path)}: {complaint}")
    return model


def row_keys(X: Any, digits: int | None = None) -> list[bytes]:
    """For each row of X, bytes that equal rows share, whatever their storage; values may be rounded to some digits."""
    rows = as_csr(X)
    stored = rows.data.astype(np.float64)
    if digits is not None:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            scale = 10.0 ** (digits - 1 - np.floor(np.log10(np.abs(stored))))
            stored = np.where(np.isfinite(scale) & (scale > 0), np.rint(stored * scale) / scale, stored)
    nonzero = stored != 0
    pairs = np.empty(int(nonzero.sum()), dtype=[("column", np.int64), ("value", np.float64)])
    pairs["column"], pairs["value"] = rows.indices[nonzero], stored[nonzero]
    ends = np.append(0, np.cumsum(nonzero))[rows.indptr].tolist()
    size, raw = pairs.itemsize, pairs.tobytes()
    return [raw[size * begin : size * end] for begin, end in pairwise(ends)]


def _all_stored(coef: Floats) -> Any:
    """A CSR matrix that stores every number, zeros too: SVC reads them one after the other."""
    from scipy.sparse import csr_matrix

    height, width = coef.shape
    places = np.tile(np.arange(width, dtype=np.int32), height)
    return csr_matrix((coef.ravel(), places, np.arange(0, coef.size + 1, width, dtype=np.int32)), shape=coef.shape)


def _stated(clf: Any, classes: NDArray[Any]) -> dict[str, Any] | None:
    """What is known of the proof, and of the weights of classes."""
    proof, weight = getattr(clf, "certificate_", None), getattr(clf, "class_weight", None)
    stated = {}
    if proof is not None:
        stated = certificate_summary(proof, getattr(proof, "classes", classes), tol=float(clf.tol))
    if weight is not None and hasattr(clf, "class_weight_"):  # of SVC, as numbers
        weight = dict(zip(classes.tolist(), np.ravel(clf.class_weight_).tolist(), strict=True))
    if isinstance(weight, dict):
        stated["class_weight"] = [[np.asarray(name).item(), float(one)] for name, one in weight.items()]
    elif weight is not None:
        stated["class_weight"] = weight
    return stated or None


def kernel_of(clf: Any) -> Kernel:
    """The kernel of a fitted KernelSVM or SVC, with its numbers."""
    kernel, name = getattr(clf, "kernel_", None), getattr(clf, "kernel", None)
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(name, str) or name == "precomputed":
        what = "a precomputed kernel" if isinstance(name, str) else "a kernel that is a function"
        raise ValueError(f"{type(clf).__name__} has {what}, which no file holds; use a kernel that has a name")
    return Kernel(name, float(clf._gamma) if name != "linear" else 1.0, int(clf.degree), float(clf.coef0))
