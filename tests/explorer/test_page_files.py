"""What comes to the page and what leaves it, in a real browser: links, files, history, pictures, programs."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from playwright.sync_api import expect

from explorer.page import agrees_with_the_estimator, drag, drawn, place, shown, start_from, state, until


def test_a_shared_link_brings_everything_back(visit, served):
    """Opened elsewhere, the address shows the same points, settings and numbers."""
    page = visit()
    start_from(page, "moons")
    page.select_option("#model", "logistic")
    page.select_option("#solver", "dual_cd")
    page.focus("#C")
    page.keyboard.press("ArrowLeft")
    page.uncheck("#bias")
    drag(page, place(page, *state(page)[0][0]), place(page, 2.5, -1.5))
    page.click("#share")
    expect(page.locator("#banner")).to_contain_text("brings back")
    points, labels, parts = state(page)
    other = visit(page.evaluate("location.hash"))
    there = state(other)
    np.testing.assert_array_equal(there[0], points)
    np.testing.assert_array_equal(there[1], labels)
    assert there[2] == parts
    assert (parts["m"], parts["s"], parts["b"]) == ("logistic", "dual_cd", "0")
    assert shown(other, "w1", "w2", "primal") == shown(page, "w1", "w2", "primal")


def test_a_damaged_link_is_told(visit):
    """A message on the page, whether it is opened or pasted, and points to start from."""
    page = visit("#p=1,1")
    expect(page.locator("#banner")).to_contain_text("damaged: point 1")
    agrees_with_the_estimator(page)
    for link, told in {
        "#nonsense": "no points",
        "#p=1,1a&m=tree": "the model",
        "#p=1e99,1a": "a point",
        "#p=1,1a&C=-1": "C cannot",
        "#p=1,1a&a=newton": "the algorithm",
        "#p=1,1a&v=0,0": "the view",
        "#p=" + 2001 * "1,1a": "too many",
    }.items():
        page.evaluate("link => { location.hash = link; }", link)
        expect(page.locator("#banner")).to_contain_text(told)
    expect(page.locator(".point")).to_have_count(40)


def test_junk_in_a_file_is_told(visit):
    """The message names the line and what to do; the points stay as they were."""
    page = visit()
    start_from(page, "notes4")
    for text, told in {
        "x,y,label\n1,2,a\n3,junk,b\n": "Line 3: “junk” is not a number",
        "1,2,a\n3,4\n": "Line 2: 2 columns",
        "1,2,a\n3,4,b\n5,6,c\n": "Line 3: “c” is a third label",
        "1,2,a\n3,NaN,b\n": "Line 2: “NaN” is not a number",
        "1,2,a\n0x10,2,b\n": "Line 2: “0x10” is not a number",
        '1,2,"a\n3,4,b\n': "Line 1: a quote is not closed",
        "1,2,a\n3,1e9,b\n": "Line 2: 3, 1e9 is too far out",
        "": "empty",
        "x,y,label\n": "no points",
        "%PDF-1.4 \x00\x01\n\x02": "Line 2: 1 column.",
        "0,0,a\n" * 2001: "at most 2,000",
    }.items():
        page.set_input_files("#file", {"name": "points.csv", "mimeType": "text/csv", "buffer": text.encode()})
        expect(page.locator("#banner")).to_contain_text(told)
    assert len(state(page)[0]) == 4
    page.mouse.click(*place(page, 0.3, 0.3))
    expect(page.locator("#banner")).to_be_hidden()  # the next good fit is drawn
    drawn(page)
    assert len(state(page)[0]) == 5


@pytest.mark.parametrize(
    "text",
    [
        "1, 2, a b\n3, 4, c d\n",
        '"x one" , "y" , "the label"\n1 , 2 , "a b"\n3 , 4 , "c d"\n',
        "1;2;a b;\n3;4;c d;\n",
        "1\t 2 \ta b\n3\t4\tc d\n",
        '1  2 "a b"\n3 4   "c d"\n',
    ],
)
def test_tables_as_people_write_them(visit, text):
    """Spaces after commas, names of two words, quotes, a mark at the end: the same two points."""
    page = visit()
    page.set_input_files("#file", {"name": "two.csv", "mimeType": "text/csv", "buffer": text.encode()})
    expect(page.locator("#banner")).to_contain_text("“c d” is blue, “a b” is orange")
    points, labels, _ = state(page)
    np.testing.assert_array_equal(points, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(labels, [-1, 1])


def test_quotes_and_marks_inside_of_quotes(visit):
    """A label in quotes may have commas and doubled quotes in it."""
    page = visit()
    text = '1,2,"a, ""b"""\n3,4,"c, d"\n'
    page.set_input_files("#file", {"name": "two.csv", "mimeType": "text/csv", "buffer": text.encode()})
    expect(page.locator("#banner")).to_contain_text('“c, d” is blue, “a, "b"” is orange')


