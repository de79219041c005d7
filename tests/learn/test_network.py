"""Derivatives that the network carries along are those of automatic differentiation."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from femcert.learn.network import Network  # noqa: E402


@pytest.mark.parametrize(("inputs", "space"), [(1, 1), (2, 1), (2, 2), (3, 2)])
@pytest.mark.parametrize("depth", [1, 3])
def test_jets_are_the_derivatives_of_the_value(inputs, space, depth):
    rng = np.random.default_rng(3)
    low, high = rng.uniform(-3.0, -1.0, inputs), rng.uniform(1.0, 2.0, inputs)
    net = Network(low, high, space, width=7, depth=depth, rng=rng)
    for _, bias in net.layers:
        bias += 0.3
    x = torch.tensor(rng.uniform(low, high, (11, inputs)), requires_grad=True)
    value, slope, laplacian = net.jet(x)
    assert torch.allclose(value, net.value(x), rtol=0.0, atol=1e-14)
    first = torch.autograd.grad(net.value(x).sum(), x, create_graph=True)[0]
    second = [torch.autograd.grad(first[:, i].sum(), x, retain_graph=True)[0][:, i] for i in range(space)]
    assert torch.allclose(slope, first.T, rtol=0.0, atol=1e-13)
    assert torch.allclose(laplacian, sum(second), rtol=0.0, atol=1e-13)


def test_weights_come_from_the_generator_alone():
    before = torch.get_rng_state()
    box = np.zeros(2), np.ones(2)
    nets = [Network(*box, 2, width=5, depth=2, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert torch.equal(torch.get_rng_state(), before)
    same, other = (all(map(torch.equal, nets[0].variables, net.variables)) for net in nets[1:])
    assert same
    assert not other
