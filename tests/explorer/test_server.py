"""The explorer's server: it answers what the estimators and the textbook say, and refuses what it must not serve."""

import asyncio
import http.client
import json
import re
import signal
import socket
import sys
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import widemargin
from explorer.loopback import SECONDS, Loopback, estimator, kernel_svm, process
from oracles import noisy
from widemargin import InseparableError, LinearSVM, textbook
from widemargin.cli import main
from widemargin.explorer import fitting, serve, server
from widemargin.explorer.fitting import OvertakenError, fit, hull
from widemargin.explorer.models import EXACT, KERNELS, MODELS
from widemargin.explorer.playing import ALGORITHMS, steps

TOKEN = "a-token-for-tests"
SQUARE = [[1, 1], [1, -1], [-1, 1], [-1, -1]]
LABELS = [1, 1, -1, -1]
STRAIGHT = [model for model in MODELS if not MODELS[model].kernelised]


@pytest.fixture(scope="module")
def client():
    """A server on loopback, and how to ask it."""
    with Loopback(TOKEN) as running:
        yield running


def ask(client, what, body, **headers):
    """An answer of the API, and its status."""
    reply = client.post(f"/{TOKEN}/api/{what}", json.dumps(body), {"content-type": "application/json", **headers})
    return reply.status, json.loads(reply.text)


def crowd(n=60, seed=0):
    """Points of two classes that overlap, as a request sends them."""
    X, y = noisy(n, 2, seed=seed)
    return X, y, {"points": X.tolist(), "labels": [int(label) for label in y]}


def separated(n=40):
    """Points of two classes that a line separates."""
    rng = np.random.default_rng(1)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = rng.normal(size=(n, 2)) * 0.4 + y[:, None]
    return X, y, {"points": X.tolist(), "labels": [int(label) for label in y]}


@pytest.mark.parametrize(
    ("path", "headers", "reason"),
    [
        ("/", {}, "token"),
        ("/api/choices", {}, "token"),
        ("/wrong-token/", {}, "token"),
        (f"/{TOKEN[:-1]}/", {}, "token"),
        (f"/{TOKEN}%C3%A9/", {}, "token"),
        (f"/{TOKEN}/", {"origin": "http://elsewhere.example"}, "elsewhere.example"),
        (f"/{TOKEN}/", {"origin": "http://127.0.0.1:1"}, "are not served"),
        (f"/{TOKEN}/", {"origin": "null"}, "are not served"),
        (f"/{TOKEN}/", {"sec-fetch-site": "cross-site"}, "another site"),
        (f"/{TOKEN}/", {"host": "rebound.example"}, "rebound.example"),
        (f"/{TOKEN}/", {"host": "127.0.0.1:1"}, "host"),
    ],
)
def test_strangers_are_refused(client, path, headers, reason):
    """Without the token, from another origin or for another host: 403 and one line that says why, for GET and POST."""
    for reply in (client.get(path, headers), client.post(path + "api/fit", "{}", headers)):
        assert reply.status == 403
        assert reason in json.loads(reply.text)["error"]
        assert reply.text.count("\n") == 1
        assert TOKEN not in reply.text


def test_our_own_origin_is_served(client):
    """The page's own requests carry its origin, and localhost is a name for the same place."""
    body = {"points": SQUARE, "labels": LABELS}
    here, name = f"127.0.0.1:{client.port}", f"localhost:{client.port}"
    assert ask(client, "fit", body, origin=f"http://{here}", **{"sec-fetch-site": "same-origin"})[0] == 200
    assert ask(client, "fit", body, host=name, origin=f"http://{name}")[0] == 200


