import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
DEMO, PICTURES = str(EXAMPLES / "demo.py"), str(EXAMPLES / "pictures.py")


def test_demo(tmp_path):
    """It exits with 0 and no complaint, prints its four parts with the closed forms of the lecture's examples and the
    proof that one has none, and each path it prints is a PNG file in the folder asked for.
    """
    done = subprocess.run(
        [sys.executable, DEMO, "--rows", "2000", "--output", tmp_path],
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line[:2] for line in lines if line[:1].isdigit()] == ["1.", "2.", "3.", "4."]
    tight = [" ".join(line.split()) for line in lines]
    assert any(line.startswith("none 1e+10 (1.000000, 0.000000) 0.000000") for line in tight)
    assert any(line.startswith(f"(-0.01, -0.01)+ 1e+10 ({200 / 99:.6f}, 0.000000) {101 / 99:.6f}") for line in tight)
    assert any(line.startswith("C = inf: no line separates the classes, for ") for line in tight)
    printed = [Path(line.strip()) for line in lines if line.endswith(".png")]
    assert len(printed) == 4
    assert sorted(printed) == sorted(tmp_path.iterdir())
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in printed)


def test_demo_help_has_an_example(monkeypatch, capsys):
    """--help ends with a command line to copy."""
    monkeypatch.setattr(sys, "argv", ["demo.py", "--help"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(DEMO, run_name="__main__")
    assert "example: python examples/demo.py --rows 50000" in capsys.readouterr().out


def test_demo_refuses_too_few_rows(monkeypatch, capsys):
    """The message names the argument, its value and what would do."""
    monkeypatch.setattr(sys, "argv", ["demo.py", "--rows", "3"])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(DEMO, run_name="__main__")
    assert "--rows 3: give at least 100" in capsys.readouterr().err


def test_pictures(tmp_path, monkeypatch, capsys):
    """Each path it prints is a PNG file in the folder asked for, and beside it stands the same picture as a PDF."""
    monkeypatch.setattr(sys, "argv", ["pictures.py", "--output", str(tmp_path)])
    runpy.run_path(PICTURES, run_name="__main__")
    printed = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert len(printed) == 10
    assert sorted(tmp_path.glob("*.png")) == sorted(printed)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in printed)
    assert all(path.with_suffix(".pdf").read_bytes().startswith(b"%PDF") for path in printed)