def test_a_file_is_loaded(visit):
    """Header, semicolons or tabs, a label of any name: the fit is that of the file's points."""
    page = visit()
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(30, 2)) * 20 + np.repeat([[100], [160]], 15, axis=0)).round(3)
    lines = ["width;height;kind", *(f"{x};{y};{'pear' if k < 15 else 'plum'}" for k, (x, y) in enumerate(X.tolist()))]
    page.set_input_files("#file", {"name": "fruit.csv", "mimeType": "text/csv", "buffer": "\n".join(lines).encode()})
    expect(page.locator("#banner")).to_contain_text("“plum” is blue, “pear” is orange")
    drawn(page)
    points, labels, _ = state(page)
    np.testing.assert_array_equal(points, X)
    np.testing.assert_array_equal(labels, np.repeat([-1, 1], 15))
    agrees_with_the_estimator(page)
    page.click("#undo")
    drawn(page)
    assert len(state(page)[0]) == 40


def test_undo_brings_back_view_and_preset(visit):
    """After a file of other size, undo shows the points as they were seen, under their name; a zoom alone stays."""
    page = visit()
    page.click("#zoom-in")
    expect(page).not_to_have_url(re.compile("v=0,0,7&"))
    before = state(page)[2]["v"]
    text = b"100000,0,a\n-100000,5,b\n100000,100000,a\n"
    page.set_input_files("#file", {"name": "large.csv", "mimeType": "text/csv", "buffer": text})
    expect(page.locator(".point")).to_have_count(3)
    large = state(page)[2]["v"]
    assert page.input_value("#preset") == ""
    page.click("#undo")
    assert state(page)[2]["v"] == before != large
    assert page.input_value("#preset") == "blobs"
    page.click("#redo")
    assert state(page)[2]["v"] == large
    assert page.input_value("#preset") == ""
    page.click("#undo")
    drag(page, place(page, *state(page)[0][0]), place(page, 0.2, 0.2))
    assert page.input_value("#preset") == ""
    page.click("#zoom-out")
    expect(page).to_have_url(re.compile("v=0,0,7&"))
    page.click("#undo")
    assert state(page)[2]["v"] == "0,0,7"
    assert page.input_value("#preset") == "blobs"


def test_clouds_and_erasing(visit):
    """A cloud is painted while the button is held, in one step of the history; wiping removes; Clear and undo."""
    page = visit()
    page.click("#clear")
    page.check("input[name=tool][value=cloud]", force=True)
    at = place(page, 1, 1)
    page.mouse.move(*at)
    page.mouse.down()
    until(page, "document.querySelectorAll('.point').length > 8")
    page.mouse.up()
    many = len(state(page)[0])
    page.click("#undo")
    expect(page.locator(".point")).to_have_count(0)
    page.click("#redo")
    expect(page.locator(".point")).to_have_count(many)
    page.check("input[name=tool][value=erase]", force=True)
    at = place(page, *state(page)[0][0])  # they lie as chance will have it: at least this one is in the way
    drag(page, (at[0] - 120, at[1]), (at[0] + 120, at[1]), steps=30)
    assert len(state(page)[0]) < many
    expect(page.locator(".point")).to_have_count(len(state(page)[0]))


def test_pictures_and_program_are_saved(visit):
    """The SVG holds every point, the PNG is one, and the program, when run, has the weights of the page."""
    page = visit(accept_downloads=True)
    start_from(page, "noteshard")
    with page.expect_download() as saving:
        page.click("#save-svg")
    root = ET.parse(saving.value.path()).getroot()
    labels = [one for one in root.iter() if "point" in one.get("aria-label", "") and one is not root]
    assert len(labels) == 5
    assert "var(" not in ET.tostring(root, encoding="unicode")
    with page.expect_download() as saving:
        page.click("#save-png")
    picture = saving.value.path().read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 5_000
    page.click("#save-code")
    expect(page.locator("#code")).to_contain_text("model = ")
    names = {}
    exec(page.inner_text("#code"), names)
    assert [*names["model"].coef_[0], *names["model"].intercept_] == shown(page, "w1", "w2", "b")
