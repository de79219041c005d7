"""The schema of case files: editors and the reader agree on it, and its names are those of the code."""

import copy
import json
from pathlib import Path

import jsonschema
import pytest

from femcert.certificate.confidence import BOUNDS
from femcert.certificate.guaranteed import STATES
from femcert.certificate.stochastic import SAMPLING
from femcert.errors import InputError
from femcert.problem.elliptic import MASS
from femcert.problem.heat import THETA
from femcert.problem.space import BALL_NORMS, INNER
from femcert.residual.physics import PDE_NORMS
from femcert.selection.weights import CHOICES
from femcert.stability.constant import GUARANTEES
from femcert.study.case.decision import RULES
from femcert.study.case.example import CASE
from femcert.study.case.structure import SCHEMA, check_structure, definitions
from femcert.study.keys import parsed_file

ROOT = Path(__file__).parents[2]
RECORD = json.loads(SCHEMA.read_text(encoding="utf-8"))
DEMOS = sorted((ROOT / "demos" / "cases").glob("*.toml"))


def valid(record, command=None):
    schema = RECORD if command is None else {**RECORD, "anyOf": [{"$ref": f"#/$defs/{command}"}]}
    return jsonschema.Draft202012Validator(schema).is_valid(record)


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(RECORD)


@pytest.mark.parametrize("path", [CASE, *DEMOS], ids=lambda path: path.name)
def test_shipped_cases_are_valid(path):
    record = parsed_file(path)
    assert valid(record)
    check_structure(record, "certify" if "candidate" in record else "refine")


def options(section, kind, name):
    (found,) = [one for one in definitions()[section]["oneOf"] if one["properties"]["kind"]["const"] == kind]
    value = found["properties"][name]
    return set(value.get("enum") or value["properties"]["norm"]["enum"])


def test_its_names_are_those_of_the_code():
    assert options("rule", "residual", "pde_norm") == options("rule", "operational", "pde_norm") == {*PDE_NORMS}
    assert options("rule", "stochastic", "bound") == {*BOUNDS}
    assert options("rule", "stochastic", "sampling") == {*SAMPLING}
    assert options("rule", "guaranteed", "state") == {*STATES}
    assert options("rule", "exact", "guarantee") == options("rule", "dominance", "guarantee") == {*GUARANTEES}
    assert options("problem", "heat-initial", "scheme") == {*THETA, "exact"}
    assert options("problem", "heat-initial", "mass") == options("problem", "elliptic-source", "mass") == {*MASS}
    assert options("class", "full", "inner") == {*INNER}
    assert options("class", "full", "ball") == {*BALL_NORMS}
    assert options("baseline", "tikhonov", "choose") == {*CHOICES}
    assert {one["properties"]["kind"]["const"] for one in definitions()["rule"]["oneOf"]} == set(RULES)


def changed(**sections):
    """The example with other keys in its sections; None: without the key or section."""
    record = copy.deepcopy(parsed_file(CASE))
    for section, keys in sections.items():
        if keys is None:
            del record[section]
        elif isinstance(keys, dict) and isinstance(record.get(section), dict):
            for key, value in keys.items():
                if value is None:
                    del record[section][key]
                else:
                    record[section][key] = value
        else:
            record[section] = keys
    return record


