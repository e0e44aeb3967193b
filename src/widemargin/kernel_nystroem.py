"""NYSTRÖM: the best f = Σ βⱼ k(zⱼ, ·) of m landmarks zⱼ for a kernel machine, and how far it is from the exact optimum.

With K_ZZ = U S Uᵀ the features φ(x) = S^(−1/2) Uᵀ k(Z, x) have the inner products K̃ = K_XZ K_ZZ⁺ K_ZX, and weights w
of them are f with β = U S^(−1/2) w and ‖f‖ = ‖w‖. So the linear solvers find the best f of the landmarks. It is a
function of the kernel's own space: its primal value is one of the exact problem, and its α is feasible for its dual.

The exact dual D(α) = Σ αᵢ − ½‖F‖² with F = Σ αᵢyᵢ k(xᵢ, ·) takes (support vectors)²/2 kernel values. Where that is too
many, the support vectors are split into groups g, F = Σ F_g, and with any H_g = Σⱼ a_gj k(zⱼ, ·), H = Σ H_g,

    ‖F‖² ≤ ‖H‖² + 2⟨H, F − H⟩ + (Σ_g ‖F_g − H_g‖)².

The best H_g are the projections, a_g = K_ZZ⁺ K_Zg v_g with v = αy; rounding of them costs sharpness, not truth. With
rows for groups this is the Cauchy–Schwarz bound by the diagonal of K − K̃; one group is exact. Where the landmarks say
too little about the rows, that is too weak, and α of some support vectors alone, the others 0, proves a better dual.
Williams and Seeger 2001; leverage scores: Musco and Musco 2017.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core, training
from widemargin.certificate import AT_BOUND, Certificate, Kind
from widemargin.data import Rows
from widemargin.kernel_certificate import Proved
from widemargin.kernel_problem import KernelProblem
from widemargin.kernel_training import KernelFit, NegativeCurvature
from widemargin.kernels import Gram, PointsGram
from widemargin.losses import LOSSES
from widemargin.problem import Problem, inner
from widemargin.solvers import Start

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

#: The ways to choose landmarks.
LANDMARKS = ("random", "k-means++", "leverage")
#: Rows among which "k-means++" and "leverage" choose, at least; of more rows, these are drawn at random.
CANDIDATES = 20_000
#: As many times the number of landmarks, if that is more.
CANDIDATES_EACH = 10
#: Rows whose features are computed at a time, by one thread.
BLOCK = 2048
#: Rows of a panel of the kernel matrix of a group.
PANEL = 1024
#: Kernel values that the proof of the dual may take, if the features did not take more: half a second.
VALUES = 1e8
#: The accuracy from which on features are kept in float32, whose rounding is 6e-8 of them.
SINGLE = 1e-5
EPSILON = float(np.finfo(np.float64).eps)
#: Kernel values are known to within this times √(sᵢsⱼ), see :attr:`widemargin.kernels.Gram.sizes`.
UNIT = 4 * EPSILON


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Some rows of the kernel matrix, and the features that they make.

    Of a kernel that may be positive semidefinite on Σ v = 0 only, `balanced`, Σ βⱼ = 0 is demanded: features then are
    those of the kernel moved by the mean of the landmarks, which a bias makes up for.
    """

    gram: Gram
    index: Integers
    balanced: bool

    @classmethod
    def of(cls, gram: Gram, index: Integers) -> Landmarks:
        """These rows as landmarks."""
        always = isinstance(gram, PointsGram) and gram.semidefinite and gram.kernel.name != "additive_chi2"
        return cls(gram, index, not always)

    @cached_property
    def matrix(self) -> Floats:
        """K_ZZ."""
        K = self.gram.block(self.index, self.index)
        return (K + K.T) / 2

    @cached_property
    def _eigen(self) -> tuple[Floats, Floats]:
        """The eigenvalues of K_ZZ beyond rounding, and their eigenvectors; on Σ v = 0 if balanced."""
        K = self.matrix
        if self.balanced:
            K = K - K.mean(axis=0)
            K = K - K.mean(axis=1)[:, None]
        values, vectors = np.linalg.eigh(K)
        kept = values > EPSILON * len(K) * max(float(np.abs(values).max()), np.finfo(np.float64).tiny)
        values, vectors = values[kept], vectors[:, kept]
        if self.balanced:
            vectors = vectors - vectors.mean(axis=0)
        return values, vectors

    @cached_property
    def map(self) -> Floats:
        """U S^(−1/2), of shape (landmarks, features); a column of zeros where there are no features."""
        values, vectors = self._eigen
        return vectors / np.sqrt(values) if len(values) else np.zeros((len(self.index), 1))

    @cached_property
    def offset(self) -> Floats:
        """The features of the landmarks' mean, if that is where the kernel is moved to."""
        return self.matrix.mean(axis=0) @ self.map if self.balanced else np.zeros(self.map.shape[1])

    def features(self, rows: Integers, dtype: Any = np.float64) -> NDArray[Any]:
        """φ(x) of these rows of the kernel matrix; block by block, so that no other matrix of that size is needed.

        Each block is the work of one thread and the same whichever it is.
        """
        found = np.empty((len(rows), self.map.shape[1]), dtype=dtype)
        alone = copy(self.gram)
        alone.threads = 1
        table, offset = self.map, self.offset

        def fill(begin: int) -> None:
            some = alone.block(rows[begin : begin + BLOCK], self.index) @ table
            found[begin : begin + BLOCK] = some - offset if self.balanced else some

        with (
            training.OneBlasThread(),
            ThreadPoolExecutor(max(1, self.gram.threads), initializer=training.OneBlasThread) as pool,
        ):
            for _ in pool.map(fill, range(0, len(rows), BLOCK)):
                pass
        return found

    def project(self, products: Floats, total: float) -> Floats:
        """The a of the projection Σ aⱼ k(zⱼ, ·) of a function F, given F(zⱼ); if balanced, with Σ a = `total`."""
        if not self.balanced:
            return np.asarray(self.map @ (self.map.T @ products))
        mean = total / len(self.index)
        a = self.map @ (self.map.T @ (products - mean * self.matrix.sum(axis=0)))
        return np.asarray(a - a.mean() + mean)


