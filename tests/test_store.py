"""Rows on disk: what is written comes back, trains as in memory, and is refused when it is damaged."""

import errno
import fcntl
import importlib
import json
import os
import warnings
import zlib

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from oracles import make_problem, noisy, text_like
from widemargin import MIRA, LinearSVM, LogisticRegression, Perceptron
from widemargin.certificate import certify
from widemargin.cli import main
from widemargin.data import Rows, machine, save, store, store_writer
from widemargin.data.dataset import DataError, Dataset
from widemargin.data.kept_rows import KeptRows
from widemargin.losses import LOSSES
from widemargin.problem import Problem
from widemargin.solvers import SOLVERS
from widemargin.training import fit


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(store, "SMALL", 0)
    monkeypatch.setattr(store, "SHARE", 0)
    monkeypatch.setattr(store_writer, "SMALL", 0)
    monkeypatch.setattr(store_writer, "PART", 20_000)
    monkeypatch.setattr(store_writer, "AT_ONCE", 50_000)


def sign(directory, about):
    """Another description, with the right checksum."""
    (directory / "store.json").write_text(json.dumps({**about, "signature": store.signature(about)}))


def blocks(X, y, size=100):
    """The rows, some at a time."""
    for begin in range(0, X.shape[0], size):
        yield Dataset(X[begin : begin + size], None if y is None else y[begin : begin + size], source="memory")


DATA = {
    "sparse": (text_like(900)[0][:, :400], text_like(900)[1]),
    "dense": noisy(1500, 12),
    "float32": (noisy(800, 30)[0].astype(np.float32), noisy(800, 30)[1]),
}


@pytest.fixture(params=list(DATA))
def stored(request, tmp_path):
    """A matrix and its labels, and the store of them."""
    X, y = DATA[request.param]
    store_writer.write_store(tmp_path / "s", blocks(X, y))
    return X, y, store.open_store(tmp_path / "s")


def order_of(dataset):
    """The row of the input that each row was."""
    return dataset.X._map("rows", 0, dataset.X.n)


def dense(X):
    """X as a dense array."""
    return X if isinstance(X, np.ndarray) else X.toarray()


def test_rows_come_back_shuffled(stored):
    """Every row once, with its label; the order is a permutation that mixes the input."""
    X, y, found = stored
    order = order_of(found)
    assert np.array_equal(np.sort(order), np.arange(X.shape[0]))
    assert abs(np.corrcoef(order, np.arange(len(order)))[0, 1]) < 0.15
    assert np.array_equal(dense(found.X.X), dense(X[order]))
    assert found.X.X.dtype == X.dtype
    assert np.array_equal(found.y, y[order])
    assert len(found.X.parts) > 3


@pytest.mark.parametrize("at_once", [1, 10_000, 10**9])
@pytest.mark.parametrize("size", [7, 1000])
def test_the_order_depends_on_nothing_else(tmp_path, monkeypatch, at_once, size):
    """Equals the store written in one piece, whatever is dealt out and however the rows come."""
    X, y = DATA["sparse"]
    monkeypatch.setattr(store_writer, "AT_ONCE", 10**9)
    store_writer.write_store(tmp_path / "one", blocks(X, y, 10**6))
    monkeypatch.setattr(store_writer, "AT_ONCE", at_once)
    store_writer.write_store(tmp_path / "two", blocks(X, y, size))
    for file in sorted((tmp_path / "one").iterdir()):
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes(), file.name
    assert len(list((tmp_path / "two").iterdir())) == 8


def test_some_rows_are_taken_without_a_copy_of_all_columns(stored):
    """scipy makes one where the types of its two arrays of indices differ."""
    rows = stored[2].X.X
    assert isinstance(rows, np.ndarray) or rows.indices.dtype == rows.indptr.dtype


