"""The schema of case files: editors and the reader agree on it, and its names are those of the code."""

import copy
import json
import random
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
from femcert.residual.residuals import PDE_NORMS
from femcert.residual.weak import NORMS
from femcert.selection.weights import CHOICES
from femcert.stability.stability import GUARANTEES
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
    assert {*definitions()["study"]["properties"]["norm"]["enum"]} == {*NORMS}


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


# What a value may be replaced by. Not among these: 2.0, a whole number to JSON Schema and none to TOML.
OTHERS = (
    0, 1, 3, -1, 0.5, True, "", "x", "sine", "certified", [], [1], [1, 2], [1, 2, 3], ["a"], [[1, 2], [3, 4]], [True],
    {}, {"a": 1}, {"a": "x"}, {"a": [1, 2]}, {"kind": "full"}, {"radius": 1},
)  # fmt: skip


def drawn(schema, rng):
    """Something that a schema describes."""
    if "$ref" in schema:
        schema = definitions()[schema["$ref"].rpartition("/")[2]]
    options = schema.get("oneOf") or schema.get("anyOf")
    if options:
        return drawn(rng.choice(options), rng)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else rng.choice(schema["enum"])
    if schema["type"] == "object":
        inside = schema.get("properties", {})
        found = {k: drawn(v, rng) for k, v in inside.items() if k in schema.get("required", ()) or rng.random() < 0.5}
        if isinstance(schema["additionalProperties"], dict):
            found |= {name: drawn(schema["additionalProperties"], rng) for name in rng.sample(["a", "b c", "é"], 2)}
        return found
    if schema["type"] == "array":
        least = schema.get("minItems", 0)
        return [drawn(schema["items"], rng) for _ in range(rng.randint(least, schema.get("maxItems", least + 2)))]
    if schema["type"] in ("string", "boolean"):
        return rng.choice(["a", "x*y"]) if schema["type"] == "string" else rng.random() < 0.5
    least = schema.get("minimum", schema.get("exclusiveMinimum", -5))
    return least + 1 if schema["type"] == "integer" else least + 0.5


def damage(record, rng):
    """Drop, rename or replace something, somewhere."""
    keys = list(record) if isinstance(record, dict) else range(len(record))
    key = rng.choice(keys)
    if isinstance(record[key], (dict, list)) and record[key] and rng.random() < 0.7:
        damage(record[key], rng)
    elif rng.random() < 0.3:
        del record[key]
    elif isinstance(record, dict) and rng.random() < 0.3:
        record[f"{key}s"] = record.pop(key)
    else:
        record[key] = copy.deepcopy(rng.choice(OTHERS))


def test_reader_and_schema_agree_on_files_of_all_sorts():
    validators = {
        command: jsonschema.Draft202012Validator({**RECORD, "anyOf": [{"$ref": f"#/$defs/{command}"}]})
        for command in ("certify", "refine")
    }
    rng, taken = random.Random(0), 0
    for _ in range(400):
        command = rng.choice(["certify", "certify", "refine"])
        record = drawn(definitions()[command], rng)
        for _ in range(rng.randint(0, 2)):
            damage(record, rng)
        try:
            check_structure(record, command)
            read = True
        except InputError:
            read = False
        assert read == validators[command].is_valid(record), record
        taken += read
    assert 100 <= taken <= 300


def test_numbers_are_finite():
    with pytest.raises(InputError, match=r"rule.tolerance is inf"):
        check_structure(changed(rule={"tolerance": float("inf")}), "certify")
    with pytest.raises(InputError, match=r"sensors.radius is nan"):
        check_structure(changed(sensors={"radius": float("nan")}), "certify")
