from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

loss_names: tuple[str, ...]

class Rows:
    @property
    def n(self) -> int: ...
    @property
    def d(self) -> int: ...
    @property
    def nonzeros(self) -> int: ...
    @property
    def uneven(self) -> bool: ...

def loss_function(loss: str, function: str, at: float) -> float: ...
def loss_step(loss: str, alpha: float, m: float, q: float, c: float) -> float: ...
def dense_rows(x: NDArray[np.floating]) -> Rows: ...
def csr_rows(x: NDArray[np.floating], columns: NDArray[np.integer], starts: NDArray[np.integer], d: int) -> Rows: ...
def check_order(
    columns: NDArray[np.integer], starts: NDArray[np.integer], d: int, threads: int
) -> tuple[bool, bool, bool]: ...

svmlight_padding: int

class SvmlightParser:
    @property
    def rows(self) -> int: ...
    @property
    def lines(self) -> int: ...
    @property
    def zero_based(self) -> bool: ...
    def feed(
        self, text: bytearray, size: int, times: float, piece: int, threads: int
    ) -> tuple[str, int, bytes, int] | None: ...
    def take(self) -> tuple[Any, ...]: ...

def svmlight_parser(single: bool, base: str, n_features: int) -> SvmlightParser: ...
def svmlight_text(
    x: NDArray[np.floating],
    columns: NDArray[np.integer],
    starts: NDArray[np.integer],
    begin: int,
    end: int,
    labels: Floats,
    qids: Integers | None,
    offset: int,
) -> bytes: ...
def scores(rows: Rows, w: Floats, threads: int) -> Floats: ...
def combine(rows: Rows, v: Floats, threads: int) -> Floats: ...
def scores_and_combine(rows: Rows, w: Floats, v: Floats, threads: int) -> tuple[Floats, Floats]: ...
def combine_by_sign(rows: Rows, v: Floats, threads: int) -> Floats: ...
def combine_squares(rows: Rows, v: Floats, threads: int) -> Floats: ...
def square_norms(rows: Rows, threads: int) -> Floats: ...
def gram(rows: Rows, weight: Floats, shift: Floats | None, border: bool, threads: int) -> Floats: ...

class Prudence:
    def says_no(self, now: float) -> bool: ...
    def judge(self, lost: float, took: float, now: float) -> None: ...

class Workspace:
    is_cut: bool
    shared: int
    def cut(self, rows: Rows, threads: int) -> bool: ...

def dual_cd_pass(
    loss: str,
    rows: Rows,
    y: Floats,
    c: Floats,
    norms: Floats,
    alpha: Floats,
    w: Floats,
    b: float,
    s: float,
    inverse_rho: float,
    active: Integers,
    actives: int,
    order: Integers,
    shift: int,
    shrink_above: float,
    shrink_below: float,
    slow: NDArray[np.uint8],
    slow_from: float,
    share: float,
    times: int,
    many: int,
    proof: float,
    enough_gap: float,
    enough_visits: int,
    split: bool,
    threads: int,
    apart: int,
    work: Workspace,
) -> tuple[float, float, float, float, float, float, int, int]: ...

class Habits:
    def __init__(
        self,
        bold: float,
        shy: float,
        rough: float,
        least_return: float,
        worth: float,
        most_return: float,
        slow: float,
        near: float,
        again: int,
    ) -> None: ...

class Course:
    names: tuple[str, ...]
    goal: float
    tol: float
    b: float
    s: float
    last_s: float
    dual: float
    worst: float
    above: float
    below: float
    gap: float
    near: float
    before: float
    whole_claim: float
    returns: float
    whole: bool
    narrowed: bool
    trusted: bool
    doubted: bool
    passes: int
    visited: int
    unseen: int
    def enough(self, habits: Habits) -> float: ...
    def judge(self, gap: float, largest: float, smallest: float, earlier: float, left: int, habits: Habits) -> None: ...

class Descent:
    def __init__(
        self,
        loss: str,
        rows: Rows,
        y: Floats,
        c: Floats,
        norms: Floats,
        alpha: Floats,
        w: Floats,
        inverse_rho: float,
        active: Integers,
        actives: int,
        live: Integers,
        hard: bool,
        shift: int,
        slow: NDArray[np.uint8],
        course: Course,
        habits: Habits,
        very_few: int,
        many: int,
        exact: bool,
        seed: int,
        threads: int,
        apart: int,
        work: Workspace,
    ) -> None: ...
    @property
    def actives(self) -> int: ...
    def all_play(self) -> None: ...
    def go_on(self, passes: int, visits: int) -> tuple[int, int]: ...

def all_go_on(descents: list[Descent], passes: int, visits: int, threads: int) -> None: ...

lanes: int

class LaneDescent:
    def __init__(
        self,
        loss: str,
        rows: Rows,
        label: NDArray[np.uint8],
        b: Floats,
        c: Floats,
        norms: Floats,
        live: Integers,
        shift: int,
        inverse_rho: float,
        seed: int,
    ) -> None: ...
    def run(self, tol: float, habits: Habits, leave: int, budget: int) -> tuple[bool, float, int, int]: ...
    def solution(self, lane: int) -> tuple[Floats, float, Floats, bool]: ...

