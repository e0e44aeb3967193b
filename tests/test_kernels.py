"""Kernel functions and kernel matrices, against their formulas in extended precision and scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from oracles import KERNELS, exact_kernel, kernel_rounding, text_like
from widemargin import _core
from widemargin.data import Rows
from widemargin.kernels import NAMES, Kernel, MatrixGram, PointsGram, gamma_of, gram

EPSILON = float(np.finfo(np.float64).eps)
#: Kernels that sparse rows and dense ones give the same bits of: the others move dense rows by their mean.
SAME_BITS = ("linear", "poly", "sigmoid", "cosine", "chi2", "additive_chi2")
PEERS = {
    "linear": (pairwise.linear_kernel, ()),
    "poly": (pairwise.polynomial_kernel, ("degree", "gamma", "coef0")),
    "rbf": (pairwise.rbf_kernel, ("gamma",)),
    "sigmoid": (pairwise.sigmoid_kernel, ("gamma", "coef0")),
    "cosine": (pairwise.cosine_similarity, ()),
    "laplacian": (pairwise.laplacian_kernel, ("gamma",)),
    "chi2": (pairwise.chi2_kernel, ("gamma",)),
    "additive_chi2": (pairwise.additive_chi2_kernel, ()),
}


def rows(n, d, seed=0, share=1.0):
    """Rows ≥ 0, some empty and some twice, with this share of non-zeros."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(size=(n, d)) * (rng.random((n, d)) < share)
    X[n // 3 : n // 3 + 1] = 0
    X[n // 2 + 1 :: 5] = X[: len(X[n // 2 + 1 :: 5])]
    return X


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (7, 1), (8, 3), (17, 5), (33, 2), (65, 31), (100, 70)])
def test_values_are_those_of_the_formula(name, n, d):
    """The formula in extended precision: as exact as sums in double precision are, and scikit-learn's to 1e-10."""
    A, B, kernel = rows(n, d), rows(101 - n, d, seed=1), KERNELS[name]
    K = kernel.matrix(A, B)
    assert (abs(K - exact_kernel(kernel, A, B)) <= kernel_rounding(kernel, A, B)).all()
    peer, parameters = PEERS[name]
    theirs = peer(A, B, **{one: getattr(kernel, one) for one in parameters})
    assert abs(K - theirs).max() <= 1e-10 * max(1.0, abs(theirs).max())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.1, 0.9])
def test_one_kernel_for_dense_and_sparse_rows(name, share):
    """Dense float64 rows: CSR rows, 64-bit indices, float32 and whole numbers give the same matrix."""
    A, B, kernel = (
        np.round(4 * rows(41, 23, share=share)),
        np.round(4 * rows(30, 23, seed=1, share=share)),
        KERNELS[name],
    )
    K = kernel.matrix(A, B)
    sparse = [sp.csr_array(A), sp.csr_array(B)]
    wide = [sp.csr_matrix(one) for one in sparse]
    for one in wide:
        one.indices, one.indptr = one.indices.astype(np.int64), one.indptr.astype(np.int64)
    for pair in (sparse, wide, [one.tocsc() for one in sparse], [sparse[0], B], [A, sparse[1]]):
        found = kernel.matrix(*pair)
        assert (abs(found - K) <= 2 * kernel_rounding(kernel, A, B)).all()
        if name in SAME_BITS:
            assert np.array_equal(found, K)
    for kind in (np.float32, np.int64, np.uint8):
        assert np.array_equal(kernel.matrix(A.astype(kind), B.astype(kind)), K)
    strided = kernel.matrix(np.asfortranarray(A), B[:, ::-1].copy()[:, ::-1])
    assert (abs(strided - K) <= 2 * kernel_rounding(kernel, A, B)).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.1, 1.0])
