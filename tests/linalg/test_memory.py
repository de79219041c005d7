"""Freed memory goes back to the system, where the C library keeps it."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np

from femcert.linalg.memory import give_back


def resident():
    """MB."""
    return int(Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]) / 1024.0


def test_freed_memory_goes_back():
    # 100 kB each, which glibc takes from its heap; every other one stays, so that the heap cannot shrink from its end.
    arrays = [np.ones(12_800) for _ in range(400)]
    del arrays[::2]
    if platform.libc_ver()[0] != "glibc":
        give_back()
        return
    before = resident()
    give_back()
    assert before - resident() >= 10.0
    assert all(array.sum() == 12_800.0 for array in arrays)
