"""Several classes of little data at once, each in a descent of its own."""

import os
import signal
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris

from widemargin import LinearSVM, _core
from widemargin.data import Rows
from widemargin.one_against_rest import OneAgainstRest
from widemargin.solvers import side_by_side
from widemargin.training import fit

DIGITS, LABELS = load_digits(return_X_y=True)
DIGITS /= 16


def problems_of(X, y, **options):
    """One problem per class."""
    weights = options.pop("weights", np.ones(len(y)))
    return OneAgainstRest(**options).problems(Rows(X), y, weights)[1]


def descended(problems, tol=1e-3, threads=2, told=lambda *_: None):
    """The starts of all classes."""
    return side_by_side.descend(problems, tol=tol, seed=0, solver="auto", threads=threads, told=told)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_classes_come_to_their_solutions(loss, fit_intercept):
    """Most need nothing but the proof; others crawl or, with a bias, are out of balance."""
    problems = problems_of(DIGITS, LABELS, loss=loss, fit_intercept=fit_intercept)
    starts, proved = descended(problems), 0
    for problem, start in zip(problems, starts, strict=True):
        assert start.w == pytest.approx(problem.weights(start.alpha), abs=1e-9)
        end = fit(problem, tol=1e-3, start=start)
        assert end.certificate.relative_gap <= 1e-3
        proved += start.hopeful and end.iterations == start.iterations
    assert proved >= 5


def test_visits_are_told_as_they_are_made(monkeypatch):
    """From one return to the next, with the passes and the largest gap of the classes still going."""
    seen = []
    monkeypatch.setattr(sys.modules["widemargin.solvers.dual_cd"], "UNSEEN", 1e5)
    starts = descended(problems_of(DIGITS, LABELS), tol=1e-5, told=lambda *numbers: seen.append(numbers))
    passes, gaps, visits = zip(*seen, strict=True)
    assert max(passes) == max(start.iterations for start in starts)
    assert gaps[-1] <= 1e-5
    assert len(visits) > 1
    assert min(visits) > 0


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"loss": "logistic"}, {"loss": "squared_hinge"}])
def test_the_same_bits_on_one_thread_and_two(options):
    """Every class is on one of them; rows of other weights, and of none."""
    weights = np.arange(len(LABELS)) % 4 / 2
    problems = problems_of(DIGITS, LABELS, weights=weights, **options)
    for one, other in zip(descended(problems, threads=1), descended(problems), strict=True):
        assert one.w.tobytes() == other.w.tobytes()
        assert one.alpha.tobytes() == other.alpha.tobytes()
    ways = {"n_jobs": 1}, {"n_jobs": 2}, {"verbose": 1}
    one, two, loud = (LinearSVM(**options, **way).fit(DIGITS, LABELS, weights) for way in ways)
    assert one.coef_.tobytes() == two.coef_.tobytes() == loud.coef_.tobytes()


@pytest.mark.parametrize("solver", ["auto", "dual_cd"])
def test_a_class_goes_on_from_where_it_was(solver):
    """Its passes count on, to a smaller gap."""
    problems = problems_of(DIGITS, LABELS)
    starts = side_by_side.descend(problems, tol=1e-3, seed=0, solver=solver, threads=2, told=lambda *_: None)
    for problem, start in list(zip(problems, starts, strict=True))[:3]:
        state = start.state["descent"] if solver == "auto" else start.state
        state["course"]["goal"] = state["course"]["tol"] = 1e-5
        further = fit(problem, tol=1e-5, solver=solver, start=start)
        assert further.iterations > start.iterations
        assert further.history[1].iteration > start.iterations
        assert further.certificate.relative_gap <= 1e-5


def test_a_class_that_takes_long_goes_on_by_itself(monkeypatch):
    """To the same gap as the others."""
    monkeypatch.setattr(side_by_side, "PASSES", 5)
    problems = problems_of(DIGITS, LABELS, C=10.0)
    assert not all(start.hopeful for start in descended(problems))
    assert LinearSVM(10.0).fit(DIGITS, LABELS).certificate_.relative_gap <= 1e-3


def test_many_classes_are_several_groups():
    """Each of them in one."""
    for classes in (range(1), range(64), range(65), range(7, 200)):
        assert [k for group in side_by_side.groups(classes) for k in group] == list(classes)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1500, 60)), np.arange(1500) % 70
    svm = LinearSVM(0.01, solver="dual_cd").fit(X, y)
    assert svm.certificate_.relative_gap <= 1e-3
    assert svm.coef_.shape == (70, 60)


def test_an_interrupt_ends_all_classes(monkeypatch):
    """Ctrl-C while classes descend: no model, and the next fit is as if nothing had happened."""
    svm, whole, going_on, calls = LinearSVM(tol=1e-9), LinearSVM().fit(DIGITS, LABELS), _core.all_go_on, []

    def struck(*arguments):
        calls.append(arguments)
        os.kill(os.getpid(), signal.SIGINT)
        going_on(*arguments)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have taken away
    try:
        with monkeypatch.context() as patch:
            patch.setattr(_core, "all_go_on", struck)
            with pytest.raises(KeyboardInterrupt):
                svm.fit(DIGITS, LABELS)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert len(calls) == 1
    assert not hasattr(svm, "coef_")
    assert svm.set_params(tol=1e-3).fit(DIGITS, LABELS).coef_.tobytes() == whole.coef_.tobytes()


def test_only_several_classes_of_little_data_share():
    """Not two classes, the hard margin, or much data."""
    X, y = load_iris(return_X_y=True)
    assert side_by_side.can_share(problems_of(X, y))
    assert not side_by_side.can_share(problems_of(X, y > 0))
    assert not side_by_side.can_share(problems_of(X, y, C=np.inf))
    assert not side_by_side.can_share(problems_of(np.zeros((1 << 12, 1 << 9)), np.arange(1 << 12) % 3))
    hashed = sp.csr_array((np.ones(300), (np.arange(300), np.arange(300))), shape=(300, 1 << 20))
    assert not side_by_side.can_share(problems_of(hashed, np.arange(300) % 3))


def test_the_kernel_refuses_what_would_get_in_its_way():
    """Descents with threads of their own, the same one twice, and none."""
    problem = problems_of(np.eye(500), np.arange(500) % 3)[0]
    alone, with_threads = (
        side_by_side.at_the_beginning(problem.but(threads=threads), 1e-3, 0).kernel for threads in (1, 2)
    )
    for wrong in ([with_threads], [alone, alone], [None]):
        with pytest.raises((ValueError, TypeError)):
            _core.all_go_on(wrong, 1, 1, 2)
    _core.all_go_on([], 1, 1, 2)
    _core.all_go_on([alone], 1, 1, 2)
