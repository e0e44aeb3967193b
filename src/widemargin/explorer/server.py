"""The door: a server for this machine alone, whose address holds a token that nobody can guess.

Every path begins with the token, so that the page's own relative addresses carry it. A request is served only if its
Host is ours, which a name that some site points at this machine is not; if it comes from our own origin or from none;
and if its token is right. Everything else gets one line of JSON with the reason.
"""

from __future__ import annotations

import hmac
import json
import logging
import re
import secrets
import socket
import sys
import threading
import traceback
import webbrowser
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from widemargin.explorer.fitting import OvertakenError, fit
from widemargin.explorer.models import Choice, choices
from widemargin.explorer.playing import algorithms, hildreth, steps
from widemargin.explorer.reading import MOST_POINTS, RefusedError, read_json, read_points, shown

if TYPE_CHECKING:
    from anyio import CapacityLimiter
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

#: The most bytes in the body of a request: nine times what the most points need with all their digits.
LARGEST_BODY = 1_000_000
#: A body that is too large is refused before it is read. What a client sends all the same is dropped, up to this many
#: bytes, since one that hears the reason only after its last byte would otherwise find the connection broken; beyond
#: them, or when nothing comes for these seconds, the connection is closed.
DROPPED, DROP_SECONDS = 128_000_000, 0.5
#: Pages that are remembered, to know which of their requests is the newest.
MOST_TABS = 256
#: How many answers are computed at the same time.
WORKERS = 4
#: The port that browsers leave out of the names of hosts.
HTTP = 80

PAGE = Path(__file__).parent / "page"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
#: Nothing from elsewhere, nothing kept, no frames, no address passed on.
HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
#: Answers the body of a request; it can ask whether a newer one has overtaken it.
Question = Callable[[dict[str, Any], Callable[[], bool]], dict[str, Any]]
MISSING = "widemargin explore needs Starlette and uvicorn; install them with: pip install 'widemargin[explore]'"


def serve(port: int = 0, open_browser: bool = True, *, token: str | None = None) -> None:
    """Serve the page on 127.0.0.1 until Ctrl-C, and print its address.

    Parameters
    ----------
    port : int, default=0
        0 takes a free one.
    open_browser : bool, default=True
        Whether to open the page in the browser.
    token : str, optional
        The secret in the address: at least 16 letters, digits, - or _. A new one at random if it is not given. With the
        port and the token of before, pages that are still open go on, and shared links work again.

    """
    try:
        import uvicorn
    except ImportError as error:
        raise ImportError(MISSING) from error
    token = secrets.token_urlsafe(24) if token is None else token
    if not re.fullmatch(r"[-\w]{16,}", token, re.ASCII):
        raise ValueError(f"token={shown(token)}; it must have at least 16 letters, digits, - or _, or be None")
    door = _listen(port)
    place = door.getsockname()[1]
    address = f"http://127.0.0.1:{place}/{token}/"
    config = uvicorn.Config(
        build_app(token, place, stopping=lambda: server.should_exit),
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        ws="none",
    )
    server = uvicorn.Server(config)
    log = logging.getLogger("uvicorn.error")
    log.addFilter(is_running := lambda record: not server.should_exit)  # what Ctrl-C cuts off is no fault
    threading.Thread(target=_warm_up, daemon=True).start()
    try:
        print(
            f"widemargin explore: {address}\nThis address works on this machine only. Ctrl-C stops it; what brings the "
            f"same address back: widemargin explore --port={place} --token={token}",
            flush=True,
        )
        if open_browser:
            threading.Timer(0.3, webbrowser.open, [address]).start()
        server.run(sockets=[door])
    except KeyboardInterrupt:  # uvicorn has closed its connections and hands the signal on
        print("\nstopped", flush=True)
    finally:
        log.removeFilter(is_running)
        door.close()


def _listen(port: int) -> socket.socket:
    if not isinstance(port, int) or not 0 <= port < 65_536:
        raise ValueError(f"port={port!r}; it must be a whole number from 0 to 65535, 0 for any that is free")
    # asyncio sends at once what it is given only where the protocol is named; otherwise answers wait 40 ms for an ACK.
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if sys.platform != "win32":  # where it would let two servers share a port
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind(("127.0.0.1", port))
        door.listen(128)  # whoever reads the address may come at once
    except OSError as error:
        door.close()
        reason = f"port {port} of 127.0.0.1 cannot be used: {error.strerror}; choose another port, or 0 for any"
        raise OSError(error.errno, reason) from None
    return door


