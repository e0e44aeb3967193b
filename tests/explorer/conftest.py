"""The explorer in a browser: its server, Chromium, and a page to look at."""

import shutil
import signal
import sys

import pytest
from playwright.sync_api import expect, sync_playwright

from explorer.loopback import SECONDS, Loopback, process
from explorer.page import PROJECTOR, drawn
from widemargin.explorer import fitting, server

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
expect.set_options(timeout=1000 * SECONDS)


@pytest.fixture(scope="session", autouse=True)
def _patience():
    """The servers of these processes wait for a machine with much else to do; whoever tests their limits sets them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "PATIENCE", float(SECONDS))
        patch.setattr(server, "DROP_SECONDS", float(SECONDS))
        yield


@pytest.fixture(scope="module")
def served():
    """The server, on loopback."""
    with Loopback("the-token-of-these-tests") as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    """Chromium without a window."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here: apt-get install chromium, then run again")
    with sync_playwright() as playwright:
        settings = {"args": ["--no-sandbox", "--disable-gpu"], "timeout": 1000 * SECONDS}
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, **settings)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser, served):
    """Opens the page; at the end, no script may have failed on it."""
    contexts, failures = [], []

    def open_page(hash="", viewport=PROJECTOR, address=None, **options):
        context = browser.new_context(viewport=viewport, permissions=["clipboard-write"], **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(1000 * SECONDS)
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.goto((address or served.address) + hash)
        page.wait_for_selector("html[data-ready]")
        drawn(page)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not failures


@pytest.fixture
def own_process():
    """The server as one runs it, in a process of its own, which does not share a lock with the browser's driver."""
    program = "from widemargin.explorer import serve; serve(open_browser=False)"
    with process([sys.executable, "-c", program]) as running:
        yield running.stdout.readline().split()[-1]
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=SECONDS) == 0
