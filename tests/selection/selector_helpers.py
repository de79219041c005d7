"""What the tests of the selector share: a rule, a baseline, a selection, and what a fallback promises."""

import json

import numpy as np
import zoo

import femcert as fc

RULE = fc.OperationalRadius(pde=0.01, optimality=0.1)
BASELINE = fc.Tikhonov(weight=1e-3)


def select(problem, data, learned, rule=RULE, baseline=BASELINE, **options):
    return fc.no_harm(problem, data, baseline=baseline, learned=learned, rule=rule, **options)


def check_fallback(problem, data, learned, *words, usable=False, status="rejected", **options):
    """Run a selection that must fall back, and check everything that a fallback promises."""
    fresh = BASELINE(zoo.source(), data)
    found = select(problem, data, learned, **options)
    assert found.status == status
    assert found.reason
    for word in words:
        assert word in found.reason, found.reason
    if not usable:
        assert found.learned is None
        assert found.ratio is None
    assert found.baseline is not None
    np.testing.assert_allclose(found.parameter, fresh.parameter, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.state, fresh.state, rtol=0, atol=1e-12)
    str(found)
    return found


def rewritten(selection, path, change):
    """The file of a selection after `change` has been at its record, without a digest as in older files."""
    selection.save(path)
    record = json.loads(path.read_text())
    del record["digest"]
    change(record)
    path.write_text(json.dumps(record))
    return path


class OwnError(Exception):
    pass