def test_a_value_does_not_depend_on_the_other_rows(name, share):
    """The same bits whatever rows are computed beside it, wherever a panel or a group of rows ends."""
    A, kernel = rows(100, 9, share=share), KERNELS[name]
    B = rows(100, 9, seed=1, share=share)
    A, B = (A, B) if share == 1 else (sp.csr_array(A), sp.csr_array(B))
    K = kernel.matrix(A, B)
    for count in range(1, 101):
        assert np.array_equal(kernel.matrix(A, B[:count]), K[:, :count])
    source = PointsGram(kernel, Rows(A))
    K, everything = kernel.matrix(A, A), np.arange(100)
    assert np.array_equal(source.block(everything, everything), K)
    assert np.array_equal(K, K.T)
    some = np.array([97, 3, 3, 40, 8])
    for count in range(1, 101):
        assert np.array_equal(source.block(some, everything[:count]), K[np.ix_(some, everything[:count])])


@pytest.mark.parametrize("name", ["rbf", "laplacian", "chi2", "additive_chi2"])
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_the_distance_of_equal_rows_is_0(name, share):
    """Exactly: k(x, x) = exp(0) = 1, or −0, for a row and its copies, however long they are."""
    A = rows(300, 13, share=share) * np.logspace(-8, 8, 300)[:, None]
    A = np.vstack([A, A[::-1]])
    kernel = Kernel(name, gamma=1e3)
    for X in (A, A.astype(np.float32)) if share == 1 else (sp.csr_array(A), sp.csr_array(A.astype(np.float32))):
        K, one = kernel.matrix(X, X), 0.0 if name == "additive_chi2" else 1.0
        assert (np.diag(K) == one).all()
        assert (np.diag(K[:, ::-1]) == one).all()
        assert (kernel.diagonal(X) == one).all()


def test_rows_far_apart():
    """exp of −γ‖a − b‖² down to its smallest, in extended precision: to three units in the last place, beside those
    of the exponent; from −700 on what is left is below 1e-300.
    """
    exponents = np.concatenate([np.linspace(0, 1, 400), np.linspace(1, 699, 3000)])
    roots = np.floor(2**20 * np.sqrt(exponents)) / 2**20  # squares of so few digits are exact
    K = Kernel("rbf").matrix(np.zeros((1, 1)), sp.csr_array(roots[:, None]))[0]
    exact = np.exp(-np.square(roots.astype(np.longdouble)))
    assert (abs(K - exact) <= 3 * EPSILON * exact).all()
    far = Kernel("rbf").matrix(np.zeros((1, 1)), np.array([[27.0], [1e3], [1e150]]))
    assert (far >= 0).all()
    assert far.max() < 1e-300


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sparse", [False, True])
def test_sums_of_kernel_values(name, sparse):
    """matrix(A, B) @ coef and diag(matrix(A, A)); several columns are the same sums."""
    A, B, kernel = rows(700, 6, share=0.3), rows(41, 6, seed=1, share=0.3), KERNELS[name]
    A, B = (sp.csr_array(A), sp.csr_array(B)) if sparse else (A, B)
    coef = np.random.default_rng(2).standard_normal((41, 5))
    K, found = kernel.matrix(A, B), kernel.scores(A, B, coef)
    assert (abs(found - K @ coef) <= 20 * EPSILON * (abs(K) @ abs(coef)) + kernel_sums(kernel, A, B, coef)).all()
    assert abs(kernel.scores(A, B, coef[:, 2]) - found[:, 2]).max() <= 20 * EPSILON * (abs(K) @ abs(coef[:, 2])).max()
    assert np.array_equal(kernel.scores(A, B, np.asfortranarray(coef)), found)
    assert np.array_equal(kernel.diagonal(A), np.diag(kernel.matrix(A, A)))


def kernel_sums(kernel, A, B, coef):
    """What rounding of the kernel values, of rows moved by either mean, may do to their sums."""
    dense = [one.toarray() if sp.issparse(one) else one for one in (A, B)]
    return 2 * kernel_rounding(kernel, *dense) @ abs(coef)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sparse", [False, True])
def test_threads_change_nothing(name, sparse):
    """One thread: the same bits at 2 and 8, of the matrix, of sums and of the products of a kernel matrix."""
    A, B, kernel = rows(67, 6, share=0.3), rows(4500, 6, seed=1, share=0.3), KERNELS[name]
    A, B = (sp.csr_array(A), sp.csr_array(B)) if sparse else (A, B)
    coef, index = np.random.default_rng(2).standard_normal((67, 2)), np.arange(0, 4500, 70)
    found = []
    for threads in (1, 2, 8):
        source = PointsGram(kernel, Rows(B, threads))
        products = source.products(index, coef[: len(index)])
        values = kernel.matrix(A, B, threads), kernel.scores(B, A, coef, threads), products, source.block(index, index)
        found.append(b"".join(one.tobytes() for one in values))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