@pytest.mark.parametrize(("port", "served"), [(80, True), (8080, False)])
def test_a_host_without_a_port_means_80(port, served):
    """Browsers leave out :80, and nothing else."""
    sent = []

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost")]
    scope = {"type": "http", "method": "GET", "path": f"/{TOKEN}/api/alive", "query_string": b"", "headers": headers}
    asyncio.run(server.build_app(TOKEN, port)(scope, None, send))
    assert sent[0]["status"] == (200 if served else 403)


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"", 400, "no JSON"),
        (b"{'points'", 400, "no JSON"),
        (b"\xff\xfe\x00", 400, "no JSON"),
        (b"[" * 100_000, 400, "no JSON"),
        (b"[1, 2]", 400, "JSON object"),
        (b'{"points": [[NaN, 0]], "labels": [1]}', 400, "NaN"),
        (b'{"points": [[0, -Infinity]], "labels": [1]}', 400, "-Infinity"),
        (b'{"points": [[0, 1e999]], "labels": [1]}', 400, "points[0]"),
        (b'{"points": [[0, 1' + b"0" * 400 + b']], "labels": [1]}', 400, "points[0]"),
        (b'{"points": [[0, true]], "labels": [1]}', 400, "points[0]"),
        (b'{"points": [[0]], "labels": [1]}', 400, "pair"),
        (b'{"points": 3, "labels": [1]}', 400, "lists"),
        (b'{"points": [[0, 0]], "labels": [1, 1]}', 400, "one label for each"),
        (b'{"points": [[0, 0]], "labels": [2]}', 400, "labels[0]"),
        (b'{"points": [[0, 0]], "labels": [true]}', 400, "labels[0]"),
        (b'{"points": [], "labels": [], "model": "\\ud800"}', 400, "choose from hard"),
        (b'{"points": [], "labels": [], "model": ["soft"]}', 400, "choose from hard"),
        (b'{"points": [], "labels": [], "model": "hard", "solver": "pegasos"}', 400, "choose from auto"),
        (b'{"points": [], "labels": [], "C": 0}', 400, "C is 0"),
        (b'{"points": [], "labels": [], "C": NaN}', 400, "NaN"),
        (b'{"points": [], "labels": [], "bias": 1}', 400, "true or false"),
        (b'{"points": [], "labels": [], "tab": 3, "turn": 1}', 400, "turn"),
        (json.dumps({"points": [[0, 0]] * 2001, "labels": [1] * 2001}).encode(), 413, "at most 2,000"),
        (b'{"points": [' + b"[0,0]," * 1_000_000 + b"[0,0]]}", 413, "2,000 points"),
    ],
)
def test_junk_is_refused_with_a_reason(client, body, status, reason):
    """NaN, too many points, no JSON, wrong types: one line of JSON that names what is wrong; then a fit as ever."""
    reply = client.post(f"/{TOKEN}/api/fit", body, {"content-type": "application/json"})
    assert reply.status == status
    assert reason in json.loads(reply.text)["error"]
    assert reply.text.count("\n") == 1
    assert ask(client, "fit", {"points": SQUARE, "labels": LABELS})[1]["w"] == pytest.approx([1, 0], abs=1e-6)


@pytest.mark.parametrize(
    ("what", "body", "reason"),
    [
        ("steps", {"algorithms": ["newton"]}, "an algorithm"),
        ("steps", {"algorithms": []}, "one or two"),
        ("steps", {"algorithms": ["pegasos"] * 3}, "one or two"),
        ("steps", {"algorithms": ["pegasos"], "steps": 10**6}, "steps"),
        ("steps", {"algorithms": ["pegasos"], "seed": -1}, "seed"),
        ("hildreth", {"Q": [[1, 2], [3, 1]], "b": [0, 0]}, "symmetric"),
        ("hildreth", {"Q": [[1, 5], [5, 1]], "b": [0, 0]}, "negative eigenvalue"),
        ("hildreth", {"Q": [[1]], "b": [0, 0]}, "two numbers"),
        ("hildreth", {"Q": [[0, 0], [0, 0]], "b": [-1, 0]}, "unbounded"),
        ("hildreth", {"Q": [[1, 0], [0, 1]], "b": [-1, 0], "order": "up"}, "order"),
        ("code", {"model": "tree"}, "model"),
    ],
)
def test_other_questions_are_checked_too(client, what, body, reason):
    """Every endpoint names what is wrong with its own parameters."""
    status, answer = ask(client, what, {"points": SQUARE, "labels": LABELS, **body})
    assert status == 400
    assert reason in answer["error"]


