"""The shipped example is what its script makes."""

import csv

import meshio
import numpy as np
from make_example import make

import femcert as fc
from femcert.study.case import read_certify_case
from femcert.study.example import CASE, FOLDER


def test_the_example_is_what_its_script_makes(tmp_path):
    make(tmp_path)
    assert (tmp_path / "mesh.msh").read_bytes() == (FOLDER / "mesh.msh").read_bytes()
    shipped, made = ([*csv.reader((d / "data.csv").read_text().splitlines())] for d in (FOLDER, tmp_path))
    assert made[0] == shipped[0]
    np.testing.assert_allclose(np.array(made[1:], float), np.array(shipped[1:], float), rtol=1e-6)
    shipped, made = (meshio.read(d / "candidate.vtu") for d in (FOLDER, tmp_path))
    for name, values in shipped.point_data.items():
        np.testing.assert_allclose(made.point_data[name], values, rtol=1e-9, atol=1e-12)


def test_the_case_says_what_the_script_says_in_python():
    from make_example import problem_of_the_case

    case = read_certify_case(CASE)
    expected = problem_of_the_case(fc.load_mesh(FOLDER / "mesh.msh"))
    assert abs(case.problem.forward_matrix() - expected.forward_matrix()).max() < 1e-12
    np.testing.assert_allclose(case.problem.offset, expected.offset, rtol=1e-12)
