"""One step of training a stack of linear layers: forward, backward, and an optimizer that touches every weight."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from diag.kernels.operator import ELEMENT_BYTES, Count
from diag.probes.probe import Checked, Device, Probe, ProbeVariant, Setup, Workload

EAGER = ProbeVariant("eager", "An operator after the other; the optimizer goes through the weights one by one.")
FUSED = ProbeVariant("fused", "The same, but one kernel updates all weights.")


def variants(_: Device) -> Sequence[ProbeVariant]:
    return (EAGER, FUSED)


def count(setup: Setup) -> Count:
    """Products alone. Backward takes two of each, but no gradient of the input is wanted.

    Bytes: weights are read forward and backward, gradients written and read, and the optimizer reads and writes
    weights and two moments.
    """
    batch, width, layers, size = setup["batch"], setup["width"], setup["layers"], ELEMENT_BYTES[setup.dtype]
    weights = layers * width * width
    formula = f"FLOPs: 2 x batch x width² x (3 x layers - 1); bytes: 10 x layers x width² x {size}"
    return Count(2 * batch * width**2 * (3 * layers - 1), 6 * weights * size, 4 * weights * size, formula)


def network(width: int, layers: int) -> Any:
    from torch import nn

    inner = [nn.Sequential(nn.Linear(width, width, bias=False), nn.ReLU()) for _ in range(layers - 1)]
    return nn.Sequential(*inner, nn.Linear(width, width, bias=False))


def make(setup: Setup, variant: str) -> Workload:
    import torch

    from diag.probes import tensors

    torch.manual_seed(setup.seed)
    model = network(setup["width"], setup["layers"]).to(setup.device, tensors.torch_type(setup.dtype))
    twin = deepcopy(model)
    inputs, wanted = tensors.random(setup, *[(setup["batch"], setup["width"])] * 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=variant == FUSED.name, foreach=False)

    def step() -> None:
        optimizer.zero_grad()
        _loss(model, inputs, wanted).backward()
        optimizer.step()

    def check() -> Checked:
        """Of the first layer's gradient, which comes through all others."""
        exact = deepcopy(twin).double()
        for each, given, target in ((twin, inputs, wanted), (exact, inputs.double(), wanted.double())):
            _loss(each, given, target).backward()
        gradient, reference = (next(each.parameters()).grad for each in (twin, exact))
        depth = 2 * setup["layers"]
        return tensors.checked(setup, gradient, reference, setup["width"] + setup["batch"], depth=depth)

    return Workload(
        steps=[step],
        count=count(setup),
        arithmetic=tensors.product(setup.device, setup.dtype),
        level="dram",
        check=check,
    )


def _loss(model: Any, inputs: Any, wanted: Any) -> Any:
    return (model(inputs) - wanted).square().mean()


def needs_bytes(setup: Setup) -> int:
    """Weights, gradients, two moments, and a twin with gradients, in its own type and in FP64; what layers keep."""
    weights = setup["layers"] * setup["width"] ** 2
    kept = setup["batch"] * setup["width"] * (2 * setup["layers"] + 2)
    return weights * (6 * ELEMENT_BYTES[setup.dtype] + 16) + kept * (ELEMENT_BYTES[setup.dtype] + 8)


PROBE = Probe(
    name="training_step",
    idea="forward, backward and optimizer of a stack of linear layers",
    bound="the units for products",
    dtypes={"cpu": ("fp32",), "cuda": ("fp32", "bf16")},
    shapes={
        "cpu": {
            "tiny": {"batch": 32, "width": 64, "layers": 3},
            "small": {"batch": 256, "width": 1024, "layers": 4},
            "full": {"batch": 512, "width": 2048, "layers": 6},
        },
        "cuda": {
            "tiny": {"batch": 32, "width": 64, "layers": 3},
            "small": {"batch": 4096, "width": 4096, "layers": 8},
            "full": {"batch": 8192, "width": 8192, "layers": 8},
        },
    },
    variants=variants,
    needs_bytes=needs_bytes,
    make=make,
)