def test_a_large_body_is_refused_before_it_is_read():
    """The answer is sent before a byte is read of a body that says its size, and at the limit of one that does not;
    of an endless body no more than the server's limit is dropped.
    """
    app, read, sent = server.build_app(TOKEN, 1), [], []

    async def receive():
        read.append(len(sent))
        return {"type": "http.request", "body": b"x" * 1_000_000, "more_body": True}

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"127.0.0.1:1"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": f"/{TOKEN}/api/fit", "query_string": b"", "http_version": "1.1"}
    asyncio.run(app({**scope, "headers": [*headers, (b"content-length", b"100000000")]}, receive, send))
    assert sent[0]["status"] == 413
    assert min(read) == 2  # the answer's head and body were sent before
    assert len(read) == server.DROPPED / 1_000_000
    sent.clear()
    read.clear()
    asyncio.run(app({**scope, "headers": headers}, receive, send))
    assert sent[0]["status"] == 413
    assert read.count(0) == 2  # as much as the limit, and the piece that went beyond it


def test_who_sends_100_megabytes_hears_why(client):
    """A client that reads nothing before it has sent all: it gets the reason, and the server goes on."""
    reply = client.post(f"/{TOKEN}/api/fit", bytes(100_000_000), {"content-type": "application/json"})
    assert reply.status == 413
    assert "larger than" in json.loads(reply.text)["error"]
    assert client.get(f"/{TOKEN}/api/alive").status == 200


def test_other_types_and_methods_are_refused(client):
    """A form's body, GET where POST is meant, files that are not part of the page: refused by name."""
    assert client.post(f"/{TOKEN}/api/fit", "a=1", {}).status == 415
    assert client.get(f"/{TOKEN}/api/fit").status == 405
    for path in ("nothing", "../server.py", "%2e%2e/server.py", "page/main.js"):
        assert client.get(f"/{TOKEN}/{path}").status == 404


def test_the_page_needs_nothing_from_elsewhere(client):
    """Every file that the page names is served with its type, and none of them names another host."""
    home = client.get(f"/{TOKEN}/")
    assert "script-src 'self'" in home.headers["content-security-policy"]
    assert home.headers["referrer-policy"] == "no-referrer"
    seen, waiting = {}, re.findall(r'(?:src|href)="([^"]+)"', home.text)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            reply = client.get(f"/{TOKEN}/{name}")
            assert reply.status == 200, name
            seen[name] = reply.text
            waiting += re.findall(r'from "\./([^"]+)"', reply.text)
    assert set(seen) | {"index.html"} == {file.name for file in server.PAGE.iterdir()}
    for text in (home.text, *seen.values()):
        assert set(re.findall(r"https?://[^/\"'\s]*", text)) <= {"http://www.w3.org"}


@pytest.mark.parametrize(
    ("model", "solver"), [(model, solver) for model in STRAIGHT for solver in MODELS[model].solvers]
)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_equal_the_estimators(client, model, solver, bias):
    """For every model and solver the page gets the line, α and gap that the estimator's own fit has, to the bit."""
    X, y, body = separated() if model == "hard" else crowd()
    status, answer = ask(client, "fit", {**body, "model": model, "solver": solver, "C": 0.5, "bias": bias})
    assert status == 200
    expected = estimator(model, solver, 0.5, bias).fit(X, y)
    np.testing.assert_array_equal(answer["w"], expected.coef_[0])
    assert answer["b"] == expected.intercept_[0]
    margins = y * (X @ expected.coef_[0] + expected.intercept_[0])
    np.testing.assert_allclose(answer["xi"], np.maximum(0, 1 - margins), atol=1e-12)
    assert answer["misclassified"] == (margins < 0).sum()
    if MODELS[model].loss:
        proof = expected.certificate_
        assert (answer["primal"], answer["dual"], answer["gap"]) == tuple(
            value if np.isfinite(value) else None for value in (proof.primal, proof.dual, proof.gap)
        )
        assert [row["count"] for row in answer["kkt"]] == [kind.count for kind in proof.kkt]
        assert answer["misclassified"] == proof.misclassified
        assert answer["inside"] == proof.violations - proof.misclassified
        np.testing.assert_array_equal(answer["alpha"], proof.alpha)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("gamma", ["scale", 0.7])
