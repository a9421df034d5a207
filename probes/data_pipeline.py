"""A data loader that feeds a model: who is faster keeps the other waiting, unless the loader works ahead."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from diag.kernels.operator import ELEMENT_BYTES, Count
from diag.probes.probe import Device, Probe, ProbeVariant, Setup, Workload
from diag.probes.training_step import network

IN_PROCESS = ProbeVariant("in_process", "The process that trains decodes each batch itself, before the step.")
WORKERS = ProbeVariant("workers", "Two other processes decode batches ahead.")
PINNED = ProbeVariant("pinned", "And batches come in page-locked memory, whose copies do not stop the host.")
N_WORKERS = 2


def variants(device: Device) -> Sequence[ProbeVariant]:
    return (IN_PROCESS, WORKERS) if device == "cpu" else (IN_PROCESS, WORKERS, PINNED)


class Samples:
    """Endless, each decoded when it is asked for: bytes that follow from its number, made to floats around 0."""

    def __init__(self, width: int) -> None:
        self.width = width

    def __getitem__(self, number: int) -> Any:
        import numpy as np
        import torch

        raw = np.random.default_rng(number).integers(0, 256, self.width, dtype=np.uint8)
        return torch.from_numpy(raw.astype(np.float32)) / 127.5 - 1


class Numbers:
    """A sampler without end."""

    def __init__(self, batch: int) -> None:
        self.batch = batch

    def __iter__(self) -> Iterator[list[int]]:
        return (list(range(i, i + self.batch)) for i in itertools.count(0, self.batch))


def count(setup: Setup) -> Count:
    """Of the model, forward and backward; and of what is decoded, the bytes that come in and go to the model."""
    batch, width, layers = setup["batch"], setup["width"], setup["layers"]
    size = ELEMENT_BYTES[setup.dtype]
    formula = f"FLOPs: 2 x batch x width² x (3 x layers - 1); bytes: batch x width x (1 + {size})"
    return Count(2 * batch * width**2 * (3 * layers - 1), batch * width, batch * width * size, formula)


def make(setup: Setup, variant: str) -> Workload:
    import torch
    from torch.utils.data import DataLoader

    torch.manual_seed(setup.seed)
    model = network(setup["width"], setup["layers"]).to(setup.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader: Any = DataLoader(
        Samples(setup["width"]),
        batch_sampler=Numbers(setup["batch"]),
        num_workers=0 if variant == IN_PROCESS.name else N_WORKERS,
        pin_memory=variant == PINNED.name,
    )
    batches = [iter(loader)]

    def step() -> None:
        inputs = next(batches[0]).to(setup.device, non_blocking=True)
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()

    # Workers end when nothing holds their iterator any more.
    return Workload(steps=[step], count=count(setup), close=batches.clear)


def needs_bytes(setup: Setup) -> int:
    """Weights and gradients, what layers keep, and two batches of each worker."""
    kept = setup["batch"] * setup["width"] * (2 * setup["layers"] + 2 * N_WORKERS)
    return (2 * setup["layers"] * setup["width"] ** 2 + kept) * ELEMENT_BYTES[setup.dtype]


PROBE = Probe(
    name="data_pipeline",
    idea="a data loader that feeds a model",
    bound="the slower of both",
    dtypes={"cpu": ("fp32",), "cuda": ("fp32",)},
    shapes={
        "cpu": {
            "tiny": {"batch": 8, "width": 64, "layers": 2},
            "small": {"batch": 128, "width": 1024, "layers": 2},
            "full": {"batch": 256, "width": 2048, "layers": 2},
        },
        "cuda": {
            "tiny": {"batch": 8, "width": 64, "layers": 2},
            "small": {"batch": 256, "width": 4096, "layers": 4},
            "full": {"batch": 512, "width": 4096, "layers": 8},
        },
    },
    variants=variants,
    needs_bytes=needs_bytes,
    make=make,
)