def test_gamma(gamma):
    """The γ that SVC takes, dense, sparse, of float32, and of columns that never change."""
    X = rows(30, 4, share=0.5)
    y = np.arange(30) % 2
    for some in (X, sp.csr_matrix(X), X + 1e4, np.ones((30, 4)), sp.csr_matrix((30, 4))):
        theirs = SVC(gamma=gamma).fit(some, y)._gamma
        assert gamma_of(gamma, Rows(some)) == pytest.approx(theirs, rel=1e-12)
    single = X.astype(np.float32)
    assert gamma_of(gamma, Rows(single)) == gamma_of(gamma, Rows(single.astype(np.float64)))
    with pytest.raises(ValueError, match="gamma='large'; it must be"):
        gamma_of("large", Rows(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "gaussian"}, "kernel='gaussian'; choose from 'linear'"),
        ({"gamma": 0.0}, "gamma=0.0; it must be"),
        ({"gamma": -1}, "gamma=-1; it must be"),
        ({"gamma": np.inf}, "gamma=inf; it must be"),
        ({"gamma": np.nan}, "gamma=nan; it must be"),
        ({"gamma": "scale"}, "gamma='scale'; it must be"),
        ({"degree": -1}, "degree=-1; it must be a whole number"),
        ({"degree": 2.5}, "degree=2.5; it must be a whole number"),
        ({"coef0": np.nan}, "coef0=nan; it must be a finite number"),
    ],
)
def test_wrong_parameters(options, message):
    """Each is an error that names it and what it may be."""
    with pytest.raises(ValueError, match=message):
        Kernel(**{"name": "poly", **options})


@pytest.mark.parametrize("name", ["chi2", "additive_chi2"])
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_chi2_is_for_numbers_from_0_on(name, kind):
    """A negative number in either set of rows, or in a kernel matrix's, is an error that shows it."""
    good, bad = kind(rows(5, 3)), kind(rows(5, 3) - 0.25)
    for work in (
        lambda: Kernel(name).matrix(good, bad),
        lambda: Kernel(name).matrix(bad, good),
        lambda: Kernel(name).scores(bad, good, np.ones(5)),
        lambda: PointsGram(Kernel(name), Rows(bad)),
    ):
        with pytest.raises(ValueError, match=r"numbers ≥ 0, and X has -0\.25"):
            work()


def test_rows_of_other_lengths_are_an_error():
    """Both sets have the same columns; a coefficient for each row of the second."""
    with pytest.raises(ValueError, match="different numbers of columns"):
        Kernel("rbf").matrix(rows(3, 2), rows(3, 3))
    with pytest.raises(ValueError, match="coef"):
        Kernel("rbf").scores(rows(3, 2), rows(4, 2), np.ones(3))


def test_values_that_overflow_are_an_error():
    """k(x, x) = (1 + 10²⁰⁰)³ is no number; the row and what to do are named."""
    X = np.ones((4, 1))
    X[2] = 1e100
    with pytest.raises(ValueError, match=r"k\(x, x\) of row 2 is inf with poly.*smaller gamma or degree"):
        PointsGram(Kernel("poly", coef0=1.0), Rows(X))


def grams():
    """A kernel matrix of each kind, and the same as an array."""
    X = rows(90, 5, share=0.3)
    for name in NAMES:
        for some in (X, sp.csr_array(X)):
            source = PointsGram(KERNELS[name], Rows(some))
            yield pytest.param(source, KERNELS[name].matrix(some, some), id=f"{name}-{type(some).__name__}")
    K = KERNELS["rbf"].matrix(X, X)
    for kind in (np.float64, np.float32):
        yield pytest.param(MatrixGram(K.astype(kind), 1), K.astype(kind).astype(float), id=kind.__name__)
    yield pytest.param(MatrixGram(np.asfortranarray(K)[::-1, ::-1], 1), K[::-1, ::-1], id="strides")