def test_kernel_fits_equal_the_estimator(client, kernel, gamma):
    """The page gets the support vectors, coefficients, margins and proof of `KernelSVM.fit`, to the bit."""
    X, y, body = crowd()
    settings = {"kernel": kernel, "gamma": gamma, "degree": 2, "coef0": 0.5}
    status, answer = ask(client, "fit", {**body, "model": "kernel", "C": 0.5, **settings})
    assert status == 200
    model = kernel_svm(C=0.5, **settings).fit(X, y)
    proof = model.certificate_
    np.testing.assert_array_equal(answer["rows"], model.support_)
    np.testing.assert_array_equal(answer["coef"], model.dual_coef_[0])
    assert answer["b"] == model.intercept_[0]
    assert answer["kernel"]["gamma"] == model.kernel_.gamma
    np.testing.assert_array_equal(answer["margins"], y * model.decision_function(X))
    assert (answer["primal"], answer["dual"], answer["gap"]) == (proof.primal, proof.dual, proof.gap)
    assert [row["count"] for row in answer["kkt"]] == [kind.count for kind in proof.kkt]
    assert (answer["misclassified"], answer["width"]) == (proof.misclassified, proof.width)
    np.testing.assert_array_equal(answer["alpha"], proof.alpha)
    assert "note" not in answer


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"kernel": "tree"}, "choose from rbf"),
        ({"gamma": 0}, "gamma is 0"),
        ({"gamma": "auto"}, "gamma is 'auto'"),
        ({"degree": 2.5}, "degree is 2.5"),
        ({"coef0": -1}, "coef0 is -1"),
        ({"bias": False}, "always has one"),
        ({"solver": "smo"}, "choose from auto"),
    ],
)
def test_kernel_settings_are_checked(client, settings, reason):
    """What a kernel SVM cannot be given is named."""
    status, answer = ask(client, "fit", {"points": SQUARE, "labels": LABELS, "model": "kernel", **settings})
    assert status == 400
    assert reason in answer["error"]


def test_the_kinds_of_points_are_those_of_the_certificate(client):
    """As many points inside, beyond and on the edge as the certificate counts."""
    X, y, body = crowd(120)
    answer = ask(client, "fit", {**body, "C": 0.3})[1]
    proof = LinearSVM(C=0.3, tol=EXACT).fit(X, y).certificate_
    assert answer["kinds"].count("wrong") == proof.misclassified > 0
    assert answer["kinds"].count("inside") == proof.violations - proof.misclassified > 0
    assert answer["kinds"].count("edge") == proof.kkt[1].count > 0


def test_free_support_vectors_of_a_kernel_are_on_the_edge(client):
    """As many points on the edge of the band as the KKT table has with 0 < α < C: these lie there, up to the gap."""
    _, _, body = crowd(500)
    answer = ask(client, "fit", {**body, "model": "kernel", "kernel": "laplacian", "gamma": 1.0, "C": 100})[1]
    assert answer["kinds"].count("edge") == answer["kkt"][1]["count"] > 300
    assert answer["kinds"].count("inside") == answer["inside"]


def test_support_vectors_stay_so_at_any_scale(client):
    """The square blown up to 1e5: those of the certificate are on the edge, though every α is 1e10 times smaller."""
    for scale in (1, 1e5):
        points, labels = [[x * scale, y * scale] for x, y in [*SQUARE, [3, 0]]], [*LABELS, 1]
        answer = ask(client, "fit", {"points": points, "labels": labels, "model": "hard"})[1]
        support = estimator("hard").fit(points, labels).certificate_.support.tolist()
        assert answer["support"] == support
        assert len(support) >= 2
        assert answer["kinds"] == ["edge" if k in support else "idle" for k in range(5)]


def test_losses_without_a_kink_have_no_edge(client):
    """Logistic regression: points beyond the band pull as well. Least squares: those draw the line towards themselves,
    as many as have α < 0.
    """
    points, labels = [*SQUARE, [10, 0], [0.2, 0], [0.1, 0]], [*LABELS, 1, 1, -1]
    logistic = ask(client, "fit", {"points": points, "labels": labels, "model": "logistic"})[1]
    assert logistic["margins"][4] > 5
    assert logistic["kinds"][4] == "pulls"
    assert set(logistic["kinds"]) <= {"wrong", "inside", "pulls"}
    squares = ask(client, "fit", {"points": points, "labels": labels, "model": "squares", "C": 100})[1]
    proof = estimator("squares", C=100).fit(points, labels).certificate_
    assert squares["kinds"].count("attracts") == (proof.alpha < 0).sum() > 0
    assert squares["support"] == proof.support.tolist()
    assert squares["kkt"][1]["name"] == "α ≠ 0"


