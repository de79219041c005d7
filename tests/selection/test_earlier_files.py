"""Selections that earlier versions saved: 0.1.0, and 0.2.0 before its redesign."""

from pathlib import Path

import numpy as np
import pytest
import zoo

import femcert as fc

FILES = sorted((Path(__file__).parent / "earlier").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_of_an_earlier_version_is_read(path, tmp_path):
    found = fc.Selection.load(path)
    assert found.status == "accepted"
    assert found.learned.radius.side == "upper"
    assert found.parameter.shape == (17,)
    problem = zoo.source(cells=16, parameters=2, sensors=zoo.discs(np.linspace(0.1, 0.9, 9), radius=0.05))
    assert "accepted" in fc.write_report(found, tmp_path / "page.html", problem=problem).read_text().lower()
    found.save(tmp_path / "again.json")
    again = fc.Selection.load(tmp_path / "again.json")
    assert again.learned.radius == found.learned.radius
    np.testing.assert_array_equal(again.parameter, found.parameter)


def test_there_are_files_of_two_versions():
    assert {path.stem[:5] for path in FILES} == {"0.1.0", "0.2.0"}
    assert len(FILES) == 10
