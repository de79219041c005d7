"""Radii, bounds, constants and decisions of every class, element, rule and backend, as an earlier tree computed them.

They only change where the changelog says why; `python tests/test_golden.py` writes them anew. A number agrees to 1e-9:
the condition numbers of these problems are below 10, and the rounding of what goes into them is below 1e-12. Where an
equilibrated flux goes in, to 1e-8: what rounding leaves in its divergence, ``eps / h`` of a flux up to 60 times as
large as the bound, is multiplied by a crude Friedrichs constant, 1e4: with h = 1/5 up to 1e-9 for each of a few terms.
"""

import json
from pathlib import Path

import numpy as np
import posed as pose
import pytest
from zoo import PLANE, STRAIGHT, coefficients

import femcert as fc

FILE = Path(__file__).with_name("golden.json")
KINDS = {kind.__name__: kind for kind in (pose.source, pose.regions, pose.heat, pose.coefficient, pose.tomography)}
RULES = {
    "residual": fc.ResidualRadius(),
    "equilibrated": fc.ResidualRadius(pde_norm="equilibrated"),
    "exact": fc.ExactRadius(),
    "exact continuous": fc.ExactRadius(guarantee="continuous"),
    "dominance": fc.Dominance(),
    "guaranteed": fc.GuaranteedRadius(),
    "operational": fc.OperationalRadius(pde=0.1, bc=1.0, optimality=0.1),
    "stochastic": fc.StochasticRadius(points=200, zeta=0.05, seed=3),
}
OF_A_FLUX = ("equilibrated", "guaranteed", "continuous", "space-time")
BACKENDS = {"superlu": 1e-10, "pardiso": 1e-10, "multigrid": 1e-12}


def posed(kind, element):
    """A problem, its data, a candidate beside the truth, and a baseline."""
    setup = KINDS[kind](element)
    c = coefficients(setup.problem) * (0.2 if kind == "coefficient" else 1.0)
    baseline = fc.GaussNewton(weight=1e-4) if kind == "coefficient" else fc.Tikhonov(weight=1e-4)
    return setup, c, setup.data(c), setup.candidate(c + 0.05), baseline


def of_selection(selection):
    found = {"status": selection.status}
    for name in ("baseline", "learned"):
        certificate = getattr(selection, name)
        if certificate is not None and selection.status != "undecided":
            found[name] = of_bound(certificate.radius)
    if selection.comparison is not None:
        found["margin"] = selection.comparison.margin
    return found


def of_bound(bound):
    return None if bound is None else [bound.value, bound.side]


def selections(kind, element):
    setup, c, data, candidate, baseline = posed(kind, element)
    constant = fc.stability(setup.problem, at=setup.truth(c) if kind == "coefficient" else None)
    found = {"constant": of_bound(constant.constant)}
    truth, problem = setup.candidate(c), setup.problem
    for name, rule in RULES.items():
        found[name] = of_selection(fc.no_harm(problem, data, baseline=baseline, learned=candidate, rule=rule))
        # The other way round, so that there is something to accept.
        found[name]["beside the truth"] = fc.no_harm(problem, data, baseline=candidate, learned=truth, rule=rule).status
    if kind != "coefficient":
        # Gaussian noise of known size.
        std = 0.01 * np.abs(data.values).max()
        scaled = fc.Data(data.values, 2.0 * np.sqrt(data.values.size), np.full(data.values.size, std**2))
        likely = fc.no_harm(problem, scaled, baseline=candidate, learned=truth, rule=fc.Dominance(zeta=0.05))
        found["dominance 0.05"] = of_selection(likely)
    return found


