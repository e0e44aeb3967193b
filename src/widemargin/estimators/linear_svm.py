"""The support vector machine with a linear kernel."""

from __future__ import annotations

from typing import Any

from widemargin.estimators.certified_classifier import CertifiedClassifier
from widemargin.solvers import Solver


class LinearSVM(CertifiedClassifier):
    """Linear support vector machine, trained to a proved relative duality gap.

    Minimises ½‖w‖² + Σ cᵢ φ(yᵢ(w·xᵢ + b)) with cᵢ = C × class weight × sample weight; the bias b is not penalised.
    Several classes are trained one against the rest.

    Parameters
    ----------
    C : float, default=1.0
        Strength of the loss against the penalty. ``inf`` is the hard margin: the exact separator, or an
        :class:`~widemargin.InseparableError` with the proof that there is none. With the logistic and the squared loss,
        which have no hard margin, it leaves the penalty out.
    loss : {"hinge", "squared_hinge", "logistic", "squared"}, default="hinge"
        φ(m) of the margin m: max(0, 1−m), its square, log(1 + e^−m), or (1−m)².
    fit_intercept : bool, default=True
        Whether there is a bias b.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for the rows of each class; "balanced" gives every class the same total weight.
    solver : str or solver, default="auto"
        "auto" picks between "dual_cd", "proximal_newton", "newton_cg" and "interior_point", and changes its mind when
        the one it picked crawls. The others are those of the lecture notes: "smo", "hildreth" and "qp" for the dual,
        "least_squares" for loss="squared", "pegasos", "sgd" and "subgradient" for the primal, whose gap falls slowly.
        ``widemargin.solvers.Pegasos``, ``Sgd`` and ``Subgradient`` have parameters of their own:
        ``solver=Pegasos(average=True)``.
    tol : float, default=1e-3
        The relative duality gap to prove.
    max_iter : int or None, default=None
        The most passes or steps, cheap passes over few rows counting as one; None for as many as it takes ("pegasos"
        and "sgd" give up after 300 passes, "subgradient" after 2,000 steps).
    n_jobs : int or None, default=None
        Threads; None for all cores at hand, −1 too. Several classes are trained side by side. The result is the same,
        to the last bit, whatever their number.
    random_state : int, RandomState or None, default=None
        Seed of the order in which rows are visited or drawn; None is the same order every time. Nothing else is random.
    warm_start : bool, default=False
        Whether to begin where the last fit ended, at another C or with rows added. "auto", "dual_cd",
        "proximal_newton", "newton_cg", "smo", "hildreth" and, with a smooth loss, "interior_point" go on from there; at
        the same C all of them check whether it is good enough already. ``widemargin.path`` does this for many values of
        C.
    verbose : int, default=0
        1 shows progress on fits that take longer than two seconds, 2 every evaluation.

    Attributes
    ----------
    coef_ : array of shape (1, n_features) or (n_classes, n_features)
    intercept_ : array of shape (1,) or (n_classes,)
    classes_ : array of shape (n_classes,)
    n_iter_ : int
        Passes or steps taken, the most over all classes.
    support_ : array of shape (n_support,)
        The rows with α ≠ 0 for some class.
    dual_coef_ : array of shape (1, n_support) or (n_classes, n_support)
        αᵢyᵢ of those rows.
    certificate_ : Certificate, or Certificates for several classes
        The proof: primal, dual, gap, the KKT table, the margin's width.
    history_ : list of records, or one list per class
        Whenever the solver returned: iteration, seconds, primal, dual, gap, active rows; as the solver saw them, or as
        the certificate has them where `proved`.

    Examples
    --------
    >>> from widemargin import LinearSVM
    >>> svm = LinearSVM(C=1).fit([[1, 1], [1, -1], [-1, 1], [-1, -1], [-0.1, -0.1]], [1, 1, -1, -1, 1])
    >>> svm.certificate_.gap <= 1e-12, round(svm.certificate_.width, 9)
    (True, 2.0)

    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        fit_intercept: bool = True,
        class_weight: Any = None,
        solver: str | Solver = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
