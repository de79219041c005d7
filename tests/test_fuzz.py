"""Some hundred damaged files of every kind: a clear error, or what was written; ``benchmarks/fuzz.py`` reads 10,000."""

import pytest
from fuzz_inputs import KINDS, Bench

SLOW = {"case file": 8, "case, data": 6, "case, candidate": 6}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_refused_in_a_line_or_read_as_it_was(name, tmp_path):
    bench = Bench.of(name, tmp_path)
    found = [bench.run(name, seed) for seed in range(SLOW.get(name, 25))]
    assert set(found) <= {"refused", "same", "another"}
    # A fuzzer that damages nothing proves nothing.
    assert "refused" in found
