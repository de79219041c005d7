"""Parameter spaces: orthogonal projection, norms, balls and distances, as properties of every kind of space."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from zoo import unit_basis, unit_mesh

import femcert as fc


@cache
def space_of(kind, inner):
    basis = unit_basis("tri P2", 4)
    line = unit_basis("line P1", 9)
    makers = {
        "sine": lambda: fc.SineSpace(basis, 5, inner=inner),
        "cosine": lambda: fc.CosineSpace(line, 4, inner=inner),
        "eigenmodes": lambda: fc.EigenmodeSpace(basis, 4, inner=inner),
        "regions": lambda: fc.RegionSpace(basis, [np.arange(5), np.arange(9, 20)], inner=inner),
        "coarse": lambda: fc.CoarseSpace(basis, unit_mesh("tri", 2), inner=inner),
        "coarse constants": lambda: fc.CoarseSpace(basis, unit_mesh("tri", 2), degree=0, inner=inner),
        "functions": lambda: fc.FunctionSpace(basis, [lambda x: x[0], lambda x: np.exp(x[1])], inner=inner),
        "full": lambda: fc.FullSpace(basis, inner=inner),
    }
    return makers[kind]()


kinds = st.sampled_from(["sine", "cosine", "eigenmodes", "regions", "coarse", "coarse constants", "functions", "full"])
inners = st.sampled_from(["l2", "euclidean"])
seeds = st.integers(0, 2**32 - 1)
some = settings(deadline=None, max_examples=40)


@some
@given(kinds, inners, seeds)
def test_projection_is_orthogonal(kind, inner, seed):
    space = space_of(kind, inner)
    rng = np.random.default_rng(seed)
    q = rng.standard_normal(space.basis.N)
    c, remainder = space.project(q)
    assert np.allclose(space.field(c) + remainder, q, atol=1e-12)
    assert np.abs(space.matrix.T @ (space.weight @ remainder)).max() < 1e-11 * space.norm(q)
    # Pythagoras, and idempotence.
    assert space.norm(q) ** 2 == pytest.approx(space.norm(space.field(c)) ** 2 + space.norm(remainder) ** 2, rel=1e-11)
    again, nothing = space.project(space.field(c))
    assert np.allclose(again, c, rtol=0, atol=1e-10 * np.abs(c).max())
    assert space.norm(nothing) < 1e-11 * space.norm(q)
    assert space.distance(q) == pytest.approx(space.norm(remainder), rel=1e-12)
    # No other member of the class is nearer.
    other = space.field(c + rng.standard_normal(len(c)))
    assert space.norm(q - other) >= space.norm(remainder) * (1 - 1e-12)


@some
@given(kinds, inners, seeds)
def test_gram_matrix(kind, inner, seed):
    space = space_of(kind, inner)
    rng = np.random.default_rng(seed)
    c, d = rng.standard_normal((2, space.dimension))
    assert c @ (space.gram @ d) == pytest.approx(space.field(c) @ (space.weight @ space.field(d)), rel=1e-9, abs=1e-12)
    assert np.linalg.norm(space.root @ c) == pytest.approx(space.norm(space.field(c)), rel=1e-11)
    assert np.allclose(space.gram @ space.solve_gram(c), c, rtol=0, atol=1e-10 * np.linalg.norm(c))
    columns = rng.standard_normal((space.dimension, 3))
    assert np.allclose(space.gram @ space.solve_gram(columns), columns, rtol=0, atol=1e-10 * np.linalg.norm(columns))


@some
@given(st.sampled_from(["sine", "cosine", "eigenmodes", "coarse", "functions"]), inners, seeds, st.floats(0.01, 10.0))
def test_ball(kind, inner, seed, radius):
    plain = space_of(kind, inner)
    q = np.random.default_rng(seed).standard_normal(plain.basis.N)
    for norm in ("l2", "h1", "h1-seminorm"):
        space = plain.within_ball(radius, norm=norm)
        assert plain.ball is None
        assert (space.ball.radius, space.ball.norm) == (radius, norm)
        assert type(space) is type(plain)
        c, remainder = space.project(q)
        inside = space.field(c)
        size = np.sqrt(inside @ (space.form(norm) @ inside))
        # The witness of the bound: shrunk into the ball it is a member, and no farther than the bound says.
        member = inside * min(1.0, radius / size)
        assert member @ (space.form(norm) @ member) <= radius**2 * (1 + 1e-12)
        assert space.norm(q - member) <= space.distance(q) * (1 + 1e-12)
        assert space.distance(q) >= plain.distance(q) * (1 - 1e-12)
        if size <= radius:
            assert space.distance(q) == pytest.approx(space.norm(remainder), rel=1e-12)


def test_distance_to_an_l2_ball_is_an_upper_bound_of_the_minimum():
    space = space_of("functions", "l2").within_ball(0.5, norm="l2")
    q = 3.0 * space.field([1.0, -1.0]) + 0.1 * np.sin(9 * space.basis.doflocs[0])
    best = minimize(
        lambda c: space.norm(q - space.field(c)) ** 2,
        [0.1, 0.1],
        constraints={"type": "ineq", "fun": lambda c: 0.25 - space.norm(space.field(c)) ** 2},
    )
    truth = np.sqrt(best.fun)
    assert truth * (1 - 1e-6) <= space.distance(q) <= 1.5 * truth


def test_dependent_columns():
    basis = unit_basis("tri P1", 3)
    q, twice = np.ones(basis.N), csr_matrix(np.repeat(np.eye(basis.N)[:, :1], 2, axis=1))
    for space, word in (
        (fc.FunctionSpace(basis, [lambda x: x[0], lambda x: 2 * x[0]]), "linearly dependent"),
        # The square of 1e-8 is one unit in the last place: whether the factorization notices depends on the processor.
        (fc.FunctionSpace(basis, [lambda x: x[0], lambda x: x[0] + 1e-8 * x[1]]), "linearly dependent"),
        # Here, thirty of them.
        (fc.FunctionSpace(basis, [lambda x: x[0], lambda x: x[0] + 1.2e-7 * x[1]]), "dependent to rounding"),
        (fc.FunctionSpace(basis, [lambda x: x[0], lambda x: 0.0]), "column 1 of the parameter space is zero"),
        (fc.ParameterSpace(basis, twice), "linearly dependent"),
    ):
        with pytest.raises(fc.InputError, match=word):
            space.project(q)
    # A bad scale alone is no dependence.
    scaled = fc.FunctionSpace(basis, [lambda x: 1e-12 * x[0], lambda x: 1e12 * x[1]])
    assert scaled.project(basis.doflocs[0] + basis.doflocs[1])[0] == pytest.approx([1e12, 1e-12], rel=1e-6)


def test_bad_input():
    basis = unit_basis("tri P1", 3)
    space, regions = fc.FullSpace(basis), fc.RegionSpace(basis, [np.arange(3)])
    for deed, word in (
        (lambda: fc.FullSpace(basis, inner="h1"), "inner is 'h1'"),
        (lambda: space.field([1.0, 2.0, 3.0]), "coefficients has shape"),
        (lambda: space.field(np.full(16, np.nan)), "coefficients has 16 NaN"),
        (lambda: space.project([1.0, 2.0, 3.0]), "field has shape"),
        (lambda: space.norm(1.0), "field has shape"),
        (lambda: space.within_ball(1.0, norm="tv"), "norm is 'tv'"),
        (lambda: space.within_ball(0.0), "radius is 0"),
        (lambda: regions.within_ball(1.0), "no h1 norm"),
        (lambda: fc.ParameterSpace(basis, np.ones((16, 17))), "dimension 17 on 16 dofs"),
        (lambda: fc.ParameterSpace(basis, np.ones((16, 0))), "dimension 0 on 16 dofs"),
        (lambda: fc.FullSpace(None), "basis is a NoneType"),
    ):
        with pytest.raises(fc.InputError, match=word):
            deed()
    assert regions.within_ball(1.0, norm="l2").ball.norm == "l2"


def test_a_ball_in_the_norm_of_a_matrix():
    """The matrix of the norm of H1 gives the ball of H1, wherever a ball is used."""
    basis = unit_basis("tri P1", 6)
    full = fc.FullSpace(basis)
    for kind in (full, fc.CosineSpace(basis, 6), fc.RegionSpace(basis, [np.arange(20), np.arange(20, 40)])):
        named = kind.within_ball(0.7, norm="l2" if isinstance(kind, fc.RegionSpace) else "h1")
        P = named.form(named.ball.norm)
        given = kind.within_ball(0.7, norm=P)
        assert (given.ball.radius, given.ball.norm, kind.ball) == (0.7, "matrix", None)
        q = np.random.default_rng(0).standard_normal(kind.basis.N)
        assert given.distance(q) == pytest.approx(named.distance(q), rel=1e-12)
        sensors = fc.AverageSensors(basis, [[0.3, 0.3], [0.6, 0.4], [0.4, 0.7]], radius=0.15)
        problems = [fc.EllipticSource(basis, parameters=space, sensors=sensors) for space in (named, given)]
        truth = named.nearest(np.ones(kind.basis.N))
        data = problems[0].simulate(truth, noise=0.01, oracle=True)
        found = [fc.certify(p, data, fc.Tikhonov(weight=1e-6)(p, data), fc.ExactRadius()) for p in problems]
        # The multipliers of the modulus close in on it to a thousandth.
        assert found[0].radius.value == pytest.approx(found[1].radius.value, rel=2e-3)
        assert [(f.radius.side, f.contains(truth)) for f in found] == [("upper", True)] * 2


def test_matrices_that_are_no_norm_are_refused():
    space = fc.FullSpace(unit_basis("line P1", 9))
    n = space.basis.N
    one = csr_matrix(np.eye(n))
    skew, indefinite, nan = (one.tolil() for _ in range(3))
    skew[0, 1], indefinite[3, 3], nan[2, 2] = 0.5, -1.0, np.nan
    wrong = {
        "has shape": csr_matrix(np.eye(n - 1)), "not symmetric": skew, "positive definite": indefinite, "NaN": nan,
        "complex": one * 1j, "norm is a ndarray": np.eye(n), "norm is a NoneType": None, "norm is a int": 2,
        "singular": csr_matrix((n, n)),
    }  # fmt: skip
    for inner in (one, np.eye(n), 3):
        with pytest.raises(fc.InputError, match="inner is a"):
            fc.FullSpace(space.basis, inner=inner)
    for words, norm in wrong.items():
        with pytest.raises(fc.InputError, match=words):
            space.within_ball(1.0, norm=norm)
    for matrix in (one, one.tocsc(), one.tocoo(), one.tolil(), one.todia()):
        assert space.within_ball(1.0, norm=matrix).shrinkage(np.full(n, 1.0)) == pytest.approx(1.0 / np.sqrt(n))
