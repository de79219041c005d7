"""The page of a selection in a browser: headless Chromium, spoken to over a pipe."""

import base64
import fcntl
import json
import os
import re
import select
import shutil
import tempfile

import numpy as np
import pytest
import zoo
from skfem import Basis, ElementTriP1, MeshTri
from test_selection_page import EVIL, made, page, plane, selection

from femcert.report.selection_page import selection_page

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic", "--remote-debugging-pipe",
)  # fmt: skip
NAMES = ("accepted", "crash", "heat", "tomography", "line", "dominance", "stochastic", "regions", "several")
# Seconds after which a silent browser is given up.
PATIENCE = 120.0

# Where the browser must be there, its absence is a failure.
if PROGRAM is None and os.environ.get("FEMCERT_BROWSER") == "required":
    raise RuntimeError("there is no Chromium here")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium here")


class Browser:
    """A tab, by the DevTools protocol: JSON messages that end with a zero byte, on the descriptors 3 and 4."""

    def __init__(self, folder):
        (theirs_in, self._out), (self._in, theirs_out) = os.pipe(), os.pipe()
        # Above all that the child shall have.
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (theirs_in, theirs_out)]
        actions = [(os.POSIX_SPAWN_DUP2, end, goal) for end, goal in zip(high, (3, 4), strict=True)]
        actions += [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
        arguments = [PROGRAM, *OPTIONS, f"--user-data-dir={folder}", "about:blank"]
        self._process = os.posix_spawn(PROGRAM, arguments, os.environ, file_actions=actions)
        for end in (theirs_in, theirs_out, *high):
            os.close(end)
        self._rest, self._number, self._session, self.events = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _message(self):
        while b"\0" not in self._rest:
            assert select.select([self._in], [], [], PATIENCE)[0], "the browser does not answer"
            more = os.read(self._in, 1 << 16)
            assert more, "the browser has gone"
            self._rest += more
        text, self._rest = self._rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._message()).get("id") != self._number:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def seen(self, *methods):
        return [event["params"] for event in self.events if event.get("method") in methods]

    def open(self, path, *, width=1280, scheme="light", media=""):
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=width < 700
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not self.seen("Page.loadEventFired"):
            self.events.append(self._message())

    def run(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            code = {"Enter": 13, " ": 32, "ArrowRight": 39, "0": 48}[key]
            text = {"text": "\r" if key == "Enter" else key} if kind == "keyDown" and len(key) != 10 else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def touch(self, *places):
        """Fingers that go from the first to the last of the places; each place is a list of points (x, y)."""
        for kind, place in zip(["touchStart"] + ["touchMove"] * (len(places) - 1), places, strict=True):
            points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(place)]
            self.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def close(self):
        os.close(self._out)
        os.close(self._in)
        os.kill(self._process, 15)
        os.waitpid(self._process, 0)


@pytest.fixture(scope="module")
def browser():
    # Chromium may still write there when it has ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = Browser(folder)
        yield found
        found.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{name}.html" for name in NAMES}
    for name, path in paths.items():
        path.write_text(page(name), encoding="utf-8")
    return paths


@pytest.mark.parametrize("name", NAMES)
def test_it_loads_alone_without_a_word_in_the_console_and_says_the_decision(browser, pages, name):
    browser.open(pages[name])
    assert browser.seen("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled") == []
    assert browser.seen("Page.javascriptDialogOpening") == []
    addresses = [event["request"]["url"] for event in browser.seen("Network.requestWillBeSent")]
    assert [address for address in addresses if not address.startswith("data:")] == [pages[name].as_uri()]
    heading = browser.run("document.querySelector('h1').innerText")
    assert ("is accepted" if selection(name).accepted else "is rejected and the baseline kept") in heading
    assert " ".join(selection(name).reason.split()) in " ".join(heading.split())
    # All drawings have a size, and their texts are inside of them.
    outside = browser.run(
        """[...document.querySelectorAll("svg.drawing")].flatMap(svg => {
            const box = svg.getBoundingClientRect();
            return [...svg.querySelectorAll("text")].filter(text => {
                const t = text.getBoundingClientRect();
                return box.width < 100 || t.left < box.left - 2 || t.right > box.right + 2 || t.top < box.top - 2
                    || t.bottom > box.bottom + 2;
            }).map(text => svg.ariaLabel + ": " + text.textContent);
        })"""
    )
    assert outside == []


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_does_not_scroll_sideways(browser, pages, width):
    for name, path in pages.items():
        browser.open(path, width=width)
        assert browser.run("document.documentElement.scrollWidth") <= width, name
        assert browser.run("parseFloat(getComputedStyle(document.body).fontSize)") >= 16.0
        # Letters in drawings can be read.
        sizes = "[...document.querySelectorAll('svg.drawing text')].map(t => t.getBoundingClientRect().height)"
        assert min(browser.run(sizes)) >= 7.0, name


def column(browser, number):
    script = f"[...document.querySelectorAll('table')[0].tBodies[0].rows].map(r => r.cells[{number}].dataset.value)"
    return [float(value) for value in browser.run(script)]


