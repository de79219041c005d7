"""Files of results: each appears whole or not at all, in the place that was asked for, the page last."""

import os
from pathlib import Path

import pytest

from femcert import InputError
from femcert.files import output_directory, remove_former, write_csv, write_text, written

NAMES = ["sub/z.txt", "sub/y.txt", "gone.txt", "page.html"]


def texts(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def target(tmp_path):
    """A directory with results of an earlier run, and something else."""
    folder = tmp_path / "target"
    (folder / "sub").mkdir(parents=True)
    for name in ("sub/z.txt", "gone.txt", "page.html", "mine.txt"):
        (folder / name).write_text("old")
    return folder


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_file_is_what_it_was_if_the_work_fails(target, error):
    before = texts(target)

    def fail_half_way():
        with written(target / "page.html") as draft:
            draft.write_text("half")
            raise error("half way")

    with pytest.raises(error, match="half way"):
        fail_half_way()
    assert texts(target) == before


def test_what_cannot_be_written_is_said_with_its_name(target, monkeypatch):
    def failing(self, goal):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(InputError, match=r"cannot write .*page\.html: Permission denied"):
        write_text(target / "page.html", "new")
    assert texts(target)["page.html"] == "old"
    assert not list(target.glob(".*"))


@pytest.mark.parametrize(("path", "word"), [(3, "path is a int"), ("", "is a directory"), (".", "is a directory")])
def test_what_is_no_name_of_a_file(path, word):
    with pytest.raises(InputError, match=word):
        write_csv(path, ["a"], [])


def test_directories_are_made(tmp_path):
    write_csv(tmp_path / "new" / "table.csv", ["a", "b"], [{"a": 1 / 3, "b": None, "c": "left out"}])
    assert (tmp_path / "new" / "table.csv").read_text() == "a,b\n0.3333333333333333,\n"


def test_the_page_of_an_earlier_run_goes_first(target, monkeypatch):
    states, unlink = [], Path.unlink

    def watched(self, **options):
        unlink(self, **options)
        states.append(texts(target))

    monkeypatch.setattr(Path, "unlink", watched)
    remove_former(target, NAMES)
    # Whenever the process might be killed, no page stands beside results that are not its own.
    assert all("page.html" not in state for state in states)
    assert texts(target) == {"mine.txt": "old"}


def test_a_directory_that_was_made_goes_again_if_nothing_came_of_it(tmp_path):
    for name in ("new", "kept"):
        with output_directory(tmp_path / name, NAMES):
            if name == "kept":
                write_text(tmp_path / name / "page.html", "new")
    assert texts(tmp_path) == {"kept/page.html": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_what_is_in_the_way_is_named_before_anything_happens(target):
    (target / "sub/y.txt").mkdir()
    with pytest.raises(InputError, match=r"y\.txt: it is a directory"), output_directory(target, NAMES):
        raise AssertionError
    assert len(texts(target)) == 4


def test_links_are_replaced_and_not_followed(target):
    (target / "elsewhere").mkdir()
    (target / "sub/y.txt").symlink_to(target / "elsewhere")
    with output_directory(target, NAMES):
        remove_former(target, NAMES)
        write_text(target / "sub/y.txt", "new")
    assert (target / "sub/y.txt").read_text() == "new"
    assert (target / "elsewhere").is_dir()


def test_a_dead_link_is_in_the_way_of_a_directory(tmp_path):
    (tmp_path / "sub").symlink_to(tmp_path / "nowhere")
    with pytest.raises(InputError, match="not a directory"), output_directory(tmp_path, ["sub/z.txt"]):
        raise AssertionError


def test_an_input_is_no_place_for_an_output(target):
    os.link(target / "gone.txt", target.parent / "input.txt")
    inputs = [target.parent / "input.txt"]
    with pytest.raises(InputError, match="input of this run"), output_directory(target, NAMES, inputs):
        raise AssertionError
