"""Formulas in x and y from a file, such as ``1 + 0.5*sin(pi*x)``: arithmetic and a few functions, nothing else.

The text is parsed to a syntax tree, the tree is checked against a list of what is allowed, and evaluated by walking it.
No code is ever compiled or run. All numbers are floating point, so that no power can take forever.
"""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..checks import Array, nearest
from ..errors import InputError
from ..problem.polynomial import Polynomial

COORDINATES = ("x", "y")
CONSTANTS = {"pi": float(np.pi), "e": float(np.e)}
# Each with the number of its arguments.
FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "sin": (np.sin, 1), "cos": (np.cos, 1), "tan": (np.tan, 1),
    "asin": (np.arcsin, 1), "acos": (np.arccos, 1), "atan": (np.arctan, 1), "atan2": (np.arctan2, 2),
    "sinh": (np.sinh, 1), "cosh": (np.cosh, 1), "tanh": (np.tanh, 1),
    "exp": (np.exp, 1), "log": (np.log, 1), "log10": (np.log10, 1), "sqrt": (np.sqrt, 1),
    "abs": (np.abs, 1), "hypot": (np.hypot, 2), "min": (np.minimum, 2), "max": (np.maximum, 2),
}  # fmt: skip
_BINARY: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: np.divide, ast.Pow: np.power,
}  # fmt: skip
_UNARY: dict[type, Callable[..., Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_NAMES = (*COORDINATES, *CONSTANTS, *FUNCTIONS)
_EXPECTED = f"numbers, {', '.join(COORDINATES + tuple(CONSTANTS))}, + - * / ** and {', '.join(FUNCTIONS)}"

MOST_CHARACTERS = 500
MOST_DEPTH = 40
MOST_SHOWN = 60


class Expression:
    """A function of scikit-fem coordinates ``x``, ``(dimension, ...)``, given by a formula.

    Attributes
    ----------
    text
        The formula.
    coordinates
        Which of x and y occur.
    """

    def __init__(self, text: str, name: str = "expression") -> None:
        self.text, self.name = text, name
        self._tree = _parsed(text, name)
        self.coordinates = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)} & {*COORDINATES}

    def __call__(self, x: Any) -> Array:
        """Values at points ``(dimension, ...)``, finite, one for each.

        Raises
        ------
        InputError
            The formula uses y on a line, or is not a finite real number somewhere.
        """
        points = np.asarray(x, dtype=float)
        if len(points) < 2 and "y" in self.coordinates:
            raise InputError(f"{self.name} is {_shown(self.text)}, which uses y; the mesh has one dimension, x")
        given = dict(zip(COORDINATES, points, strict=False))
        with np.errstate(all="ignore"):
            values = np.broadcast_to(_value(self._tree, given), points.shape[1:])
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            where = "" if not self.coordinates else f" at {points[(slice(None), *bad[0])].round(6).tolist()}"
            raise InputError(f"{self.name} is {_shown(self.text)}, which is no finite number{where}")
        return np.array(values)

    @property
    def degree(self) -> int | None:
        """In x and y together, where sums, products and whole powers make the formula a polynomial; else None."""
        return _degree(self._tree)

    def as_function(self) -> Expression | Polynomial:
        """The formula itself, declared as a polynomial where it is one by its structure."""
        return self if self.degree is None else Polynomial(self, self.degree)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"


def number_or_expression(value: Any, name: str) -> Any:
    """A number as it is; a text as an `Expression`, or as a number if it has neither x nor y in it."""
    if not isinstance(value, str):
        return value
    made = Expression(value, name)
    return made if made.coordinates else float(made(np.zeros(1)))


def _parsed(text: str, name: str) -> ast.expr:
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"{name} has {len(text)} characters; expected a formula of at most {MOST_CHARACTERS}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
        _check(tree, 0)
    except InputError as error:
        raise InputError(f"{name} is {_shown(text)}: {error}") from None
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        reason = getattr(error, "msg", None) or str(error) or type(error).__name__
        raise InputError(f"{name} is {_shown(text)}, which is no formula: {reason}") from None
    return tree


