"""The explorer's server on a free port of this machine, in a thread, for as long as a test needs it."""

from __future__ import annotations

import http.client
import threading
from typing import NamedTuple

import uvicorn

from widemargin.explorer import server


class Reply(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    text: str


class Loopback:
    """Serves between `start` and `stop`; a port and a token can be kept to come back at the same address."""

    def __init__(self, token: str, port: int = 0) -> None:
        self.token, self.port = token, port

    def start(self) -> Loopback:
        """Listen, and serve from now on."""
        door = server._listen(self.port)
        self.port = door.getsockname()[1]
        config = uvicorn.Config(
            server.build_app(self.token, self.port), lifespan="off", log_level="error", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [door]}, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """End, and wait until nobody listens any more."""
        self._server.should_exit = True
        self._thread.join(timeout=20)
        assert not self._thread.is_alive()

    def __enter__(self) -> Loopback:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def get(self, path: str, headers: dict[str, str] | None = None) -> Reply:
        """A GET of this path."""
        return self._ask("GET", path, None, headers)

    def post(self, path: str, body: str | bytes, headers: dict[str, str]) -> Reply:
        """A POST of this body."""
        return self._ask("POST", path, body, headers)

    def _ask(self, method: str, path: str, body: str | bytes | None, headers: dict[str, str] | None) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read().decode())
        finally:
            connection.close()
