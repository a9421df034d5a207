"""What probes of several ranks found, as text: collectives with the line through them, patterns, who says what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from diag.model import units
from diag.model.benchmark import Benchmark, Measurement
from diag.model.collective import volume_bytes
from diag.model.collective_fit import NoFit, fit
from diag.model.communication import CollectiveMeasurement, Communication
from diag.render.table import Table
from diag.render.text import Page


def render_collectives(benchmark: Benchmark, *, width: int = 80, color: bool = False) -> str:
    """Sections, each a table with its notes; a blank line between them."""
    page = Page(width, color)
    return "\n\n".join("\n".join(page.table(table)) for table in _tables(benchmark)) + "\n"


def _tables(benchmark: Benchmark) -> Iterator[Table]:
    if benchmark.collectives:
        yield _collectives(benchmark.collectives)
    if benchmark.measurements:
        yield _patterns(benchmark.measurements)
    patterns = {each.probe for each in benchmark.measurements}
    if said := [each for each in benchmark.communications if each.probe in patterns or each.n_ranks_otherwise]:
        yield _communications(said)


def _collectives(measured: Sequence[CollectiveMeasurement]) -> Table:
    rows = [
        [
            units.size(each.size_bytes),
            units.time(each.median_ns),
            "none" if each.n_wrong == 0 else f"{each.n_wrong:,}",
            units.quantity(each.bus_bytes_per_s, "bytes/s"),
            units.quantity(each.algorithm_bytes_per_s, "bytes/s"),
            f"{units.time(each.p5_ns)}–{units.time(each.p95_ns)}",
            each.op.words,
        ]
        for each in measured
    ]
    header = ("size", "median", "wrong", "bus", "algorithm", "p5–p95", "collective")
    conditions = dict.fromkeys(each.conditions for each in measured)
    notes = [*_lines(measured), *(f"Conditions: {said}." for said in conditions)]
    return Table("Collectives: a call ends when the last rank has its result", header, rows, len(header) - 1, notes)


def _lines(measured: Sequence[CollectiveMeasurement]) -> Iterator[str]:
    """T = α + k·M/B of each collective."""
    for op, of_op in groupby(measured, key=lambda each: each.op):
        calls = list(of_op)
        line = fit([volume_bytes(op, each.size_bytes, each.n_ranks) for each in calls], [c.median_ns for c in calls])
        if isinstance(line, NoFit):
            yield f"{op.words}: no line, for {line.because}."
            continue
        bent = "" if line.is_straight else "; sizes lie off the line, so that it holds for none of them exactly"
        alpha = f"{units.time(line.latency_ns)} ± {units.time(line.latency_error_ns)}"
        bandwidth, error = (
            units.quantity(each, "bytes/s") for each in (line.bus_bytes_per_s, line.bus_error_bytes_per_s)
        )
        yield f"{op.words}: T = α + k·M/B with α = {alpha}, B = {bandwidth} ± {error}{bent}."


def _patterns(measured: Sequence[Measurement]) -> Table:
    rows = [
        [
            units.time(each.median_ns),
            f"{units.time(each.p5_ns)}–{units.time(each.p95_ns)}",
            _result(each),
            f"{each.probe} {each.variant} {each.shape}",
        ]
        for each in measured
    ]
    header = ("step", "p5–p95", "result", "pattern")
    conditions: dict[str, list[str]] = {}
    for each in measured:
        conditions.setdefault(each.conditions, []).append(f"{each.probe} {each.variant}")
    notes = [f"{', '.join(names)}: {said}." for said, names in conditions.items()]
    return Table("Patterns: a step of all ranks", header, rows, len(header) - 1, notes, wraps_names=True)


def _result(each: Measurement) -> str:
    if each.max_rel_error is None or each.tolerance is None:
        return "not checked"
    if each.max_rel_error > each.tolerance:
        return "wrong"
    return "exact" if each.tolerance == 0 else "right"


def _communications(said: Sequence[Communication]) -> Table:
    rows = [
        [
            f"{each.calls:g}",
            units.size(each.size_bytes),
            units.size(each.step_volume_bytes),
            "no" if each.is_critical else "can be",
            each.primitive.words,
            f"{of.probe} {of.variant}: {each.payload}",
        ]
        for of in said
        for each in of.signatures
    ]
    header = ("calls", "of", "volume", "hidden", "primitive", "communication")
    title = f"What rank 0 of {said[0].n_ranks} says in a step"
    return Table(title, header, rows, len(header) - 1, list(_counts(said)), wraps_names=True)


def _counts(said: Sequence[Communication]) -> Iterator[str]:
    otherwise = [each for each in said if each.n_ranks_otherwise]
    if not otherwise:
        yield "In closed form; counted on every rank while they were called: the same calls, of the same bytes."
    for each in otherwise:
        calls = ", ".join(f"{c.calls} × {c.primitive.words} of {units.size(c.size_bytes)}" for c in each.counted)
        ranks = units.count(each.n_ranks_otherwise, "rank")
        yield f"{each.probe} {each.variant}: {ranks} called otherwise; counted on rank 0: {calls or 'nothing'}."
    yield "Volume: what the busiest rank sends in a step, by an algorithm that sends the least."