def _warm_up() -> None:
    """Load what the first drag would otherwise wait for: the compiled core, and the linear program of a proof."""
    square = {"points": [[1, 1], [-1, -1], [1, -1], [-1, 1]], "labels": [1, 1, -1, -1]}
    for model in ("hard", "soft", "kernel"):
        fit({**square, "model": model})


def build_app(token: str, port: int, *, stopping: Callable[[], bool] = lambda: False) -> ASGIApp:
    """The application, for requests to 127.0.0.1 or localhost at this port that know the token.

    Answers that are being computed are left once it is `stopping`.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError as error:
        raise ImportError(MISSING) from error
    answers = Answers(stopping)
    posts = {"fit": answers.fit, "steps": answers.steps, "hildreth": answers.hildreth, "code": answers.code}
    routes = [
        Route("/api/choices", _told(lambda: choices() | {"algorithms": algorithms(), "most": MOST_POINTS})),
        Route("/api/alive", _told(lambda: {"alive": True})),
        *(Route(f"/api/{name}", _asked(answer), methods=["POST"]) for name, answer in posts.items()),
        Route("/", _file(PAGE / "index.html")),
        *(Route(f"/{file.name}", _file(file)) for file in sorted(PAGE.iterdir()) if file.suffix in TYPES),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _no_such_page, 405: _wrong_method})
    names = ("127.0.0.1", "localhost")
    hosts = {f"{name}:{port}" for name in names} | ({*names} if port == HTTP else set())
    return Guard(app, token, hosts)


class Guard:
    """Lets through what is addressed to us, comes from us and knows the token; takes the token off its path."""

    def __init__(self, app: ASGIApp, token: str, hosts: set[str]) -> None:
        self.app, self.token, self.hosts = app, token.encode(), hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve or refuse."""
        assert scope["type"] == "http", "lifespan and websockets are switched off"
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        first, _, rest = scope["path"].removeprefix("/").partition("/")
        reason = self._refuse(headers, first)
        if reason is not None:
            await _reply({"error": reason}, 403)(scope, receive, send)
            return
        await self.app({**scope, "path": "/" + rest, "raw_path": b"/" + rest.encode()}, receive, send)

    def _refuse(self, headers: dict[str, str], token: str) -> str | None:
        if headers.get("host", "") not in self.hosts:
            return f"the host {shown(headers.get('host'))} is not this server's; use the address that it printed"
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{host}" for host in self.hosts}:
            return f"requests from {shown(origin)} are not served; use this server's own page"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "requests that another site makes are not served; use this server's own page"
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.token):
            return "the token in the address is missing or wrong; use the address that this server printed"
        return None


class Answers:
    """What is computed for the page, in worker threads; of a page's requests only the newest counts."""

    def __init__(self, stopping: Callable[[], bool]) -> None:
        self._stopping = stopping
        self._newest: OrderedDict[str, int] = OrderedDict()
        self._limiter: CapacityLimiter | None = None

    async def fit(self, body: dict[str, Any]) -> dict[str, Any]:
        """A fit."""
        return await self._answer(body, fit)

    async def steps(self, body: dict[str, Any]) -> dict[str, Any]:
        """Runs of one or two algorithms."""
        return await self._answer(body, steps)

    async def hildreth(self, body: dict[str, Any]) -> dict[str, Any]:
        """Hildreth's steps on two variables."""
        return await self._answer(body, lambda body, overtaken: hildreth(body))

    async def code(self, body: dict[str, Any]) -> dict[str, Any]:
        """The program that makes the same fit."""
        return {"code": Choice.read(body).code(*read_points(body))}

    async def _answer(self, body: dict[str, Any], question: Question) -> dict[str, Any]:
        """The answer, unless a newer request of the same kind and page overtakes this one."""
        from anyio import CapacityLimiter
        from anyio.to_thread import run_sync

        is_old = self._take_turn(body)

        def overtaken() -> bool:
            return self._stopping() or is_old()

        def work() -> dict[str, Any]:
            if overtaken():
                raise OvertakenError
            return question(body, overtaken)

        if self._limiter is None:  # belongs to the loop that runs
            self._limiter = CapacityLimiter(WORKERS)
        try:
            return await run_sync(work, limiter=self._limiter)
        except OvertakenError:
            if self._stopping():
                raise RefusedError("not computed: the server was stopped", 503) from None
            raise

    def _take_turn(self, body: dict[str, Any]) -> Callable[[], bool]:
        """Note that this request has come; how to ask whether a newer one has."""
        tab, turn = body.get("tab"), body.get("turn")
        if tab is None:
            return lambda: False
        if not isinstance(tab, str) or len(tab) > 64 or isinstance(turn, bool) or not isinstance(turn, int):
            raise RefusedError(f"tab is {shown(tab)} and turn {shown(turn)}; give a short text and a whole number")
        self._newest[tab] = max(turn, self._newest.pop(tab, turn))
        while len(self._newest) > MOST_TABS:
            self._newest.popitem(last=False)
        return lambda: self._newest.get(tab, turn) > turn


