"""The command line: what it says is what the library computes, and its files come back."""

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn import metrics

from heart import heart, run, svmlight, table, towns
from widemargin import LinearModel, LinearSVM, cli, data, progress, training
from widemargin.checkpoint import Checkpoint
from widemargin.cli import reading, screen
from widemargin.data import store, store_writer
from widemargin.data.store import open_store, order_of
from widemargin.model import certificate_summary

X, Y = heart()
TEST_X, TEST_Y = heart(90, seed=1)
#: What train proves unless told otherwise.
TOL = 1e-4


def sparse(X):
    """CSR with all numbers, as text has them."""
    n, d = X.shape
    return sp.csr_array((X.ravel(), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d)), shape=(n, d))


def fitted(X=X, y=Y, **parameters):
    """The estimator on the same arrays."""
    return LinearSVM(**{"tol": TOL, **parameters}).fit(sparse(X), y.astype(float))


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A folder with data, models and what else the examples name."""
    folder = tmp_path_factory.mktemp("good")
    (folder / "heart.svm").write_text(svmlight(X, Y))
    (folder / "heart.test.svm").write_text(svmlight(TEST_X, TEST_Y))
    (folder / "new.svm").write_text(svmlight(TEST_X, 0 * TEST_Y + 9))
    (folder / "heart.csv").write_text(table(X, Y, words=("0", "1")))
    (folder / "words.csv").write_text(table(X, Y))
    (folder / "three.svm").write_text(svmlight(*heart(classes=(0, 1, 2))))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in (
            "heart.svm --loss logistic -o heart.safetensors",
            "heart.svm -o hinge.safetensors",
            "three.svm -o three.safetensors",
            "heart.svm --tol 1e-6 --format liblinear -o liblinear.model",
            "heart.svm --kernel rbf --gamma 0.1 -C 10 -o rbf.safetensors",
            "heart.svm --kernel rbf --gamma 0.1 -C 10 --format libsvm -o libsvm.model",
        ):
            assert run("train", *command.split(), "--json") == 0
    return folder


@pytest.fixture
def answer(capsys):
    """Runs a command that must end with this code and say nothing on stderr; its output."""

    def answer(command, code=0):
        capsys.readouterr()
        assert run(*shlex.split(command)) == code
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return answer


@pytest.fixture
def numbers(answer):
    """The same for --json: one line, without the numbers that JSON does not have."""

    def numbers(command, code=0):
        out = answer(f"{command} --json", code)
        assert out.count("\n") == 1
        return json.loads(out, parse_constant=pytest.fail)

    return numbers


def examples():
    """Every command of every --help, by what it says."""
    for name in cli.COMMANDS:
        lines = map(str.strip, (import_module(f"widemargin.cli.{name}").__doc__ or "").splitlines())
        found = [line for line in lines if line.startswith("widemargin ") or " | " in line]
        assert found, f"{name} --help has no examples"
        yield from ((name, line) for line in found)


@pytest.mark.parametrize(("name", "line"), list(examples()), ids=str)
def test_examples(folder, monkeypatch, capsys, name, line):
    """The example runs as it stands in --help, with exit code 0, where the files that it names are."""
    with pytest.raises(SystemExit, match="0"):
        cli.main([name, "--help"])
    assert f"\n  {line}\n" in capsys.readouterr().out
    if name == "explore":
        if find_spec("widemargin.explorer") is None:
            pytest.skip("there is no explorer")
        monkeypatch.setattr("widemargin.explorer.serve", lambda **_: None)
    if " | " in line or " > " in line:
        script = line.replace("widemargin", f"{shlex.quote(sys.executable)} -m widemargin")
        assert subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL).returncode == 0
        assert (folder / "chances.tsv").read_text().startswith("label\t-1\t1\n")
    else:
        assert run(*shlex.split(line)[1:]) == 0
    if "-o" in line:
        assert (folder / line.partition("-o ")[2].split()[0]).stat().st_size > 0


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_round_trip(folder, numbers, answer, capsys, loss):
    """train, predict, evaluate, certify, info, convert and report say what LinearSVM and scikit-learn's metrics say."""
    clf = fitted(loss=loss, C=0.5)
    said = numbers(f"train heart.svm -C 0.5 --loss {loss} --test heart.test.svm -o m.safetensors")
    proof = json.loads(json.dumps(certificate_summary(clf.certificate_, clf.classes_, tol=TOL)))
    assert proof.items() <= said["certificate"].items()
    assert (said["rows"], said["columns"], said["classes"], said["reached"]) == (270, 13, [-1, 1], True)
    assert said["training_accuracy"] == clf.score(sparse(X), Y)
    assert said["test"]["accuracy"] == clf.score(sparse(TEST_X), TEST_Y)
    model = LinearModel.load("m.safetensors")
    assert_array_equal(model.coef, clf.coef_)
    assert_array_equal(model.intercept, clf.intercept_)

    assert run("predict", "m.safetensors", "heart.test.svm") == 0
    out, err = capsys.readouterr()
    predicted, scores = clf.predict(sparse(TEST_X)), clf.decision_function(sparse(TEST_X))
    assert_array_equal([int(line) for line in out.splitlines()], predicted)
    right = int((predicted == TEST_Y).sum())
    assert err.startswith(f"widemargin: {right} of 90 rows have the label that the file gives them")
    lines = answer("predict m.safetensors new.svm --scores").splitlines()
    assert lines[0] == "label\tscore"
    assert_array_equal([float(line.split("\t")[1]) for line in lines[1:]], scores)

    said = numbers("evaluate m.safetensors heart.test.svm")
    assert said["right"] == right
    assert said["f1"] == pytest.approx(metrics.f1_score(TEST_Y, predicted), rel=1e-12)
    assert said["roc_auc"] == pytest.approx(metrics.roc_auc_score(TEST_Y, scores), rel=1e-12)
    assert said["confusion"] == metrics.confusion_matrix(TEST_Y, predicted).tolist()
    assert (said["log_loss"] is None) == (loss == "hinge")
    if loss == "logistic":
        chances = [line.split("\t")[2] for line in answer("predict m.safetensors new.svm --proba").splitlines()[1:]]
        assert_array_equal(np.array(chances, float), model.probabilities(scores)[:, 1])
        assert said["log_loss"] == pytest.approx(metrics.log_loss(TEST_Y, np.array(chances, float)), rel=1e-12)

    said = numbers("certify m.safetensors heart.svm")
    assert said["reached"]
    assert said["each"][0]["primal"] == pytest.approx(clf.certificate_.primal, rel=1e-12)
    assert said["each"][0]["dual"] >= clf.certificate_.dual - 1e-4 * clf.certificate_.primal

    said = numbers("info m.safetensors")
    assert (said["classes"], said["columns"], said["loss"], said["C"]) == ([-1, 1], 13, loss, 0.5)
    assert said["relative_gap"] == clf.certificate_.relative_gap

    answer("report m.safetensors heart.test.svm -o page.html")
    page = (folder / "page.html").read_text()
    assert f"Of 90 rows, {right} are classified rightly" in page
    assert re.search("m.safetensors", page)
    assert re.search("heart.test.svm", page)


