"""How the dof vectors of a class live on a mesh: on the dofs of a basis, on those of some facets, or side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import Array
from ..shown import Shown


class Carried(Shown):
    """What forms and functionals ask of a class of parameters; here for one that lives on all dofs of its `basis`.

    Attributes
    ----------
    basis
        Of the dof vectors as fields in the domain; None where they are none.
    facets
        Where the parameters live, if that is a part of the boundary.
    factors
        The classes that the coordinates are split among, by name, each with its slice of the dofs; empty for one class.
    """

    basis: Any
    facets: NDArray[np.intp] | None = None
    factors: dict[str, tuple[Any, slice]] = {}  # noqa: RUF012

    @property
    def carrier(self) -> Any:
        """The basis whose functions, or traces of them, the dofs are coefficients of; None: there is none."""
        return self.basis

    def restrict(self, functionals: Any) -> Any:
        """Functionals on the dofs of the carrier, a vector or rows, as those on the dofs of the class."""
        return functionals

    def extend(self, field: Array) -> Array:
        """Dofs of the carrier of a dof vector of the class."""
        return field

    @property
    def asked(self) -> Any:
        """The class whose fields functionals such as means see: itself, or the factor that is asked for."""
        return self

    def seen(self, functional: Callable[[Any], Array]) -> Array:
        """The weights of the dofs in a functional of `asked`, which is given as a function of that class."""
        return functional(self)
