"""States on disk, and runs that go on from them."""

import sys

import numpy as np
import pytest

from oracles import make_problem, noisy, text_like
from widemargin.checkpoint import Checkpoint, CheckpointError, Stopped
from widemargin.data import Rows
from widemargin.one_against_rest import OneAgainstRest
from widemargin.training import fit

RUN = {"data": "x", "C": 1.0}


def test_a_state_comes_back_as_it_was(tmp_path):
    """Equals what was saved: numbers, infinities, nested dictionaries, lists, arrays of any type, bit by bit."""
    state = {
        "inf": -np.inf,
        "whole": True,
        "nothing": None,
        "large": 2**127 + 1,
        "tree": {"alpha": np.array([0.1, np.nan]), "list": [(1.5, np.inf)], "active": np.arange(3)},
        "name": "PCG64",
    }
    Checkpoint(tmp_path, RUN).save(state)
    found = Checkpoint(tmp_path, RUN).load()
    assert found["tree"].pop("list") == [[1.5, np.inf]]
    state["tree"].pop("list")
    for name, array in state.pop("tree").items():
        assert found["tree"][name].tobytes() == array.tobytes()
    assert {name: found[name] for name in state} == state


def test_a_state_of_another_run_is_refused(tmp_path):
    """The error names what differs."""
    Checkpoint(tmp_path, RUN).save({})
    with pytest.raises(CheckpointError, match=r"with C 1\.0, now it is 2\.0; repeat"):
        Checkpoint(tmp_path, {**RUN, "C": 2.0}).load()