def test_in_words(folder, answer):
    """Without --json, the same commands print the same numbers for a person to read."""
    clf = fitted(C=0.5)
    text = answer("train heart.svm -C 0.5 --test heart.test.svm -o m.safetensors")
    right, tested = (clf.predict(sparse(X)) == Y).sum(), (clf.predict(sparse(TEST_X)) == TEST_Y).sum()
    for words in (f"{right} of 270", f"{tested} of 90", "m.safetensors", f"{clf.certificate_.primal:.6g}", "proved"):
        assert words in text
    assert f"{tested} ({100 * tested / 90:.2f} %" in answer("evaluate m.safetensors heart.test.svm")
    assert "proved" in answer("certify m.safetensors heart.svm")
    assert "hinge" in answer("info m.safetensors")
    assert "270" in answer("info heart.svm")
    assert "NOT" in answer("train heart.svm --max-iter 1 --tol 1e-9 -o short.safetensors", code=1)


def test_three_classes(folder, numbers, answer):
    """Three classes are those of LinearSVM, and each has its row in the tables."""
    X, y = heart(classes=(0, 1, 2))
    clf = fitted(X, y)
    model = LinearModel.load("three.safetensors")
    assert_array_equal(model.coef, clf.coef_)
    lines = [line.split("\t") for line in answer("predict three.safetensors new.svm --scores").splitlines()]
    assert lines[0] == ["label", "0", "1", "2"]
    assert_array_equal(np.array(lines[1:], float)[:, 1:], clf.decision_function(sparse(TEST_X)))
    assert [one["class"] for one in numbers("certify three.safetensors three.svm")["each"]] == [0, 1, 2]
    assert numbers("evaluate three.safetensors three.svm")["accuracy"] == clf.score(sparse(X), y)
    for command in ("evaluate three.safetensors three.svm", "info three.safetensors", "train three.svm"):
        assert all(re.search(rf"^{name}\b", answer(command), re.M) for name in "012")