def test_tables_are_sorted_by_keyboard(browser, pages):
    browser.open(pages["line"])
    written = column(browser, 1)
    assert written != sorted(written)
    assert written != sorted(written, reverse=True)
    head = "document.querySelectorAll('table')[0].tHead.rows[0].cells[1]"
    browser.run(f"{head}.querySelector('button').focus()")
    for key, order, expected in (
        ("Enter", "ascending", sorted(written)),
        (" ", "descending", sorted(written, reverse=True)),
        ("Enter", None, written),
    ):
        browser.press(key)
        assert browser.run(f"{head}.getAttribute('aria-sort')") == order
        assert column(browser, 1) == expected
    # Another column takes over.
    browser.run(f"{head}.querySelector('button').click()")
    browser.run("document.querySelectorAll('table')[0].tHead.rows[0].cells[0].querySelector('button').click()")
    assert browser.run("document.querySelectorAll('table')[0].querySelectorAll('[aria-sort]').length") == 1
    names = browser.run("[...document.querySelectorAll('table')[0].tBodies[0].rows].map(r => r.cells[0].innerText)")
    assert names == sorted(names)


WINDOW = "document.querySelector('.zoom [role=status]').textContent"
# Of a map: the numbers of the x axis that are shown, and their places in its box, from 0 to 1.
NUMBERS = """[...document.querySelectorAll("svg[data-window]")[%d].querySelectorAll("text")].filter(
    text => text.getBoundingClientRect().width && text.closest("[id$='matplotlib.axis_1']")).map(text => {
        const drawing = text.closest("svg"), [left, , width] = drawing.dataset.box.split(" ").map(Number);
        const seen = text.getBoundingClientRect(), svg = drawing.getBoundingClientRect();
        const scale = drawing.viewBox.baseVal.width / svg.width;
        const x = (seen.left + seen.width / 2 - svg.left) * scale;
        return [Number(text.textContent), (x - left) / width];
    })"""


def test_maps_zoom_together_by_keyboard(browser, pages):
    browser.open(pages["accepted"])
    whole = browser.run(NUMBERS % 0)
    assert [number for number, _ in whole] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert browser.run(WINDOW) == ""
    browser.run("document.querySelector('.zoom button').focus()")
    browser.press("Enter")
    assert browser.run(WINDOW) == "x from 0.25 to 0.75, y from 0.25 to 0.75"
    browser.press("ArrowRight")
    assert browser.run(WINDOW) == "x from 0.375 to 0.875, y from 0.25 to 0.75"
    for number in range(3):
        shown = browser.run(NUMBERS % number)
        assert len(shown) >= 2
        # Half a pixel of two hundred.
        assert all(abs(place - (x - 0.375) / 0.5) < 0.01 for x, place in shown)
    # The other rows keep their windows.
    assert browser.run("document.querySelectorAll('.zoom [role=status]')[1].textContent") == ""
    browser.press("0")
    assert browser.run(WINDOW) == ""
    assert browser.run(NUMBERS % 0) == whole


@pytest.mark.parametrize("refined", [2, 5])
def test_maps_of_images_zoom_like_those_of_vectors(browser, tmp_path, refined):
    """Of 2048 elements maps are images in the drawing, which have no clip path."""
    path = tmp_path / "page.html"
    path.write_text(selection_page(made(plane(refined=refined))), encoding="utf-8")
    browser.open(path)
    assert browser.seen("Runtime.exceptionThrown") == []
    rows = browser.run("[...document.querySelectorAll('.maps')].filter(m => m.querySelector('[data-window]')).length")
    assert browser.run("document.querySelectorAll('.zoom').length") == rows >= 3
    browser.run("for (const bar of document.querySelectorAll('.zoom')) bar.querySelector('button').click()")
    # In the middle, twice as large, and cut off at the box of the map.
    moved = browser.run(
        """[...document.querySelectorAll("svg[data-window]")].flatMap(svg => {
            const [x, y, width, height] = svg.dataset.box.split(" ").map(Number);
            return [...svg.querySelectorAll("svg > g[transform]")].map(content => {
                const [a, , , d, e, f] = content.getAttribute("transform").match(/-?[\\d.]+(e-?\\d+)?/g).map(Number);
                return [a, d, e + x + width / 2, f + y + height / 2];
            });
        })"""
    )
    assert len(moved) >= browser.run("document.querySelectorAll('svg[data-window]').length")
    assert moved == [pytest.approx([2.0, 2.0, 0.0, 0.0], abs=1e-6)] * len(moved)