def test_products_equal_those_in_memory(stored):
    """Xw, Xᵀv, ‖x‖², Σ|x − shift|ᵖ and the Gram matrix agree with the same rows in memory."""
    X, _, found = stored
    here, there = Rows(X[order_of(found)]), found.X
    rng = np.random.default_rng(0)
    w, v, shift = rng.standard_normal(here.d), rng.standard_normal(here.n), rng.standard_normal(here.d)
    np.testing.assert_allclose(there.scores(w), here.scores(w), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(there.combine(v), here.combine(v), rtol=1e-11, atol=1e-11)
    for found_at_once, alone in zip(there.scores_and_combine(w, v), (here.scores(w), here.combine(v)), strict=True):
        np.testing.assert_allclose(found_at_once, alone, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(there.combine_squares(v), here.combine_squares(v), rtol=1e-11, atol=1e-11)
    np.testing.assert_array_equal(there.square_norms, here.square_norms)
    sums = {"power": 2, "shift": shift}
    np.testing.assert_allclose(there.column_sums(v**2, **sums), here.column_sums(v**2, **sums), rtol=1e-11)
    np.testing.assert_allclose(there.gram(v**2, shift, True), here.gram(v**2, shift, True), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(
    "solver", [name for name, method in SOLVERS.items() if method.exact and name not in ("hildreth", "qp")]
)
def test_every_solver_trains_on_a_store(stored, solver):
    """The minimum equals the one in memory, up to the two gaps."""
    X, y, found = stored
    loss = "hinge" if "hinge" in SOLVERS[solver].losses else "squared"
    if solver == "proximal_newton" and X.shape[1] > X.shape[0]:
        pytest.skip("for tall data")
    whole = fit(make_problem(X, y, 1.0, loss), tol=1e-4)
    problem = Problem(found.X, found.y.astype(float), np.ones(found.X.n), LOSSES[loss])
    parts = fit(problem, solver=solver, tol=1e-4)
    assert parts.certificate.relative_gap <= 1e-4
    assert parts.certificate.primal == pytest.approx(whole.certificate.primal, rel=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_estimators_take_a_store(stored, loss):
    """Proves the gap asked for; predictions equal those of the arrays."""
    X, _, found = stored
    svm = LinearSVM(loss=loss).fit(found.X, found.y)
    assert svm.certificate_.relative_gap <= 1e-3
    np.testing.assert_allclose(svm.decision_function(found.X), svm.decision_function(X)[order_of(found)], atol=1e-12)
    assert svm.n_features_in_ == X.shape[1]


def test_a_store_trains_to_the_same_bits(stored):
    """The same at one and two threads, and in another process's mapping of the same files."""
    _, _, found = stored
    one, two = (LinearSVM(n_jobs=n).fit(store.open_store(found.source).X, found.y) for n in (1, 2))
    assert one.coef_.tobytes() == two.coef_.tobytes()


def test_a_stored_fit_goes_on_with_the_same_bits(tmp_path):
    """Equals the undisturbed fit when it is resumed in the middle, with rows shrunk away in every part."""
    X, y = DATA["sparse"]
    store_writer.write_store(tmp_path / "s", blocks(X, y))
    found, states = store.open_store(tmp_path / "s"), []
    problem = Problem(found.X, found.y.astype(float), np.ones(found.X.n), LOSSES["hinge"])
    whole = fit(problem, tol=1e-6, keep=lambda state: states.append(state()))
    again = fit(problem, tol=1e-6, resumed=states[len(states) // 2])
    assert again.w.tobytes() == whole.w.tobytes()


@pytest.mark.parametrize("room", [0, 1, 300, 10**6])
def test_rows_of_several_parts_are_kept_while_there_is_room(stored, room):
    """Every third row of each part: those that fit, and no more."""
    X, _, found = stored
    rows, kept, wanted = found.X, KeptRows(found.X.d, room), []
    for k, part in rows.walk(range(len(rows.parts))):
        chosen = np.arange(0, part.n, 3)
        kept.add(part, chosen, rows.parts[k].start)
        wanted.append(chosen + rows.parts[k].start)
    index, given = kept.index, dense(X)[order_of(found)]
    lengths = np.diff(rows.X.indptr) if rows.sparse else np.full(rows.n, rows.d)
    assert lengths[index].sum() <= room
    assert set(index) <= set(np.concatenate(wanted))
    if room == 10**6:
        assert (index == np.concatenate(wanted)).all()
    if len(index):
        assert (dense(kept.rows(1).X) == given[index]).all()
    else:
        assert room < lengths[np.concatenate(wanted)].min()


def test_rows_that_are_kept_save_passes(tmp_path, monkeypatch):
    """Slow rows of all parts are solved together between two walks over the parts."""
    store_writer.write_store(tmp_path / "s", blocks(*DATA["sparse"]))
    found = store.open_store(tmp_path / "s")
    problem = Problem(found.X, found.y.astype(float), np.ones(found.X.n), LOSSES["hinge"])
    with_them = fit(problem, solver="dual_cd", tol=1e-3)
    monkeypatch.setattr(importlib.import_module("widemargin.solvers.dual_cd"), "KEPT", 0.0)
    without = fit(problem, solver="dual_cd", tol=1e-3)
    assert with_them.certificate.relative_gap <= 1e-3
    assert with_them.iterations < without.iterations


@pytest.mark.parametrize("free", [0, 1 << 40])
def test_a_store_larger_than_memory_is_read_past_the_cache(stored, monkeypatch, free):
    """Where the file system can do that; what is read is the same."""
    X, _, found = stored
    monkeypatch.setattr(store, "free_memory", lambda: free)
    w = np.linspace(-1, 1, found.X.d)
    assert found.X.scores(w) == pytest.approx((dense(X) @ w)[order_of(found)])
    try:
        os.close(os.open(found.X.directory / "x", os.O_RDONLY | os.O_DIRECT))
        direct = not free
    except OSError:  # not on this file system
        direct = False
    assert {bool(fcntl.fcntl(one, fcntl.F_GETFL) & os.O_DIRECT) for one in found.X.files.of.values()} == {direct}


def test_a_disk_that_promises_too_much_is_read_through_the_cache(stored, monkeypatch):
    """Some file systems take the flag and then refuse to read."""
    X, _, found = stored
    read, refused = os.preadv, []

    def picky(file, buffers, at):
        if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DIRECT:
            refused.append(file)
            raise OSError(errno.EINVAL, "Invalid argument")
        return read(file, buffers, at)

    monkeypatch.setattr(os, "preadv", picky)
    monkeypatch.setattr(store, "free_memory", lambda: 0)
    w = np.linspace(-1, 1, found.X.d)
    for _ in range(2):
        assert found.X.scores(w) == pytest.approx((dense(X) @ w)[order_of(found)])
    assert len(refused) <= 1


def test_short_reads_are_completed(stored, monkeypatch):
    """The system may give less than it was asked for."""
    X, _, found = stored
    read = os.preadv
    monkeypatch.setattr(os, "preadv", lambda file, buffers, at: read(file, [buffers[0][:4096]], at))
    w = np.linspace(-1, 1, found.X.d)
    assert found.X.scores(w) == pytest.approx((dense(X) @ w)[order_of(found)])


def test_two_walks_do_not_disturb_each_other(stored):
    """Several classes may walk over one store at once, and a walk may be left early."""
    rows, w = stored[2].X, np.linspace(-1, 1, stored[2].X.d)
    scores, order = rows.scores(w), list(range(len(rows.parts)))
    for (k, one), (j, other) in zip(rows.walk(order), rows.walk(order[::-1]), strict=True):
        assert (one.scores(w) == scores[rows.parts[k]]).all()
        assert (other.scores(w) == scores[rows.parts[j]]).all()
    left = rows.walk(order)
    next(left)
    left.close()
    assert (rows.scores(w) == scores).all()


@pytest.mark.parametrize("estimator", [Perceptron(), MIRA(), LinearSVM(), LogisticRegression()], ids=str)
def test_estimators_take_rows(stored, estimator):
    """Of a store, as they take its arrays: the same steps where the order decides, else the same minimum."""
    found = stored[2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        arrays = clone(estimator).fit(found.X.X, found.y)
        rows = clone(estimator).fit(found.X, found.y)
    assert rows.score(found.X, found.y) == pytest.approx(arrays.score(found.X.X, found.y), abs=0.02)
    if hasattr(rows, "certificate_"):
        assert rows.certificate_.primal == pytest.approx(arrays.certificate_.primal, rel=rows.tol)
    else:
        assert (rows.coef_ == arrays.coef_).all()


@pytest.mark.parametrize(
    ("groups", "name", "limit", "free"),
    [
        ("0::/a/b\n", "a/b/memory.max", "1000", 1000),
        ("0::/a/b\n", "a/memory.max", "3000", 3000),
        ("0::/elsewhere\n", "memory.max", "max", 4096),
        ("7:cpu,memory:/a\n8:pids:/\n", "memory/a/memory.limit_in_bytes", "2000", 2000),
        ("7:memory:/a\n", "memory/a/memory.limit_in_bytes", "9223372036854771712", 4096),
    ],
)
def test_free_memory_heeds_control_groups(tmp_path, monkeypatch, groups, name, limit, free):
    """Of both versions, those that hold the process's own group included."""
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 4 kB\n")
    (tmp_path / "cgroup").write_text(groups)
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(limit + "\n")
    monkeypatch.setattr(machine, "INFO", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    assert machine.free_memory() == free


@pytest.mark.parametrize(
    ("groups", "limits", "cores"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "250000 100000"}, 3),
        ("0::/a\n", {"a/cpu.max": "20000 100000"}, 1),
        ("0::/a\n", {"a/cpu.max": "max 100000"}, 8),
        ("4:cpuacct,cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": "200000", "cpu/a/cpu.cfs_period_us": "100000"}, 2),
        ("4:cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, 8),
        ("", {}, 8),
    ],
)
def test_cores_at_hand_heed_control_groups(tmp_path, monkeypatch, groups, limits, cores):
    """Of eight cores no more are used than the share of time that a container is held to makes up, and at least one."""
    (tmp_path / "cgroup").write_text(groups)
    for name, limit in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(limit + "\n")
    monkeypatch.setattr(machine, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(machine, "_share_of_time", machine._share_of_time.__wrapped__)
    assert machine.cores_at_hand() == cores


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("wrong", [0, -1, 900])
def test_an_order_that_is_none_is_refused(tmp_path, wrong, signed):
    """Row numbers twice, or of no row: predictions would come out in a wrong order, even if the checksum is right."""
    store_writer.write_store(tmp_path / "s", blocks(*DATA["sparse"]))
    order = np.fromfile(tmp_path / "s" / "rows", np.int64)
    order[np.flatnonzero(order)[0]] = wrong
    order.tofile(tmp_path / "s" / "rows")
    if signed:
        about = json.loads((tmp_path / "s" / "store.json").read_text())
        sign(tmp_path / "s", about | {"rows_checksum": zlib.crc32(order.tobytes())})
    with pytest.raises(DataError, match=r"the order of the rows is damaged; remove it and convert"):
        store.order_of(tmp_path / "s")


def test_rows_that_changed_places_are_refused(tmp_path):
    """An order that is one, but not that of the store."""
    store_writer.write_store(tmp_path / "s", blocks(*DATA["sparse"]))
    order = np.fromfile(tmp_path / "s" / "rows", np.int64)
    order[[0, 1]] = order[[1, 0]]
    order.tofile(tmp_path / "s" / "rows")
    with pytest.raises(DataError, match="the order of the rows is damaged"):
        store.order_of(tmp_path / "s")


def test_text_labels_and_names_are_kept(tmp_path):
    """Labels come back in their own type."""
    X = sp.csr_array(np.eye(3))
    store_writer.write_store(tmp_path / "s", [Dataset(X, np.array(["b", "a", "b"]), names=("x", "y", "ü"))])
    found = store.open_store(tmp_path / "s")
    assert found.names == ("x", "y", "ü")
    assert sorted(found.y.tolist()) == ["a", "b", "b"]
    assert found.y[order_of(found) == 1] == "a"


@pytest.mark.parametrize("name", ["x", "columns", "lengths"])
def test_damage_is_found(tmp_path, name):
    """One bit flipped anywhere: an error before the kernels see it."""
    store_writer.write_store(tmp_path / "s", blocks(*DATA["sparse"]))
    file = tmp_path / "s" / name
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 2] ^= 4
    file.write_bytes(bytes(whole))
    found = store.open_store(tmp_path / "s")
    with pytest.raises(DataError, match=r"part \d+ is damaged.*convert the data again"):
        LinearSVM().fit(found.X, found.y)


def test_impossible_columns_are_refused(tmp_path):
    """A column beyond the matrix would be foreign memory, even if the checksum is right."""
    store_writer.write_store(tmp_path / "s", blocks(*DATA["sparse"]))
    about = json.loads((tmp_path / "s" / "store.json").read_text())
    about["columns"] = 3
    sign(tmp_path / "s", about)
    with pytest.raises(DataError, match="impossible columns"):
        store.open_store(tmp_path / "s").X.scores(np.zeros(3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 3}, "a store of version 3, this program knows 2; update widemargin"),
        ({"version": 1}, "a store of version 1, this program knows 2; remove it and convert the data again"),
        ({"format": "cake"}, "not the description of a store"),
        ({"rows": 10}, "not the description of a store"),
        ({"edges": 5}, "not the description of a store"),
        ({"nonzeros": 7}, r"not the description of a store \(edges\)"),
        ({"columns": 1 << 70}, r"not the description of a store \(sizes\)"),
        ({"labels": [{}]}, r"not the description of a store \(labels\)"),
        ({"names": ["a"]}, r"not the description of a store \(names\)"),
        ({"checksums": {"a": None}}, r"not the description of a store \(type\)"),
        ({"labels": "ab"}, r"not the description of a store \(labels\)"),
        ({"origin": [1]}, r"not the description of a store \(origin\)"),
        ({"origin": {"name": 5}}, r"not the description of a store \(origin\)"),
        ({"zero_based": True}, r"not the description of a store \(checksum\); remove it and convert the data again"),
    ],
)
def test_a_wrong_description_is_refused(tmp_path, change, message):
    """One line that says what to do."""
    store_writer.write_store(tmp_path / "s", blocks(*DATA["sparse"]))
    about = json.loads((tmp_path / "s" / "store.json").read_text())
    (tmp_path / "s" / "store.json").write_text(json.dumps({**about, **change}))
    with pytest.raises(DataError, match=message):
        store.open_store(tmp_path / "s")


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    """The error says what to do, and the store that was there before is still whole."""
    store_writer.write_store(tmp_path / "s", blocks(*DATA["sparse"]))
    before = {file.name: file.read_bytes() for file in (tmp_path / "s").iterdir()}

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(store_writer._Writer, "_write", full)
    with pytest.raises(DataError, match="no space left for the store; free some"):
        store_writer.write_store(tmp_path / "s", blocks(*DATA["dense"]))
    assert [path.name for path in tmp_path.iterdir()] == ["s"]
    assert {file.name: file.read_bytes() for file in (tmp_path / "s").iterdir()} == before


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((np.array([[1.0], [np.nan]]), np.ones(2)), "values must be finite"),
        ((np.zeros((0, 3)), np.zeros(0)), "no rows"),
    ],
)
def test_what_cannot_be_stored(tmp_path, data, message):
    """An error, and nothing written."""
    with pytest.raises(DataError, match=message):
        store_writer.write_store(tmp_path / "s", [Dataset(*data)])
    assert not list(tmp_path.iterdir())


def test_a_directory_that_is_no_store_is_not_touched(tmp_path):
    """Neither read nor replaced."""
    (tmp_path / "precious").write_text("x")
    with pytest.raises(DataError, match=r"a directory without a store\.json"):
        store.open_store(tmp_path)
    with pytest.raises(DataError, match="exists and is no store"):
        store_writer.write_store(tmp_path, blocks(*DATA["dense"]))
    assert (tmp_path / "precious").read_text() == "x"


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    """A claim that nobody holds is a dead process's; one that is held, or a stranger's directory, is not touched."""
    dead, living, stranger = (
        tmp_path / name for name in (".s.0123456789ab.storing", ".s.ba9876543210.storing", ".s.2024")
    )
    for one in (dead, living, stranger):
        one.mkdir()
    (dead / "claim").touch()
    with (living / "claim").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        store_writer.write_store(tmp_path / "s", blocks(*DATA["dense"]))
    assert not dead.exists()
    assert living.exists()
    assert stranger.exists()


def test_a_stranger_with_a_store_json_is_not_replaced(tmp_path):
    """Neither a directory whose store.json is another program's nor a store with another file in it."""
    shop, kept = tmp_path / "shop", tmp_path / "kept"
    shop.mkdir()
    (shop / "store.json").write_text('{"items": 3}')
    store_writer.write_store(kept, blocks(*DATA["dense"]))
    (kept / "precious.txt").write_text("x")
    for one in (shop, kept):
        with pytest.raises(DataError, match="exists and is no store"):
            store_writer.write_store(one, blocks(*DATA["dense"]))
    assert (kept / "precious.txt").read_text() == "x"


def test_a_store_that_is_replaced_stays_what_it_was_for_who_reads_it(tmp_path):
    """The scores of an open store are those of its own rows, whatever has its name by now."""
    store_writer.write_store(tmp_path / "s", blocks(*DATA["sparse"]))
    found = store.open_store(tmp_path / "s")
    w = np.random.default_rng(0).standard_normal(found.X.d)
    before = found.X.scores(w)
    store_writer.write_store(tmp_path / "s", blocks(*DATA["dense"]))
    np.testing.assert_array_equal(found.X.scores(w), before)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s"]


def test_lengths_that_wrap_around_are_refused(tmp_path):
    """Lengths of rows whose sum is right only modulo 2³² would lead out of the arrays."""
    store_writer.write_store(tmp_path / "s", blocks(*DATA["sparse"]))
    about = json.loads((tmp_path / "s" / "store.json").read_text())
    lengths = np.fromfile(tmp_path / "s" / "lengths", np.int64)
    lengths[0] += 1 << 32
    lengths.tofile(tmp_path / "s" / "lengths")
    about["checksums"][0]["lengths"] = zlib.crc32(lengths[: about["edges"][1]].tobytes())
    sign(tmp_path / "s", about)
    with pytest.raises(DataError, match="impossible columns"):
        _ = store.open_store(tmp_path / "s").X.X


@pytest.mark.parametrize("solver", ["dual_cd", "proximal_newton"])
def test_rows_in_parts_are_never_there_as_a_whole(stored, solver):
    """Nor are some of them copied where most lie far from the margin."""
    _, _, found = stored
    problem = Problem(found.X.divided(True), found.y.astype(float), np.full(found.X.n, 0.1), LOSSES["hinge"])
    fit(problem, solver=solver, tol=1e-6, max_iter=40)
    assert "X" not in vars(problem.rows)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared"])
@pytest.mark.parametrize("in_memory", [False, True])
def test_the_proof_is_that_of_its_points(stored, loss, in_memory):
    """What one walk found on the way is what `certify` finds in a walk for each of them."""
    X, _, found = stored
    rows = Rows(X[order_of(found)]) if in_memory else found.X
    problem = Problem(rows, found.y.astype(float), np.ones(found.X.n), LOSSES[loss])
    proof = fit(problem, solver="dual_cd", tol=1e-3)
    again = certify(problem, proof.w, proof.b, proof.alpha)
    assert again.relative_gap <= 1e-3
    for name in ("primal", "dual", "slack", "kkt_violation"):
        assert getattr(again, name) == pytest.approx(getattr(proof.certificate, name), rel=1e-9, abs=1e-9)
    assert [kind.count for kind in again.kkt] == [kind.count for kind in proof.certificate.kkt]


def test_a_small_store_trains_as_arrays_do(tmp_path, monkeypatch):
    """To the same bits as its rows in memory, however many parts it was written in."""
    monkeypatch.setattr(store, "SMALL", 1 << 28)
    store_writer.write_store(tmp_path / "s", blocks(*DATA["sparse"]))
    found = store.open_store(tmp_path / "s")
    assert len(found.X.stored) > len(found.X.parts) == 1
    stored, arrays = (LinearSVM(solver="dual_cd").fit(X, found.y) for X in (found.X, found.X.X))
    assert stored.coef_.tobytes() == arrays.coef_.tobytes()


def test_a_cache_of_another_file_is_spared(tmp_path, capsys, monkeypatch):
    """Of a file of the same name elsewhere, and of any version; the cache of the same file is used again."""
    monkeypatch.chdir(tmp_path)
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        save(tmp_path / place / "x.svm", *text_like(100))
    train = ["train", "one/x.svm", "--cache", "c.store", "-o", "m.safetensors"]
    assert main(train) == main(train) == 0
    before = (tmp_path / "c.store" / "store.json").read_bytes()
    for change in ({}, {"version": 1}, {"version": 3}):
        sign(tmp_path / "c.store", json.loads(before) | change)
        capsys.readouterr()
        assert main(["train", "two/x.svm", "--cache", "c.store", "-o", "m.safetensors"]) == 2
        said = (
            "update widemargin" if change == {"version": 3} else "c.store: a store of 'one/x.svm'; choose another name"
        )
        assert said in capsys.readouterr().err


def test_damaged_norms_are_refused(tmp_path):
    """A flipped bit is found before anything is computed with it."""
    store_writer.write_store(tmp_path / "s", blocks(*DATA["sparse"]))
    norms = bytearray((tmp_path / "s" / "norms").read_bytes())
    norms[5] ^= 1
    (tmp_path / "s" / "norms").write_bytes(norms)
    with pytest.raises(DataError, match=r"the norms are damaged.*convert the data again"):
        store.open_store(tmp_path / "s").X.square_norms  # noqa: B018  # it is computed when asked for


@pytest.mark.parametrize(("d", "kind"), [(1 << 16, "<u2"), ((1 << 16) + 1, "<i4")])
def test_columns_take_as_many_bits_as_they_need(tmp_path, monkeypatch, d, kind):
    """The last column, which only the last block has, comes back from either side of the edge."""
    monkeypatch.setattr(store_writer, "PART", 100)
    monkeypatch.setattr(store_writer, "AT_ONCE", 200)
    early, late = sp.random_array((40, 50), density=0.2, rng=0, format="csr"), sp.csr_array(([1.0], ([0], [d - 1])))
    blocks = [Dataset(early, np.arange(40) % 2, source="memory"), Dataset(late, np.ones(1, int), source="memory")]
    store_writer.write_store(tmp_path / "s", blocks)
    found = store.open_store(tmp_path / "s")
    assert found.X.about["arrays"]["columns"] == kind
    assert [len(found.X.divided(in_parts).parts) > 1 for in_parts in (True, False)] == [True, False]
    for in_parts in (True, False):
        sums = found.X.divided(in_parts).combine(np.ones(41))
        np.testing.assert_allclose(sums[:50], early.sum(axis=0), rtol=1e-14)
        assert (len(sums), sums[-1], sums[50:-1].any()) == (d, 1.0, False)


def test_an_older_store_is_made_anew(tmp_path, capsys):
    """As `convert` is told to do, and as `train --cache` does by itself."""
    X, y = text_like(100)
    save(tmp_path / "x.svm", X, y)
    target = tmp_path / "x.store"
    for command in (["convert", tmp_path / "x.svm", target], ["train", tmp_path / "x.svm", "--cache", target]):
        store_writer.write_store(target, blocks(*DATA["sparse"]), origin={"bytes": 1})
        about = json.loads((target / "store.json").read_text())
        (target / "store.json").write_text(json.dumps({**about, "version": 1}))
        options = ["-o", tmp_path / "m.safetensors"] if command[0] == "train" else []
        assert main([str(word) for word in command + options]) == 0
        assert store.open_store(target).X.n == 100


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize(("tol", "walked"), [(1e-3, {"rough", "x"}), (1e-8, {"x"})])
def test_descent_walks_over_rough_numbers_while_they_will_do(tmp_path, monkeypatch, kind, tol, walked):
    """32 bits on the way to a loose tol, all 64 for a tight one; the proof by the rows in memory holds either way."""
    X, y = DATA[kind]
    store_writer.write_store(tmp_path / "s", blocks(X, y))
    found, walks, arrays = store.open_store(tmp_path / "s"), set(), store.StoredRows._arrays

    def spied(self, k, get, x="x"):
        walks.add(x)
        return arrays(self, k, get, x)

    monkeypatch.setattr(store.StoredRows, "_arrays", spied)
    svm = LinearSVM(C=0.1, solver="dual_cd", tol=tol).fit(found.X.divided(True), found.y)
    assert walks == walked
    mine = certify(
        make_problem(X[order_of(found)], np.where(found.y == svm.classes_[1], 1, -1), 0.1),
        svm.coef_[0],
        svm.intercept_[0],
        svm.certificate_.alpha,
    )
    assert mine.relative_gap <= tol * (1 + 1e-9)


def test_rough_numbers_that_prove_too_little_are_left(tmp_path, monkeypatch):
    """Where tol is beyond them after all, the solver goes on with all 64 bits and gets there."""
    monkeypatch.setattr(importlib.import_module("widemargin.solvers.dual_cd"), "ROUGHLY", 0.0)
    X, y = DATA["dense"]
    store_writer.write_store(tmp_path / "s", blocks(X, y))
    found = store.open_store(tmp_path / "s")
    svm = LinearSVM(C=0.1, solver="dual_cd", tol=1e-11).fit(found.X.divided(True), found.y)  # warnings are errors
    assert svm.certificate_.relative_gap <= 1e-11


def test_numbers_beyond_32_bits_are_not_made_rough(tmp_path):
    """1e40 would be infinite, 1e-40 would lose its digits."""
    for odd in (1e40, 1e-40):
        X, y = np.random.default_rng(0).standard_normal((300, 30)), np.arange(300) % 2
        X[7, 3] = odd
        store_writer.write_store(tmp_path / "s", blocks(X, y))
        assert "rough" not in {path.name for path in (tmp_path / "s").iterdir()}
        assert store.open_store(tmp_path / "s").X.divided(True).combine(np.ones(300))[3] == pytest.approx(X[:, 3].sum())