def test_tables(folder, numbers, answer):
    """Text columns are one-hot, labels are words, names are kept: as LinearSVM on columns made here."""
    names = ["Bern", "Oslo", "Rome"]
    dense = np.hstack([X, towns(len(X))[:, None] == np.array(names)])
    clf = LinearSVM(class_weight="balanced", tol=TOL).fit(dense, np.where(Y > 0, "yes", "no"))
    said = numbers("train words.csv --label disease --class-weight balanced -o t.safetensors")
    assert said["classes"] == ["no", "yes"]
    model = LinearModel.load("t.safetensors")
    assert_array_equal(model.coef, clf.coef_)
    assert model.feature_names[-3:] == tuple(f"town={name}" for name in names)
    (folder / "unlabelled.csv").write_text(re.sub(",[^,]*$", "", table(X, Y), flags=re.M))
    assert answer("predict t.safetensors unlabelled.csv").split() == clf.predict(dense).tolist()
    answer("convert words.csv words.store --label disease")
    assert numbers("evaluate t.safetensors words.store") == numbers("evaluate t.safetensors words.csv")
    assert numbers("certify t.safetensors words.csv")["reached"]


def test_text_is_read_before_numpy_is_there(folder):
    """What reads the options and parses text needs no NumPy, which is imported meanwhile."""
    code = """
import sys, widemargin.cli.train
from widemargin.data import open
from widemargin.data.streams import Source
from widemargin.data.svmlight import _Reader
with Source("heart.svm") as source:
    reader = _Reader(source, None, "auto", "float64", 2, None)
    assert list(reader.feed(whole=True))
print("numpy" in sys.modules, len(reader.take().y))
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "270"]


def test_exit_codes(folder, answer, numbers):
    """0 if the accuracy asked for is proved, 1 if not; 2 has a file of tests of its own."""
    assert numbers("train heart.svm --max-iter 1 --tol 1e-9 -o short.safetensors", code=1)["reached"] is False
    assert float(LinearModel.load("short.safetensors").certificate["relative_gap"]) > 1e-9
    assert numbers("certify short.safetensors heart.svm --tol 1e-9", code=1)["reached"] is False
    assert numbers("certify short.safetensors heart.svm --tol 1e9")["reached"] is True


def test_the_same_bits(folder, answer):
    """A command repeated, on any number of threads, writes the same file."""
    answer("train three.svm -o a.safetensors")
    for again in ("", "--threads 1", "--threads 2"):
        answer(f"train three.svm {again} -o b.safetensors")
        assert (folder / "a.safetensors").read_bytes() == (folder / "b.safetensors").read_bytes()


def test_cache(folder, answer):
    """A store is made, used the second time, and made anew when the file or what it is read with has changed."""
    answer("train heart.svm --cache -o a.safetensors")
    made = os.stat("heart.svm.store").st_ino, os.stat("heart.svm.store/store.json").st_mtime_ns
    answer("train heart.svm --cache -o b.safetensors")
    assert (os.stat("heart.svm.store").st_ino, os.stat("heart.svm.store/store.json").st_mtime_ns) == made
    assert (folder / "a.safetensors").read_bytes() == (folder / "b.safetensors").read_bytes()
    (folder / "heart.svm").write_text(svmlight(TEST_X, TEST_Y))
    answer("train heart.svm --cache -o c.safetensors")
    assert open_store("heart.svm.store").X.n == 90
    answer("train heart.svm --cache --zero-based -o d.safetensors")
    assert open_store("heart.svm.store").X.d == 14
    answer("train heart.svm --cache elsewhere -o e.safetensors")
    assert (folder / "e.safetensors").read_bytes() == (folder / "c.safetensors").read_bytes()


def test_a_store_trains_as_its_rows_do(folder, answer, monkeypatch):
    """A store of one part, a cache and rows too many for memory give the bits of a file with the rows in that order."""
    answer("convert heart.svm heart.store")
    order = order_of("heart.store")
    assert sorted(order) == list(range(270))
    (folder / "shuffled.svm").write_text(svmlight(X[order], Y[order]))
    answer("train shuffled.svm -o rows.safetensors")
    answer("train heart.store -o store.safetensors")
    answer("train heart.svm --cache -o cache.safetensors")
    before = sorted(os.listdir(folder.parent)), sorted(os.listdir(folder))
    monkeypatch.setattr(reading, "SHARE", 0)
    answer("train heart.svm -o large.safetensors")
    assert sorted(os.listdir(folder.parent)) == before[0]
    assert sorted(os.listdir(folder)) == sorted([*before[1], "large.safetensors"])
    wanted = (folder / "rows.safetensors").read_bytes()
    for name in ("store", "cache", "large"):
        assert (folder / f"{name}.safetensors").read_bytes() == wanted


def test_predictions_of_a_store_stand_as_its_input_did(folder, answer):
    """The lines are those of the file that it was made from."""
    answer("convert new.svm new.store")
    assert answer("predict heart.safetensors new.store --scores") == answer(
        "predict heart.safetensors new.svm --scores"
    )


def test_columns_that_a_file_lacks(folder, numbers, answer):
    """Sparse rows without the last columns, as text or as a store, have zeros there."""
    (folder / "narrow.svm").write_text(svmlight(TEST_X[:, :9], TEST_Y))
    answer("convert narrow.svm narrow.store")
    padded = np.hstack([TEST_X[:, :9], np.zeros((90, 4))])
    accuracy = fitted().score(sparse(padded), TEST_Y)
    for name in ("narrow.svm", "narrow.store"):
        assert numbers(f"evaluate hinge.safetensors {name}")["accuracy"] == accuracy


OPTIONS = {
    "-C 0.01": {"C": 0.01},
    "-C 100": {"C": 100.0},
    "--no-bias": {"fit_intercept": False},
    "--loss squared_hinge": {"loss": "squared_hinge"},
    "--loss logistic": {"loss": "logistic"},
    "--loss squared": {"loss": "squared"},
    "--class-weight balanced": {"class_weight": "balanced"},
    "--class-weight 1:3,-1:0.5": {"class_weight": {1: 3.0, -1: 0.5}},
    "--class-weight 1:3": {"class_weight": {1: 3.0}},
    "--solver dual_cd --tol 1e-7": {"solver": "dual_cd", "tol": 1e-7},
    "--solver dual_cd": {"solver": "dual_cd"},
    "--solver dual_cd --seed 5": {"solver": "dual_cd", "random_state": 5},
    "--solver smo": {"solver": "smo"},
    "--solver dual_cd --max-iter 2": {"solver": "dual_cd", "max_iter": 2},
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_option_acts(folder, numbers, options):
    """Weights are those of LinearSVM with the parameter of that name, and not those without it."""
    clf = fitted(**OPTIONS[options])
    short = clf.certificate_.relative_gap > clf.tol
    said = numbers(f"train heart.svm {options} -o m.safetensors", code=int(short))
    model = LinearModel.load("m.safetensors")
    assert_array_equal(model.coef, clf.coef_)
    assert_array_equal(model.intercept, clf.intercept_)
    assert said["iterations"] == clf.n_iter_
    without = {**OPTIONS[options]}
    without.popitem()
    assert not np.array_equal(model.coef, fitted(**without).coef_)
    if not short:  # the file alone says which problem it is that was solved
        assert numbers("certify m.safetensors heart.svm")["reached"]


def test_hard_margin(folder, numbers):
    """-C inf is LinearSVM(C=inf), in the model and in its proof."""
    y = np.where(X[:, 0] - X[:, 3] > 0.1, 1, -1)
    (folder / "easy.svm").write_text(svmlight(X, y))
    said = numbers("train easy.svm -C inf")
    assert said["C"] == "inf"
    assert_array_equal(LinearModel.load("easy.safetensors").coef, fitted(X, y, C=np.inf).coef_)
    assert numbers("certify easy.safetensors easy.svm")["reached"]
    assert numbers("info easy.safetensors")["C"] == "inf"


def test_liblinear_format(folder, answer, numbers):
    """A model in LIBLINEAR's text predicts as the other; its 17 digits are all of them."""
    answer("train heart.svm --format liblinear")
    assert (folder / "heart.model").read_text().startswith("solver_type L2R_L1LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\n")
    assert answer("predict heart.model new.svm --scores") == answer("predict hinge.safetensors new.svm --scores")
    assert numbers("certify heart.model heart.svm -C 1")["reached"]


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".tsv.gz", ".parquet", ".arrow", ".svm.bz2", ".store"])
def test_convert(folder, answer, suffix):
    """Each format gives back the rows and the labels, a store in its own order."""
    answer(f"convert heart.svm new{suffix}")
    found = data.open(f"new{suffix}")
    order = order_of(f"new{suffix}") if suffix == ".store" else slice(None)
    rows = getattr(found.X, "X", found.X)
    assert_array_equal(rows.toarray() if sp.issparse(rows) else rows, X[order])
    assert_array_equal(found.y, Y[order])


