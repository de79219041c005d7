"""The files of a sweep report appear together or not at all, and nothing else is touched."""

from dataclasses import replace

import numpy as np
import pytest
from pages import faked

from femcert import InputError
from femcert.paper import page as report
from femcert.paper.page import write_sweep


def test_an_earlier_run_is_replaced_and_other_files_are_left_alone(small, tmp_path, blank, monkeypatch):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures/boundary.png").write_bytes(b"old")
    (tmp_path / "figures/mine.png").write_bytes(b"mine")
    (tmp_path / "trials.npz").write_bytes(b"mine")
    # No ratios, no boundary: the picture and the table of an earlier run go away.
    (tmp_path / "regimes.csv").write_bytes(b"old")
    drawn = [
        (name, (lambda result: None) if name == "boundary" else draw, words)
        for name, draw, words in report.SWEEP_FIGURES
    ]
    monkeypatch.setattr(report, "SWEEP_FIGURES", drawn)
    write_sweep(replace(small, records=faked(rules=small.rules, ratio=np.nan).records), tmp_path)
    assert not (tmp_path / "regimes.csv").exists()
    assert (tmp_path / "figures/ratios.png").exists()
    assert not (tmp_path / "figures/boundary.png").exists()
    assert (tmp_path / "figures/mine.png").read_bytes() == b"mine"
    assert (tmp_path / "trials.npz").read_bytes() == b"mine"


def test_what_cannot_be_written_is_refused(small, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        write_sweep(small, tmp_path / "file")
    with pytest.raises(InputError, match="expected a Sweep"):
        write_sweep({"accepted": 3}, tmp_path)
