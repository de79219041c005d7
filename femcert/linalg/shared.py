"""Factorizations that several problems share: equal matrices are factorized once."""

from __future__ import annotations

import hashlib
from typing import Any
from weakref import WeakValueDictionary

from scipy.sparse import csc_matrix

from .backends import choose
from .factor import Factorization


class SharedFactors:
    """Makes factorizations like the class itself, or returns the one of an equal matrix that is still in use.

    Matrices are compared by a digest of their entries, which costs about as much as one product with them. Nothing is
    kept for its own sake: what no problem holds any more is forgotten.
    """

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[Any, ...], Factorization] = WeakValueDictionary()

    def __call__(
        self, matrix: Any, *, definite: bool, name: str = "operator", to_rounding: bool = False
    ) -> Factorization:
        """See `Factorization`."""
        A = csc_matrix(matrix)
        digest = hashlib.blake2b(digest_size=32)
        for part in (A.data, A.indices, A.indptr):
            digest.update(part.tobytes())
        key = (A.shape, A.dtype.str, digest.digest(), definite, to_rounding, choose(A) if definite else None)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Factorization(A, definite=definite, name=name, to_rounding=to_rounding)
        return found