def test_convert_keeps_query_ids(folder, answer):
    """From svmlight text to svmlight text."""
    (folder / "queries.svm").write_text("1 qid:3 1:0.5\n-1 qid:4 2:1\n")
    answer("convert queries.svm again.svm")
    assert (folder / "again.svm").read_text() == "1 qid:3 1:0.5\n-1 qid:4 2:1\n"


def test_unknown_labels_are_said(folder, answer):
    """Labels that the model never saw count as mistakes, and both commands name them."""
    (folder / "odd.svm").write_text(svmlight(TEST_X, np.where(np.arange(90) < 4, 7, TEST_Y)))
    assert "4 rows have the label 7," in answer("evaluate hinge.safetensors odd.svm")
    assert "4 × 7 " in answer("train heart.svm --test odd.svm -o m.safetensors")


def stopped(self, state, visit=Checkpoint.visit):
    """What a checkpoint does on Ctrl-C, at its first visit."""
    self.stopping = True
    visit(self, state)


def test_stop_and_go_on(folder, capsys, monkeypatch, answer):
    """A run that is stopped after its first pass ends, with --resume, with the bits of one that is not."""
    answer("train three.svm --solver dual_cd --tol 1e-6 -o whole.safetensors")
    command = "train three.svm --solver dual_cd --tol 1e-6 -o m.safetensors --checkpoint a/state"
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "visit", stopped)
        assert run(*command.split()) == 130
    assert capsys.readouterr().err == "widemargin: stopped; the state is saved in a/state: go on with --resume\n"
    assert not (folder / "m.safetensors").exists()
    answer(f"{command} --resume")
    assert (folder / "m.safetensors").read_bytes() == (folder / "whole.safetensors").read_bytes()
    assert not (folder / "a" / "state").exists()


