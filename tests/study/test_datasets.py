"""Measured data by name: the local folder first, then a download with a checksum, else one clear line."""

import functools
import gc
import hashlib
import http.server
import sys
import threading
import warnings

import pytest

import femcert as fc
from femcert.study import datasets

NAME, CONTENT = "somewhere/values.mat", b"not much"


@pytest.fixture
def known(monkeypatch, tmp_path):
    """One file is known; the cache is empty, and no folder is named."""
    digest = hashlib.sha256(CONTENT).hexdigest()
    monkeypatch.setattr(datasets, "FILES", {NAME: ("owner/repository/commit/data/values.mat", digest)})
    monkeypatch.delenv(datasets.FOLDER, raising=False)
    # Where pooch keeps what it downloads, on any system.
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def server(known, monkeypatch):
    """A web server for a folder; the folder, and the list of what was asked for."""
    folder, asked = known / "web", []

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            asked.append(self.path)

    (folder / "owner/repository/commit/data").mkdir(parents=True)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as running:
        monkeypatch.setattr(datasets, "ADDRESS", f"http://127.0.0.1:{running.server_port}")
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield folder / "owner/repository/commit/data/values.mat", asked
        running.shutdown()
    # A download that fails leaves its connection to the garbage collector.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_the_local_folder_comes_first(known, monkeypatch):
    monkeypatch.setenv(datasets.FOLDER, str(known))
    path = known / NAME
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    assert fc.datasets.fetch(NAME) == path
    path.write_bytes(b"something else")
    with pytest.raises(fc.DatasetError, match="its checksum is another one"):
        fc.datasets.fetch(NAME)


def test_what_is_not_in_the_folder_is_downloaded_once(server, known, monkeypatch):
    pytest.importorskip("pooch")
    monkeypatch.setenv(datasets.FOLDER, str(known / "empty"))
    there, asked = server
    there.write_bytes(CONTENT)
    first, second = fc.datasets.fetch(NAME), fc.datasets.fetch(NAME)
    assert first == second
    assert first.read_bytes() == CONTENT
    assert first.is_relative_to(known / "cache")
    assert asked == ["/owner/repository/commit/data/values.mat"]


def test_downloads_that_fail(server):
    pytest.importorskip("pooch")
    there, _ = server
    with pytest.raises(fc.DatasetError, match=r"cannot be downloaded .*404.*FEMCERT_DATA") as caught:
        fc.datasets.fetch(NAME)
    assert "\n" not in str(caught.value)
    there.write_bytes(b"damaged on the way")
    with pytest.raises(fc.DatasetError, match="hash"):
        fc.datasets.fetch(NAME)


def test_without_a_network(known, monkeypatch):
    pytest.importorskip("pooch")
    # A port on which nobody listens.
    monkeypatch.setattr(datasets, "ADDRESS", "http://127.0.0.1:9")
    with pytest.raises(fc.DatasetError, match="cannot be downloaded"):
        fc.datasets.fetch(NAME)


def test_without_pooch(known, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(fc.DatasetError, match=r"pip install 'femcert\[data\]'"):
        fc.datasets.fetch(NAME)


def test_names_that_are_not_known():
    with pytest.raises(fc.InputError, match=r"did you mean 'crosshole_radar/AM13_data\.mat'"):
        fc.datasets.fetch("crosshole_radar/AM13.mat")
    for name in fc.datasets.names():
        address, digest = datasets.FILES[name]
        # A repository at a commit, and a SHA-256.
        assert len(address.split("/")[2]) == 40
        assert len(digest) == 64