def test_a_point_on_the_line_is_counted_once(client):
    """Margin 0 is ξ = 1: inside the band, and not misclassified, as in the certificate."""
    body = {"points": [[1, 0], [-1, 0], [0, 0]], "labels": [1, -1, 1], "C": 0.3, "bias": False}
    answer = ask(client, "fit", body)[1]
    assert answer["margins"][2] == 0
    assert answer["kinds"][2] == "inside"
    proof = estimator("soft", C=0.3, bias=False).fit(body["points"], body["labels"]).certificate_
    assert (answer["inside"], answer["misclassified"]) == (proof.violations, 0)
    assert proof.misclassified == 0


def test_a_perceptron_that_gives_up_claims_no_overlap(client):
    """Two classes that a line separates, but by so little that 100 passes bring no better one."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) % 2, 1, -1)
    X = np.column_stack([1e-3 * y + 10, rng.normal(size=60)])
    body = {"points": X.tolist(), "labels": y.tolist()}
    assert ask(client, "fit", {**body, "model": "hard"})[1]["w"]
    answer = ask(client, "fit", {**body, "model": "perceptron"})[1]
    assert re.fullmatch(r"Not separated after \d+ passes\.", answer["note"])


def test_the_notes_numbers(client):
    """The third transcript of notes 001 in exact numbers: w = (200/99, 0), b = 101/99; hulls 0.99 apart."""
    body = {"points": [*SQUARE, [-0.01, -0.01]], "labels": [*LABELS, 1], "model": "hard"}
    answer = ask(client, "fit", body)[1]
    np.testing.assert_allclose([*answer["w"], answer["b"]], [200 / 99, 0, 101 / 99], atol=1e-6)
    assert np.linalg.norm(np.subtract(*answer["nearest"])) == pytest.approx(answer["width"]) == pytest.approx(0.99)


@pytest.mark.parametrize("solver", MODELS["hard"].solvers)
def test_a_point_in_both_hulls_proves_that_there_is_no_line(client, solver):
    """The weights are convex, and both weighted means are the point: checked by multiplying them out."""
    body = {"points": [*SQUARE, [-2, 0]], "labels": [*LABELS, 1], "model": "hard", "solver": solver}
    proof = ask(client, "fit", body)[1]["inseparable"]
    points = np.array(body["points"], dtype=float)
    for side, label in (("positive", 1), ("negative", -1)):
        index, weights = proof[side], np.array(proof[f"{side}_weights"])
        assert all(body["labels"][k] == label for k in index)
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(1)
        np.testing.assert_allclose(weights @ points[index], proof["point"], atol=1e-9)


def test_without_a_bias_the_proof_is_a_mean_at_the_origin(client):
    """Two equal points of different classes: Σ uᵢyᵢxᵢ = 0 over both."""
    body = {"points": [[1, 1], [1, 1]], "labels": [1, -1], "model": "hard", "bias": False}
    proof = ask(client, "fit", body)[1]["inseparable"]
    assert proof["negative"] == []
    assert proof["positive"] == [0, 1]
    np.testing.assert_allclose(np.array([1, -1]) @ np.array(proof["positive_weights"]), 0, atol=1e-12)


@pytest.mark.parametrize("points", [[], [[1, 1]], [[1, 1], [2, 2]]])
def test_one_class_waits_for_the_other(client, points):
    """No error: a sentence that says which class is missing."""
    status, answer = ask(client, "fit", {"points": points, "labels": [1] * len(points)})
    assert status == 200
    assert ("orange" if points else "each class") in answer["waiting"]
    assert "waiting" in ask(client, "steps", {"points": points, "labels": [1] * len(points), "algorithms": ["smo"]})[1]


@pytest.mark.parametrize("seed", range(5))
def test_hulls_are_those_of_qhull(seed):
    """The same corners as SciPy's ConvexHull; of points on a line, its two ends."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 2))
    chosen = rng.random(50) < 0.6
    expected = np.flatnonzero(chosen)[ConvexHull(X[chosen]).vertices]
    assert sorted(hull(X, chosen)) == sorted(expected.tolist())
    line = np.column_stack([np.arange(5.0), 2 * np.arange(5.0)])
    assert sorted(hull(line, np.ones(5, bool))) == [0, 4]


