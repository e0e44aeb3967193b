"""The support vector machine with a kernel."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_is_fitted, validate_data

from widemargin import kernel_nystroem, kernel_training, training
from widemargin.certificate import Certificate, Certificates, InseparableError
from widemargin.data import Rows
from widemargin.data.labels import distinct
from widemargin.data.machine import free_memory
from widemargin.kernel_problem import KernelProblem
from widemargin.kernels import NAMES, PARAMETERS, Gram, Kernel, KernelLike, MatrixGram, PointsGram, gamma_of
from widemargin.kernels.gram import ROUNDED
from widemargin.model_kernel import KernelModel
from widemargin.one_against_rest import OneAgainstRest, count_threads
from widemargin.one_vs_one import Pairs
from widemargin.progress import ProgressLine
from widemargin.solvers import Start, State
from widemargin.training import Keep

Floats = NDArray[np.float64]

#: Of the free memory, what is kept of the kernel matrix may take this share.
SHARE = 0.25
#: Bytes for the kernel matrices of the working sets, if `cache_size` does not allow less. Of this the bits depend.
WORKING = 1e9
#: scikit-learn's other names of kernels.
ALIASES = {"polynomial": "poly"}
MOST_SEEDS = np.iinfo(np.int32).max
#: Kernel values k(a, b) and k(b, a) that differ by more than this share of the largest are no kernel's.
ASYMMETRY = 1e-6


#: Curvature that rounding of kernel values to float32 may leave below 0, beside the mean of the diagonal.
FLOAT32_CURVATURE = 1e-5


class IndefiniteKernelWarning(ConvergenceWarning):  # type: ignore[misc]  # scikit-learn has no type hints
    """The kernel is not positive semidefinite on the training rows: what was found is a stationary point, not a proved
    minimum.
    """


class KernelSVM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no type hints
    """Support vector machine with a kernel, trained to a proved relative duality gap.

    Minimises ½‖f‖² + Σ cᵢ max(0, 1 − yᵢ(f(xᵢ) + b)) over the functions f of the kernel's space, with
    cᵢ = C × class weight × sample weight; the bias b is not penalised. Several classes are trained one-vs-one, as in
    scikit-learn's SVC. The fit is exact: `certificate_` is computed in float64 in the kernel's own space.

    Parameters
    ----------
    C : float, default=1.0
        Cost of the slacks. ``inf`` is the hard margin: the exact separator in the kernel's space, or an
        :class:`~widemargin.InseparableError` with the proof that there is none.
    kernel : str or callable, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "cosine", "laplacian", "chi2", "additive_chi2" (scikit-learn's names, and
        LIBSVM's formulas), "precomputed", for which X is the kernel matrix, or a function of two sets of rows that
        returns the matrix of all pairs. Rows of numbers reach it as arrays; others, such as texts, as they are. Whether
        a matrix or a function is positive semidefinite is tested on up to 2,000 rows, support vectors first.
    gamma : float, "scale" or "auto", default="scale"
        γ of "poly", "rbf", "sigmoid", "laplacian" and "chi2"; "scale" is 1/(n_features · X.var()), where rows
        count by their sample weights, as if they were repeated; "auto" is 1/n_features.
    degree : int, default=3
        Of "poly".
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".
    class_weight : dict, "balanced" or None, default=None
        Multiplies C for the rows of each class; "balanced" gives every class the same total weight.
    tol : float, default=1e-3
        The relative duality gap to prove. Of a kernel that is not positive semidefinite, for which nothing is proved,
        the largest violation of the KKT conditions.
    solver : {"auto", "smo", "nystroem"}, default="auto"
        "smo" is sequential minimal optimisation on blocks of rows. "auto" trains the linear kernel with the linear
        solvers and all others with "smo", and ends problems of up to 200 rows (2,048 if tol < 1e-3) with Newton steps
        on the rows with 0 < α < c, which give the last digits. "nystroem" is approximate, for many rows: it finds the
        best f = Σ βⱼ k(zⱼ, ·) of `n_components` rows zⱼ with the linear solvers, for which `tol` then is, and
        `certificate_` says how far that is from the exact optimum. It keeps n_samples × n_components numbers of 4
        bytes (8 if tol < 1e-5). C must be finite.
    max_iter : int or None, default=None
        The most rounds, each of which solves for a block of up to 8,192 rows; None for as many as it takes.
    cache_size : float or None, default=None
        Megabytes of kernel values that "smo" may keep; None for a quarter of the free memory. It changes the time and,
        below 4,000, perhaps the last digits. Kernel values that are quicker to compute than to read from memory are not
        kept at all.
    n_jobs : int or None, default=None
        Threads; None for all cores at hand. The result is the same, to the last bit, whatever their number.
    random_state : int, RandomState or None, default=None
        Seed of the order in which the linear solvers visit rows, for the linear kernel and "nystroem", and of the
        choice of landmarks. Nothing else is random.
    warm_start : bool, default=False
        Whether to begin where the last fit ended, at another C or kernel or with rows added; the exact solvers may
        go on from a fit with "nystroem".
    verbose : int, default=0
        1 shows progress on fits that take longer than two seconds, 2 every evaluation.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether `decision_function` of three classes or more has a column per class or per pair of classes.
    break_ties : bool, default=False
        Whether classes with equally many votes are told apart by their scores; needs "ovr".
    n_components : int, default=100
        How many rows are the landmarks zⱼ of "nystroem"; of three classes or more, each has its share of them, and at
        least one, and the f of a pair has those of its two classes.
    landmarks : {"random", "k-means++", "leverage"}, default="random"
        How they are chosen: all rows alike, spread out as the first centres of k-means, or by approximate leverage
        scores, which are large for rows that others say little about.

    Attributes
    ----------
    support_ : array of shape (n_support,)
        The rows with α > 0, grouped by class; the landmarks, if solver="nystroem".
    support_vectors_ : array or CSR matrix of shape (n_support, n_features)
        Those rows; empty for a precomputed kernel.
    n_support_ : array of shape (n_classes,)
        How many each class has.
    dual_coef_ : array of shape (n_classes − 1, n_support)
        Their coefficients in the decision functions, laid out as in SVC.
    coef_ : array of shape (n_pairs, n_features)
        The weights, for the linear kernel only.
    intercept_ : array of shape (n_pairs,)
    classes_ : array of shape (n_classes,)
    kernel_ : Kernel
        The kernel with γ as a number; None if it was precomputed or is a function.
    certificate_ : Certificate, or Certificates of all pairs
        The proof: primal, dual, gap, the KKT table, the margin's width, in the kernel's space. With "nystroem" it is
        of the exact problem, too: the dual value is exact, or a bound where that would take too long.
    approximate_certificate_ : Certificate, or Certificates of all pairs
        With "nystroem" only: the proof for the best f of the landmarks.
    history_ : list of records, or one list per pair
    n_iter_ : int
        Rounds taken, the most over all pairs.

    Examples
    --------
    >>> from widemargin import KernelSVM
    >>> xor = KernelSVM(C=10, gamma=0.5).fit([[1, 1], [-1, -1], [1, -1], [-1, 1]], [0, 0, 1, 1])
    >>> xor.predict([[2, 2], [2, -2]]).tolist()
    [0, 1]
    >>> xor.certificate_.relative_gap < 1e-3
    True

    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: KernelLike = "rbf",
        gamma: float | Literal["scale", "auto"] = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        tol: float = 1e-3,
        solver: Any = "auto",
        max_iter: int | None = None,
        cache_size: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        n_components: int = 100,
        landmarks: Literal["random", "k-means++", "leverage"] = "random",
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.tol = tol
        self.solver = solver
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.n_components = n_components
        self.landmarks = landmarks

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on the rows of X with the labels y.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            For a precomputed kernel the kernel matrix, of shape (n_samples, n_samples).
        y : array of shape (n_samples,)
            Two or more classes, of any type.
        sample_weight : array of shape (n_samples,), optional
            Multiplies the cost of each row; rows of weight 0 are left out.

        Returns
        -------
        The fitted estimator.

        """
        return self._fit(X, y, sample_weight)

    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        resumed: State | None = None,
        keep: Keep | None = None,
    ) -> Self:
        """The same, with `resumed` and `keep` as in :func:`widemargin.training.fit`."""
        X, live, pairs, problems = self._problems(X, y, sample_weight)
        gram, classes = problems[0].gram, pairs.classes
        if problems[0].hard:
            self._refuse_indefinite(gram, live[pairs.order])
        resumed, interrupted = resumed or None, False
        starts = None if resumed is not None else self._starts(pairs, problems, classes, live)
        before: list[training.Fit] = []
        max_iter = self.max_iter
        earlier = int(resumed.get("earlier", 0)) if resumed else 0  # iterations of the linear solvers
        with ProgressLine("training", self.tol, verbose=int(self.verbose), began=time.perf_counter()) as line:
            try:
                if self.solver == "nystroem":
                    self._keep(self._nystroem_fits(problems, starts, line.show, keep), pairs, gram, X, live)
                    return self
                if resumed is None:
                    before = self._linear_fits(gram, problems, starts, line.show, keep)
                    starts = [fit.alpha for fit in before] or starts
                    interrupted = any(fit.interrupted for fit in before)
                    earlier = max((fit.iterations for fit in before), default=0)
                if max_iter is not None:
                    max_iter = max(max_iter - earlier, 0)
                fits = kernel_training.fit(
                    problems,
                    tol=float(self.tol),
                    max_iter=0 if interrupted else max_iter,
                    memory=SHARE * free_memory() if self.cache_size is None else 1e6 * self.cache_size,
                    working_memory=WORKING if self.cache_size is None else min(WORKING, 1e6 * self.cache_size / 4),
                    threads=count_threads(self.n_jobs),
                    starts=starts,
                    refined=self.solver == "auto",
                    # The solver's own gradient, from float32, may not tell that a start is as good as asked for.
                    judge_starts=starts is not None and (bool(before) or self.tol < kernel_training.ROUGH),
                    watch=line.show,
                    resumed=resumed,
                    keep=None if keep is None else lambda state: keep(lambda: {**(state() or {}), "earlier": earlier}),
                )
            except InseparableError as error:
                raise self._named(error, pairs, live) from None
        for number, fit in enumerate(fits):
            if before:
                fit.follow(before[number])
            else:
                fit.iterations += earlier
        self._keep(fits, pairs, gram, X, live)
        return self

    def _problems(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Any, NDArray[np.intp], Pairs, list[KernelProblem]]:
        """The rows of positive weight and their numbers, the pairs of classes, and the problem of each pair."""
        self._check_parameters()
        X, y = self._read(X, y)
        weights = np.ones(len(y))
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if (weights < 0).any():
            at = int(np.argmax(weights < 0))
            raise ValueError(f"sample_weight[{at}] is {weights[at]:g}; weights must be at least 0")
        live = np.flatnonzero(weights > 0)
        classes = distinct(y[live])
        if len(classes) < 2:
            found = f"only one class, {classes[0]}," if len(classes) else "no class"
            raise ValueError(f"y has {found} among the rows of positive weight; a classifier needs at least 2 classes")
        if len(live) < len(y):
            X = X[np.ix_(live, live)] if self._pairwise else _safe_indexing(X, live)
            y, weights = y[live], weights[live]
        pairs = Pairs.of(y, classes)
        gram = self._gram(X, pairs.order, weights, live)
        c = self._task().costs(y, classes, weights)
        return X, live, pairs, pairs.problems(gram, c)

    def decision_function(self, X: Any) -> Floats:
        """Scores of each row: f(x) + b for two classes; for more, one per class ("ovr") or per pair ("ovo")."""
        scores = self._pair_scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        if self.decision_function_shape == "ovo":
            return scores
        from widemargin.model_kernel import one_vs_rest_scores

        return one_vs_rest_scores(scores, len(self.classes_))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row: the side of the boundary, or the class that wins most pairs."""
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'; use 'ovr'")
        from widemargin.model_kernel import one_vs_rest_scores

        scores, k = self._pair_scores(X), len(self.classes_)
        if k == 2:
            return np.asarray(self.classes_[(scores[:, 0] > 0).astype(np.intp)])
        if self.break_ties:
            return np.asarray(self.classes_[one_vs_rest_scores(scores, k).argmax(axis=1)])
        votes = np.zeros((len(scores), k), dtype=np.intp)
        for won, (i, j) in zip((scores > 0).T, combinations(range(k), 2), strict=True):
            votes[:, i] += won
            votes[:, j] += ~won
        return np.asarray(self.classes_[votes.argmax(axis=1)])

    @property
    def coef_(self) -> Floats:
        """The weights of every pair, for the linear kernel only."""
        fitted = getattr(self, "kernel_", None)
        if (self.kernel if fitted is None else fitted.name) != "linear":
            raise AttributeError("coef_ is only there for the linear kernel; other kernels have dual_coef_")
        check_is_fitted(self, "dual_coef_")
        weights = self._model().weights()
        weights.flags.writeable = False  # it is computed anew each time: what is written into it would be lost
        return weights

    def _check_parameters(self) -> None:
        """Every parameter acts or raises."""
        self._task().check()
        if self.solver not in ("auto", "smo", "nystroem"):
            raise ValueError(f"solver={self.solver!r}; choose from 'auto', 'smo', 'nystroem'")
        if isinstance(self.n_components, bool) or not isinstance(self.n_components, Integral) or self.n_components < 1:
            raise ValueError(f"n_components={self.n_components!r}; it must be a whole number ≥ 1")
        if self.landmarks not in kernel_nystroem.LANDMARKS:
            choices = ", ".join(map(repr, kernel_nystroem.LANDMARKS))
            raise ValueError(f"landmarks={self.landmarks!r}; choose from {choices}")
        if self.solver == "nystroem" and np.isinf(self.C):
            raise ValueError(
                "C=inf is the hard margin, which solver='nystroem' has not; use solver='smo' or a finite C"
            )
        if self.cache_size is not None and (not isinstance(self.cache_size, Real) or not 0 < self.cache_size < np.inf):
            raise ValueError(f"cache_size={self.cache_size!r}; it must be a finite number > 0, of megabytes, or None")
        if self.decision_function_shape not in ("ovr", "ovo"):
            raise ValueError(f"decision_function_shape={self.decision_function_shape!r}; choose from 'ovr', 'ovo'")
        for name in ("warm_start", "break_ties"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ValueError(f"{name}={getattr(self, name)!r}; it must be True or False")
        if not isinstance(self.verbose, Integral | np.bool_) or self.verbose < 0:
            raise ValueError(f"verbose={self.verbose!r}; it must be 0, 1 or 2")
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            raise ValueError(f"n_jobs={self.n_jobs!r}; it must be a whole number ≠ 0, or None for all cores")
        check_random_state(self.random_state)
        if isinstance(self.gamma, str) and self.gamma not in ("scale", "auto"):
            raise ValueError(f"gamma={self.gamma!r}; it must be a finite number > 0, 'scale' or 'auto'")
        if not callable(self.kernel) and self.kernel not in (*NAMES, *ALIASES, "precomputed"):
            choices = ", ".join(map(repr, (*NAMES, "precomputed")))
            raise ValueError(f"kernel={self.kernel!r}; choose from {choices}, or give a function of two sets of rows")
        Kernel("poly", 1.0 if isinstance(self.gamma, str) else self.gamma, self.degree, self.coef0)  # checks them

    @property
    def _pairwise(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _task(self) -> OneAgainstRest:
        """What linear and kernel machines share: their checks, and the costs of the rows."""
        return OneAgainstRest(self.C, "hinge", True, self.class_weight, "auto", self.tol, self.max_iter)

    def _read(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        if callable(self.kernel) and not _is_table(X):  # texts, graphs: what the function takes
            y = column_or_1d(y, warn=True)
            check_consistent_length(X, y)
            check_classification_targets(y)
            for name in ("n_features_in_", "feature_names_in_"):
                self.__dict__.pop(name, None)
            return X, y
        if self._pairwise and issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported; give X.toarray()")
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            accept_large_sparse=True,
        )
        check_classification_targets(y)
        if self._pairwise:
            X = _checked_matrix(X, "X")
        return X, y

    def _gram(self, X: Any, order: NDArray[np.intp], weights: Floats, numbers: NDArray[np.intp]) -> Gram:
        """The kernel matrix of the rows in this order; messages call them by their numbers."""
        threads, sorted_already = count_threads(self.n_jobs), bool((np.diff(order) > 0).all())
        if self._pairwise or callable(self.kernel):
            K = X if self._pairwise else _checked_matrix(self._called(X, X), "K", numbers)
            return MatrixGram(K if sorted_already else np.ascontiguousarray(K[np.ix_(order, order)]), threads)
        rows = Rows(X if sorted_already else X[order], threads)
        name = ALIASES.get(self.kernel, self.kernel)
        has_gamma = "gamma" in PARAMETERS.get(name, ())
        gamma = gamma_of(self.gamma, rows, weights[order]) if has_gamma else 1.0
        return PointsGram(Kernel(name, gamma, self.degree, float(self.coef0)), rows, numbers[order])

    def _called(self, A: Any, B: Any) -> NDArray[Any]:
        """The matrix that a kernel which is a function returns, of the shape it must have."""
        assert callable(self.kernel)
        K = self.kernel(A, B)
        K = np.asarray(K.toarray() if hasattr(K, "toarray") else K)
        wanted = _num_samples(A), _num_samples(B)
        if K.shape != wanted:
            raise ValueError(
                f"the kernel returned an array of shape {K.shape} for {wanted[0]} and {wanted[1]} rows; it must be "
                f"{wanted}, the values of all pairs"
            )
        if K.dtype.kind not in "biuf":
            raise ValueError(f"the kernel returned an array of {K.dtype}; kernel values must be real numbers")
        return np.ascontiguousarray(K, dtype=K.dtype if K.dtype in (np.float32, np.float64) else np.float64)

    def _linear_fits(
        self,
        gram: Gram,
        problems: list[KernelProblem],
        starts: list[Floats] | None,
        watch: training.Watch,
        keep: Keep | None,
    ) -> list[training.Fit]:
        """What the linear solvers find, for the linear kernel; nothing for the others.

        Their own state is not kept: a state that says nothing is one to begin anew from.
        """
        if self.solver != "auto" or not isinstance(gram, PointsGram) or gram.kernel.name != "linear":
            return []
        fits = []
        seed = self._seed()
        with training.OneBlasThread():
            for k, one in enumerate(problems):
                start = None if starts is None else Start(starts[k], float(self.intercept_[k]))
                try:
                    found = training.fit(
                        one.linear(),
                        start=start,
                        tol=float(self.tol) / 2,
                        max_iter=self.max_iter,
                        seed=seed,
                        watch=watch,
                        keep=None if keep is None else lambda _: keep(dict),
                        limited=True,
                    )
                except InseparableError as error:
                    raise _numbered(error, one.index) from None
                fits.append(found)
                if found.interrupted and len(problems) > 1:
                    raise KeyboardInterrupt  # before anything was reached for the others
        return fits

    def _seed(self) -> int:
        return 0 if self.random_state is None else int(check_random_state(self.random_state).randint(MOST_SEEDS))

    def _nystroem_fits(
        self,
        problems: list[KernelProblem],
        starts: list[Floats] | None,
        watch: training.Watch,
        keep: Keep | None,
    ) -> list[kernel_nystroem.NystroemFit]:
        """The best functions of some landmarks."""
        n = problems[0].gram.n
        if self.n_components > n:
            warnings.warn(
                f"n_components={self.n_components} and only {n} rows: all of them are landmarks; use a smaller "
                "n_components, or solver='smo', which is exact",
                UserWarning,
                stacklevel=4,
            )
        return kernel_nystroem.fit(
            problems,
            n_components=int(min(self.n_components, n)),
            landmarks=self.landmarks,
            tol=float(self.tol),
            max_iter=self.max_iter,
            seed=self._seed(),
            starts=starts,
            watch=watch,
            keep=keep,
        )

    def _starts(
        self, pairs: Pairs, problems: list[KernelProblem], classes: NDArray[Any], live: NDArray[np.intp]
    ) -> list[Floats] | None:
        """The last fit's dual variables, cut to the costs of this one; None if they are no start for this one."""
        if not self.warm_start or not hasattr(self, "dual_coef_") or not np.array_equal(self.classes_, classes):
            return None
        starts, k = [], len(classes)
        if self._alpha is not None:  # support vectors are landmarks, whose coefficients are no dual variables
            for (rows, coef), problem in zip(self._alpha, problems, strict=True):
                v = np.zeros(max(int(live.max()), int(rows.max(initial=0))) + 1)
                v[rows] = coef
                starts.append(np.clip(v[live[pairs.order[problem.index]]] * problem.y, 0.0, problem.c))
            return starts
        if len(self.support_) and self.support_.max() > live.max():
            return None
        place = np.full(int(live.max()) + 1, -1)
        place[live] = np.arange(len(live))
        at = place[self.support_]
        known = at >= 0
        table = np.zeros((k - 1, len(live)))
        table[:, at[known]] = self.dual_coef_[:, known]
        numbers = [(i, j) for i in range(k) for j in range(i + 1, k)]
        for (i, j), problem in zip(numbers, problems, strict=True):
            index = pairs.order[problem.index]
            first = pairs.place[index] == i
            coef = np.where(first, table[j - 1, index], table[i, index])
            starts.append(np.clip(coef * problem.y, 0.0, problem.c))
        return starts

    def _named(self, error: InseparableError, pairs: Pairs, live: NDArray[np.intp]) -> InseparableError:
        """The proof with rows numbered as in X."""
        numbered = _numbered(error, live[pairs.order])
        if len(pairs.names) > 1:
            first, second = (pairs.place[pairs.order[rows[0]]] for rows in (error.positive, error.negative))
            numbered.add_note(f"This is for the classes {pairs.classes[first]} and {pairs.classes[second]}.")
        return numbered

    def _keep(
        self,
        fits: Sequence[kernel_training.KernelFit],
        pairs: Pairs,
        gram: Gram,
        X: Any,
        live: NDArray[np.intp],
    ) -> None:
        if len(fits) < len(pairs.names):
            raise KeyboardInterrupt  # before anything was reached
        rows, self.dual_coef_, self.n_support_ = pairs.support(fits)
        self.kernel_: Kernel | None = gram.kernel if isinstance(gram, PointsGram) else None
        self.classes_ = pairs.classes
        self.support_ = live[rows].astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if self._pairwise else _safe_indexing(X, rows)
        self.intercept_ = np.array([fit.proved.b for fit in fits])
        self.certificate_: Certificate | Certificates = pairs.certificate(fits)
        self.history_ = fits[0].history if len(fits) == 1 else [fit.history for fit in fits]
        self.n_iter_ = max(fit.iterations for fit in fits)
        self.shape_fit_ = getattr(X, "shape", (_num_samples(X),))
        self._fitted_C = self.C
        #: Of a fit with "nystroem", the rows and their αy of every pair.
        self._alpha: list[tuple[NDArray[np.intp], Floats]] | None = None
        self.__dict__.pop("approximate_certificate_", None)
        approximate = [fit for fit in fits if isinstance(fit, kernel_nystroem.NystroemFit)]
        if approximate:
            each = tuple(fit.approximate for fit in approximate)
            self.approximate_certificate_ = each[0] if len(each) == 1 else Certificates(pairs.names, each)
            self._alpha = []
            for fit in approximate:
                used = np.flatnonzero(fit.dual_coef)
                self._alpha.append((live[pairs.order[fit.index[used]]], fit.dual_coef[used]))
        if any(fit.interrupted for fit in fits):
            raise KeyboardInterrupt
        self._warn(fits[0].curvature, gram, live[pairs.order])

    def _refuse_indefinite(self, gram: Gram, numbers: NDArray[np.intp]) -> None:
        """A hard margin in a space where ‖f‖² may be negative is none: α would grow without end."""
        found = None if gram.semidefinite else gram.negative_curvature(np.empty(0, dtype=np.intp))
        if found is not None:
            curvature = kernel_training.NegativeCurvature(found[0], numbers[found[2]], found[1])
            raise ValueError(
                f"C=inf needs a positive semidefinite kernel, and this is none: {curvature}; use a finite C or another "
                "kernel"
            )

    def _warn(self, curvature: kernel_training.NegativeCurvature | None, gram: Gram, numbers: NDArray[np.intp]) -> None:
        reached = getattr(self, "approximate_certificate_", self.certificate_).relative_gap
        if curvature is not None:
            advice = "use another kernel or other parameters"
            if (
                isinstance(gram, MatrixGram)
                and gram.single
                and curvature.value > -FLOAT32_CURVATURE * gram.diagonal.mean()
            ):
                advice = "this may be the rounding of float32: give kernel values in float64"
            warnings.warn(
                f"the kernel is not positive semidefinite: {replace(curvature, rows=numbers[curvature.rows])}. The fit "
                f"is a stationary point and nothing is proved of it; {advice}",
                IndefiniteKernelWarning,
                stacklevel=5,
            )
        elif reached > self.tol:
            advice = "scale the columns of X, or ask for a larger tol"
            if isinstance(gram, MatrixGram):
                advice = "divide the kernel by its mean diagonal and multiply C by it, or ask for a larger tol"
            elif isinstance(gram, PointsGram) and gram.kernel.name == "linear":
                advice = "use LinearSVM, which takes columns of any scale, or scale the columns of X"
            ones = self.certificate_ if isinstance(self.certificate_, Certificates) else [self.certificate_]
            if np.isfinite(self.C) and not any(one.misclassified or one.kkt[2].count for one in ones):
                advice = "no row needs slack: use C=inf, the hard margin, or a smaller C"
            of = " of the landmarks' problem" if self.solver == "nystroem" else ""
            if self.max_iter is not None and self.n_iter_ >= self.max_iter:
                advice = "raise max_iter"
            elif np.isinf(self.C):
                advice = "the classes may touch or overlap: use a finite C"
                if np.isfinite(reached):
                    advice = "the margin is narrow beside the rounding of kernel values: ask for a larger tol"
            warnings.warn(
                f"the relative gap{of} is {reached:.1e} after {self.n_iter_} rounds, asked for was tol={self.tol:.1e}; "
                f"{advice}",
                ConvergenceWarning,
                stacklevel=5,
            )

    def _pair_scores(self, X: Any) -> Floats:
        """f(x) + b of every row, a column for each pair."""
        check_is_fitted(self, "dual_coef_")
        if hasattr(self, "n_features_in_"):
            X = validate_data(
                self,
                X,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                order="C",
                accept_large_sparse=True,
                reset=False,
            )
        if self.kernel_ is not None:
            return self._model().pair_scores(Rows(X, count_threads(self.n_jobs)))
        if self._pairwise:
            K = X[:, self.support_]
        else:
            K = self._called(X, self.support_vectors_)
            if not np.isfinite(K).all():
                i, j = np.argwhere(~np.isfinite(K))[0]
                raise ValueError(
                    f"the kernel of row {i} and support vector {j} is {K[i, j]}; kernel values must be finite"
                )
        return pair_scores(K, self.dual_coef_, self.intercept_, self.n_support_)

    def _model(self) -> KernelModel:
        assert self.kernel_ is not None
        return KernelModel(
            self.support_vectors_,
            self.dual_coef_,
            self.intercept_,
            self.n_support_.astype(np.int64),
            self.classes_,
            self.kernel_,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._pairwise
        tags.input_tags.pairwise = self._pairwise
        tags.input_tags.positive_only = self.kernel in ("chi2", "additive_chi2")
        return tags


def _is_table(X: Any) -> bool:
    """Whether X is made of numbers, and is to be checked as such."""
    if issparse(X):
        return True
    try:
        values = np.asarray(X)
    except ValueError:  # rows of different lengths
        return False
    return values.dtype.kind in "biufc" and values.ndim <= 2


def pair_scores(K: Floats, coef: Floats, intercept: Floats, n_support: NDArray[np.integer]) -> Floats:
    """f(x) + b of every row and pair, from the kernel values K of the rows with the support vectors."""
    ends = np.cumsum(n_support).tolist()
    slices = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    sums = [K[:, part] @ coef[:, part].T for part in slices]
    columns = [sums[i][:, j - 1] + sums[j][:, i] for i in range(len(slices)) for j in range(i + 1, len(slices))]
    return np.column_stack(columns) + intercept


def _numbered(error: InseparableError, rows: NDArray[np.intp]) -> InseparableError:
    """The proof with its rows numbered as they stand in `rows`."""
    weights = error.positive_weights, error.negative_weights
    positive, negative = rows[error.positive], rows[error.negative]
    return InseparableError(positive, weights[0], negative, weights[1], error.point, error.distance)


def _checked_matrix(K: NDArray[Any], name: str, numbers: NDArray[np.intp] | None = None) -> NDArray[Any]:
    """A kernel matrix, or an error that says why it is none; rows have numbers of their own if some were left out."""
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"{name} has shape {K.shape}; a precomputed kernel matrix is square, one row per sample")

    def entry(i: Any, j: Any) -> str:
        a, b = (i, j) if numbers is None else (numbers[i], numbers[j])
        return f"{name}[{a}, {b}] is {K[i, j]:.6g}"

    if K.size and not (np.isfinite(K.max()) and np.isfinite(K.min())):
        raise ValueError(f"{entry(*np.argwhere(~np.isfinite(K))[0])}; kernel values must be finite")
    size, step = max(float(K.max(initial=0.0)), -float(K.min(initial=0.0))), max(1, (1 << 22) // max(len(K), 1))
    for begin in range(0, len(K), step):
        apart = np.abs(K[begin : begin + step] - K[:, begin : begin + step].T)
        if apart.size and float(apart.max()) > ASYMMETRY * size:
            row, j = np.unravel_index(int(apart.argmax()), apart.shape)
            i = begin + int(row)
            raise ValueError(
                f"{name} is not symmetric: {entry(i, j)} and {entry(j, i)}; a kernel is symmetric, k(a, b) = k(b, a): "
                f"use a matrix that is, such as ({name} + {name}.T) / 2"
            )
    negative = np.flatnonzero(np.diag(K) < -ROUNDED * size)
    if len(negative):
        i = int(negative[0])
        raise ValueError(
            f"{entry(i, i)}; k(x, x) is a squared length and never negative: this is no kernel, use another"
        )
    return K
