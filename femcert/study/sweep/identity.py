"""Tells a rule of a user from another one of the same name: by its code, what it is bound to, and what it uses."""

from __future__ import annotations

import hashlib
import sys
import sysconfig
from functools import cache, partial
from pathlib import Path
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np

OWN = __name__.partition(".")[0]
_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
# What Python adds to a class; it says nothing that the rest does not, or differs from process to process.
_LEFT_OUT = ("__module__", "__doc__", "__firstlineno__", "__static_attributes__", "_abc_impl", "__annotate_func__")
_SLOTS = (GetSetDescriptorType, MemberDescriptorType)
# Characters of a digest that a manifest shows.
SHOWN = 16


class Unrecognizable(TypeError):
    """Something that looks the same although it may differ, such as a generator or an open file."""


def described(rule: Any) -> str:
    """Name of a rule, with the arguments that a partial binds; for rules of users with a digest of all they consist of.

    Rules of the library go by their names: its version is recorded. The digest is one of the bytecode with its
    constants, of defaults and bound variables, of the state of an object, and likewise of functions, classes and values
    that the code names and that do not come with an installed package; those go by their names and the version of the
    package. It is the same in every process, but not for every version of Python.

    Raises
    ------
    Unrecognizable
        A part of it cannot be told from others.
    """
    name = _named(rule)
    function, bound = (rule.func, (*rule.args, *rule.keywords.values())) if isinstance(rule, partial) else (rule, ())
    own = isinstance(function, FunctionType) and function.__module__.partition(".")[0] == OWN
    if own and all(type(value) in _PLAIN for value in bound):
        return name
    found = _Digest()
    try:
        found.add(rule)
    except RecursionError:
        raise Unrecognizable("nested too deeply") from None
    return f"{name} sha256:{found.total.hexdigest()[:SHOWN]}, Python {sys.version_info[0]}.{sys.version_info[1]}"


def _named(rule: Any) -> str:
    if isinstance(rule, partial):
        bound = [repr(value) for value in rule.args] + [f"{name}={value!r}" for name, value in rule.keywords.items()]
        return f"{_named(rule.func)}({', '.join(bound)})"
    named = rule if hasattr(rule, "__qualname__") else type(rule)
    return f"{named.__module__}.{named.__qualname__}"


class _Digest:
    """Feeds values to SHA-256, each with its kind and length; what was met before by its number."""

    def __init__(self) -> None:
        self.total = hashlib.sha256()
        # Kept, so that no two of them ever share an address.
        self._met: dict[int, tuple[int, Any]] = {}

    def add(self, value: Any) -> None:
        """Take in a value and whatever it consists of."""
        if type(value) in _PLAIN:
            # repr tells 1 from True and 0.0 from -0.0, and shows all digits.
            self._put(type(value).__name__, repr(value).encode())
        elif id(value) in self._met:
            self._put("again", str(self._met[id(value)][0]).encode())
        else:
            self._met[id(value)] = len(self._met), value
            self._add_new(value)

    def _add_new(self, value: Any) -> None:
        if type(value) in (list, tuple):
            self._parts(type(value).__name__, value)
        elif type(value) in (dict, MappingProxyType):
            self._parts("dict", [part for item in value.items() for part in item])
        elif type(value) in (set, frozenset):
            # In no order that lasts: each one by itself.
            self._put(type(value).__name__, b"".join(sorted(_digest(part) for part in value)))
        elif type(value) is np.ndarray and not value.dtype.hasobject:
            self._put(f"array {value.dtype.str} {value.shape}", np.ascontiguousarray(value).tobytes())
        elif isinstance(value, CodeType):
            self._code(value)
        elif isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, (type, ModuleType, BuiltinFunctionType, np.ufunc)):
            self._definition(value)
        elif isinstance(value, MethodType):
            self._parts("method", [value.__func__, value.__self__])
        elif isinstance(value, (staticmethod, classmethod)):
            self._parts(type(value).__name__, [value.__func__])
        elif isinstance(value, property):
            self._parts("property", [value.fget, value.fset, value.fdel])
        else:
            self._object(value)

    def _put(self, kind: str, data: bytes) -> None:
        self.total.update(f"{kind} {len(data)} ".encode() + data)

    def _parts(self, kind: str, parts: Any) -> None:
        self._put(kind, str(len(parts)).encode())
        for part in parts:
            self.add(part)

    def _code(self, code: CodeType) -> None:
        self._put("code", code.co_code)
        self._parts("named", [code.co_consts, code.co_names, code.co_freevars, code.co_cellvars, code.co_flags])

    def _function(self, function: FunctionType) -> None:
        if _is_installed(function.__module__):
            self._put("function", f"{_named(function)} {_version(function.__module__)}".encode())
            return
        cells = [_content(cell) for cell in function.__closure__ or ()]
        self._parts("function", [function.__code__, function.__defaults__, function.__kwdefaults__, cells])
        self.add(function.__dict__)
        names = sorted(_names(function.__code__))
        for name in names:
            if name in function.__globals__:
                self._used(name, function.__globals__[name], names)

    def _used(self, name: str, value: Any, names: list[str]) -> None:
        self._parts("global", [name, value])
        if isinstance(value, ModuleType) and not _is_installed(value.__name__):
            self._parts("of module", [part for key in names if key in vars(value) for part in (key, vars(value)[key])])

    def _definition(self, value: Any) -> None:
        module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        name = getattr(value, "__qualname__", getattr(value, "__name__", ""))
        self._put("definition", f"{module}.{name} {_version(module)}".encode())
        if isinstance(value, type) and not _is_installed(value.__module__):
            members = {k: v for k, v in vars(value).items() if k not in _LEFT_OUT and not isinstance(v, _SLOTS)}
            self._parts("class", [value.__bases__, members])
        elif isinstance(value, BuiltinFunctionType) and not isinstance(value.__self__, ModuleType):
            self.add(value.__self__)

    def _object(self, value: Any) -> None:
        """By what it would leave to a copy of itself."""
        try:
            parts = value.__reduce_ex__(4)
        except (TypeError, AttributeError, ValueError, NotImplementedError) as error:
            raise Unrecognizable(f"it holds a {type(value).__name__}: {error}") from None
        if isinstance(parts, str):
            self._parts("global", [parts, getattr(value, "__wrapped__", None)])
            return
        # The last two are iterators of the items of a list or dictionary.
        plain = [list(part) if i > 2 and part is not None else part for i, part in enumerate(parts)]
        self._parts("object", [type(value), plain])


def _digest(value: Any) -> bytes:
    found = _Digest()
    found.add(value)
    return found.total.digest()


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return NotImplemented


def _names(code: CodeType) -> set[str]:
    """Global names and attributes that code uses, with that of functions inside of it."""
    inner = (_names(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*inner)


def _version(module: str | None) -> str:
    """Of the package that a module belongs to, if it says one."""
    package = sys.modules.get((module or "").partition(".")[0])
    return str(getattr(package, "__version__", ""))


@cache
def _is_installed(module: str | None) -> bool:
    """Whether a module comes with the library, Python or an installed package, so that a version tells what it is."""
    found = sys.modules.get(module or "")
    if (module or "").partition(".")[0] == OWN:
        return True
    if found is None or module == "__main__":
        return False
    file = getattr(found, "__file__", None)
    if file is None:
        return True
    places = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(place in Path(file).parents for place in places)