def choose(gram: Gram, strata: list[Integers], m: int, how: str, rng: np.random.Generator) -> Integers:
    """About m rows of the kernel matrix as landmarks, from each of these sets of rows its share, and at least one."""
    n = sum(map(len, strata))
    counts = [min(max(1, round(m * len(rows) / n)), len(rows)) for rows in strata]
    return np.sort(np.concatenate([_some(gram, rows, k, how, rng) for rows, k in zip(strata, counts, strict=True)]))


def _some(gram: Gram, rows: Integers, m: int, how: str, rng: np.random.Generator) -> Integers:
    if how == "random" or m == len(rows):
        return rng.choice(rows, m, replace=False)
    candidates, most = rows, max(CANDIDATES, CANDIDATES_EACH * m)
    if len(rows) > most:
        candidates = np.sort(rng.choice(rows, most, replace=False))
    with training.OneBlasThread():
        chosen = (_k_means if how == "k-means++" else _by_leverage)(gram, candidates, m, rng)
    missing = m - len(chosen)
    if missing:  # rows that are equal to others are chosen but once
        chosen = np.concatenate([chosen, rng.choice(np.setdiff1d(rows, chosen), missing, replace=False)])
    return chosen


def _k_means(gram: Gram, rows: Integers, m: int, rng: np.random.Generator) -> Integers:
    """The centres of k-means++: rows drawn in proportion to their squared distances from those drawn before."""
    from sklearn.cluster import kmeans_plusplus

    if not isinstance(gram, PointsGram):
        raise ValueError(
            "landmarks='k-means++' takes distances of rows of numbers, and here is only a kernel matrix; use "
            "landmarks='leverage' or 'random'"
        )
    _, found = kmeans_plusplus(gram.rows.X[rows], m, random_state=int(rng.integers(2**31 - 1)))
    return np.asarray(rows[np.unique(found)])


