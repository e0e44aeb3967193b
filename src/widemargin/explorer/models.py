"""What can be chosen on the page: models with their solvers, and the estimator that each choice stands for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np

import widemargin
from widemargin.explorer.reading import Floats, RefusedError, read_choice, read_number, read_switch, read_whole
from widemargin.solvers import SOLVERS

#: The relative gap that fits are asked to prove, by methods that reach any and by those that slow down on the way.
EXACT, ROUGH = 1e-9, 1e-3
#: The same for a kernel SVM: small enough for the page to call it optimal.
CURVED = 1e-6
#: The passes after which those are stopped.
PASSES = {"pegasos": 60, "sgd": 60, "subgradient": 500}


@dataclass(frozen=True)
class Model:
    """A kind of classifier as the page names it."""

    title: str
    #: What it does, in a sentence.
    hint: str
    estimator: str
    loss: str | None = None
    hard: bool = False
    #: What C means to it; empty if it has none.
    strength: str = ""
    #: Whether a kernel takes the place of the inner product: the boundary is then curved, and always has a bias.
    kernelised: bool = False

    @property
    def solvers(self) -> list[str]:
        """The solvers that serve it; one that needs a package which is not here is left out."""
        if self.loss is None or self.kernelised:
            return ["auto"]
        able = [name for name, its in SOLVERS.items() if self.loss in its.losses and (its.hard or not self.hard)]
        return [name for name in able if name != "qp" or _has_clarabel()]


MODELS = {
    "hard": Model(
        "Hard margin",
        "The widest band with no point inside. It exists only if a line separates the classes.",
        "LinearSVM",
        loss="hinge",
        hard=True,
    ),
    "soft": Model(
        "Soft-margin SVM",
        "A wide band, at the price C for each point inside it or beyond.",
        "LinearSVM",
        loss="hinge",
        strength="Small C: a wide band. Large C: few violations.",
    ),
    "perceptron": Model(
        "Perceptron",
        "Moves the line at each mistake, and stops at the first line without any. It knows no margin.",
        "Perceptron",
    ),
    "mira": Model(
        "MIRA",
        "At each mistake, the least change of the line that gives this point a margin of 1.",
        "MIRA",
        strength="How far a single point may move the line.",
    ),
    "logistic": Model(
        "Logistic regression",
        "Every point pulls at the line, those on the wrong side most.",
        "LogisticRegression",
        loss="logistic",
        strength="Small C: cautious probabilities. Large C: steep ones.",
    ),
    "squares": Model(
        "Least squares",
        "A regression on labels of ±1. Points far out pull as well, even on the right side.",
        "LinearSVM",
        loss="squared",
        strength="Large C: plain least squares.",
    ),
    "kernel": Model(
        "Kernel SVM",
        "A soft margin whose boundary bends: a kernel takes the place of x·z.",
        "KernelSVM",
        loss="hinge",
        strength="Small C: a wide band. Large C: few violations.",
        kernelised=True,
    ),
}


@dataclass(frozen=True)
class KernelChoice:
    """A kernel as the page names it."""

    title: str
    formula: str
    #: What γ means to it, in a sentence.
    hint: str
    #: Which parameters act besides γ.
    parameters: tuple[str, ...] = ()


KERNELS = {
    "rbf": KernelChoice("rbf (Gaussian)", "k(x, z) = exp(−γ‖x − z‖²)", "Large γ: only neighbours count."),
    "poly": KernelChoice(
        "polynomial", "k(x, z) = (γ x·z + r)ᵈ", "The boundary is a curve of degree d.", ("degree", "coef0")
    ),
    "laplacian": KernelChoice("Laplacian", "k(x, z) = exp(−γ‖x − z‖₁)", "As rbf, with kinks."),
}

#: Each solver in a few words.
SOLVER_TITLES = {
    "auto": "automatic",
    "dual_cd": "dual coordinate descent",
    "interior_point": "interior point",
    "newton_cg": "Newton, conjugate gradients",
    "proximal_newton": "proximal Newton",
    "hildreth": "Hildreth",
    "smo": "SMO",
    "qp": "off-the-shelf QP (Clarabel)",
    "least_squares": "closed form",
    "pegasos": "Pegasos (rough)",
    "sgd": "SGD (rough)",
    "subgradient": "subgradient descent (rough)",
}


@cache
def _has_clarabel() -> bool:
    return find_spec("clarabel") is not None


@dataclass(frozen=True)
class Choice:
    """A model with its settings, as a request asks for them."""

    model: str
    solver: str
    C: float
    bias: bool
    kernel: str = "rbf"
    gamma: float | Literal["scale"] = "scale"
    degree: int = 3
    coef0: float = 0.0

    @classmethod
    def read(cls, body: dict[str, Any]) -> Choice:
        """The choice in a request."""
        model = read_choice(body.get("model", "soft"), "model", MODELS)
        solver = read_choice(body.get("solver", "auto"), f"solver for {model}", MODELS[model].solvers)
        strength = read_number(body.get("C", 1.0), "C", 1e-6, 1e10)
        bias = read_switch(body.get("bias", True), "bias")
        if not MODELS[model].kernelised:
            return cls(model, solver, strength, bias)
        if not bias:
            raise RefusedError("bias is False; the kernel SVM always has one")
        kernel = read_choice(body.get("kernel", "rbf"), "kernel", KERNELS)
        gamma = body.get("gamma", "scale")
        return cls(
            model,
            solver,
            strength,
            bias,
            kernel,
            "scale" if gamma == "scale" else read_number(gamma, "gamma", 1e-15, 1e15),
            read_whole(body.get("degree", 3), "degree", 1, 9),
            read_number(body.get("coef0", 0.0), "coef0", 0.0, 1e6),
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """What the estimator is made with, where it is not the default anyway."""
        model = MODELS[self.model]
        wanted: dict[str, Any] = {}
        if model.hard:
            wanted["C"] = np.inf
        elif model.strength:
            wanted["C"] = self.C
        if model.estimator == "LinearSVM" and model.loss != "hinge":
            wanted["loss"] = model.loss
        if not self.bias:
            wanted["fit_intercept"] = False
        if model.kernelised:
            acting = ("kernel", "gamma", *KERNELS[self.kernel].parameters)
            return wanted | {name: getattr(self, name) for name in acting} | {"tol": CURVED}
        if model.loss is not None:
            wanted |= {} if self.solver == "auto" else {"solver": self.solver}
            wanted["tol"] = EXACT if SOLVERS[self.solver].exact else ROUGH
            wanted |= {"max_iter": PASSES[self.solver]} if self.solver in PASSES else {}
        return wanted

    @property
    def name(self) -> str:
        """The estimator's name in `widemargin`."""
        return MODELS[self.model].estimator

    def estimator(self) -> Any:
        """The estimator, on one thread where it has several: these are few points."""
        threads = {} if MODELS[self.model].loss is None else {"n_jobs": 1}
        return getattr(widemargin, self.name)(**self.parameters, **threads)

    def code(self, X: Floats, y: Floats) -> str:
        """A Python program that makes the same fit."""
        settings = ", ".join(f"{key}={_written(value)}" for key, value in self.parameters.items())
        certified = MODELS[self.model].loss is not None
        lines = [
            "import numpy as np",
            "",
            f"from widemargin import {'InseparableError, ' if MODELS[self.model].hard else ''}{self.name}",
            "",
            "X = np.array([",
            *(f"    [{point[0]!r}, {point[1]!r}]," for point in X.tolist()),
            "])",
            f"y = np.array({[int(label) for label in y]})",
            "",
            f"model = {self.name}({settings})",
        ]
        shown = ['print("w =", model.coef_[0], " b =", model.intercept_[0])']
        if MODELS[self.model].kernelised:
            shown = ['print("support vectors:", model.support_, " b =", model.intercept_[0])']
        shown += ["print(model.certificate_)"] if certified else ['print("separates the classes:", model.separates_)']
        if MODELS[self.model].hard:
            lines += [
                "try:",
                "    model.fit(X, y)",
                *("    " + line for line in shown),
                "except InseparableError as proof:",
                '    print("no line separates the classes; a point in both hulls:", proof.point)',
            ]
        else:
            lines += ["model.fit(X, y)", *shown]
        return "\n".join(lines) + "\n"


def _written(value: Any) -> str:
    """A value as one writes it in a program."""
    return "np.inf" if value == np.inf else repr(value)


def choices() -> dict[str, Any]:
    """What the page offers: models, their hints and solvers, and kernels."""
    return {
        "models": {
            name: {
                "title": model.title,
                "hint": model.hint,
                "strength": model.strength,
                "solvers": {solver: SOLVER_TITLES.get(solver, solver) for solver in model.solvers},
                "certified": model.loss is not None,
                "kernelised": model.kernelised,
            }
            for name, model in MODELS.items()
        },
        "kernels": {name: asdict(kernel) for name, kernel in KERNELS.items()},
    }