@pytest.mark.parametrize("what", ["fit", "steps", "hildreth"])
def test_a_newer_request_overtakes_an_older_one(client, what):
    """Of two requests of one tab the one with the smaller turn is not answered; another tab does not mind."""
    body = {"points": SQUARE, "labels": LABELS, "algorithms": ["smo"], "Q": [[1, 0], [0, 1]], "b": [-1, -1]}
    assert ask(client, what, {**body, "tab": f"a {what}", "turn": 7})[0] == 200
    assert ask(client, what, {**body, "tab": f"a {what}", "turn": 6}) == (409, {"overtaken": True})
    assert ask(client, what, {**body, "tab": f"b {what}", "turn": 1})[0] == 200
    assert ask(client, what, {**body, "tab": f"a {what}", "turn": 8})[0] == 200


def test_a_fit_is_left_in_the_middle():
    """A solver is asked to stop as soon as nobody waits for it, or when it takes too long."""
    _, _, body = crowd()
    for solver in MODELS["soft"].solvers:
        with pytest.raises(OvertakenError):
            fit({**body, "solver": solver}, lambda: True)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_run_is_left_in_the_middle(name):
    """A run of steps ends with the first step after a newer request has come."""
    _, _, body = crowd()
    asked = []

    def overtaken():
        asked.append(len(asked))
        return len(asked) > 3

    with pytest.raises(OvertakenError):
        steps({**body, "algorithms": [name], "steps": 50}, overtaken)
    assert len(asked) == 4


def test_runs_share_the_patience(client, monkeypatch):
    """Without patience each run has one step and no minimum, and the page gets what there is."""
    monkeypatch.setattr(fitting, "PATIENCE", 0.0)
    _, _, body = crowd()
    status, answer = ask(client, "steps", {**body, "algorithms": ["smo", "pegasos"]})
    assert status == 200
    assert [len(run["w"]) for run in answer["runs"]] == [1, 1]
    assert [run["best"] for run in answer["runs"]] == [None, None]


def test_patience_has_an_end(client, monkeypatch):
    """A solver that takes longer than the server's patience is named, with what to do."""
    monkeypatch.setattr(fitting, "PATIENCE", 0.0)
    _, _, body = crowd()
    status, answer = ask(client, "fit", {**body, "solver": "smo"})
    assert status == 503
    assert "smo takes more than" in answer["error"]


def test_a_kernel_fit_ends_with_what_it_has(client, monkeypatch):
    """Without patience the page gets a curve and its gap, with a note; a newer request still ends the fit."""
    _, _, body = crowd(300)
    body |= {"model": "kernel", "kernel": "poly", "degree": 2, "coef0": 1.0, "C": 1e8}
    with pytest.raises(OvertakenError):
        fit(body, lambda: True)
    monkeypatch.setattr(fitting, "PATIENCE", 0.0)
    status, answer = ask(client, "fit", body)
    assert status == 200
    assert answer["gap"] > 1e-3 * answer["dual"] > 0
    assert len(answer["coef"]) == len(answer["rows"]) > 0
    assert answer["note"] == "Not yet the optimum: the gap is still open."


def test_a_fault_is_told_and_survived(client, monkeypatch, capfd):
    """An error that nobody foresaw: 500 with its name, the trace where the server runs, and the next fit as ever."""

    def fail(body, overtaken):
        raise ZeroDivisionError("by nought")

    body = {"points": SQUARE, "labels": LABELS, "tab": "c", "turn": 1}
    with monkeypatch.context() as patch:
        patch.setattr(server, "fit", fail)
        status, answer = ask(client, "fit", body)
    assert status == 500
    assert "by nought" in answer["error"]
    assert "ZeroDivisionError: by nought" in capfd.readouterr().err
    assert ask(client, "fit", {**body, "turn": 2})[0] == 200


