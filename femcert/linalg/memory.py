"""Freed memory back to the system, where the C library keeps it."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Let the C library return what it holds of freed memory: after large work space, before other large arrays.

    glibc keeps arrays of up to 32 MB for later ones, which need not fit. Elsewhere nothing happens.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return