def _by_leverage(gram: Gram, rows: Integers, m: int, rng: np.random.Generator) -> Integers:
    """Rows drawn in proportion to their ridge leverage scores [K(K + λI)⁻¹]ᵢᵢ, approximately.

    With the features of a uniform sample of m of the n rows they are (kᵢᵢ − Σⱼ φᵢⱼ² sⱼ/(sⱼ + λm/n))/λ; λ = tr(K − K̃)/m.
    """
    pilot = Landmarks.of(gram, np.sort(rng.choice(rows, m, replace=False)))
    phi, (values, _), diagonal = pilot.features(rows), pilot._eigen, gram.diagonal[rows].copy()
    if pilot.balanced:  # ‖Φ(x) − mean‖²
        for begin in range(0, len(rows), BLOCK):
            some = gram.block(rows[begin : begin + BLOCK], pilot.index)
            diagonal[begin : begin + BLOCK] += float(pilot.matrix.mean()) - 2 * some.mean(axis=1)
    squares = np.square(phi)
    lam = float((diagonal - squares.sum(axis=1)).clip(0.0).sum()) / m
    if not lam > EPSILON * float(diagonal.sum()) > 0:  # any landmarks are all that is needed
        return pilot.index
    shares = values / (values + lam * m / len(rows)) if len(values) else np.zeros(1)
    scores = (diagonal - squares @ shares).clip(0.0)
    scores += EPSILON * float(scores.sum())  # so that there are enough to draw from
    return rng.choice(rows, m, replace=False, p=scores / float(scores.sum()))


def quadratic(gram: Gram, index: Integers, v: Floats) -> float:
    """vᵀKv of these rows, by panels of the upper triangle."""
    total = 0.0
    for begin in range(0, len(index), PANEL):
        here, own = index[begin : begin + PANEL], v[begin : begin + PANEL]
        weight = 2 * v[begin:]
        weight[: len(here)] = own
        total += inner(own, gram.block(here, index[begin:]) @ weight)
    return total


def bound_square(gram: Gram, index: Integers, v: Floats, landmarks: Landmarks, values: float = np.inf) -> float:
    """At least ‖Σ vᵢ k(xᵢ, ·)‖², rounding included, from about so many kernel values: exactly, if they are enough.

    Beside `values` it takes those of the rows with the landmarks.
    """
    used = np.flatnonzero(v)
    index, v = index[used], v[used]
    if not len(index):
        return 0.0
    sizes = np.sqrt(gram.sizes)
    weight = float(np.abs(v) @ sizes[index])
    if len(index) ** 2 / 2 <= values:
        return max(quadratic(gram, index, v), 0.0) + UNIT * weight**2
    K, near, group = landmarks.matrix, sizes[landmarks.index], max(1, int(2 * values / len(index)))
    products, a, apart = np.zeros(len(K)), np.zeros(len(K)), 0.0
    for begin in range(0, len(index), group):
        some, own = index[begin : begin + group], v[begin : begin + group]
        here = np.zeros(len(K))
        for first in range(0, len(some), BLOCK):
            here += gram.block(landmarks.index, some[first : first + BLOCK]) @ own[first : first + BLOCK]
        projection = landmarks.project(here, float(own.sum()))
        distance = quadratic(gram, some, own) - 2 * inner(projection, here) + inner(projection, K @ projection)
        off = UNIT * float(np.abs(own) @ sizes[some] + np.abs(projection) @ near) ** 2
        apart += math.sqrt(max(distance, 0.0) + off)
        products += here
        a += projection
    length = float(np.abs(a) @ near)
    inside = 2 * inner(a, products) - inner(a, K @ a) + UNIT * (2 * length * weight + length**2)
    return max(inside, 0.0) + apart**2