def norms(element):
    """Of a candidate that is off the equation: from above, from below, on its boundary, in time."""
    found = {}
    for kind in (pose.source, pose.regions):
        setup = kind(element)
        candidate = setup.candidate(coefficients(setup.problem), off=0.3)
        for method in ("equilibrated", "enriched", "riesz", "indicator"):
            norm = fc.dual_norm(setup.problem, candidate, method=method)
            found[f"{kind.__name__} {method}"] = [of_bound(norm.upper), of_bound(norm.lower)]
    found["boundary"] = of_bound(fc.boundary_norm(setup.problem, candidate.state + 0.1 * setup.nodal(lambda x: x[0])))
    found["weight"] = of_bound(fc.certified_weights(setup.problem).pde)
    setup = pose.heat(element)
    q = setup.truth(coefficients(setup.problem))
    wave = 0.1 * setup.nodal(lambda x: np.sin(3.0 * np.pi * x[0]))
    norm = fc.space_time_norm(setup.problem, fc.Candidate(setup.problem.trajectory(q) + wave[:, None], q))
    found["space-time"] = [of_bound(norm.upper), of_bound(norm.lower)]
    return found


def chosen(kind):
    """What each way to choose a weight gives."""
    setup, _, data, *_ = posed(kind, "tri P1")
    parameters = setup.problem.parameters
    return {
        choose: parameters.norm(fc.Tikhonov(choose=choose)(setup.problem, data).parameter)
        for choose in ("discrepancy", "gcv", "lcurve")
    }


def balls(element):
    """What a ball leaves open, with and without data."""
    setup = pose.source(element, ball=2.0)
    c = 0.3 * coefficients(setup.problem)
    data = setup.data(c)
    stability = fc.stability(setup.problem, levels=[1e-3, 1e-2])
    found = {f"modulus {eps}": of_bound(stability.modulus(eps)) for eps in (1e-3, 1e-2)}
    baseline, learned = fc.Tikhonov(weight=1e-4), setup.candidate(c + 0.01)
    found["exact"] = of_selection(
        fc.no_harm(setup.problem, data, baseline=baseline, learned=learned, rule=fc.ExactRadius())
    )
    return found


def backends(name):
    found = {}
    with fc.use_backend(name, tolerance=BACKENDS[name]):
        for kind in ("source", "heat", "coefficient"):
            pose_again = KINDS[kind].__wrapped__("tri P2")
            c = coefficients(pose_again.problem) * (0.2 if kind == "coefficient" else 1.0)
            st = fc.stability(pose_again.problem, at=pose_again.truth(c) if kind == "coefficient" else None)
            found[kind] = of_bound(st.constant)
    return found


CASES = {
    **{
        f"{kind} {element}": (selections, kind, element)
        for kind in KINDS
        for element in STRAIGHT
        if kind != "tomography" or element in PLANE
    },
    **{f"norms {element}": (norms, element) for element in STRAIGHT},
    **{f"ball {element}": (balls, element) for element in STRAIGHT},
    **{f"chosen {kind}": (chosen, kind) for kind in ("source", "heat", "tomography")},
    **{f"backend {name}": (backends, name) for name in BACKENDS},
}


def computed(case):
    function, *arguments = CASES[case]
    return function(*arguments)


def values(found, place=""):
    """All numbers and words, by their place."""
    if isinstance(found, dict | list):
        pairs = found.items() if isinstance(found, dict) else enumerate(found)
        return {key: leaf for name, part in pairs for key, leaf in values(part, f"{place}/{name}").items()}
    return {place: found}


@pytest.mark.parametrize("case", CASES)
def test_as_before(case):
    # Gauss-Newton stops at a share of its first gradient; the constants of these problems, below 30, amplify the rest.
    rel = 100.0 * fc.GaussNewton(weight=1.0).tolerance if case.startswith("coefficient") else 1e-9
    found, expected = values(computed(case)), values(json.loads(FILE.read_text(encoding="utf-8"))[case])
    assert found.keys() == expected.keys()
    for place, value in expected.items():
        close = max(rel, 1e-8) if any(word in place for word in OF_A_FLUX) else rel
        assert found[place] == (pytest.approx(value, rel=close) if isinstance(value, float) else value), place


if __name__ == "__main__":
    rows = (f"{json.dumps(case)}: {json.dumps(computed(case))}" for case in CASES)
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
