"""What the tests of the explorer share: its server, in a thread, and the estimators that its choices stand for."""

from __future__ import annotations

import http.client
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import uvicorn

from widemargin import MIRA, KernelSVM, LinearSVM, LogisticRegression, Perceptron
from widemargin.explorer import server
from widemargin.explorer.models import CURVED

#: What takes longer has failed: much more than a busy machine needs for anything here.
SECONDS = 60


class Reply(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    text: str


class Loopback:
    """Serves between `start` and `stop`; a port and a token can be kept to come back at the same address."""

    def __init__(self, token: str, port: int = 0) -> None:
        self.token, self.port = token, port
        #: The path and the status of every answer.
        self.answered: list[tuple[str, int]] = []

    def start(self) -> Loopback:
        """Listen, and serve from now on."""
        door = server._listen(self.port)
        self.port = door.getsockname()[1]
        app = self._noting(server.build_app(self.token, self.port))
        config = uvicorn.Config(app, lifespan="off", log_level="error", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [door]}, daemon=True)
        self._thread.start()
        return self

    def _noting(self, app: Any) -> Any:
        async def noting(scope: Any, receive: Any, send: Any) -> None:
            async def note(message: Any) -> None:
                if message["type"] == "http.response.start":
                    self.answered.append((scope["path"], message["status"]))
                await send(message)

            await app(scope, receive, note)

        return noting

    def stop(self) -> None:
        """End, and wait until nobody listens any more."""
        self._server.should_exit = True
        self._thread.join(timeout=SECONDS)
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
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read().decode())
        finally:
            connection.close()


@contextmanager
def process(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A program that runs until it is told to end, and no longer than the test: a failure is told, not waited for."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def estimator(model: str, solver: str = "auto", C: float = 1.0, bias: bool = True) -> Any:
    """The estimator that a choice of the page stands for, written out."""
    online = {"fit_intercept": bias}
    rough = {"pegasos": 60, "sgd": 60, "subgradient": 500}
    certified = {"fit_intercept": bias, "solver": solver, "tol": 1e-3 if solver in rough else 1e-9}
    if solver in rough:
        certified["max_iter"] = rough[solver]
    return {
        "hard": lambda: LinearSVM(C=np.inf, **certified),
        "soft": lambda: LinearSVM(C=C, **certified),
        "perceptron": lambda: Perceptron(**online),
        "mira": lambda: MIRA(C=C, **online),
        "logistic": lambda: LogisticRegression(C=C, **certified),
        "squares": lambda: LinearSVM(C=C, loss="squared", **certified),
    }[model]()


def kernel_svm(kernel: str = "rbf", gamma: Any = "scale", degree: int = 3, coef0: float = 0.0, C: float = 1.0) -> Any:
    """The kernel SVM that a choice of the page stands for, written out; what does not act on its kernel is left out."""
    acting = {"degree": degree, "coef0": coef0} if kernel == "poly" else {}
    return KernelSVM(C=C, kernel=kernel, gamma=gamma, tol=CURVED, **acting)