@pytest.mark.parametrize(("source", "K"), [*grams()])
def test_a_kernel_matrix_by_parts(source, K):
    """K itself: its diagonal, blocks of it, its products with vectors, and the sizes that bound its rounding."""
    index, others, coef = (
        np.array([80, 2, 2, 17]),
        np.arange(0, 90, 4),
        np.random.default_rng(3).standard_normal((4, 3)),
    )
    assert np.array_equal(source.diagonal, np.diag(K))
    assert np.array_equal(source.block(index, others), K[np.ix_(index, others)])
    assert (abs(K) <= np.sqrt(np.outer(source.sizes, source.sizes)) * (1 + 4 * EPSILON)).all()
    some, coef = index[[0, 1, 3]], coef[:3]
    products = source.products(some, coef)
    assert products.shape == (90, 3)
    assert (
        abs(products - K[:, some] @ coef) <= 30 * EPSILON * np.sqrt(source.sizes).max() ** 2 * abs(coef).sum()
    ).all()
    assert source.products(some, coef[:, 1]) == pytest.approx(products[:, 1], rel=1e-13)
    assert not source.products(some[:0], coef[:0]).any()


@pytest.mark.parametrize("name", ["rbf", "laplacian", "chi2"])
@pytest.mark.parametrize("gamma", [1e-6, 1.0, 1e6])
def test_rounding_of_kernel_values_is_bounded(name, gamma):
    """The same sums in extended precision, of rows in two far clusters, whose distances lose most of their digits."""
    rng = np.random.default_rng(0)
    for distance in (0.0, 1e2, 1e4, 1e6):
        X = rng.exponential(size=(40, 3)) + distance * (np.arange(40) % 2)[:, None]
        X[20:30] = X[:10] * (1 + 1e-8)
        X[30:] = X[10:20]
        kernel, index = Kernel(name, gamma), np.arange(35)
        source, coef = PointsGram(kernel, Rows(X)), rng.standard_normal(35)
        off = abs(source.products(index, coef) - exact_kernel(kernel, X, X)[:, :35] @ coef) / 2**-50
        bound = source.rounding(index, coef)
        assert (off <= bound).all()
        assert (bound <= 2 * np.sqrt(source.sizes) * (np.sqrt(source.sizes[:35]) @ abs(coef))).all()


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("d", [4, 90])
def test_sources_of_rows(precision, sparse, d):
    """A round of the solver leaves e = y − K(αy): with rows computed, kept in little memory, whole, and given."""
    X = rows(150, d, share=0.2 if sparse else 1.0)
    y, kernel = np.where(np.arange(150) % 3, 1.0, -1.0), Kernel("rbf", gamma=1 / d)
    X = sp.csr_array(X) if sparse else X
    source, single = PointsGram(kernel, Rows(X)), precision == "single"
    K = kernel.matrix(X, X)
    given = MatrixGram(K.astype(np.float32) if single else K, 1)
    found = []
    for rows_of_matrix in (
        source.source(single=single, memory=0),
        source.source(single=single, memory=1e9),
        source.source(single=single, memory=1e9, whole=True),
        given.source(single=single, memory=0),
    ):
        alpha, e = np.zeros(150), y.copy()
        solver = (_core.KernelSmo32 if single else _core.KernelSmo64)(
            rows_of_matrix, [(0, 150)], y, np.ones(150), alpha, e, 20, 1
        )
        solver.run(30, 1e-3)
        off = 3e-5 if single else 1e-12
        assert abs(e - (y - K @ (alpha * y))).max() <= off
        assert alpha.max() == 1
        found.append((alpha, e))
    for alpha, e in found[1:3] if single else found[1:]:
        assert np.array_equal(alpha, found[0][0])
        assert np.array_equal(e, found[0][1])


def planted(n=60, depth=0.5, seed=0):
    """A kernel matrix less `depth` times the square of a direction v, Σ v = 0 and ‖v‖ = 1."""
    rng = np.random.default_rng(seed)
    X, v = rng.standard_normal((n, 3)), rng.standard_normal(n)
    v -= v.mean()
    v /= np.linalg.norm(v)
    return Kernel("rbf", gamma=0.05).matrix(X, X) - depth * np.outer(v, v), v


