"""Several classes one-vs-one: a problem for every pair of classes, all on one kernel matrix.

Rows are sorted by class, so that the rows of a pair are two stretches of the kernel matrix. Of two classes there is one
problem, of all rows as they are, in which the second class is the positive one; of more, the first of each pair is, as
in LIBSVM and SVC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.certificate import Certificate, Certificates
from widemargin.data.labels import text_of
from widemargin.kernel_problem import KernelProblem
from widemargin.kernel_training import KernelFit
from widemargin.kernels import Gram

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """Which rows are of which pair of classes."""

    classes: NDArray[Any]
    #: The class of each row, by its place among the classes.
    place: NDArray[np.intp]
    #: The order in which rows stand in the kernel matrix.
    order: NDArray[np.intp]

    @classmethod
    def of(cls, y: NDArray[Any], classes: NDArray[Any]) -> Pairs:
        """The pairs of these classes; labels that are none of them are not allowed."""
        place = np.searchsorted(classes, y)
        order = np.arange(len(y)) if len(classes) == 2 else np.argsort(place, kind="stable")
        return cls(classes, place, order)

    @property
    def names(self) -> tuple[str, ...]:
        """Of every pair, as "0 vs 1"."""
        texts = [text_of(name) for name in self.classes.tolist()]
        return tuple(f"{texts[i]} vs {texts[j]}" for i, j in combinations(range(len(texts)), 2))

    def problems(self, gram: Gram, c: Floats) -> list[KernelProblem]:
        """The problem of every pair; `c` are the costs of the rows as they were given."""
        place, c = self.place[self.order], c[self.order]
        if len(self.classes) == 2:
            return [KernelProblem.of(gram, ((0, gram.n),), np.where(place == 1, 1.0, -1.0), c)]
        starts = np.searchsorted(place, np.arange(len(self.classes) + 1)).tolist()
        problems = []
        for i, j in combinations(range(len(self.classes)), 2):
            segments = tuple((starts[k], starts[k + 1] - starts[k]) for k in (i, j))
            y = np.repeat([1.0, -1.0], [count for _, count in segments])
            costs = np.concatenate([c[first : first + count] for first, count in segments])
            problems.append(KernelProblem.of(gram, segments, y, costs))
        return problems

    def support(self, fits: Sequence[KernelFit]) -> tuple[NDArray[np.intp], Floats, NDArray[np.int32]]:
        """The support vectors' rows, grouped by class, their coefficients, and how many each class has.

        Coefficients are laid out as in LIBSVM and SVC: of a support vector of class i, the one of the pair with class j
        stands in row j − 1 if i < j, else in row j.
        """
        k, n = len(self.classes), len(self.order)
        table = np.zeros((k - 1, n))
        used = np.zeros(n, dtype=bool)
        for (i, j), fit in zip(combinations(range(k), 2), fits, strict=True):
            index, coef = self.order[fit.index], fit.proved.coef
            used[index[fit.support]] = True
            first = self.place[index] == i
            table[j - 1, index[first]] = coef[first]
            table[i, index[~first]] = coef[~first]
        rows = np.flatnonzero(used)
        rows = rows[np.argsort(self.place[rows], kind="stable")]
        counts = np.bincount(self.place[rows], minlength=k).astype(np.int32)
        return rows, np.ascontiguousarray(table[:, rows]), counts

    def certificate(self, fits: Sequence[KernelFit]) -> Certificate | Certificates:
        """The proof of all pairs, or the one there is for two classes."""
        each = tuple(fit.certificate for fit in fits)
        return each[0] if len(each) == 1 else Certificates(self.names, each)
