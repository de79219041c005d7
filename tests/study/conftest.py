"""One full validation serves all tests of this folder."""

import pytest

from femcert.study.validation import Validation, validate


@pytest.fixture(scope="session")
def result() -> Validation:
    return validate(robustness_seeds=10)
