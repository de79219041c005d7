"""Files of results: each appears whole or not at all, in the place that was asked for, the page last."""

import os

import pytest

from femcert import InputError
from femcert.files import output_directory, write_csv, write_text, written

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


def test_directories_are_made(tmp_path):
    write_csv(tmp_path / "new" / "table.csv", ["a", "b"], [{"a": 1 / 3, "b": None, "c": "left out"}])
    assert (tmp_path / "new" / "table.csv").read_text() == "a,b\n0.3333333333333333,\n"


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


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_an_input_is_no_place_for_an_output(target, link):
    link(target / "gone.txt", target.parent / "input.txt")
    inputs = [target.parent / "input.txt"]
    with pytest.raises(InputError, match="input of this run"), output_directory(target, NAMES, inputs):
        raise AssertionError