def _best_dual(
    problem: KernelProblem, alpha: Floats, landmarks: Landmarks, values: float
) -> tuple[float, Floats, float]:
    """The best dual value that so many kernel values prove of multiples of α, its α, and the bound of ‖F‖² for it.

    The best multiple t is Σα/‖F‖², and at most 1.
    """
    alpha = problem.problem.feasible(alpha)
    ways, used = [(alpha, values)], np.flatnonzero(alpha)
    if len(used) ** 2 / 2 > values:  # half of them for all support vectors, half for as many as have an exact value
        some = np.zeros(len(alpha))
        chosen = np.random.default_rng(0).choice(used, max(1, int(math.sqrt(values))), replace=False)
        some[chosen] = alpha[chosen]
        ways = [(alpha, values / 2), (problem.problem.feasible(some), values / 2)]
    found = []
    for one, share in ways:
        total, length = float(one.sum()), bound_square(problem.gram, problem.index, one * problem.y, landmarks, share)
        t = min(1.0, total / length) if length > 0 else 1.0
        found.append((t * total - t**2 * length / 2, t * one, t**2 * length))
    return max(found, key=lambda way: way[0])


def prove(
    problem: KernelProblem,
    landmarks: Landmarks,
    beta: Floats,
    alpha: Floats,
    scores: Floats | None = None,
    *,
    values: float | None = None,
    semidefinite: bool = True,
) -> Proved:
    """The certificate, for the exact problem, of f = Σ βⱼ k(zⱼ, ·) with its best b, and of a multiple of α.

    `scores`, f(xᵢ), may be known. The dual takes about `values` kernel values: as many as the features did, or 10⁸. KKT
    conditions are those of f and the α that proves the dual value.
    """
    gram, y, c, exact = problem.gram, problem.y, problem.c, problem.problem
    coef = np.zeros(gram.n)
    coef[landmarks.index] = beta
    coef = coef[problem.index]
    scores = problem.scores(coef) if scores is None else scores
    square = max(inner(beta, landmarks.matrix @ beta), 0.0)
    b = exact.best_bias(scores)
    margins = y * (scores + b)
    primal = square / 2 + _core.losses("hinge", margins, c, gram.threads)
    values = max(VALUES, float(problem.n) * len(beta)) if values is None else values
    dual, alpha, length = _best_dual(problem, alpha, landmarks, values)
    sizes = np.sqrt(problem.sizes)
    reach = float(np.abs(beta) @ np.sqrt(gram.sizes[landmarks.index]))
    off = sizes * reach
    largest = float(off.max(initial=0.0))
    shares = np.square(off / largest) if largest > 0 else np.zeros(len(off))
    support = np.empty(len(alpha), np.uint8)
    counts, worst, slack, violations, misclassified, right, rounding = _core.facts_of_rows(
        "hinge",
        margins,
        alpha,
        y,
        c,
        shares,
        largest,
        0.0,  # the dual's own rounding is part of its bound
        b,
        AT_BOUND,
        AT_BOUND * float(alpha.max(initial=0.0)),
        support,
        gram.threads,
    )
    rounding += UNIT * (reach**2 / 2 + primal)
    away = max(square - 2 * inner(alpha * y, scores) + length, 0.0)
    names, demands = ("α = 0", "0 < α < c", "α = c"), ("m ≥ 1", "m = 1", "m ≤ 1")
    certificate = Certificate(
        primal=primal,
        dual=dual,
        rounding=rounding if semidefinite else np.inf,
        kkt=tuple(Kind(*facts) for facts in zip(names, demands, counts, worst, strict=True)),
        slack=slack,
        violations=violations,
        misclassified=misclassified,
        right=right,
        stationarity=math.sqrt(away / square) if square > 0 else 0.0,
        width=2 / math.sqrt(square) if square > 0 else np.inf,
        rows=len(exact.live),
        alpha=alpha,
        support=np.flatnonzero(support),
    )
    return Proved(certificate, coef, b, scores)


