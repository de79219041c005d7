"""Cone programs against closed forms; roots of forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csc_matrix, diags, issparse, random_array

import femcert as fc
from femcert.linalg.cones import Block, ConeProgram, root_of


def ball(n, size=1.0):
    return Block(np.vstack([np.zeros(n), np.eye(n)]), np.concatenate([[size], np.zeros(n)]), round=True)


def test_the_largest_value_on_a_part_of_a_ball():
    """Of ``g . x`` over ``‖x‖ <= 2, x >= 0``: twice the norm of the positive part; one set-up for all g."""
    program = ConeProgram([ball(4, 2.0), Block(-np.eye(4), np.zeros(4), round=False)], tolerance=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(5):
        g = rng.standard_normal(4)
        found = program.maximize(g)
        assert not found.infeasible
        assert g @ found.point == pytest.approx(2.0 * np.linalg.norm(np.maximum(g, 0.0)), rel=1e-6, abs=1e-6)
        cone, sign = found.duals
        # A' z = g, and the dual value is the same.
        np.testing.assert_allclose(cone[1:] - sign, g, atol=1e-7)
        assert 2.0 * cone[0] == pytest.approx(g @ found.point, rel=1e-6, abs=1e-6)


def test_constraints_that_contradict_each_other():
    program = ConeProgram([ball(2), Block(-np.eye(2), np.full(2, -3.0), round=False)], tolerance=1e-9)
    found = program.maximize(np.ones(2))
    assert found.infeasible
    assert found.duals[0][0] - 3.0 * found.duals[1].sum() < 0.0


def test_roots():
    rng = np.random.default_rng(1)
    G = random_array((30, 30), density=0.1, rng=rng)
    sparse = csc_matrix(G.T @ G + diags(np.linspace(0.1, 1.0, 30)))
    for form in (sparse, sparse.toarray()):
        R = root_of(form, "form")
        assert issparse(R) == issparse(form)
        np.testing.assert_allclose((R.T @ R).toarray() if issparse(R) else R.T @ R, sparse.toarray(), atol=1e-12)
        with pytest.raises(fc.SolveError, match="not positive definite"):
            root_of(-form, "form")
