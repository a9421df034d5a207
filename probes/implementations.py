"""By what an operator is carried out: on a CPU by PyTorch, on a GPU by the Triton kernels of `diag.kernels`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diag.kernels.operator import Operator
from diag.probes.probe import Device, ProbeVariant


@dataclass(frozen=True)
class OnCpu:
    idea: str
    run: Callable[..., Any]  # takes the inputs, then what it may write to


def variants_of(operator: str, on_cpu: Mapping[str, OnCpu]) -> Callable[[Device], Sequence[ProbeVariant]]:
    """By device; both go from naive to good."""

    def variants(device: Device) -> Sequence[ProbeVariant]:
        if device == "cpu":
            return [ProbeVariant(name, each.idea) for name, each in on_cpu.items()]
        return [ProbeVariant(each.name, each.idea, each.dtypes) for each in kernels(operator).variants]

    return variants


def kernels(operator: str) -> Operator:
    """Loads PyTorch and Triton."""
    from diag.kernels.catalogue import operators

    return operators()[operator]