def _check(node: ast.AST, depth: int) -> None:
    """Refuse everything that is not on the list."""
    if depth > MOST_DEPTH:
        raise InputError(f"it is nested more than {MOST_DEPTH} deep")
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        # A long sum is not a deep one, though its tree is.
        _check(node.left, depth)
        parts = [node.right]
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        parts = [node.operand]
    elif isinstance(node, ast.Call):
        parts = _checked_call(node)
    elif isinstance(node, ast.Constant):
        parts = _checked_constant(node)
    elif isinstance(node, ast.Name):
        if node.id in FUNCTIONS:
            raise InputError(f"{node.id} is a function; expected {node.id}(...)")
        parts = _checked_name(node.id)
    else:
        hint = "; powers are written **" if isinstance(getattr(node, "op", None), ast.BitXor) else ""
        raise InputError(f"{_described(node)} is not allowed{hint}; expected {_EXPECTED}")
    for part in parts:
        _check(part, depth + 1)


def _checked_call(node: ast.Call) -> list[ast.expr]:
    if not isinstance(node.func, ast.Name):
        raise InputError(f"{_described(node.func)} is not allowed; expected {_EXPECTED}")
    _checked_name(node.func.id)
    if node.func.id not in FUNCTIONS:
        raise InputError(f"{node.func.id} is no function; expected {_EXPECTED}")
    count = FUNCTIONS[node.func.id][1]
    if node.keywords or len(node.args) != count:
        came = "named arguments" if node.keywords else f"{len(node.args)} arguments"
        raise InputError(f"{node.func.id} has {came}; expected {count}")
    return node.args


def _checked_constant(node: ast.Constant) -> list[ast.expr]:
    if isinstance(node.value, bool) or not isinstance(node.value, (int, float)):
        raise InputError(f"{node.value!r} is no real number; expected {_EXPECTED}")
    try:
        finite = np.isfinite(float(node.value))
    except OverflowError:
        finite = False
    if not finite:
        raise InputError("it has a number that is too large")
    return []


def _checked_name(name: str) -> list[ast.expr]:
    if name not in _NAMES:
        raise InputError(f"unknown name {name!r}; expected {_EXPECTED}{nearest(name, _NAMES)}")
    return []


def _described(node: ast.AST) -> str:
    try:
        text = ast.unparse(node)
    except (ValueError, RecursionError):
        text = type(node).__name__
    return _shown(text)


def _shown(text: str) -> str:
    return repr(text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + " ...")


def _degree(node: ast.AST) -> int | None:
    """Of a polynomial in the coordinates; None where the structure of the formula does not prove one."""
    if isinstance(node, ast.Name):
        return int(node.id in COORDINATES)
    if isinstance(node, ast.UnaryOp):
        return _degree(node.operand)
    parts = node.args if isinstance(node, ast.Call) else [node.left, node.right] if isinstance(node, ast.BinOp) else []
    degrees = [_degree(part) for part in parts]
    if not any(d != 0 for d in degrees):
        return 0
    if None in degrees or not isinstance(node, ast.BinOp):
        return None
    left, right = (d for d in degrees if d is not None)
    if isinstance(node.op, (ast.Add, ast.Sub)):
        return max(left, right)
    if isinstance(node.op, ast.Mult):
        return left + right
    if isinstance(node.op, ast.Div):
        return left if right == 0 else None
    power = float(_value(node.right, {})) if right == 0 else -1.0
    return left * int(power) if power >= 0.0 and power.is_integer() else None


def _value(node: ast.AST, given: dict[str, Array]) -> Any:
    if isinstance(node, ast.BinOp):
        return _BINARY[type(node.op)](_value(node.left, given), _value(node.right, given))
    if isinstance(node, ast.UnaryOp):
        return _UNARY[type(node.op)](_value(node.operand, given))
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        return FUNCTIONS[node.func.id][0](*(_value(part, given) for part in node.args))
    if isinstance(node, ast.Constant):
        return np.float64(node.value)  # type: ignore[arg-type]
    assert isinstance(node, ast.Name)
    return given[node.id] if node.id in given else np.float64(CONSTANTS[node.id])
