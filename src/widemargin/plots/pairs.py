"""Several classes told apart in pairs, one-vs-one: the scores of the pairs and the class that they elect.

Of k classes there are k(k − 1)/2 pairs (i, j), i < j, in the order (0, 1), (0, 2), …, (k − 2, k − 1). A score above 0
is a vote for i, any other one for j; most votes win and, where they are equal, the first class. With ``break_ties`` the
scores decide among those with most votes. This is how scikit-learn's SVC predicts.
"""

from __future__ import annotations

from copy import copy
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def in_pairs(clf: Any) -> bool:
    """Whether a fitted classifier tells more than two classes apart in pairs."""
    clf = clf.steps[-1][1] if hasattr(clf, "steps") else clf
    return len(clf.classes_) > 2 and hasattr(clf, "decision_function_shape")


def pairs(k: int) -> list[tuple[int, int]]:
    """The pairs of k classes, in the order of their scores."""
    return list(combinations(range(k), 2))


def scores_of(clf: Any, X: Any) -> Floats:
    """What a classifier says of rows: one score, or one for each class, or one for each pair of classes."""
    return np.asarray(_by_pairs(clf).decision_function(X), dtype=np.float64)


def _by_pairs(clf: Any) -> Any:
    """The classifier itself or, if it tells classes apart in pairs, a copy that returns the scores of the pairs."""
    if not in_pairs(clf):
        return clf
    other = copy(clf)
    if hasattr(clf, "steps"):
        *before, (name, last) = clf.steps
        other.steps = [*before, (name, _by_pairs(last))]
    else:
        other.decision_function_shape = "ovo"
    return other


def smallest_margins(scores: Floats, k: int, *, by_pairs: bool = True) -> Floats:
    """For each class, a column each, the smallest margin that one of its rows with these scores has in any problem.

    These are its pairs or, where each class is told from the rest, all of them. Above 0, the class wins them all.
    """
    if not by_pairs:
        return np.minimum(scores, -best_of_others(scores))
    smallest = np.full((k, len(scores)), np.inf)
    for column, (i, j) in zip(scores.T, pairs(k), strict=True):
        smallest[i] = np.minimum(smallest[i], column)
        smallest[j] = np.minimum(smallest[j], -column)
    return smallest.T


def best_of_others(scores: Floats) -> Floats:
    """For each class the largest score of another one."""
    first, second = np.argmax(scores, axis=1)[:, None], np.partition(scores, -2, axis=1)[:, -2:]
    return np.where(np.arange(scores.shape[1]) == first, second[:, :1], second[:, 1:])


def elected(scores: Floats, k: int, *, break_ties: bool = False) -> NDArray[np.intp]:
    """The class with most votes."""
    votes, sums = np.zeros((2, k, len(scores)))
    for column, (i, j) in zip(scores.T, pairs(k), strict=True):
        votes[i] += column > 0
        votes[j] += ~(column > 0)
        sums[i] += column
        sums[j] -= column
    if break_ties:
        votes += sums / (3 * (np.abs(sums) + 1))  # less than a vote, but in the order of the sums
    return np.asarray(np.argmax(votes, axis=0))
