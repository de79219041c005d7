"""The examples in docstrings give what they show."""

import doctest
import importlib
import pkgutil

import pytest

import femcert as fc

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
CENTRAL = (
    *("AverageSensors", "Candidate.from_functions", "Data", "EigenmodeSpace", "Tikhonov"),
    *("certify", "dual_norm", "no_harm", "stability"),
)


def setting():
    """What somebody has who has run the example of `no_harm`, from which short ones go on."""
    names = {}
    exec("".join(example.source for example in doctest.DocTestParser().get_examples(fc.no_harm.__doc__)), names)
    return {name: names[name] for name in ("fc", "np", "problem", "data")}


def all_examples():
    names = [module.name for module in pkgutil.walk_packages(fc.__path__, "femcert.") if "__main__" not in module.name]
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = [fc, *map(importlib.import_module, names)]
    given = setting()
    found = [test for module in modules for test in finder.find(module, extraglobs=given) if test.examples]
    return {test.name: test for test in found}


EXAMPLES = all_examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_gives_what_it_shows(name):
    said = []
    result = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(EXAMPLES[name], out=said.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(said)


@pytest.mark.parametrize("name", CENTRAL)
def test_central_names_have_an_example(name):
    assert any(found.endswith(f".{name}") for found in EXAMPLES)
