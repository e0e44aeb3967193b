"""The page and its server, in a real browser: one that goes away, is slow, or is asked by a stranger."""

import statistics
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from playwright.sync_api import Error, expect

from explorer.loopback import Loopback
from explorer.page import agrees_with_the_estimator, drawn, module, place, start_from, state


def test_a_server_that_stops_and_comes_back(visit):
    """The page says that it stopped, keeps what one does meanwhile, and goes on by itself when it is back."""
    running = Loopback("a-token-that-stays").start()
    page = visit(address=running.address)
    start_from(page, "notes4")
    expect(page.locator("#verdict")).to_have_class("good")
    at = place(page, 0.3, 0.3)
    running.stop()
    page.mouse.click(*at)
    expect(page.locator("#banner")).to_contain_text("does not answer")
    expect(page.locator("#verdict")).to_have_text("Not computed: the server does not answer.")
    expect(page.locator("#verdict")).to_have_class("warn")
    expect(page.locator("html.stale")).to_have_count(1)
    command = f"widemargin explore --port={running.port} --token={running.token}"
    expect(page.locator("#banner")).to_contain_text(command)
    expect(page.locator(".point")).to_have_count(5)
    with running:
        expect(page.locator("#banner")).to_be_hidden()
        drawn(page)
        assert len(state(page)[0]) == 5
        agrees_with_the_estimator(page)
        expect(page.locator("#verdict")).to_have_class("good")
        expect(page.locator("html.stale")).to_have_count(0)
        running.stop()
        page.mouse.click(at[0] - 60, at[1])
        expect(page.locator("#banner")).to_contain_text("does not answer")
        running.token = "another-token"
        running.start()
        expect(page.locator("#banner")).to_contain_text("belongs to an earlier one")


def test_a_young_question_is_not_given_up(visit):
    """A question is given up for a newer one when it is itself old, whenever the newer ones came."""
    page = visit()
    use = """
      const aborted = [], answers = [], timers = [], aside = setTimeout;
      let now = 0; // a clock of our own: the machine's goes on while it does something else
      performance.now = () => now;
      window.setTimeout = (act, time = 0) => timers.push({ at: now + time, act });
      const wait = async (time) => {
        for (const end = now + time; now < end; await new Promise((resolve) => aside(resolve))) {
          timers.sort((one, other) => one.at - other.at);
          now = Math.min(end, timers[0]?.at ?? end);
          while (timers[0]?.at <= now) timers.shift().act();
        }
      };
      const post = (path, body, signal) => new Promise((resolve, reject) => {
        answers.push(() => resolve({ status: 200, answer: {} }));
        signal.onabort = () => { aborted.push(body.turn); reject(new DOMException("", "AbortError")); };
      });
      const line = new its.Line({ lines: [], post, lose() {} }, "api/fit", () => ({ request: {} }), () => {});
      line.ask();            // the first question
      line.ask();            // a newer one waits
      await wait(700);
      answers[0]();          // the first is answered, the second sent
      await wait(50);
      line.ask();            // a third waits
      await wait(500);       // the second is 550 ms old
      const young = [...aborted];
      await wait(700);
      return [young, aborted];"""
    assert module(page, "api.js", use) == [[], [2]]


def test_how_long_a_drag_among_200_points_takes(visit, own_process, record_property):
    """From each event to the page redrawn with its fit, measured in the browser; the median is printed."""
    page = visit(address=own_process)
    start_from(page, "crowd")
    points, _, _ = state(page)
    start = place(page, *points[0])
    page.evaluate(
        """() => {
          const data = document.documentElement.dataset, sent = new Map();
          window.took = [];
          addEventListener("pointermove", (event) => {
            if (!sent.has(data.version)) sent.set(data.version, event.timeStamp);
          });
          new MutationObserver(() => {
            const began = sent.get(data.drawn);
            sent.delete(data.drawn);
            const painted = () => window.took.push(performance.now() - began);
            if (began !== undefined) setTimeout(painted); // a task of its own: after the frame that is being drawn
          }).observe(document.documentElement, { attributeFilter: ["data-drawn"] });
        }"""
    )
    page.mouse.move(*start)
    page.mouse.down()
    for k in range(6000):
        page.mouse.move(start[0] + 60 * np.sin(k / 6), start[1] + 60 * np.cos(k / 6))
        page.wait_for_timeout(10)
        if k >= 60 and page.evaluate("window.took.length > 10"):
            break
    page.mouse.up()
    drawn(page)
    took = page.evaluate("window.took")
    assert len(took) > 10
    solver = float(page.inner_text("#numbers .foot").split()[0])
    agrees_with_the_estimator(page)
    record_property(
        "measured",
        f"drag among 200 points: event to redrawn page, median {statistics.median(took):.0f} ms of {len(took)} fits "
        f"(slowest {max(took):.0f} ms; the last fit took {solver:.0f} ms of it)",
    )


class Elsewhere(BaseHTTPRequestHandler):
    """A page of another server on this machine."""

    def do_GET(self):
        """Answer with next to nothing."""
        self.send_response(200)
        self.end_headers()

    def log_message(self, *what):
        """Stay silent."""


@pytest.fixture
def elsewhere():
    """The address of that page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{stranger.server_port}/"
        stranger.shutdown()


def test_a_stranger_page_cannot_read(served, browser, elsewhere):
    """A page of another origin that knows the address gets nothing: the server refuses, the browser blocks."""
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(elsewhere)
        before = len(served.answered)
        with pytest.raises(Error, match="Failed to fetch"):
            page.evaluate("address => fetch(address + 'api/alive').then((reply) => reply.text())", served.address)
        asked = [one for one in served.answered[before:] if one[0].endswith("alive")]  # not a late fit of another page
        assert asked == [(f"/{served.token}/api/alive", 403)]
    finally:
        context.close()