@dataclass
class NystroemFit(KernelFit):
    """A fit whose `proved` is of the exact problem; its support vectors are the landmarks."""

    #: The landmarks among the rows of the problem.
    landmarks: Integers = field(kw_only=True, repr=False)
    #: The proof for the problem of the features.
    approximate: Certificate = field(kw_only=True)
    #: Its αᵢyᵢ.
    dual_coef: Floats = field(kw_only=True, repr=False)

    @property
    def support(self) -> Integers:
        """The landmarks."""
        return self.landmarks


def fit(
    problems: list[KernelProblem],
    *,
    n_components: int,
    landmarks: str = "random",
    tol: float = 1e-3,
    max_iter: int | None = None,
    seed: int = 0,
    starts: list[Floats] | None = None,
    watch: training.Watch | None = None,
    keep: training.Keep | None = None,
    values: float | None = None,
) -> list[NystroemFit]:
    """One fit per problem, all of one kernel matrix, each trained to `tol` as the problem of its features.

    One problem has landmarks from all rows. Several, of pairs of classes, share those of each class: its share of
    `n_components`, and at least one. `starts` are dual variables to begin at; `values` as in :func:`prove`.
    """
    gram, n = problems[0].gram, problems[0].gram.n
    stretches = sorted({one for problem in problems for one in problem.segments})
    strata = [np.arange(first, first + count) for first, count in stretches]
    chosen = choose(gram, strata, min(n_components, n), landmarks, np.random.default_rng(seed))
    found = None if gram.semidefinite else gram.negative_curvature(chosen)
    curvature = None if found is None else NegativeCurvature(found[0], found[2], found[1])
    ways = [None] * len(problems) if starts is None else starts
    each: list[tuple[KernelProblem, Landmarks, training.Fit]] = []
    with training.OneBlasThread():
        for problem, start in zip(problems, ways, strict=True):
            own = Landmarks.of(gram, np.intersect1d(chosen, problem.index, assume_unique=True))
            dtype = np.float32 if gram.single and tol >= SINGLE else np.float64
            rows = Rows(own.features(problem.index, dtype), gram.threads)
            trained = training.fit(
                Problem(rows, problem.y, problem.c, LOSSES["hinge"], fit_intercept=True),
                tol=tol,
                max_iter=max_iter,
                seed=seed,
                start=None if start is None else Start(start, 0.0),
                watch=watch,
                keep=None if keep is None else _nothing(keep),
                limited=True,
            )
            each.append((problem, own, trained))
            if trained.interrupted and len(problems) > 1:
                raise KeyboardInterrupt  # before anything was reached for the others
        coef = np.zeros((n, len(each)))
        betas = [own.map @ trained.w for _, own, trained in each]
        for k, (beta, (_, own, _)) in enumerate(zip(betas, each, strict=True)):
            coef[own.index, k] = beta
        scores = gram.products(chosen, coef[chosen])  # of all problems in one go over the kernel matrix
        fits = []
        for k, (beta, (problem, own, trained)) in enumerate(zip(betas, each, strict=True)):
            proved = prove(
                problem,
                own,
                beta,
                trained.alpha,
                np.ascontiguousarray(scores[problem.index, k]),
                values=values,
                semidefinite=curvature is None,
            )
            fits.append(
                NystroemFit(
                    proved,
                    problem.index,
                    trained.iterations,
                    trained.history,
                    curvature,
                    trained.interrupted,
                    landmarks=np.flatnonzero(np.isin(problem.index, own.index)),
                    approximate=trained.certificate,
                    dual_coef=trained.alpha * problem.y,
                )
            )
    return fits


def _nothing(keep: training.Keep) -> training.Keep:
    """Keeps a state that says nothing, one to begin anew from: features are not part of a state."""
    nothing: Callable[[], dict[str, Any]] = dict
    return lambda _: keep(nothing)
