"""MIRA, the margin infused relaxed algorithm."""

from __future__ import annotations

from typing import Any

from widemargin.estimators.online_classifier import OnlineClassifier, Rule
from widemargin.solvers import MiraRule


class MIRA(OnlineClassifier):
    """MIRA: the least change of the weights that gives this row a margin of 1.

    If y(w·x + b) ≤ aggressiveness, the nearest (w, b) with y(w·x + b) ≥ 1 takes over; several rows at a time are a
    small QP. On separable classes it ends; without a bias its hyperplane then has at least p/(1 + p) of the largest
    margin, where p is the aggressiveness and C = ∞. Several classes are trained one against the rest.

    Parameters
    ----------
    aggressiveness : float, default=0.0
        At least 0 and below 1: the margin below which a row counts. 0 is plain MIRA, which acts on mistakes only.
    C : float, default=1.0
        How far one row may move w, as a multiple of the row (passive–aggressive I). ``inf`` is MIRA as the lecture
        notes have it, for classes that do not overlap; where they do, the last row would turn the hyperplane at will.
    batch_size : int, default=1
        How many rows are looked at together; their QP is solved to rounding, or as far as 20,000 sweeps get.
    fit_intercept, max_iter, patience, shuffle, average, random_state, verbose
        As in :class:`~widemargin.Perceptron`.

    Attributes
    ----------
    coef_, intercept_, classes_, margin_, separates_, n_iter_
        As in :class:`~widemargin.Perceptron`.
    mistakes_ : list of int
        In each pass, the rows whose margin was at most the aggressiveness.

    Examples
    --------
    >>> from widemargin import MIRA
    >>> model = MIRA(aggressiveness=0.9).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.separates_, model.mistakes_[-1]
    (True, 0)

    """

    def __init__(
        self,
        aggressiveness: float = 0.0,
        *,
        C: float = 1.0,
        batch_size: int = 1,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        patience: int = 100,
        shuffle: bool = True,
        average: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.aggressiveness = aggressiveness
        self.C = C
        self.batch_size = batch_size
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.patience = patience
        self.shuffle = shuffle
        self.average = average
        self.random_state = random_state
        self.verbose = verbose

    def _rule(self) -> Rule:
        self._check_loop()
        return MiraRule(self.aggressiveness, self.C, self.batch_size)
