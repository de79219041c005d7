"""Formulas: the same as Python's arithmetic, and nothing but arithmetic."""

import ast

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import femcert as fc
from femcert.study.expression import CONSTANTS, FUNCTIONS, Expression, number_or_expression

NAMES = {**CONSTANTS, **{name: function for name, (function, _) in FUNCTIONS.items()}}
LEAVES = st.one_of(
    st.sampled_from(["x", "y", "pi", "e"]),
    st.integers(0, 9).map(str),
    st.floats(0.0, 9.0, allow_subnormal=False).map(repr),
)


def grown(parts):
    unary = st.sampled_from([name for name, (_, count) in FUNCTIONS.items() if count == 1])
    binary = st.sampled_from([name for name, (_, count) in FUNCTIONS.items() if count == 2])
    return st.one_of(
        st.builds("({} {} {})".format, parts, st.sampled_from("+-*/"), parts),
        st.builds("{}**{}".format, parts.map("({})".format), st.integers(0, 4)),
        st.builds("-{}".format, parts.map("({})".format)),
        st.builds("{}({})".format, unary, parts),
        st.builds("{}({}, {})".format, binary, parts, parts),
    )


class Floats(ast.NodeTransformer):
    """All numbers are floats of NumPy, as -0 is not 0, and powers are those of its loop, not Python's."""

    def visit_Constant(self, node):
        return called("number", node)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        return called("power", node.left, node.right) if isinstance(node.op, ast.Pow) else node


def called(name, *arguments):
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def by_python(text, **names):
    tree = ast.fix_missing_locations(Floats().visit(ast.parse(text, mode="eval")))
    names = {**NAMES, "number": np.float64, "power": np.power, **names}
    return eval(compile(tree, "formula", "eval"), {"__builtins__": {}}, names)


@settings(deadline=None, max_examples=150)
@example("(cosh(2))**3", 0.0, 0.0)
@example("atan2(x, -(0))", 0.0, 0.0)
@given(st.recursive(LEAVES, grown, max_leaves=8), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
def test_the_same_as_python(text, x, y):
    points = np.array([[x], [y]])
    with np.errstate(all="ignore"):
        try:
            expected = by_python(text, x=points[0], y=points[1])
        except (ZeroDivisionError, OverflowError):  # of constants; arrays give infinity instead
            expected = None
        try:
            found = Expression(text)(points)
        except fc.InputError:
            assert expected is None or not np.isfinite(expected).all()
            return
    assert np.isfinite(found).all()
    if expected is not None:
        np.testing.assert_array_equal(found, np.broadcast_to(np.asarray(expected, dtype=float), 1))


def test_a_formula_without_coordinates_is_a_number():
    assert number_or_expression("2*pi", "key") == 2.0 * np.pi
    assert isinstance(number_or_expression("2*x", "key"), Expression)
    assert number_or_expression(3, "key") == 3


ATTACKS = [
    "__import__('os').system('true')", "open('/etc/passwd')", "eval('1')", "x.__class__", "x.tofile('here')",
    "x[0]", "lambda: 1", "[i for i in x]", "'a' * 999999999", "f'{x}'", "1j", "True", "x < 1", "1 if x else 2",
    "x and y", "1 << 99999999", "x % 2", "sin(*x)", "sin(x=1)", "(a := 1)", "x = 1", "import os", "x\ny", "(yield)",
    "z", "pi(x)", "sin + 1", "sin(x, y)", "", "1\0", "(x", "1+" * 300 + "1", "9" * 400, "(" * 240 + "x" + ")" * 240,
    "**".join(["2"] * 100),
]  # fmt: skip


@pytest.mark.parametrize("text", ATTACKS, ids=range(len(ATTACKS)))
def test_nothing_but_arithmetic(text):
    with pytest.raises(fc.InputError, match=r"problem\.source") as caught:
        Expression(text, "problem.source")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "text",
    ["9**9**9", "10**999", "1/0", "0/0", "log(0)", "log(-1)", "sqrt(-1)", "(-8)**(1/3)", "exp(1000)", "1/(x-1)",
     "0*(1/(x-1))", "asin(x+y)", "-1e308*10", "log(-x)*0"],
)  # fmt: skip
def test_values_that_are_no_finite_numbers(text):
    with pytest.raises(fc.InputError, match=r"key is .* no finite number"):
        Expression(text, "key")(np.array([[1.0, 2.0], [3.0, 4.0]]))


@pytest.mark.parametrize(
    ("text", "degree"),
    [
        ("3", 0), ("sin(2)*pi", 0), ("x", 1), ("-x + 2*y", 1), ("x*y", 2), ("(1 + x)*(x - y)/3", 2), ("x**3*y", 4),
        ("(x + y**2)**2", 4), ("x**(1 + 1)", 2), ("x**0", 0), ("2**3*x", 1), ("x**2/4 - sqrt(2)", 2),
        ("sin(x)", None), ("1/x", None), ("x**0.5", None), ("x**-1", None), ("2**x", None), ("abs(x - 0.5)", None),
        ("min(x, y)", None), ("x*exp(y)", None), ("sin(x)**0", None),
    ],
)  # fmt: skip
def test_the_degree_by_structure(text, degree):
    made = Expression(text)
    assert made.degree == degree
    known = made.as_function()
    assert known is made if degree is None else (known.degree, known.error) == (degree, 0.0)
    x = np.array([[0.3, 0.7], [0.2, 0.9]])
    np.testing.assert_array_equal(known(x), made(x))