def test_steps_are_the_generators(client):
    """Pegasos beside dual coordinate descent: each step is the textbook's, from the draws that both share."""
    X, y, body = crowd(30)
    asked = {**body, "algorithms": ["pegasos", "dual_cd"], "C": 2.0, "steps": 50, "seed": 3}
    answer = ask(client, "steps", asked)[1]
    draws = np.random.default_rng(3).integers(30, size=50).tolist()
    runs = textbook.pegasos(X, y, 1 / (2.0 * 30), draws), textbook.dual_cd(X, y, 2.0, draws)
    for run, expected in zip(answer["runs"], map(list, runs), strict=True):
        assert run["i"] == draws
        np.testing.assert_array_equal(run["w"], [step.w for step in expected])
        np.testing.assert_array_equal(run["b"], [step.b for step in expected])
        w = expected[-1].w
        height = w @ w / 2 + 2.0 * np.maximum(0, 1 - y * (X @ w)).sum()
        assert run["height"][-1] == pytest.approx(height)
        assert run["best"]["height"] <= min(run["height"])


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("bias", [True, False])
def test_every_algorithm_can_be_played(client, name, bias):
    """Each runs on overlapping classes, never below the minimum of what it lowers; without a bias b stays 0."""
    _, _, body = crowd(40)
    run = ask(client, "steps", {**body, "algorithms": [name], "steps": 30, "bias": bias})[1]["runs"][0]
    assert 0 < len(run["w"]) <= 30
    if ALGORITHMS[name].bias == "none" or (ALGORITHMS[name].bias == "either" and not bias):
        assert set(run["b"]) == {0}
    else:
        assert any(run["b"])
    if run["best"] is not None:
        assert min(run["height"]) >= run["best"]["height"] * (1 - 1e-6)


def test_hildreth_on_the_notes_example(client):
    """Q = [[4, 1], [1, 2]], b = (−6, −4) ends at (8/7, 10/7), in every order."""
    for order in ("cyclic", "back_and_forth", "random", "greedy"):
        answer = ask(client, "hildreth", {"Q": [[4, 1], [1, 2]], "b": [-6, -4], "order": order})[1]
        np.testing.assert_allclose(answer["alpha"][-1], [8 / 7, 10 / 7], atol=1e-12)


@pytest.mark.parametrize(("model", "solver"), [*((model, "auto") for model in STRAIGHT), ("soft", "pegasos")])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_program_makes_the_same_fit(client, model, solver, capsys):
    """The Python code runs, and its model has the weights that the page shows."""
    _, _, body = separated()
    body |= {"model": model, "solver": solver, "C": 0.25, "bias": False}
    code = ask(client, "code", body)[1]["code"]
    names = {}
    exec(code, names)
    np.testing.assert_allclose(names["model"].coef_[0], ask(client, "fit", body)[1]["w"], rtol=1e-12)
    assert "w =" in capsys.readouterr().out
    assert isinstance(names["model"], getattr(widemargin, MODELS[model].estimator))


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_program_makes_the_same_kernel_fit(client, kernel, capsys):
    """The Python code runs, and its model has the coefficients that the page draws with."""
    body = crowd()[2] | {"model": "kernel", "kernel": kernel, "gamma": 0.3, "degree": 2, "coef0": 1.0}
    names = {}
    exec(ask(client, "code", body)[1]["code"], names)
    np.testing.assert_array_equal(names["model"].dual_coef_[0], ask(client, "fit", body)[1]["coef"])
    assert "support vectors:" in capsys.readouterr().out


def test_the_program_tells_that_there_is_no_line(client, capsys):
    """For classes that overlap, the hard margin's code ends with the point in both hulls."""
    body = {"points": [*SQUARE, [-2, 0]], "labels": [*LABELS, 1], "model": "hard"}
    exec(ask(client, "code", body)[1]["code"], {})
    with pytest.raises(InseparableError):
        LinearSVM(C=np.inf).fit(body["points"], body["labels"])
    assert "a point in both hulls" in capsys.readouterr().out