def _asked(answer: Callable[[dict[str, Any]], Any]) -> Any:
    """An endpoint that reads a JSON body and answers it, or says why not."""

    async def endpoint(request: Request) -> Any:
        try:
            return _reply(await answer(read_json(await _body(request))))
        except OvertakenError:
            return _reply({"overtaken": True}, 409)
        except RefusedError as refusal:
            reply = _reply({"error": str(refusal)}, refusal.status)
            return _Dropping(reply) if refusal.status == 413 else reply
        except (ValueError, TypeError) as error:
            return _reply({"error": str(error)}, 400)
        except Exception as error:  # a fault of ours: told on the page, in full where the server runs
            traceback.print_exc()
            return _reply({"error": f"the server failed, and goes on: {shown(error)}"}, 500)

    return endpoint


async def _body(request: Request) -> bytes:
    """The body, if it is JSON and not too large; what is too large is not read to its end."""
    too_large = RefusedError(
        f"the body is larger than {LARGEST_BODY:,} bytes; the page takes at most {MOST_POINTS:,} points", 413
    )
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise RefusedError("the body must be sent as application/json", 415)
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > LARGEST_BODY:
        raise too_large
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > LARGEST_BODY:
            raise too_large
        parts.append(part)
    return b"".join(parts)


class _Dropping:
    """An answer to a body that was not read: it is sent whole, and only then the connection is closed."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from anyio import move_on_after

        await send({"type": "http.response.start", "status": self.reply.status_code, "headers": self.reply.raw_headers})
        await send({"type": "http.response.body", "body": self.reply.body, "more_body": True})
        dropped, more = 0, True
        while more and dropped < DROPPED:
            more = False
            with move_on_after(DROP_SECONDS):
                message = await receive()
                dropped += len(message.get("body", b""))
                more = message.get("more_body", False)
        await send({"type": "http.response.body", "body": b""})


def _told(say: Callable[[], dict[str, Any]]) -> Any:
    async def endpoint(request: Request) -> Any:
        return _reply(say())

    return endpoint


def _file(path: Path) -> Any:
    from starlette.responses import Response

    async def endpoint(request: Request) -> Any:
        return Response(path.read_bytes(), media_type=TYPES[path.suffix], headers=HEADERS)

    return endpoint


async def _no_such_page(request: Request, error: Exception) -> Any:
    return _reply({"error": f"there is nothing at {shown(request.url.path)}"}, 404)


async def _wrong_method(request: Request, error: Exception) -> Any:
    return _reply({"error": f"{request.method} is not served here"}, 405)


def _reply(content: dict[str, Any], status: int = 200) -> Any:
    """One line of JSON."""
    from starlette.responses import Response

    line = json.dumps(_plain(content), separators=(",", ":")) + "\n"
    headers = HEADERS | ({"connection": "close"} if status == 413 else {})
    return Response(line, status, headers, media_type="application/json")


def _plain(value: Any) -> Any:
    """The same in what JSON has: arrays become lists, what is not finite becomes null."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind != "f" or np.isfinite(value).all():
            return value.tolist()
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
