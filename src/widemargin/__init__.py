"""Linear classifiers trained to the optimum, each fit with its proof."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from widemargin.certificate import Certificate, Certificates, InseparableError
    from widemargin.estimators import LinearSVM, LogisticRegression, certify

#: Public names and where they live; loaded on first use, so that importing the package stays cheap.
_HOMES = {
    "Certificate": "widemargin.certificate",
    "Certificates": "widemargin.certificate",
    "InseparableError": "widemargin.certificate",
    "LinearSVM": "widemargin.estimators",
    "LogisticRegression": "widemargin.estimators",
    "certify": "widemargin.estimators",
}

__all__ = ["Certificate", "Certificates", "InseparableError", "LinearSVM", "LogisticRegression", "certify"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'widemargin' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
