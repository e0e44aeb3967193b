"""The perceptron."""

from __future__ import annotations

from typing import Any

from widemargin.estimators.online_classifier import OnlineClassifier, Rule
from widemargin.solvers import PerceptronRule


class Perceptron(OnlineClassifier):
    """The perceptron: each mistake moves the weights along its row.

    If y(w·x + b) ≤ 0 then w ← w + ηyx and b ← b + ηy. On separable classes it ends with a hyperplane that separates
    them, after at most (R/γ)² mistakes; which one depends on the start and on the order. Several classes are trained
    one against the rest.

    Parameters
    ----------
    learning_rate : float, default=1.0
        η of the first step. From w = 0 and with decay=0 it only scales w.
    decay : float, default=0.0
        Between 0 and 1: η falls like 1/t^decay with the number t of rows seen.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    max_iter : int, default=1000
        The most passes over the rows.
    patience : int, default=100
        Stop after this many passes in which the number of mistakes reached no new minimum: the classes overlap, or
        nearly.
    shuffle : bool, default=True
        Whether each pass takes the rows in a new order (blocks of 16 neighbours are kept together).
    average : bool, default=False
        Whether to answer with the mean of the weights after each row: steadier where the classes overlap.
    random_state : int, RandomState or None, default=None
        Seed of the order; None is the same order every time.
    verbose : int, default=0
        1 shows progress on fits that take longer than two seconds, 2 every pass.

    Attributes
    ----------
    coef_, intercept_, classes_
        As in :class:`~widemargin.LinearSVM`.
    mistakes_ : list of int
        Mistakes in each pass, over all classes.
    margin_ : float
        The least distance of a row from the hyperplane on its right side; negative if some row is on the wrong side.
    separates_ : bool
        Whether margin_ > 0: the proof that the classes are separable, and separated.
    n_iter_ : int
        Passes taken.

    Examples
    --------
    >>> from widemargin import Perceptron
    >>> model = Perceptron().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.separates_, model.mistakes_[-1]
    (True, 0)

    """

    def __init__(
        self,
        learning_rate: float = 1.0,
        *,
        decay: float = 0.0,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        patience: int = 100,
        shuffle: bool = True,
        average: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.learning_rate = learning_rate
        self.decay = decay
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.patience = patience
        self.shuffle = shuffle
        self.average = average
        self.random_state = random_state
        self.verbose = verbose

    def _rule(self) -> Rule:
        self._check_loop()
        return PerceptronRule(self.learning_rate, self.decay)
