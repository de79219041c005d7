"""A fully connected network that carries first derivatives and the Laplacian along (forward differentiation)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..checks import Array
from .torch import load_torch, tensor


class Network:
    """tanh layers of equal width, one output, double precision; inputs are scaled to [-1, 1].

    With ``h = tanh(z)``, ``z = W h_before + b``, derivatives pass through a layer by the chain rule,

        d_i h = (1 - h²) d_i z,    Laplace h = (1 - h²) Laplace z - 2 h (1 - h²) |grad z|²,

    so that one sweep over the layers gives value, gradient and Laplacian, for an ordinary backward sweep to train.

    Parameters
    ----------
    low, high
        Corners of the box of inputs; the first `space` of them are coordinates x, the others (time) are not part of
        the Laplacian.
    rng
        Draws the weights (Glorot, uniform); biases are zero.
    """

    def __init__(
        self, low: Array, high: Array, space: int, *, width: int, depth: int, rng: np.random.Generator
    ) -> None:
        self.space = space
        self._middle, self._half = tensor((low + high) / 2.0), tensor((high - low) / 2.0)
        sizes = [len(low), *depth * [width], 1]
        self.layers: list[tuple[Any, Any]] = []
        for before, after in pairwise(sizes):
            most = np.sqrt(6.0 / (before + after))
            self.layers.append((tensor(rng.uniform(-most, most, (after, before))), tensor(np.zeros(after))))

    @property
    def variables(self) -> list[Any]:
        """All weights and biases."""
        return [part for layer in self.layers for part in layer]

    def value(self, inputs: Any) -> Any:
        """``(points,)`` for inputs ``(points, inputs)``."""
        h = (inputs - self._middle) / self._half
        for W, b in self.layers[:-1]:
            h = (h @ W.T + b).tanh()
        W, b = self.layers[-1]
        return (h @ W.T + b)[:, 0]

    def jet(self, inputs: Any) -> tuple[Any, Any, Any]:
        """Value ``(points,)``, derivatives by all inputs ``(inputs, points)``, and Laplacian ``(points,)``."""
        torch = load_torch()
        n, m = inputs.shape
        slopes = torch.diag(1.0 / self._half)[:, None].expand(m, n, m)
        parts = torch.cat([((inputs - self._middle) / self._half)[None], slopes, inputs.new_zeros((1, n, m))])
        for W, b in self.layers[:-1]:
            z = parts @ W.T
            h = (z[:1] + b).tanh()
            rate = 1.0 - h**2
            bend = (z[1 : 1 + self.space] ** 2).sum(dim=0, keepdim=True)
            parts = torch.cat([h, rate * z[1:-1], rate * (z[-1:] - 2.0 * h * bend)])
        W, b = self.layers[-1]
        result = (parts @ W.T)[..., 0]
        return result[0] + b, result[1:-1], result[-1]
