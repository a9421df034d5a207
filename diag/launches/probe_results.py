"""What probes measured, source by source, each held against the ceilings of its machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diag.launches.benchmarks import KIND
from diag.model.benchmark import Benchmark, Machine, MeasuredCeiling
from diag.model.standing import Standing, is_same, standing
from diag.store.case import Case


@dataclass(frozen=True)
class ProbeResults:
    """Of one benchmark."""

    source_id: int
    machine: Machine
    standings: Sequence[Standing]  # in the order of the file


def probe_results(case: Case, benchmarks: Sequence[Benchmark], earlier: Sequence[Benchmark] = ()) -> list[ProbeResults]:
    """Of the sources that hold measurements. Ceilings of the case's own `benchmarks` go before `earlier` ones."""
    sources = [source.id for source in case.sources if source.kind == KIND]
    return [
        ProbeResults(
            source_id,
            each.machine,
            [
                standing(one, each.machine, _ceilings(each.machine, benchmarks) or _ceilings(each.machine, earlier))
                for one in each.measurements
            ],
        )
        for source_id, each in zip(sources, benchmarks, strict=True)
        if each.measurements
    ]


def _ceilings(machine: Machine, benchmarks: Sequence[Benchmark]) -> list[MeasuredCeiling]:
    return [ceiling for each in benchmarks if is_same(each.machine, machine) for ceiling in each.ceilings]