def test_a_run_that_goes_on_finds_its_rows_where_they_were(folder, capsys, monkeypatch, answer):
    """A run that began part by part goes on part by part, to the same bits, however much memory is free by then."""
    monkeypatch.setattr(store_writer, "PART", 4_000)
    answer("convert heart.svm heart.store")
    command = "train heart.store --solver dual_cd --tol 1e-6 --checkpoint state -o"
    with monkeypatch.context() as little_memory:
        little_memory.setattr(store, "SMALL", 0)
        little_memory.setattr(store, "SHARE", 0)
        answer("train heart.store --solver dual_cd --tol 1e-6 -o parts.safetensors")
        little_memory.setattr(Checkpoint, "visit", stopped)
        assert run(*f"{command} m.safetensors".split()) == 130
    capsys.readouterr()
    answer(f"{command} m.safetensors --resume")
    answer("train heart.store --solver dual_cd --tol 1e-6 -o whole.safetensors")
    parts, whole = ((folder / f"{name}.safetensors").read_bytes() for name in ("parts", "whole"))
    assert (folder / "m.safetensors").read_bytes() == parts != whole


def test_certify_that_is_interrupted_proves_nothing(folder, monkeypatch, capsys):
    """It ends with 130 and no table, whichever signal came."""
    accept = training._Loop.accept

    def struck(self, *args, **kwargs):
        signal.raise_signal(signal.SIGTERM)
        return accept(self, *args, **kwargs)

    monkeypatch.setattr(training._Loop, "accept", struck)
    assert run("certify", "hinge.safetensors", "heart.svm") == 130
    assert capsys.readouterr() == ("", "widemargin: interrupted; nothing was written\n")


