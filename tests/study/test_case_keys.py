"""Keys of case files: they are the arguments of what a table makes, and a wrong one is named in one line."""

import copy
import json

import pytest

import femcert as fc
from femcert.study import kinds
from femcert.study.case import read_certify_case
from femcert.study.example import CASE, write_example
from femcert.study.keys import arguments_of, parsed_file
from femcert.study.refinement import Plan

RULE = {"pde_norm", "norm", "covered"}
KEYS = {
    "problem": {
        "elliptic-source": {"conductivity", "reaction", "mass"},
        "elliptic-coefficient": {"source", "transform"},
        "heat-initial": {"times", "diffusivity", "scheme", "steps", "mass"},
        "tomography": set(),
        "parabolic": {
            "times", "steps", "unknown", "conductivity", "reaction", "capacity", "velocity", "source", "initial",
            "history", "source_history", "boundary_history", "scheme",
        },
        "electrodes": {"electrodes", "impedances", "currents", "voltages", "gains", "conductivity", "transform"},
        "elasticity": {"young", "poisson", "plane", "unknown", "load"},
    },
    "class": {
        "eigenmodes": {"modes", "boundary", "inner"},
        "sine": {"modes", "inner", "box"},
        "cosine": {"modes", "inner", "box"},
        "regions": {"regions", "inner"},
        "coarse": {"mesh", "degree", "inner"},
        "functions": {"functions", "inner"},
        "full": {"inner"},
        "trace": {"boundary", "inner"},
    },
    "sensors": {
        "points": {"points", "component"},
        "averages": {"points", "radius", "component"},
        "regions": {"regions", "component"},
        "boundary": {"boundary", "count", "component"},
        "rays": {"angles", "bins", "spacing", "rule"},
        "segments": {"starts", "ends"},
    },
    "baseline": {
        "tikhonov": {"weight", "choose", "penalty", "bounds"},
        "gauss-newton": {"weight", "start", "reference", "bounds", "tolerance", "evaluations"},
    },
    "rule": {
        "residual": RULE,
        "operational": {*RULE, "pde", "bc", "optimality"},
        "stochastic": {*RULE, "points", "zeta", "seed", "bound", "sampling"},
        "guaranteed": {"state"},
        "exact": {"guarantee"},
        "dominance": {"guarantee", "seed", "thinning", "zeta"},
        "calibrated": {"samples", "harm", "confidence"},
        "conformal": {"samples", "confidence"},
    },
}


def test_keys_are_arguments():
    """A new argument of a class is a new key; one that only Python has belongs to `GIVEN`."""
    tables = {
        "problem": kinds.PROBLEMS, "class": kinds.CLASSES, "sensors": kinds.SENSORS, "baseline": kinds.BASELINES,
        "rule": kinds.RULES,
    }  # fmt: skip
    found = {name: {kind: {*arguments_of(make)} for kind, make in table.items()} for name, table in tables.items()}
    assert found == KEYS
    assert {*arguments_of(Plan)} == {"levels", "adaptive", "theta", "tolerance", "most_dofs", "norm"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_example(tmp_path_factory.mktemp("example") / "case").parent


def as_toml(record):
    """Inline tables: what JSON writes, with equality signs."""
    if isinstance(record, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {as_toml(value)}" for name, value in record.items()) + "}"
    if isinstance(record, list):
        return "[" + ", ".join(map(as_toml, record)) + "]"
    return json.dumps(record) if isinstance(record, (str, bool)) else repr(record)


def read(record, folder, reader=read_certify_case):
    path = folder / "changed.toml"
    path.write_text("\n".join(f"{json.dumps(name)} = {as_toml(value)}" for name, value in record.items()))
    return reader(path)


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
    "unknown key": (changed(data={"nois_level": 1.0}), "unknown key 'data.nois_level'.*did you mean 'noise_level'"),
    "missing key": (changed(candidate={"file": None}), "candidate.file is missing"),
    "missing kind": (changed(rule={"kind": None}), "rule.kind is missing"),
    "unknown kind": (changed(rule={"kind": "residul"}), "rule.kind is 'residul'.*did you mean 'residual'"),
    "key of another kind": (changed(rule={"zeta": 0.1}), "unknown key 'rule.zeta'; expected one of kind"),
    "text for a number": (changed(sensors={"radius": "a"}), "sensors.radius is 'a'; expected a number"),
    "not below": (changed(data={"confidence": 1.0}), "data.confidence is 1.0; expected a number above 0 and below 1"),
    "fraction for a count": (changed(**{"class": {"modes": 2.5}}), "class.modes is 2.5; expected a whole number"),
    "unknown choice": (changed(baseline={"choose": "gcvv"}), "baseline.choose is 'gcvv'.*expected one of"),
    "pair of three": (changed(boundary={"robin": {"surface": [1, 2, 3]}}), "expected a pair"),
    "unknown file": (changed(output={"files": ["report.htm"]}), "did you mean 'report.html'"),
    "number for a formula": (
        changed(**{"class": None}) | {"class": {"kind": "functions", "functions": [1]}}, r"class.functions\[0\] is 1",
    ),
    "certified optimality": (
        changed(rule={"kind": "operational", "optimality": "certified"}), "rule.optimality is 'certified'",
    ),
    "unknown weight": (changed(rule={"kind": "operational", "pde": "sure"}), "rule: the weight pde"),
    "ball without radius": (changed(**{"class": {"ball": {}}}), "class.ball.radius is missing"),
    "unknown norm": (changed(**{"class": {"ball": {"radius": 1, "norm": "h3"}}}), "class.ball.norm is 'h3'"),
    "bins": (changed(sensors=None) | {"sensors": {"kind": "rays", "angles": 3}}, "sensors.bins is missing"),
}  # fmt: skip


@pytest.mark.parametrize(("record", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_in_one_line(record, words, folder):
    with pytest.raises(fc.InputError, match=words) as caught:
        read(record, folder)
    assert "\n" not in str(caught.value)


ALLOWED = {
    "as it is": changed(),
    "number": changed(problem={"conductivity": 2.0}),
    "formula": changed(problem={"conductivity": "1+x"}),
    "no table": changed(boundary={"dirichlet": 0}),
    "pair of modes": changed(**{"class": {"modes": [2, 3]}}),
    "box": changed(**{"class": {"box": [[0, 2], [0, 1]]}}),
    "ball": changed(**{"class": {"ball": {"radius": 2, "norm": "l2"}}}),
    "certified": changed(rule={"kind": "operational", "pde": "certified", "pde_norm": "equilibrated"}),
    "no baseline": changed(baseline=None),
    "no output": changed(output=None),
}


@pytest.mark.parametrize("record", ALLOWED.values(), ids=ALLOWED)
def test_what_is_read(record, folder):
    assert read(record, folder).problem.observation_count == 28
