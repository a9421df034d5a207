"""What `diag calibrate` found, as text: every ceiling, the latency of a launch, and under which conditions."""

from __future__ import annotations

from dataclasses import replace

from diag.model import units
from diag.model.benchmark import Benchmark, Measurement
from diag.render.ceiling_table import ceiling_table
from diag.render.text import Page
from diag.rules.ceiling_rows import ceiling_rows


def render_calibration(benchmark: Benchmark, *, width: int = 80, color: bool = False) -> str:
    table = ceiling_table(ceiling_rows([benchmark]))
    conditions = sorted({each.conditions for each in benchmark.ceilings})
    notes = [*table.notes, *map(_latency, benchmark.measurements), *(f"Conditions: {said}." for said in conditions)]
    return "\n".join(Page(width, color).table(replace(table, notes=notes))) + "\n"


def _latency(of: Measurement) -> str:
    until_done = "" if of.end_to_end_ns is None else f", {units.time(of.end_to_end_ns)} until it is known to be done"
    return f"A launch ({of.variant}): {units.time(of.median_ns)}{until_done}."
