"""The helpers: threads that are kept, shared, and done without where they are not run."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from widemargin import _core
from widemargin.data import Rows

LOST, CALL = 0.004, 0.006  # seconds


def prudence(*calls, now=100.0):
    """Until when there are no helpers, after calls at that time that lost so many seconds of so many."""
    one = _core.Prudence()
    for lost, took in calls:
        one.judge(lost, took, now)
    times = [0.0, *(LOST * 2**k for k in range(12)), 0.999, 1.001]
    return max((after for after in times if one.says_no(now + 0.999999 * after)), default=0.0)


def test_after_two_calls_in_vain_there_are_no_helpers_for_a_while():
    """For 8 times as long as was lost, then 16, 32 and 64 times."""
    vain = (LOST, CALL)
    assert prudence() == prudence(vain) == 0
    assert [prudence(*[vain] * k) / LOST for k in (2, 3, 4, 5, 6)] == [8, 16, 32, 64, 64]


def test_a_call_that_lost_nothing_is_forgiving():
    """It takes two in vain again; and half as many times as before."""
    vain, good = (LOST, CALL), (0.0, CALL)
    assert prudence(vain, good, vain) == 0
    assert prudence(*[vain] * 5, good, vain, vain) / LOST == 64 / 2
    assert prudence(*[vain] * 5, *[good] * 9, vain, vain) / LOST == 8


def test_helpers_that_had_only_to_be_woken_are_called_again():
    """Neither that nor a small share of a call is held against them; nor does it make up for calls in vain."""
    vain, woken, little = (LOST, CALL), (0.0002, 0.0004), (LOST, 5 * LOST)
    assert prudence(*[woken] * 9) == prudence(*[little] * 9) == 0
    assert prudence(vain, woken, vain) / LOST == prudence(vain, little, vain) / LOST == 8


def test_nobody_is_without_helpers_for_long():
    """A second at most, whatever a call has lost."""
    assert prudence(*[(3600.0, 3600.0)] * 9) == 0.999


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not say where threads run")
def test_two_threads_that_share_one_core_give_the_same_bits():
    """Pinned to one core in a process of its own, descent comes to what one thread comes to."""
    code = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from oracles import make_problem, text_like
from widemargin.training import fit
X, y = text_like(30_000)
for loss in ("hinge", "logistic"):
    one, two = (fit(make_problem(X, y, 1.0, loss, threads=n), solver="dual_cd", tol=1e-6) for n in (1, 2))
    print((one.w == two.w).all() and (one.alpha == two.alpha).all() and one.b == two.b)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=os.path.dirname(__file__)
    )
    assert run.stdout == "True\nTrue\n", run.stderr


def test_a_child_has_helpers_of_its_own():
    """Threads do not survive a fork: the child gets new ones, and the same bits."""
    code = """
import os, numpy as np
from widemargin.data import Rows
X, w = np.random.default_rng(0).standard_normal((50_000, 10)), np.arange(10.0)
expected = Rows(X, 2).scores(w).tobytes()
child = os.fork()
if child == 0:
    os._exit(0 if Rows(X, 2).scores(w).tobytes() == expected else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout == "0\n", run.stderr


def test_helpers_serve_one_caller_at_a_time():
    """Python threads that compute at once get the same bits, with our threads or without."""
    X, w = np.random.default_rng(0).standard_normal((20_000, 10)), np.arange(10.0)
    rows, found = Rows(X, 4), []
    expected = rows.scores(w).tobytes()
    threads = [
        threading.Thread(target=lambda: found.extend(rows.scores(w).tobytes() for _ in range(50))) for _ in "abc"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 150