@pytest.mark.parametrize("damage", [b"", b"junk", None])
def test_a_damaged_state_is_refused(tmp_path, damage):
    """Empty, foreign or with one bit flipped in the middle: an error that says what to do."""
    kept = Checkpoint(tmp_path, RUN)
    kept.save({"alpha": np.arange(1000.0)})
    whole = bytearray(kept.file.read_bytes())
    whole[len(whole) // 2] ^= 1
    kept.file.write_bytes(bytes(whole) if damage is None else damage)
    with pytest.raises(CheckpointError, match=r"not a readable state.*remove it"):
        kept.load()


def test_nothing_is_kept_before_its_time(tmp_path):
    """Saves when the seconds have passed, not before; clearing leaves nothing behind."""
    kept = Checkpoint(tmp_path / "state", RUN, every=1e9)
    kept.visit(lambda: pytest.fail("too early"))
    assert kept.load() is None
    kept.every = 0.0
    kept.visit(lambda: {"now": 1})
    assert kept.load() == {"now": 1}
    kept.clear()
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("data", "C", "solver", "loss"),
    [
        (text_like(600), 1.0, "dual_cd", "hinge"),
        (text_like(600), 1.0, "auto", "squared_hinge"),
        (noisy(20_000, 40), 10.0, "auto", "hinge"),
        (noisy(3000, 30), 1.0, "dual_cd", "logistic"),
        (noisy(3000, 40), 1.0, "auto", "hinge"),
    ],
)
def test_a_fit_goes_on_with_the_same_bits(tmp_path, data, C, solver, loss):
    """Equals the undisturbed fit, whichever iteration it was stopped after."""
    problem = make_problem(*data, C, loss)
    whole, states = fit(problem, solver=solver, tol=1e-7), []
    fit(problem, solver=solver, tol=1e-7, keep=lambda state: states.append(state()))
    kept = Checkpoint(tmp_path, RUN)
    for state in [*states[:3], *states[3 :: max(1, len(states) // 5)], states[-1]]:
        kept.save({"fit": state})
        again = fit(problem, solver=solver, tol=1e-7, resumed=kept.load()["fit"])
        assert again.w.tobytes() == whole.w.tobytes()
        assert again.alpha.tobytes() == whole.alpha.tobytes()
        assert (again.b, again.iterations, again.certificate.gap) == (whole.b, whole.iterations, whole.certificate.gap)


@pytest.mark.parametrize(("loss", "solver"), [("logistic", "auto"), ("hinge", "dual_cd")])
def test_classes_go_on_with_the_same_bits(tmp_path, monkeypatch, loss, solver):
    """Stopped several times, a fit of four classes equals the undisturbed one, at once or one by one."""
    monkeypatch.setattr(sys.modules["widemargin.solvers.lanes"], "PASSES", 3)
    monkeypatch.setattr(sys.modules["widemargin.solvers.dual_cd"], "UNSEEN", 0.0)
    X, _ = text_like(400)
    y = np.random.default_rng(0).integers(4, size=400)
    task = OneAgainstRest(loss=loss, solver=solver, tol=1e-5)
    classes, problems = task.problems(Rows(X), y, np.ones(400))
    whole = task.fit(problems, classes)
    kept, stops, furthest = Checkpoint(tmp_path, RUN, every=1e9), 0, (0, False)
    while True:
        kept.stopping, state = stops < 9, kept.load()
        if state is not None:  # what was reached is never given up
            reached = len(state["done"]), state["current"] is not None
            assert reached >= furthest
            furthest = reached
        try:
            again = task.fit(problems, classes, resumed=state, keep=kept.visit)
            break
        except Stopped:
            stops += 1
    assert stops == 9
    for one, other in zip(again, whole, strict=True):
        assert one.w.tobytes() == other.w.tobytes()
        assert (one.b, one.certificate.gap, one.iterations) == (other.b, other.certificate.gap, other.iterations)


def test_an_interrupted_class_is_not_kept_as_done(monkeypatch):
    """A second interrupt ends the run: the state knows of no class that was left in the middle."""
    monkeypatch.setattr(sys.modules["widemargin.solvers.dual_cd"], "UNSEEN", 0.0)
    X, _ = text_like(400)
    task = OneAgainstRest(loss="logistic", solver="dual_cd", tol=1e-9)
    classes, problems = task.problems(Rows(X), np.random.default_rng(0).integers(3, size=400), np.ones(400))
    states = []

    def keep(state):
        states.append(state())
        if len(states) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        task.fit(problems, classes, keep=keep)
    assert [len(state["done"]) for state in states] == [0, 0, 0]


def test_a_fit_that_came_to_its_end_ends_there_again(monkeypatch):
    """Equals the undisturbed fit when nothing was left to do."""
    monkeypatch.setattr(sys.modules["widemargin.solvers.dual_cd"], "PASSES", 5)
    problem, states = make_problem(*noisy(500, 5), 1.0, "hinge"), []
    whole = fit(problem, solver="dual_cd", tol=1e-12, keep=lambda state: states.append(state()))
    again = fit(problem, solver="dual_cd", tol=1e-12, resumed=states[-1])
    assert (again.certificate.gap, again.iterations) == (whole.certificate.gap, whole.iterations)


def test_a_best_so_far_is_not_forgotten():
    """Equals the undisturbed fit also where the best proof is older than the state."""
    problem, states = make_problem(*noisy(500, 5), 1.0, "hinge"), []
    whole = fit(problem, solver="dual_cd", tol=1e-12, max_iter=30, keep=lambda state: states.append(state()))
    again = fit(problem, solver="dual_cd", tol=1e-12, max_iter=30, resumed=states[-1])
    assert (again.certificate.gap, again.iterations) == (whole.certificate.gap, whole.iterations)


@pytest.mark.parametrize("solver", ["smo", "interior_point", "pegasos"])
def test_solvers_without_a_state_begin_anew(solver):
    """No state rather than a wrong one."""
    problem, states = make_problem(*noisy(500, 5), 1.0, "hinge"), []
    fit(problem, solver=solver, tol=1e-3, max_iter=3, keep=lambda state: states.append(state()))
    assert states
    assert not any(states)