def test_negative_curvature_is_found():
    """The planted direction bounds the value from above; v, Σ v = 0 and ‖v‖ = 1, has it, in extended precision."""
    K, v = planted()
    for kind in (np.float64, np.float32):
        value, found, index = MatrixGram(K.astype(kind), 1).negative_curvature(np.arange(3))
        assert value <= v @ K @ v + 1e-6 < 0
        exact = K.astype(kind).astype(np.longdouble)[np.ix_(index, index)]
        assert found @ exact @ found == pytest.approx(value, rel=1e-6)
        assert abs(found.sum()) < 1e-9
        assert np.linalg.norm(found) == pytest.approx(1)


def test_negative_curvature_of_many_rows_is_looked_for_among_the_first(monkeypatch):
    """Of 60 rows 10 are tested: rows 50 … 53, a planted direction, are found if they are among the first."""
    monkeypatch.setattr(gram, "LARGEST_TEST", 10)
    K = np.eye(60)
    K[np.ix_([50, 51], [52, 53])] = K[np.ix_([52, 53], [50, 51])] = 0.9
    value, v, index = MatrixGram(K, 1).negative_curvature(np.arange(50, 54))
    assert set(range(50, 54)) <= set(index.tolist())
    assert len(index) == 10
    assert value == pytest.approx(1 - 1.8)
    assert v @ K[np.ix_(index, index)] @ v == pytest.approx(value)


def test_there_is_no_negative_curvature_in_a_kernel():
    """Positive semidefinite matrices, also of low rank, and those that are so on Σ v = 0 only."""
    X = rows(60, 3)
    squares = (X**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * X @ X.T
    chi2 = KERNELS["additive_chi2"].matrix(X, X)
    for K in (KERNELS["rbf"].matrix(X, X), X @ X.T, -distances, chi2, np.zeros((60, 60)), np.eye(60) - 5.0):
        assert MatrixGram(K, 1).negative_curvature(np.arange(60)) is None
    assert np.linalg.eigvalsh(chi2).min() < -1
    assert PointsGram(Kernel("rbf"), Rows(X)).negative_curvature(np.arange(60)) is None
    assert MatrixGram(-np.eye(1), 1).negative_curvature(np.arange(1)) is None


@pytest.mark.parametrize("name", NAMES)
def test_which_kernels_are_semidefinite(name):
    """The eigenvalues of K on Σ v = 0: those that say so by their formula have none below 0 but for rounding."""
    X = rows(60, 3)
    K = KERNELS[name].matrix(X, X)
    centred = K - K.mean(axis=0)
    smallest = np.linalg.eigvalsh(centred - centred.mean(axis=1)[:, None]).min()
    assert (smallest > -1e-12 * abs(K).max() * 60) == KERNELS[name].semidefinite
    assert (name == "sigmoid") != KERNELS[name].semidefinite
    assert not Kernel("poly", coef0=-1.0).semidefinite
    assert PointsGram(KERNELS[name], Rows(X)).semidefinite == KERNELS[name].semidefinite


def test_text_rows():
    """Unit rows of 5,000 columns, of which most are empty: the sums are those of the dense rows."""
    X, _ = text_like(70)
    for name in ("linear", "rbf", "cosine", "laplacian", "poly"):
        kernel = KERNELS[name]
        off = abs(kernel.matrix(X, X[:30]) - kernel.matrix(X.toarray(), X[:30].toarray()))
        assert off.max() <= 64 * EPSILON * max(1.0, kernel.diagonal(X).max())


def test_a_kernel_says_what_it_is():
    """Its name and those parameters that it has."""
    assert str(Kernel("rbf", gamma=0.5, coef0=3.0)) == "rbf(gamma=0.5)"
    assert str(Kernel("poly", gamma=1 / 3, degree=2)) == "poly(gamma=0.333333, degree=2, coef0=0)"
    assert str(Kernel("cosine")) == "cosine"
    assert Kernel("sigmoid", 0.5, coef0=1.0).parameters == {"gamma": 0.5, "coef0": 1.0}
