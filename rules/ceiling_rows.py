"""The ceilings that came with the evidence, as a report has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.benchmark import Benchmark, MachineKind
from diag.model.roofline import Side


@dataclass(frozen=True)
class CeilingRow:
    """The most that a machine was seen to do of one thing, with its error and conditions."""

    machine: str
    kind: MachineKind
    uuid: str | None
    n_units: int  # cores, or SMs
    name: str  # 'DRAM', 'FP64', 'BF16 tensor', ...
    side: Side
    per_s: float
    unit: str
    error_share: float | None
    access: str | None  # 'read', 'copy', 'pinned', ...; None of arithmetic
    working_set_bytes: int | None
    sm_clock_hz: float | None
    memory_clock_hz: float | None
    repeats: int
    conditions: str
    origin: str
    formula: str
    is_disturbed: bool  # by other programs, all the time: the machine can do more


def ceiling_rows(benchmarks: Sequence[Benchmark]) -> list[CeilingRow]:
    """In the order of the sources, and in each as it was measured."""
    return [row for each in benchmarks for row in _of_one(each)]


def _of_one(benchmark: Benchmark) -> list[CeilingRow]:
    machine = benchmark.machine
    return [
        CeilingRow(
            machine=machine.name,
            kind=machine.kind,
            uuid=machine.uuid,
            n_units=machine.n_units,
            name=each.ceiling.name,
            side="compute" if each.ceiling.level is None else "memory",
            per_s=each.ceiling.per_s,
            unit=each.ceiling.unit,
            error_share=each.ceiling.error_share,
            access=each.ceiling.access,
            working_set_bytes=each.working_set_bytes,
            sm_clock_hz=each.ceiling.sm_clock_hz,
            memory_clock_hz=each.ceiling.memory_clock_hz,
            repeats=each.repeats,
            conditions=each.conditions,
            origin=each.ceiling.origin,
            formula=each.ceiling.formula,
            is_disturbed=each.is_disturbed,
        )
        for each in benchmark.ceilings
    ]
