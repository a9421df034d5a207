"""What each file of this folder says of its fault: `FAULT = KernelFault(…)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from diag.kernels.operator import Build
from diag.model.inspection import CompiledKernel


@dataclass(frozen=True)
class KernelFault:
    """A kernel and its sick twin: the same work on the same data, but for the fault.

    `dose` is a number of `doses`, `is_sick` chooses the twin. At each dose, both do the same work.
    """

    name: str  # of the file: 'register_spills'
    idea: str  # what is wrong and what it costs, in one sentence
    rules: tuple[str, ...]  # that must fire on it once it ran: of a trace (kernels.…), of a profile (ncu.…)
    dose: str  # what the dose counts
    doses: Sequence[int]  # the mildest first
    symptom: str  # what `proof` returns, with its unit
    clean: float  # what `proof` returns of the healthy twin
    inputs: Callable[[int, str], Any]  # (dose, device) → the tensor that `run` takes
    run: Callable[[Any, int, bool], Any]  # (tensor, dose, is_sick) → a tensor; launches the kernel
    reference: Callable[[Any, int], Any]  # (tensor, dose) → what both twins return, with PyTorch alone
    builds: Callable[[int, bool], Sequence[Build]]  # (dose, is_sick)
    proof: Callable[[CompiledKernel, int, bool], float]  # (one of `builds`, dose, is_sick) → the symptom