def test_a_cache_larger_than_its_text_is_judged_by_itself(folder, monkeypatch, answer):
    """Text that fits into memory may make a store that does not: whether its rows come in parts, the store says."""
    monkeypatch.setattr(store_writer, "PART", 4_000)
    monkeypatch.setattr(store, "is_large", lambda size: True)
    answer("train heart.svm --cache --solver dual_cd -o parts.safetensors")
    monkeypatch.setattr(store, "is_large", lambda size: False)
    answer("train heart.svm --cache --solver dual_cd -o whole.safetensors")
    assert (folder / "parts.safetensors").read_bytes() != (folder / "whole.safetensors").read_bytes()


def test_sigterm_leaves_nothing_behind(folder):
    """A conversion that is told to end removes what it has written so far."""
    before, rows = sorted(os.listdir(folder)), svmlight(X, Y).encode()
    command = [sys.executable, "-m", "widemargin", "convert", "-", "new.store"]
    with subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while sorted(os.listdir(folder)) == before and process.poll() is None:
            process.stdin.write(rows)
        process.send_signal(signal.SIGTERM)
        with suppress(BrokenPipeError):  # a signal that comes right before a read is heard after it
            while process.poll() is None:
                process.stdin.write(rows)
        said = process.stderr.read().decode()
    assert (process.returncode, said) == (130, "widemargin: interrupted; nothing was written\n")
    assert sorted(os.listdir(folder)) == before


#: Runs a command and then says how much memory it held at most, in kilobytes (ru_maxrss begins with the parent's).
WATCHED = (
    "import re, sys\nfrom widemargin.cli import main\ncode = main(sys.argv[1:])\n"
    "print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1], file=sys.stderr)\nsys.exit(code)"
)


def streamed(text, times):
    """What predict makes of a text that comes so many times through a pipe; and its memory, in bytes."""
    command = [sys.executable, "-c", WATCHED, "predict", "hinge.safetensors", "-", "--threads", "1"]
    with open("out", "wb") as out, open("err", "w") as err:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err)
        with process.stdin as pipe:
            for _ in range(times):
                pipe.write(text)
        assert process.wait() == 0
    return Path("out").read_text(), 1024 * int(Path("err").read_text())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is looked up in /proc")
def test_predict_on_a_pipe_in_constant_memory(folder, answer):
    """The lines are those of the file, and 60 MB of it take less than 20 MB more memory than 20 MB do."""
    text = svmlight(np.tile(TEST_X, (90, 1)), np.zeros(8100, int)).encode()
    (folder / "large.svm").write_bytes(text)
    assert len(text) > 1e6
    lines = answer("predict hinge.safetensors large.svm")
    (some, less), (many, more) = streamed(text, 20), streamed(text, 60)
    assert some == 20 * lines
    assert many == 60 * lines
    assert more - less < 20e6


@pytest.mark.parametrize("command", ["predict hinge.safetensors large.svm", "info heart.svm", "info heart.svm --json"])
def test_a_closed_pipe(folder, command):
    """A reader that has had enough is no mistake: nothing is said, and the exit code is 0."""
    (folder / "large.svm").write_text(svmlight(np.tile(X, (50, 1)), np.tile(Y, 50)))
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "widemargin", *command.split()], stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    if command.startswith("predict"):
        assert os.read(reader, 1) in (b"1", b"-")
    os.close(reader)
    _, err = process.communicate()
    assert (process.returncode, err) == (0, b"")


