"""Problems in which neither class nor data matter: every field is admissible, and the first dof is observed."""

from zoo import coefficient, heat, one_dof, source

import femcert as fc


def any_source(basis, space=None, **options):
    """`source` with all functions of `space`, a basis; by default that of the state."""
    return source(basis, parameters=fc.FullSpace(space or basis), sensors=one_dof, **options)


def any_coefficient(basis, space=None, *, source=None, **options):
    """`coefficient`, likewise, without a source."""
    return coefficient(basis, parameters=fc.FullSpace(space or basis), sensors=one_dof, source=source, **options)


def any_heat(basis, space=None, **options):
    """`heat`, likewise."""
    return heat(basis, parameters=fc.FullSpace(space or basis), sensors=one_dof, **options)
