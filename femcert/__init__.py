"""femcert: certified finite-element inverse problems. Reconstruct, certify, select.

Three ideas carry the library. A *problem* maps a parameter to a state and a state to sensor values. The *evidence*
says what data, noise and class leave open about the truth, and a *certificate* is a radius around a reconstruction. A
*selection* takes a learned candidate only if its evidence is no worse than that of a classical baseline.

A room is imported when one of its names is first used. The names and their rooms are in ``__init__.pyi``.
"""

import sys as _sys
from types import ModuleType as _ModuleType
from typing import Any as _Any

import lazy_loader as _lazy

_import, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> _Any:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    return _import(name)


class _Femcert(_ModuleType):
    """Two functions have the names of their rooms; the import of a room must not take their places."""

    @property
    def evidence(self) -> _Any:
        """The function."""
        from .evidence.make import evidence

        return evidence

    @evidence.setter
    def evidence(self, room: _ModuleType) -> None:
        pass

    @property
    def stability(self) -> _Any:
        """The function."""
        from .stability.stability import stability

        return stability

    @stability.setter
    def stability(self, room: _ModuleType) -> None:
        pass


_sys.modules[__name__].__class__ = _Femcert