def test_numbers_of_a_flat_map_do_not_overlap(browser, tmp_path):
    mesh = MeshTri.init_tensor(np.linspace(0.0, 1.0, 41), np.linspace(0.0, 0.1, 5))
    points = [[x, 0.05] for x in (0.2, 0.4, 0.6, 0.8)]
    problem = zoo.source(Basis(mesh, ElementTriP1()), parameters=3, sensors=zoo.discs(points, 0.03))
    path = tmp_path / "flat.html"
    path.write_text(selection_page(made(problem)), encoding="utf-8")
    browser.open(path)
    # Of letters, two thirds of the line.
    overlap = """[...document.querySelectorAll("svg[data-window]")].flatMap(svg => {
        const boxes = [...svg.querySelectorAll("text")].filter(text => !text.textContent.startsWith("1e"))
            .map(text => text.getBoundingClientRect()).filter(box => box.width);
        return boxes.filter((a, i) => boxes.some((b, j) => j < i && a.left < b.right - 1 && b.left < a.right - 1
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > a.height / 3));
    }).length"""
    assert browser.run(overlap) == 0
    browser.run("document.querySelector('.zoom button').click()")
    assert browser.run(overlap) == 0


def test_maps_zoom_and_move_by_touch(browser, pages):
    browser.open(pages["accepted"], width=390)
    assert browser.run("[...document.querySelectorAll('.zoom')].length") >= 3
    find = """(() => { const svg = document.querySelector("svg[data-window]"); svg.scrollIntoView({block: "center"});
        const seen = svg.getBoundingClientRect();
        return [seen.left + seen.width / 2, seen.top + seen.height / 2]; })()"""
    x, y = browser.run(find)
    browser.touch(*([(x - d, y), (x + d, y)] for d in (20, 30, 40)))
    start, end = map(float, re.match(r"x from (\S+) to (\S+), y", browser.run(WINDOW)).groups())
    assert end - start == pytest.approx(0.5, abs=0.01)
    scroll = browser.run("scrollY")
    browser.touch([(x, y)], [(x - 20, y)], [(x - 40, y)])
    moved = float(re.match(r"x from (\S+)", browser.run(WINDOW))[1])
    assert start + 0.02 < moved
    assert browser.run("scrollY") == scroll
    assert browser.run("document.documentElement.scrollWidth") <= 390


def luminance(colour):
    rgb = [int(part) / 255.0 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("scheme", "media"), [("light", ""), ("dark", ""), ("dark", "print")])
def test_words_and_drawings_can_be_read_in_light_dark_and_print(browser, pages, scheme, media):
    for name in ("accepted", "crash"):
        browser.open(pages[name], scheme=scheme, media=media)
        style = "getComputedStyle(document.querySelector('{}')).{}".format
        ground, verdict = (
            browser.run(style(".panel", "backgroundColor")),
            browser.run(style(".verdict", "backgroundColor")),
        )
        dark = scheme == "dark" and media != "print"
        assert (luminance(ground) < 0.1) == dark
        for text in ("h2", ".soft", "th button", "td"):
            assert contrast(browser.run(style(text, "color")), ground) >= 4.5, text
        for text in ("h1", ".why", ".claim"):
            assert contrast(browser.run(style(text, "color")), verdict) >= 4.5, text
        assert contrast(browser.run(style("svg.drawing text", "fill")), ground) >= 4.5
        parts = browser.run("[...document.querySelectorAll('.track i')].map(i => getComputedStyle(i).backgroundColor)")
        assert len(set(parts)) >= 2


def test_the_print_has_pages_and_nothing_beside_them(browser, pages):
    browser.open(pages["accepted"], media="print", width=700)
    assert browser.run("document.documentElement.scrollWidth") <= 700
    printed = base64.b64decode(browser.call("Page.printToPDF", printBackground=True)["data"])
    assert printed.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 12


def test_what_slips_in_does_not_run(browser, tmp_path):
    path = tmp_path / "evil.html"
    path.write_text(selection_page(selection("blind"), timings={EVIL: 1.0}), encoding="utf-8")
    browser.open(path)
    assert browser.seen("Page.javascriptDialogOpening", "Log.entryAdded") == []
    browser.run("document.querySelector('details').open = true")
    assert EVIL in browser.run("document.body.innerText")
    injected = "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);"
    assert browser.run(f"{injected} window.ran === undefined") is True


@pytest.mark.parametrize("name", ["regions", "several"])
def test_on_a_phone_every_candidate_of_every_region_is_in_sight(browser, pages, name):
    browser.open(pages[name], width=390)
    found = browser.run(
        """[...document.querySelectorAll(".regions tbody td")].map(cell => {
            const seen = cell.getBoundingClientRect();
            return [cell.dataset.head, seen.right <= innerWidth && seen.width > 100];
        })"""
    )
    heads = ["The data say", *selection(name).regions.values]
    assert [head for head, _ in found] == heads * len(selection(name).regions.table)
    assert all(shown for _, shown in found)


@pytest.mark.parametrize("name", ["several", "dominance"])
def test_on_a_phone_no_reason_is_cut_off(browser, pages, name):
    browser.open(pages[name], width=390)
    cut = """[...document.querySelectorAll(".noted")].filter(table => {
        const box = table.parentElement.getBoundingClientRect();
        return [...table.querySelectorAll("th, td")].some(cell => {
            const inside = cell.getBoundingClientRect();
            return inside.width < 40 || inside.right > box.right + 1 || cell.scrollWidth > cell.clientWidth + 1;
        });
    }).length"""
    assert browser.run("document.querySelectorAll('.noted').length") >= 2
    assert browser.run(cut) == 0
