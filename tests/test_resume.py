"""A run that is stopped at any moment and told to go on ends with the same model, to the last bit."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from oracles import text_like
from widemargin.data import save

#: Runs per signal; set it to 25 for a long evening.
STRIKES = int(os.environ.get("WIDEMARGIN_STRIKES", "2"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with data that take a second or two to store and to train on, and the model of an undisturbed run."""
    place = tmp_path_factory.mktemp("resume")
    X, y = text_like(6000)
    y = y + 3.0 * (np.random.default_rng(0).random(len(y)) < 0.3)
    save(place / "x.svm", X, y)
    undisturbed = train(place, "whole")
    began = time.monotonic()
    assert finish(undisturbed) == (0, "")
    return place, time.monotonic() - began, (place / "whole.safetensors").read_bytes()


#: Python says when it is up: what a signal does before that is Python's own affair.
PROGRAM = "import sys; from widemargin.cli import main; print('ready', flush=True); sys.exit(main())"


def train(place, name):
    """The command, in a process of its own."""
    command = [sys.executable, "-c", PROGRAM, "train", "x.svm", "--tol", "1e-8", "-C", "10", "--json"]
    command += ["--cache", f"{name}.store", "--checkpoint", f"{name}.state", "--every", "0.02", "--resume"]
    command += ["-o", f"{name}.safetensors"]
    run = subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    return run


def finish(run):
    """The exit code, and what was said on the way."""
    with run:
        said = run.communicate(timeout=120)[1]
        return run.returncode, said


def stamp(file):
    """What changes when a file is replaced."""
    return (file.stat().st_ino, file.stat().st_mtime_ns) if file.exists() else None


@pytest.mark.parametrize("strike", range(STRIKES))
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=lambda by: by.name)
def test_a_stopped_run_goes_on_to_the_same_model(place, by, strike):
    """Struck at a moment drawn at random, and again once it saved a state, it ends with the undisturbed run's bytes."""
    place, takes, whole = place
    name, rng = f"{by.name}{strike}", np.random.default_rng([int(by), strike])
    model = place / f"{name}.safetensors"
    state = place / f"{name}.state" / "state.npz"
    for again in (False, True):
        before = stamp(state)
        run = train(place, name)
        if not again:
            time.sleep(float(rng.uniform(0.1, 1.0)) * takes)
        while again and stamp(state) == before and run.poll() is None:
            time.sleep(0.005)
        run.send_signal(by)
        code, said = finish(run)
        assert not model.exists() or model.read_bytes() == whole
        assert "Traceback" not in said
        if by != signal.SIGKILL:
            # Done or stopped. Stopped in the middle of some imports, Python ends itself by SIGINT in spite of the exit
            # code, which a shell reports as 130 too. Once all is written, it may be struck on its way out.
            assert code in (0, 130, -signal.SIGINT) or (code == -by and model.exists()), said
    assert state.exists() or model.exists()  # unless it was done before the second strike
    assert finish(train(place, name)) == (0, "")
    assert model.read_bytes() == whole
    assert not (place / f"{name}.state").exists()
