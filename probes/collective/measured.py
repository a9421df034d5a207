"""Probes of several ranks from beginning to end: their correctness, their times, what was counted, what is traced."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from diag.errors import ToolMissing
from diag.model import units
from diag.model.benchmark import Benchmark, Measurement
from diag.model.collective import Primitive
from diag.model.communication import CollectiveMeasurement, Communication
from diag.probes.collective.collective_probe import CollectiveProbe, Exercise
from diag.probes.collective.request import Request
from diag.probes.collective.traced import Declared, record
from diag.probes.collective.world import World
from diag.probes.measure import PLANS, Times
from diag.probes.probe import Checked, Shape

_IN_PLACE = frozenset({Primitive.ALL_REDUCE, Primitive.BROADCAST})
_REDUCING = frozenset({Primitive.ALL_REDUCE, Primitive.REDUCE_SCATTER})


@dataclass(frozen=True)
class Turn:
    """One probe in one variant and one size."""

    probe: CollectiveProbe
    variant: str
    shape: Shape

    @property
    def name(self) -> str:
        return f"{self.probe.name} {self.variant} {self.shape_text}"

    @property
    def shape_text(self) -> str:
        return " ".join(f"{name}={size}" for name, size in self.shape.items())


@dataclass
class Results:
    """So far; the same on every rank, but for what is declared and counted, which is of this rank."""

    measurements: list[Measurement] = field(default_factory=list)
    collectives: list[CollectiveMeasurement] = field(default_factory=list)
    communications: list[Communication] = field(default_factory=list)
    traces: list[Declared] = field(default_factory=list)
    refusals: list[ToolMissing] = field(default_factory=list)

    def benchmark(self, world: World) -> Benchmark:
        from diag import __version__
        from diag.probes.machine import machine_of

        return Benchmark(
            machine_of(world.device),
            measurements=self.measurements,
            diag_version=__version__,
            collectives=self.collectives,
            communications=self.communications,
        )


def turns_of(probes: Sequence[CollectiveProbe], request: Request, world: World) -> Sequence[Turn]:
    return [
        Turn(probe, variant.name, size)
        for probe in probes
        for variant in probe.variants
        if request.variant in (None, variant.name)
        for size in probe.sizes({**probe.shapes[world.device][request.scale], **request.shape})
    ]


def measured(
    world: World, probes: Sequence[CollectiveProbe], request: Request, progress: Callable[[str], None]
) -> Results:
    """Every rank calls it with the same request. Raises ToolMissing where the backend has none of what is asked."""
    results = Results()
    turns = turns_of(probes, request, world)
    for _, of_variant in groupby(turns, key=lambda turn: (turn.probe.name, turn.variant)):
        try:
            for turn in of_variant:
                progress(turn.name)
                last = turn, measure(world, turn, request, results)
        except ToolMissing as error:
            results.refusals.append(error)
            continue
        if request.trace is not None:
            (turn, exercise) = last
            traced = record(world, exercise, turn.probe.name, turn.variant, request.trace, request.late)
            results.traces.append(traced)
    if not (results.measurements or results.collectives):
        raise results.refusals[0]
    return results


def measure(world: World, turn: Turn, request: Request, results: Results) -> Exercise:
    from diag.probes.collective.timing import timed

    exercise = turn.probe.make(world, turn.shape, turn.variant)
    checked = exercise.check()
    times = timed(world, exercise.step, PLANS[request.scale], turn.name)
    said = _communication(world, turn, exercise)
    conditions = _conditions(world, exercise)
    if turn.probe.is_primitive:
        results.collectives.append(_collective(world, exercise, checked, times, conditions))
        last = results.communications[-1] if results.communications else None
        if last is not None and last.probe == said.probe:
            results.communications.pop()  # of all sizes, one shows it
    else:
        results.measurements.append(_measurement(turn, exercise, checked, times, conditions))
    results.communications.append(said)
    return exercise


def _collective(
    world: World, exercise: Exercise, checked: Checked, times: Times, conditions: str
) -> CollectiveMeasurement:
    (signature,) = exercise.signatures
    primitive = signature.primitive
    return CollectiveMeasurement(
        op=primitive,
        backend=world.backend,
        n_ranks=world.n_ranks,
        n_hosts=world.place.n_hosts,
        dtype="fp32",
        reduction="sum" if primitive in _REDUCING else None,
        size_bytes=round(signature.size_bytes),
        is_in_place=primitive in _IN_PLACE,
        repeats=len(times.device_ns),
        median_ns=times.median_ns,
        p5_ns=times.percentile_ns(0.05),
        p95_ns=times.percentile_ns(0.95),
        n_wrong=round(checked.max_abs_error),
        conditions=conditions,
    )


def _measurement(turn: Turn, exercise: Exercise, checked: Checked, times: Times, conditions: str) -> Measurement:
    return Measurement(
        probe=turn.probe.name,
        variant=turn.variant,
        shape=turn.shape_text,
        repeats=len(times.device_ns),
        median_ns=times.median_ns,
        p5_ns=times.percentile_ns(0.05),
        p95_ns=times.percentile_ns(0.95),
        conditions=conditions,
        dtype="fp32",
        work_formula=". ".join(f"{each.primitive}: {each.formula}" for each in exercise.signatures),
        max_abs_error=checked.max_abs_error,
        max_rel_error=checked.max_rel_error,
        tolerance=checked.tolerance,
    )


def _communication(world: World, turn: Turn, exercise: Exercise) -> Communication:
    from diag.probes.collective.observed import as_rows, counted, declared

    calls = counted(exercise.step)
    otherwise = world.total(calls != declared(exercise.signatures))
    return Communication(
        probe=turn.probe.name,
        variant=turn.variant,
        shape=turn.shape_text,
        n_ranks=world.n_ranks,
        signatures=exercise.signatures,
        counted=as_rows(calls),
        n_ranks_otherwise=round(otherwise),
    )


def _conditions(world: World, exercise: Exercise) -> str:
    """Also what this backend does in the place of what it was asked for."""
    from diag.probes.collective.observed import carried_out_as
    from diag.probes.machine import conditions

    said = [f"{world.backend}, {world.n_ranks} ranks on {units.count(world.place.n_hosts, 'host')}"]
    cores = len(os.sched_getaffinity(0))
    if world.device == "cpu" and world.place.n_local > cores:
        said.append(f"{world.place.n_local} ranks share {units.count(cores, 'core')}")
    asked = {each.primitive for each in exercise.signatures}
    if world.backend == "gloo" and Primitive.REDUCE_SCATTER in asked:
        done = carried_out_as(exercise.step)
        if "all_reduce" in done and Primitive.ALL_REDUCE not in asked:
            said.append("gloo does an all-reduce in the place of each reduce-scatter, and each rank keeps its part")
    said += filter(None, [exercise.remark(), conditions(world.device)])
    return ", ".join(said)