def best_bias_of_lines(scores: Floats, y: Floats, c: Floats, kink: float, flat: float) -> float: ...
def scale_both_ways(matrix: Floats, scale: Floats, copy: Floats) -> None: ...
def inner(a: Floats, b: Floats) -> float: ...
def distance(a: Floats, b: Floats) -> float: ...
def losses(loss: str, m: Floats, c: Floats, threads: int) -> float: ...
def conjugates(loss: str, alpha: Floats, c: Floats, threads: int) -> float: ...
def facts_of_rows(
    loss: str,
    m: Floats,
    alpha: Floats,
    y: Floats,
    c: Floats,
    norms: Floats,
    w_size: float,
    implied_size: float,
    b: float,
    at_bound: float,
    tiny: float,
    support: NDArray[np.uint8],
    threads: int,
) -> tuple[tuple[int, int, int], tuple[float, float, float], float, int, int, int, float]: ...
def follow_curve(
    loss: str, m: Floats, dm: Floats, t: float, c: Floats, alpha: Floats, weights: Floats, threads: int
) -> tuple[float, float, float, float]: ...
def follow_ramp(
    m: Floats,
    dm: Floats,
    t: float,
    centre: Floats,
    c: Floats,
    y: Floats,
    tau: float,
    alpha: Floats,
    threads: int,
) -> tuple[float, float, float, float, float, float, float]: ...
def sgd_steps(
    rule: str,
    rows: Rows,
    y: Floats,
    g: Floats,
    v: Floats,
    v_missed: Floats,
    a: Floats,
    a_missed: Floats,
    numbers: Floats,
    draws: Integers,
    eta: Floats,
    shrink: Floats,
    batch: int,
    bias: bool,
    radius: float,
    norms: Floats,
) -> int: ...
def mira_steps(
    rows: Rows,
    y: Floats,
    v: Floats,
    v_missed: Floats,
    numbers: Floats,
    draws: Integers,
    batch: int,
    bias: bool,
    p: float,
    limit: float,
) -> int: ...
def hildreth_steps(
    q: Floats, upper: Floats, alpha: Floats, gradient: Floats, visits: Integers, count: int
) -> tuple[float, int]: ...
def smo_steps(
    rows: Rows,
    y: Floats,
    c: Floats,
    norms: Floats,
    alpha: Floats,
    f: Floats,
    columns: Floats,
    owner: Integers,
    place: Integers,
    next: Integers,
    bias: bool,
    count: int,
    tol: float,
) -> tuple[int, float]: ...

class KernelFunction: ...

class KernelRows32:
    @staticmethod
    def computed(
        function: KernelFunction, rows: Rows, shift: Floats | None, sparse: bool, bytes: int
    ) -> KernelRows32: ...
    @staticmethod
    def whole(
        function: KernelFunction, rows: Rows, shift: Floats | None, sparse: bool, threads: int
    ) -> KernelRows32: ...
    @staticmethod
    def given(matrix: NDArray[np.float32]) -> KernelRows32: ...

class KernelRows64:
    @staticmethod
    def computed(
        function: KernelFunction, rows: Rows, shift: Floats | None, sparse: bool, bytes: int
    ) -> KernelRows64: ...
    @staticmethod
    def whole(
        function: KernelFunction, rows: Rows, shift: Floats | None, sparse: bool, threads: int
    ) -> KernelRows64: ...
    @staticmethod
    def given(matrix: Floats) -> KernelRows64: ...

class KernelSums32:
    @staticmethod
    def of(function: KernelFunction, rows: Rows, shift: Floats | None, sparse: bool, threads: int) -> KernelSums32: ...
    def source(self, function: KernelFunction, threads: int) -> KernelRows32: ...

class KernelSums64:
    @staticmethod
    def of(function: KernelFunction, rows: Rows, shift: Floats | None, sparse: bool, threads: int) -> KernelSums64: ...
    def source(self, function: KernelFunction, threads: int) -> KernelRows64: ...

class _KernelSmo:
    def __init__(
        self,
        source: KernelRows32 | KernelRows64,
        segments: Any,
        y: Floats,
        c: Floats,
        alpha: Floats,
        e: Floats,
        largest: int,
        threads: int,
    ) -> None: ...
    def compute_gradient(self) -> None: ...
    def run(self, rounds: int, tol: float) -> None: ...
    @staticmethod
    def run_all(all: list[Any], rounds: int, tol: float, threads: int) -> None: ...
    @property
    def status(self) -> tuple[int, float, float, float, bool]: ...
    working_set: tuple[list[int], list[int], int, list[int]]
    conjugate: bool
    @property
    def steps(self) -> int: ...
    @property
    def worst(self) -> tuple[int, int, float]: ...

class KernelSmo32(_KernelSmo): ...
class KernelSmo64(_KernelSmo): ...

def kernel_function(name: str, gamma: float, coef0: float, degree: int) -> KernelFunction: ...
def kernel_matrix(
    function: KernelFunction, a: Rows, b: Rows, shift: Floats | None, sparse: bool, threads: int
) -> Floats: ...
def kernel_scores(
    function: KernelFunction, x: Rows, b: Rows, coef: Floats, shift: Floats | None, sparse: bool, threads: int
) -> Floats: ...
def kernel_diagonal(
    function: KernelFunction, rows: Rows, shift: Floats | None, sparse: bool, threads: int
) -> Floats: ...
