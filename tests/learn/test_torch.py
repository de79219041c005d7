"""PyTorch is imported when it is needed, and its absence is said in a line."""

import subprocess
import sys

BLOCKED = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'")
sys.meta_path.insert(0, Missing())
import numpy as np
from skfem import Basis, ElementLineP1, MeshLine
import femcert as fc
from femcert.learn import PINN, Function, NeuralOperator
basis = Basis(MeshLine(np.linspace(0.0, 1.0, 9)), ElementLineP1())
problem = fc.EllipticSource(basis, parameters=fc.SineSpace(basis, 2), sensors=fc.PointSensors(basis, [[0.3], [0.6]]))
data = problem.simulate(problem.parameters.field([1.0, 0.0]))
for attempt in (
    lambda: PINN()(problem, data),
    lambda: Function(abs),
    lambda: NeuralOperator().fit(problem, sampler=lambda count, rng: rng.standard_normal((count, 2))),
):
    try:
        attempt()
    except fc.InputError as error:
        print(error)
selection = fc.no_harm(problem, data, baseline=fc.Tikhonov(weight=1e-6), learned=PINN(), rule=fc.ResidualRadius())
print(selection.status, selection.reason)
"""


def run(code):
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_without_torch_every_part_says_how_to_get_it():
    lines = run(BLOCKED).splitlines()
    assert len(lines) == 4
    assert all("pip install 'femcert[learn]'" in line for line in lines)
    assert lines[3].startswith("undecided ")


def test_importing_femcert_and_its_learn_room_does_not_import_torch():
    assert run("import sys, femcert, femcert.learn; print('torch' in sys.modules)").strip() == "False"
