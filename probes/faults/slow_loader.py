"""The data loader decodes numbers from text in the process of the loop, while the model waits."""

from __future__ import annotations

import time
from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader, IterableDataset

from diag.probes.faults import clock
from diag.probes.faults.fault import Fault, Setting

TEXT = " ".join(str(number) for number in range(2_000))
"""Decoded in some 100 us: the grain of the injection."""


class TextSamples(IterableDataset[torch.Tensor]):
    """Samples that are decoded for as long as is asked, or come ready."""

    def __init__(self) -> None:
        self.budget_ns = 0

    def __iter__(self) -> Iterator[torch.Tensor]:
        while True:
            until_ns = time.perf_counter_ns() + self.budget_ns
            numbers = [0]
            while time.perf_counter_ns() < until_ns:
                numbers = list(map(int, TEXT.split()))
            yield torch.tensor(numbers[-1:])


class SlowLoader:
    """What a ready batch takes counts, too: it is time in the loader."""

    def __init__(self, setting: Setting) -> None:
        self.samples = TextSamples()
        self.batches = iter(DataLoader(self.samples, batch_size=None))

    def spend(self, budget_ns: int) -> int:
        self.samples.budget_ns = budget_ns
        return clock.elapsed_ns(lambda: next(self.batches))

    def close(self) -> int:
        return 0


FAULT = Fault(
    name="slow-loader",
    idea="a data loader without workers that decodes text",
    start=SlowLoader,
    on_cpu={"nsys": ("host.data_loader",), "torch": ("host.data_loader",)},
    on_gpu={"nsys": ("idle.gpu",), "torch": ("idle.gpu",)},
    tells={"host.data_loader": "data loader", "idle.gpu": "data loader"},
    range_names=("data loader", "dataloader", "train_data_loader"),
)
