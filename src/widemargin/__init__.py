"""Linear classifiers trained to the optimum, each fit with its proof."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from widemargin.certificate import Certificate, Certificates, InseparableError, SeparableError
    from widemargin.estimators import (
        MIRA,
        IndefiniteKernelWarning,
        KernelSVM,
        LeastSquaresClassifier,
        LinearSVM,
        LogisticRegression,
        Path,
        Perceptron,
        certify,
        kernel_grid,
        path,
    )
    from widemargin.model import LinearModel, ModelError
    from widemargin.model_kernel import KernelModel
    from widemargin.problem import CONVENTIONS, strength
    from widemargin.solvers.hildreth import hildreth

#: Public names and where they live; loaded on first use, so that importing the package stays cheap.
_HOMES = {
    "CONVENTIONS": "widemargin.problem",
    "MIRA": "widemargin.estimators",
    "Certificate": "widemargin.certificate",
    "Certificates": "widemargin.certificate",
    "IndefiniteKernelWarning": "widemargin.estimators",
    "InseparableError": "widemargin.certificate",
    "KernelModel": "widemargin.model_kernel",
    "KernelSVM": "widemargin.estimators",
    "LeastSquaresClassifier": "widemargin.estimators",
    "LinearModel": "widemargin.model",
    "LinearSVM": "widemargin.estimators",
    "LogisticRegression": "widemargin.estimators",
    "ModelError": "widemargin.model",
    "Path": "widemargin.estimators",
    "Perceptron": "widemargin.estimators",
    "SeparableError": "widemargin.certificate",
    "certify": "widemargin.estimators",
    "kernel_grid": "widemargin.estimators",
    "hildreth": "widemargin.solvers.hildreth",
    "path": "widemargin.estimators",
    "strength": "widemargin.problem",
}

__all__ = [
    "CONVENTIONS",
    "MIRA",
    "Certificate",
    "Certificates",
    "IndefiniteKernelWarning",
    "InseparableError",
    "KernelModel",
    "KernelSVM",
    "LeastSquaresClassifier",
    "LinearModel",
    "LinearSVM",
    "LogisticRegression",
    "ModelError",
    "Path",
    "Perceptron",
    "SeparableError",
    "certify",
    "hildreth",
    "kernel_grid",
    "path",
    "strength",
]
#: Rooms that one may want to look into by name.
_ROOMS = (
    "data",
    "evaluation",
    "explorer",
    "kernels",
    "losses",
    "plots",
    "problem",
    "report",
    "solvers",
    "textbook",
    "training",
)
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return import_module(f"widemargin.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'widemargin' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
