"""A ``torch.nn.Module`` as a function of x with derivatives, for `Candidate.from_functions`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..checks import Array, number
from ..errors import InputError
from .torch import array_of, load_torch, recording


class Function:
    """The function ``x -> module(x)`` with its gradient and Laplacian by automatic differentiation.

    The module maps points ``(points, dimension)`` to values ``(points, 1)`` (or ``(points,)``); femcert's x is
    ``(dimension, ...)``. It is evaluated in its own precision and in evaluation mode (no drop-out), and every mode is
    restored; gradients of its weights are not touched. NaN comes out as it is, for `no_harm` to refuse.

    The Laplacian is that of a smooth network. Of one with kinks (ReLU) automatic differentiation returns zero, without
    what the kinks hold; take its weak residual instead.

    Parameters
    ----------
    module
        A ``torch.nn.Module``.
    time
        For a module on space and time: the time, appended to x as a last column. Derivatives are in space.
    """

    def __init__(self, module: Any, *, time: float | None = None) -> None:
        if not isinstance(module, load_torch().nn.Module):
            raise InputError(f"module is a {type(module).__name__}; expected a torch.nn.Module")
        self.module = module
        self.time = None if time is None else number(time, "time")

    def __call__(self, x: Any) -> Array:
        """The same as `value`."""
        return self.value(x)

    def value(self, x: Any) -> Array:
        """Values, ``x.shape[1:]``."""
        points = self._points(x)
        with _evaluating(self.module), load_torch().no_grad():
            return array_of(self._output(points)).reshape(np.shape(x)[1:])

    def gradient(self, x: Any) -> Array:
        """The gradient, shaped like x."""
        with _evaluating(self.module), recording():
            points = self._points(x).requires_grad_()
            slope = self._slope(points)
        return array_of(slope).T[: len(x)].reshape(np.shape(x))

    def laplacian(self, x: Any) -> Array:
        """The sum of the second derivatives, ``x.shape[1:]``."""
        with _evaluating(self.module), recording():
            points = self._points(x).requires_grad_()
            slope = self._slope(points, again=True)
            total = sum(_derivative(slope[:, i].sum(), points, again=True)[:, i] for i in range(len(x)))
        return array_of(total).reshape(np.shape(x)[1:])

    def _slope(self, points: Any, *, again: bool = False) -> Any:
        values = self._output(points)
        if not values.requires_grad and len(values) and not bool((values == values[0]).all()):
            raise InputError("the module returns values that vary, detached from the points; expected a gradient")
        return _derivative(values.sum(), points, again=again)

    def _points(self, x: Any) -> Any:
        """The points as rows, in the precision and on the device of the module."""
        torch = load_torch()
        rows = np.asarray(x, dtype=float).reshape(len(x), -1).T
        if self.time is not None:
            rows = np.column_stack([rows, np.full(len(rows), self.time)])
        weights = [p for p in self.module.parameters() if p.is_floating_point()]
        kind = {"dtype": weights[0].dtype, "device": weights[0].device} if weights else {"dtype": torch.float64}
        return torch.tensor(rows, **kind)

    def _output(self, points: Any) -> Any:
        try:
            values = self.module(points)
        except (RuntimeError, TypeError, ValueError, LookupError, AttributeError) as error:
            came = f"{error} (points of shape {tuple(points.shape)}, {points.dtype})"
            raise InputError(f"the module failed: {came}; expected a module on rows of points") from error
        if not isinstance(values, load_torch().Tensor) or values.is_complex():
            came = f"a {type(values).__name__}, {getattr(values, 'dtype', 'no numbers')}"
            raise InputError(f"the module returned {came}; expected a real tensor of shape ({len(points)}, 1)")
        if tuple(values.shape) not in ((len(points), 1), (len(points),)):
            came = f"shape {tuple(values.shape)} for points of shape {tuple(points.shape)}"
            raise InputError(f"the module returned {came}; expected ({len(points)}, 1)")
        return values.reshape(-1)


def _derivative(total: Any, points: Any, *, again: bool = False) -> Any:
    """The gradient of a sum; zero where it does not depend on the points at all."""
    torch = load_torch()
    if not total.requires_grad:
        return torch.zeros_like(points)
    return torch.autograd.grad(total, points, create_graph=again, materialize_grads=True)[0]


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Evaluation mode for all parts of a module, and back to the mode that each of them had."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