REFUSED = {
    "unknown section": (changed(rules={}), "unknown key 'rules'.*did you mean 'rule'"),
    "missing section": (changed(data=None), r"section \[data\] is missing"),
    "section that is no table": (changed(mesh=3), "mesh is 3; expected a table"),
    "kinded section that is no table": (changed(rule=[1]), r"rule is \[1\]; expected a table"),
    "unknown key": (changed(data={"nois_level": 1.0}), "unknown key 'data.nois_level'.*did you mean 'noise_level'"),
    "missing key": (changed(candidate={"file": None}), "candidate.file is missing"),
    "missing kind": (changed(rule={"kind": None}), "rule.kind is missing; expected one of 'residual'"),
    "unknown kind": (changed(rule={"kind": "residul"}), "rule.kind is 'residul'.*did you mean 'residual'"),
    "kind that is a number": (changed(rule={"kind": 3}), "rule.kind is 3"),
    "key of another kind": (changed(rule={"zeta": 0.1}), "unknown key 'rule.zeta'; expected one of kind"),
    "text for a number": (changed(sensors={"radius": "a"}), "sensors.radius is 'a'; expected a number above 0"),
    "switch for a number": (changed(class_={}) | {"class": {"kind": "sine", "modes": True}}, "class.modes is True"),
    "too small": (changed(rule={"tolerance": -1.0}), "rule.tolerance is -1.0; expected a number of at least 0"),
    "not above": (changed(sensors={"radius": 0}), "sensors.radius is 0; expected a number above 0"),
    "not below": (changed(data={"confidence": 1.0}), "data.confidence is 1.0; expected a number above 0 and below 1"),
    "fraction for a count": (changed(**{"class": {"modes": 2.5}}), "class.modes is 2.5; expected a whole number"),
    "unknown choice": (changed(baseline={"choose": "gcvv"}), "baseline.choose is 'gcvv'.*did you mean 'gcv'"),
    "degree": (changed(problem={"degree": 3}), "problem.degree is 3; expected 1 or 2"),
    "list for a value": (changed(boundary={"dirichlet": {"ground": [1]}}), "boundary.dirichlet.ground is"),
    "pair of three": (changed(boundary={"robin": {"surface": [1, 2, 3]}}), "expected a pair"),
    "empty list": (changed(output={"files": []}), "output.files is .*; expected a list of files"),
    "unknown file": (changed(output={"files": ["report.htm"]}), "did you mean 'report.html'"),
    "empty name": (changed(candidate={"file": ""}), "candidate.file is empty"),
    "number for a name": (changed(candidate={"name": 3}), "candidate.name is 3"),
    "number for a formula": (
        changed(**{"class": None}) | {"class": {"kind": "functions", "functions": [1]}}, r"class.functions\[0\] is 1",
    ),
    "number in a list": (changed(data={"values": [1, "a"]}), r"data.values\[1\] is 'a'"),
    "certified optimality": (
        changed(rule={"kind": "operational", "optimality": "certified"}), "rule.optimality is 'certified'",
    ),
    "unknown weight": (changed(rule={"kind": "operational", "pde": "sure"}), "rule.pde is 'sure'; expected a number"),
    "ball without radius": (changed(**{"class": {"ball": {}}}), "class.ball.radius is missing"),
    "unknown norm": (changed(**{"class": {"ball": {"radius": 1, "norm": "h3"}}}), "class.ball.norm is 'h3'"),
    "bins": (changed(sensors=None) | {"sensors": {"kind": "rays", "angles": 3}}, "sensors.bins is missing"),
}  # fmt: skip


@pytest.mark.parametrize(("record", "words"), REFUSED.values(), ids=REFUSED)
def test_what_the_reader_refuses_the_schema_refuses(record, words):
    record.pop("class_", None)
    with pytest.raises(InputError, match=words) as caught:
        check_structure(record, "certify")
    assert "\n" not in str(caught.value)
    assert not valid(record, "certify")
    assert not valid(record)


ALLOWED = {
    "number": changed(problem={"conductivity": 2.0}),
    "formula": changed(problem={"conductivity": "1+x"}),
    "no table": changed(boundary={"dirichlet": 0}),
    "pair of modes": changed(**{"class": {"modes": [2, 3]}}),
    "box": changed(**{"class": {"box": [[0, 1], [0, 2]]}}),
    "angles": changed(sensors=None) | {"sensors": {"kind": "rays", "angles": [0, 45.5], "bins": 3}},
    "certified": changed(rule={"kind": "operational", "pde": "certified", "pde_norm": "equilibrated"}),
    "matrix": changed(data={"covariance": [[1, 0], [0, 1]]}),
    "no baseline": changed(baseline=None),
    "no output": changed(output=None),
}


@pytest.mark.parametrize("record", ALLOWED.values(), ids=ALLOWED)
def test_what_the_reader_takes_the_schema_takes(record):
    check_structure(record, "certify")
    assert valid(record, "certify")


def test_numbers_are_finite():
    with pytest.raises(InputError, match=r"rule.tolerance is inf"):
        check_structure(changed(rule={"tolerance": float("inf")}), "certify")
    with pytest.raises(InputError, match=r"sensors.radius is nan"):
        check_structure(changed(sensors={"radius": float("nan")}), "certify")
