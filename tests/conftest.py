import shutil

import pytest
from hypothesis import settings

settings.register_profile("widemargin", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("widemargin")


def pytest_terminal_summary(terminalreporter):
    """Print what tests measured: nothing is asserted about it."""
    for report in terminalreporter.stats.get("passed", []):
        for name, line in report.user_properties:
            if name == "measured":
                terminalreporter.write_line(line)


@pytest.fixture
def folder(good, tmp_path, monkeypatch):
    """A copy of a test file's `good` directory to work in."""
    place = tmp_path / "here"
    shutil.copytree(good, place)
    monkeypatch.chdir(place)
    return place
