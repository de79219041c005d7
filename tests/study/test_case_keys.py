"""Keys of case files: they are the arguments of what a table makes, and a wrong one is named in one line."""

import copy
import json
import random

import pytest

import femcert as fc
from femcert.study import kinds
from femcert.study.case import read_case, read_certify_case
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
    },
    "class": {
        "eigenmodes": {"modes", "boundary", "inner"},
        "sine": {"modes", "inner", "box"},
        "cosine": {"modes", "inner", "box"},
        "regions": {"regions", "inner"},
        "coarse": {"mesh", "degree", "inner"},
        "functions": {"functions", "inner"},
        "full": {"inner"},
    },
    "sensors": {
        "points": {"points"},
        "averages": {"points", "radius"},
        "regions": {"regions"},
        "boundary": {"boundary", "count"},
        "rays": {"angles", "bins", "spacing", "rule"},
    },
    "baseline": {
        "tikhonov": {"weight", "choose"},
        "gauss-newton": {"weight", "start", "reference", "bounds", "tolerance", "evaluations"},
    },
    "rule": {
        "residual": RULE,
        "operational": {*RULE, "pde", "bc", "optimality"},
        "stochastic": {*RULE, "points", "zeta", "seed", "bound", "sampling"},
        "guaranteed": {"state"},
        "exact": {"guarantee"},
        "dominance": {"guarantee", "zeta", "thinning", "seed"},
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
    "section that is no table": (changed(mesh=3), "mesh is 3; expected a table"),
    "kinded section that is no table": (changed(rule=[1]), r"rule is \[1\]; expected a table"),
    "unknown key": (changed(data={"nois_level": 1.0}), "unknown key 'data.nois_level'.*did you mean 'noise_level'"),
    "missing key": (changed(candidate={"file": None}), "candidate.file is missing"),
    "missing kind": (changed(rule={"kind": None}), "rule.kind is missing"),
    "unknown kind": (changed(rule={"kind": "residul"}), "rule.kind is 'residul'.*did you mean 'residual'"),
    "kind that is a number": (changed(rule={"kind": 3}), "rule.kind is 3"),
    "key of another kind": (changed(rule={"zeta": 0.1}), "unknown key 'rule.zeta'; expected one of kind"),
    "text for a number": (changed(sensors={"radius": "a"}), "sensors.radius is 'a'; expected a number"),
    "switch for a number": (changed() | {"class": {"kind": "sine", "modes": True}}, "class.* True"),
    "too small": (changed(rule={"tolerance": -1.0}), "rule.tolerance is -1.0; expected at least 0"),
    "not above": (changed(sensors={"radius": 0}), "sensors.radius is 0.0; expected more than 0"),
    "not below": (changed(data={"confidence": 1.0}), "data.confidence is 1.0; expected a number above 0 and below 1"),
    "fraction for a count": (changed(**{"class": {"modes": 2.5}}), "class.modes is 2.5; expected a whole number"),
    "unknown choice": (changed(baseline={"choose": "gcvv"}), "baseline.choose is 'gcvv'.*expected one of"),
    "degree": (changed(problem={"degree": 3}), "problem.degree is 3; expected 1 or 2"),
    "list for a value": (changed(boundary={"dirichlet": {"ground": [1]}}), "boundary.dirichlet.ground is"),
    "pair of three": (changed(boundary={"robin": {"surface": [1, 2, 3]}}), "expected a pair"),
    "empty list": (changed(output={"files": []}), "output.files is .*; expected a list of files"),
    "unknown file": (changed(output={"files": ["report.htm"]}), "did you mean 'report.html'"),
    "empty name": (changed(candidate={"file": ""}), "candidate.file is ''; expected a text"),
    "number for a name": (changed(candidate={"name": 3}), "candidate.name is 3"),
    "number for a formula": (
        changed(**{"class": None}) | {"class": {"kind": "functions", "functions": [1]}}, r"class.functions\[0\] is 1",
    ),
    "number in a list": (changed(data={"values": [1, "a"], "file": None}), "data.values has type"),
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


def test_files_are_written_in_their_order(folder):
    assert read(changed(output={"files": ["report.html", "fields.xdmf"]}), folder).files == (
        "fields.xdmf", "report.html",
    )  # fmt: skip
    assert "fields.xdmf" not in read(changed(output=None), folder).files


# What a value may be replaced by.
OTHERS = (
    0, 1, 3, -1, 0.5, 10**400, True, "", "x", "sine", "certified", [], [1], [1, 2], [1, 2, 3], ["a"], [[1, 2], [3, 4]],
    [[1], [2, 3]], [True], {}, {"a": 1}, {"a": "x"}, {"a": [1, 2]}, {"kind": "full"}, {"radius": 1}, float("nan"),
)  # fmt: skip


def damage(record, rng):
    """Drop, rename or replace something, somewhere."""
    keys = list(record) if isinstance(record, dict) else range(len(record))
    key = rng.choice(keys)
    if isinstance(record[key], (dict, list)) and record[key] and rng.random() < 0.8:
        damage(record[key], rng)
    elif rng.random() < 0.2:
        del record[key]
    elif isinstance(record, dict) and rng.random() < 0.3:
        record[f"{key}s"] = record.pop(key)
    else:
        record[key] = copy.deepcopy(rng.choice(OTHERS))


def outcome(record, folder, reader):
    """The message, or nothing where the record is read."""
    try:
        read(record, folder, reader)
    except fc.InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("command", ["certify", "refine"])
def test_damaged_tables_are_refused_in_one_line_or_read(folder, command):
    rng, taken = random.Random(0), 0
    refined = {"mesh": {"file": "mesh.msh"}, "problem": {"kind": "elliptic-source", "source": 1.0, "degree": 2}}
    refined |= {"boundary": parsed_file(CASE)["boundary"], "study": {"levels": 2, "norm": "h1", "tolerance": 0.1}}
    for _ in range(40):
        record = parsed_file(CASE) if command == "certify" else copy.deepcopy(refined)
        damage(record, rng)
        said = outcome(record, folder, read_certify_case if command == "certify" else read_case)
        taken += not said
        assert "\n" not in said
    assert 1 <= taken <= 30


def test_numbers_are_finite(folder):
    with pytest.raises(fc.InputError, match=r"rule.tolerance has 1 NaN or infinite"):
        read(changed(rule={"tolerance": float("inf")}), folder)
    with pytest.raises(fc.InputError, match=r"sensors.radius is nan"):
        read(changed(sensors={"radius": float("nan")}), folder)