def test_progress_on_a_terminal(folder, monkeypatch, capsys):
    """A bar while reading and a line while training, on a terminal and after two seconds, here after none."""
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    seen = {}
    for patience in (-1.0, 60.0):
        monkeypatch.setattr(screen, "PATIENCE_SECONDS", patience)
        monkeypatch.setattr(progress, "PATIENCE_SECONDS", patience)
        with monkeypatch.context() as patch, os.fdopen(os.dup(theirs), "w") as terminal:
            patch.setattr(sys, "stderr", terminal)
            assert run("train", "heart.svm", "-o", "m.safetensors", "--json") == 0
            terminal.write("end")
            terminal.flush()
        seen[patience] = b""
        while not seen[patience].endswith(b"end"):
            seen[patience] += os.read(ours, 1 << 16)
    os.close(ours)
    os.close(theirs)
    assert b"reading heart.svm" in seen[-1.0]
    assert b"relative gap" in seen[-1.0]
    assert seen[60.0] == b"end"


def test_columns_count_from_where_they_did_in_training(folder, numbers):
    """Rows without their column 0 are read as the zero-based text that the model was trained on."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4))
    y = np.where(X @ [0.0, 3.0, -2.0, 1.0] > 0, 1, -1)

    def text(rows, first):
        return "".join(
            f"{label} " + " ".join(f"{k}:{x:.6f}" for k, x in enumerate(row) if k >= first) + "\n"
            for label, row in zip(y[rows], X[rows], strict=True)
        )

    (folder / "zero.svm").write_text(text(slice(0, 150), 0))
    (folder / "later.svm").write_text(text(slice(150, 200), 1))
    said = numbers("train zero.svm --test later.svm -o z.safetensors")
    assert said["test"]["accuracy"] > 0.9
    assert numbers("evaluate z.safetensors later.svm")["accuracy"] == said["test"]["accuracy"]


def test_large_labels_are_written_in_full(folder, answer, capsys):
    """A label is the number that it was, digit for digit."""
    (folder / "large.svm").write_text("1000000 1:1\n1234567 1:-1\n" * 20)
    answer("train large.svm -o l.safetensors --class-weight 1000000:2")
    assert run("predict", "l.safetensors", "large.svm") == 0
    assert set(capsys.readouterr().out.split()) == {"1000000", "1234567"}


def test_no_proof_on_columns_that_the_model_never_saw(folder, answer, capsys):
    """Their weights could lower the objective: certify refuses them, evaluate says that they are left out."""
    rows = "1 1:1{0}\n-1 1:-1{1}\n1 1:0.1{0}\n-1 1:-0.2{1}\n"
    (folder / "narrow.svm").write_text(rows.format("", ""))
    (folder / "wide.svm").write_text(rows.format(" 2:5", " 2:-5"))
    answer("train narrow.svm -o n.safetensors")
    assert run("certify", "n.safetensors", "wide.svm") == 2
    assert "wide.svm: 2 columns, the model has 1; give the rows" in capsys.readouterr().err
    assert run("evaluate", "n.safetensors", "wide.svm") == 0
    assert "the columns beyond 1, which the model never saw, are left out" in capsys.readouterr().err


def test_no_weights_lower_the_objective_by_more_than_all_of_it(folder, answer, capsys):
    """A relative gap above 1 is a share of the lower bound, not of the objective; and --C is -C."""
    (folder / "right.svm").write_text("1 1:1\n-1 1:-1\n1 1:2\n-1 1:-2\n")
    (folder / "wrong.svm").write_text("-1 1:1\n1 1:-1\n-1 1:2\n1 1:-2\n")
    answer("train right.svm --C 10 -o r.safetensors")
    capsys.readouterr()
    assert run("certify", "r.safetensors", "wrong.svm", "--tol", "0.5") == 1
    shown = capsys.readouterr().out
    found = {name: float(re.search(rf"^{name} +(\S+)$", shown, re.M)[1]) for name in ("primal", "dual", "relative gap")}
    assert found["relative gap"] > 1
    share = 1 - found["dual"] / found["primal"]
    assert f"by more than {share:.1e} of it: NOT within the 5.0e-01 asked for" in shown
