"""Processes that are killed or cannot write leave whole results of one run; ``benchmarks/faults.py`` kills 50."""

import os

import numpy as np
import pytest
from fault_injection import check_next, check_whole, commands, killed, refused

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals and limits")


@pytest.fixture(scope="module")
def certify(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    command = commands(folder, ("certify",))["certify"]
    command.learn(folder / "references")
    return command


def test_killed_at_any_time_and_run_again(certify, tmp_path):
    rng = np.random.default_rng(11)
    for over in (False, True):
        # Over the results of another run, in the moment in which they are exchanged.
        assert killed(certify, tmp_path / str(over), rng, over=over, watch=over) in {"none", "former", "new", "either"}
    check_next(certify, tmp_path / "True")


def test_a_disk_that_is_full_and_places_that_are_none(certify, tmp_path):
    refused(certify, tmp_path / "small", limit=1000)
    assert check_whole(certify, tmp_path / "small", ("new",)) == "none"
    (tmp_path / "file").write_text("here first")
    refused(certify, tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == "here first"
