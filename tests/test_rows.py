import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from widemargin.data import Rows


def employ(rows, threads):
    """Puts so many threads to work, even for a few numbers."""
    rows.threads = rows.threads_for_pairs = threads
    return rows


def storages(X):
    """Every storage of the same matrix that training accepts without a copy."""
    X64 = X.astype(np.float32).astype(np.float64)  # so that both precisions hold the same numbers
    padded = np.zeros((2 * X.shape[0], 2 * X.shape[1]))
    padded[::2, ::2] = X64
    yield from (
        X64,
        np.asfortranarray(X64),
        padded[::2, ::2],
        X64.astype(np.float32),
        np.asfortranarray(X64, np.float32),
    )
    for dtype in (np.float32, np.float64):
        for index in (np.int32, np.int64):
            csr = sp.csr_array(X64.astype(dtype))
            csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
            yield csr


@pytest.fixture(
    params=[(7, 3, 0.6), (1, 1, 1.0), (700, 20, 0.6), (700, 30, 0.05), (1500, 5, 0.6), (5, 40, 0.3), (300, 60, 0.7)],
    ids=str,
)
def matrix(request):
    """A few or many non-zeros, an empty row and an empty column."""
    n, d, filled = request.param
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < filled)
    X[n // 2, :] = 0
    X[:, d // 2] = 0
    return X


def test_products_equal_numpy(matrix):
    """Xw, Xᵀv, all of it and by the sign of v, ‖x‖², Σ vx² and XXᵀ of every storage equal NumPy's."""
    rng = np.random.default_rng(1)
    w, v = rng.standard_normal(matrix.shape[1]), rng.standard_normal(matrix.shape[0])
    plain = next(storages(matrix))
    for X in storages(matrix):
        rows = employ(Rows(X), 2)
        assert (rows.n, rows.d) == matrix.shape
        assert_allclose(rows.scores(w), plain @ w, rtol=1e-12, atol=1e-12)
        assert_allclose(rows.combine(v), plain.T @ v, rtol=1e-12, atol=1e-12)
        by_sign = [plain.T @ np.maximum(v, 0), plain.T @ np.maximum(-v, 0)]
        assert_allclose(rows.combine_by_sign(v), by_sign, rtol=1e-12, atol=1e-12)
        for found, wanted in zip(rows.scores_and_combine(w, v), (plain @ w, plain.T @ v), strict=True):
            assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
        assert_allclose(rows.combine_squares(v), (plain**2).T @ v, rtol=1e-12, atol=1e-12)
        assert_allclose(rows.square_norms, (plain**2).sum(axis=1), rtol=1e-12)
        assert_allclose(rows.outer(), plain @ plain.T, rtol=1e-12, atol=1e-12)
        assert_allclose(rows.take(np.array([0, -1])), plain[[0, -1]])


@pytest.mark.parametrize("border", [False, True])
@pytest.mark.parametrize("shifted", [False, True])
def test_gram_equals_numpy(matrix, border, shifted):
    """ZᵀDZ with Z = X − shift and a column of ones equals NumPy's, rows of weight 0 left out."""
    rng = np.random.default_rng(2)
    weight = rng.random(len(matrix)) * (rng.random(len(matrix)) < 0.7)
    shift = rng.standard_normal(matrix.shape[1]) if shifted else None
    plain = next(storages(matrix))
    Z = plain - (0 if shift is None else shift)
    Z = np.hstack([Z, np.ones((len(Z), 1))]) if border else Z
    for X in storages(matrix):
        rows = employ(Rows(X), 2)
        assert_allclose(rows.gram(weight, shift, border), (Z.T * weight) @ Z, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("density", [0.02, 0.1, 1.0])
def test_bits_do_not_depend_on_threads(density):
    """One, two and five threads give the same bits."""
    X = sp.random_array((20_000, 90), density=density, format="csr", rng=np.random.default_rng(3))
    rng = np.random.default_rng(4)
    w, v, weight = rng.standard_normal(90), rng.standard_normal(20_000), rng.random(20_000)
    one, *others = [employ(Rows(X), threads) for threads in (1, 2, 5)]
    for other in others:
        assert np.array_equal(one.scores(w), other.scores(w))
        assert np.array_equal(one.combine(v), other.combine(v))
        assert np.array_equal(one.combine_squares(v), other.combine_squares(v))
        assert all(map(np.array_equal, one.scores_and_combine(w, v), other.scores_and_combine(w, v)))
        assert np.array_equal(one.gram(weight, None, True), other.gram(weight, None, True))
    Z = np.hstack([X.toarray(), np.ones((20_000, 1))])
    assert_allclose(one.gram(weight, None, True), (Z.T * weight) @ Z, rtol=1e-11)


@pytest.mark.parametrize("n", [1, 1500])
@pytest.mark.parametrize("share", [0.0, 0.8])
def test_gram_of_many_columns(n, share):
    """More than threads have sums of their own for: NumPy's matrix, and the same bits on one, two and five."""
    rng = np.random.default_rng(6)
    X, weight = rng.standard_normal((n, 600)), rng.random(n) * (rng.random(n) < share)

    def gram(threads):
        return employ(Rows(X), threads).gram(weight, X[0], True)

    one, *others = map(gram, (1, 2, 5))
    Z = np.hstack([X - X[0], np.ones((n, 1))])
    assert_allclose(one, (Z.T * weight) @ Z, rtol=1e-11, atol=1e-11)
    assert all(np.array_equal(one, other) for other in others)


@pytest.fixture(params=[np.float32, np.float64])
def uneven(request):
    """Rows of 0 to 2,500 numbers, short ones for the most part, nearly each of another length than the one before."""
    rng = np.random.default_rng(7)
    lengths = np.where(rng.random(3000) < 0.9, rng.integers(0, 20, 3000), rng.integers(20, 60, 3000))
    lengths[[5, 1000, 2999]] = 1025, 2500, 1024
    lengths[1100:1200] = 33
    columns = [np.sort(rng.choice(2500, length, replace=False)) for length in lengths]
    starts, values = np.append(0, np.cumsum(lengths)), rng.standard_normal(lengths.sum())
    return sp.csr_array((values.astype(request.param), np.concatenate(columns), starts), shape=(3000, 2500))


def test_products_of_uneven_rows(uneven):
    """Xw, Xᵀv and Σ vx² equal NumPy's, whether many v are 0 or none, to the same bits on any number of threads."""
    X, rng = uneven.astype(np.float64), np.random.default_rng(8)
    w, v = rng.standard_normal(2500), rng.standard_normal(3000)
    v[400:900] *= rng.random(500) < 0.1
    one, *others = [employ(Rows(uneven), threads) for threads in (1, 2, 5)]
    assert one.core.uneven
    assert_allclose(one.scores(w), X @ w, rtol=1e-12, atol=1e-12)
    assert_allclose(one.combine(v), X.T @ v, rtol=1e-12, atol=1e-12)
    assert_allclose(one.combine_squares(v), X.power(2).T @ v, rtol=1e-12, atol=1e-12)
    for found, wanted in zip(one.scores_and_combine(w, v), (X @ w, X.T @ v), strict=True):
        assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    for other in others:
        assert np.array_equal(other.scores(w), one.scores(w))
        assert np.array_equal(other.combine(v), one.combine(v))
        assert np.array_equal(other.combine_squares(v), one.combine_squares(v))
        assert all(map(np.array_equal, other.scores_and_combine(w, v), one.scores_and_combine(w, v)))


def test_more_columns_than_are_kept_room_for():
    """Xw and Xᵀv in one walk equal SciPy's with a million columns, whose memory is given back."""
    n, d, step = 1000, 1_100_000, 120
    columns = np.concatenate([np.arange(i % step, d, step) for i in range(n)])
    starts = np.append(0, np.cumsum([len(range(i % step, d, step)) for i in range(n)]))
    rng = np.random.default_rng(11)
    X = sp.csr_array((rng.standard_normal(len(columns)), columns.astype(np.int32), starts.astype(np.int32)), (n, d))
    w, v = rng.standard_normal(d), rng.standard_normal(n)
    scores, sums = Rows(X, 2).scores_and_combine(w, v)
    assert_allclose(scores, X @ w, rtol=1e-10, atol=1e-10)
    assert_allclose(sums, X.T @ v, rtol=1e-10, atol=1e-10)


def test_rows_of_most_numbers_last():
    """Xᵀv and Xw in one walk equal NumPy's where a few rows have most of the numbers, v ≠ 0 for all, some or none."""
    rng = np.random.default_rng(10)
    X = sp.vstack([sp.random_array((size, 90), density=share, rng=rng) for size, share in ((4000, 0.3), (600, 1.0))])
    w, v = rng.standard_normal(90), rng.standard_normal(4600)
    for used in (np.ones(4600), np.arange(4600) >= 4500, rng.random(4600) < 0.1, np.zeros(4600)):
        one, two = (employ(Rows(X.tocsr()), threads).scores_and_combine(w, v * used) for threads in (1, 2))
        assert_allclose(one[0], X @ w, rtol=1e-12, atol=1e-12)
        assert_allclose(one[1], X.T @ (v * used), rtol=1e-12, atol=1e-12)
        assert all(map(np.array_equal, one, two))


def test_the_score_of_an_uneven_row_does_not_depend_on_others(uneven):
    """The same bits for the same row, whichever uneven rows are around it; alone, all but the last of them."""
    rng = np.random.default_rng(9)
    w, order = rng.standard_normal(2500), rng.permutation(3000)
    scores, shuffled = Rows(uneven).scores(w), Rows(uneven[order])
    assert shuffled.core.uneven
    assert np.array_equal(shuffled.scores(w), scores[order])
    assert_allclose([Rows(uneven[i : i + 1]).scores(w)[0] for i in range(100)], scores[:100], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    "lengths", [[5] * 300, [40, 50, 60] * 100, [3, 3, 3, 4, 4, 4] * 50, [7]], ids=lambda one: str(one[:3])
)
def test_other_rows_are_not_uneven(lengths):
    """All of one length, long ones, most as long as the one before, a single one."""
    starts = np.append(0, np.cumsum(lengths))
    columns = np.concatenate([np.arange(length) for length in lengths])
    assert not Rows(sp.csr_array((np.ones(len(columns)), columns, starts))).core.uneven


def test_few_numbers_and_many_pairs():
    """Threads that do not pay for a walk may pay for a Gram matrix; those at hand come along."""
    rows = Rows(np.ones((300, 100)), threads=2)
    assert (rows.threads_at_hand, rows.threads, rows.threads_for_pairs) == (2, 1, 2)
    assert Rows(np.ones((3, 10)), threads=2).threads_for_pairs == 1
    assert rows.with_threads(1).threads_for_pairs == 1


def test_starts_of_rows_may_be_anything():
    """As far apart as numbers can be: an error that says so, and nothing else happens."""
    X = sp.csr_array(np.eye(4))
    X.indptr = np.array([0, -(2**31), 2**31 - 1, -(2**31), 4], dtype=np.int32)
    with pytest.raises(ValueError, match=r"X\.indptr does not rise"):
        Rows(X)


def test_what_a_matrix_remembers_of_itself_is_not_trusted():
    """Entries in two parts are summed, and columns sorted, though the flags of X say that there is nothing to do."""
    X = sp.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    twice = sp.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), X.indptr * 2), shape=X.shape)
    twice.has_canonical_format = True
    falling = sp.csr_array((X.data[[1, 0, 2]], X.indices[[1, 0, 2]], X.indptr), shape=X.shape)
    falling.has_sorted_indices = falling.has_canonical_format = True
    for changed in (twice, falling):
        before = changed.copy()
        assert_allclose(Rows(changed).square_norms, [5.0, 9.0])
        assert np.array_equal(Rows(changed).X.indices, X.indices)
        assert np.array_equal(changed.indices, before.indices)  # the matrix itself stays as it is