def test_serve_prints_its_address_and_ends_with_an_interrupt():
    """A process of its own: the address has a token of 128 bits or more, 100 MB get a reason, Ctrl-C ends it with 0."""
    program = "from widemargin.explorer import serve; serve(open_browser=False)"
    with process([sys.executable, "-c", program]) as running:
        address = running.stdout.readline().split()[-1]
        port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([-\w]{22,})/", address).groups()
        with socket.create_connection(("127.0.0.1", int(port)), timeout=SECONDS) as door:
            head = f"POST /{token}/api/fit HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            door.sendall(f"{head}Content-Length: 100000000\r\n\r\n{{".encode())
            reply = door.makefile("rb").read().decode()
        assert " 413 " in reply.splitlines()[0]
        assert "larger than" in reply.splitlines()[-1]
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=SECONDS)
        connection.request("GET", f"/{token}/api/alive")
        assert json.loads(connection.getresponse().read()) == {"alive": True}
        connection.close()
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=SECONDS) == 0
        assert running.stdout.read().endswith("stopped\n")


@pytest.mark.parametrize(("path", "is_half"), [("fit", False), ("steps", False), ("fit", True)])
def test_an_interrupt_in_the_middle_is_no_fault(path, is_half):
    """Ctrl-C while something is computed or half sent: the work is left, it says "stopped" alone, and its code is 0."""
    body = json.dumps(crowd(2000)[2] | {"solver": "smo", "C": 1e4, "algorithms": ["smo"], "steps": 2000}).encode()
    command = [sys.executable, "-m", "widemargin", "explore", "--no-browser"]
    with process(command) as running:
        address = running.stdout.readline().split()[-1]
        running.stdout.readline()
        port, token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([-\w]+)/", address).groups()
        with socket.create_connection(("127.0.0.1", int(port)), timeout=SECONDS) as door:
            head = f"POST /{token}/api/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            door.sendall(f"{head}Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode())
            assert b" 100 " in door.recv(100)  # the server waits for the body
            door.sendall(body[: len(body) // 2] if is_half else body)
            running.send_signal(signal.SIGINT)
            reply = door.makefile("rb").read().decode()
        assert running.wait(timeout=SECONDS) == 0
        assert (running.stdout.read(), running.stderr.read()) == ("\nstopped\n", "")
        assert is_half or "the server was stopped" in reply.splitlines()[-1]


def test_the_command_line_brings_the_same_address_back():
    """What the first run prints as the command for it, once that run has ended; a token may begin with a dash."""
    wanted = [sys.executable, "-m", "widemargin", "explore", "--no-browser", "--token=-a-token-of-a-test"]
    addresses = []
    for _ in range(2):
        with process(wanted) as running:
            addresses.append(running.stdout.readline().split()[-1])
            command = running.stdout.readline().split("widemargin explore ")[-1].split()
            with urlopen(f"{addresses[-1]}api/alive", timeout=SECONDS) as reply:  # it is there to hear the interrupt
                assert reply.status == 200
            running.send_signal(signal.SIGINT)
            assert running.wait(timeout=SECONDS) == 0
        wanted = [sys.executable, "-m", "widemargin", "explore", "--no-browser", *command]
    assert addresses[0] == addresses[1]
    assert addresses[0].endswith("/-a-token-of-a-test/")


def test_the_command_line_says_what_to_do_about_a_port(capsys):
    """A port that is taken: one line, which says to choose another, and no word about files."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["explore", "--no-browser", f"--port={taken.getsockname()[1]}"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.endswith("choose another port, or 0 for any\n")


def test_what_serve_is_given_is_checked():
    """A port that is taken or is none, a token that is short or no part of an address: named, with what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"port {port}.*choose another"):
            serve(port, open_browser=False)
    with pytest.raises(ValueError, match="port=70000"):
        serve(70_000, open_browser=False)
    for token in ("", "short", "sixteen letters!", "sixteen/letters/"):
        with pytest.raises(ValueError, match=r"token=.*at least 16"):
            serve(open_browser=False, token=token)


def test_what_is_missing_is_named(monkeypatch):
    """Without the extra, the error is the pip command."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'widemargin[explore]'")):
        serve(open_browser=False)


def test_the_page_is_part_of_the_package():
    """The files lie inside of the package, where the wheel takes them from, and none is excluded from it."""
    assert server.PAGE.is_relative_to(Path(widemargin.__file__).parent)
    assert {file.suffix for file in server.PAGE.iterdir()} == set(server.TYPES)
