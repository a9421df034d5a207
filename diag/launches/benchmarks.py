"""Benchmarks as they lie in the case: machines, what they do at most, and what probes did on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from diag.errors import InputError
from diag.model.benchmark import Benchmark
from diag.store.case import Case

KIND = "benchmark"
"""Of the sources."""


def load_benchmarks(case: Case) -> Sequence[Benchmark]:
    """One for each source of this kind, in the order of the sources.

    Raises InputError for a case that holds words in their place that no reader of diag writes.
    """
    return [_benchmark(case, source.id, source.tool_version) for source in case.sources if source.kind == KIND]


def _benchmark(case: Case, source_id: int, diag_version: str | None) -> Benchmark:
    machine, ceilings, measurements = (
        [dict(row) for row in case.rows(f"SELECT * FROM {table} WHERE source_id = ? ORDER BY id", (source_id,))]
        for table in ("machine", "ceiling", "measurement")
    )
    try:
        benchmark = msgspec.convert(
            {
                "machine": _machine(machine[0]),
                "ceilings": [_ceiling(row) for row in ceilings],
                "measurements": [_measurement(row) for row in measurements],
                "diag_version": diag_version or "",
            },
            Benchmark,
        )
    except (msgspec.ValidationError, IndexError) as error:
        raise InputError(f"{case.path} holds no benchmark that diag knows ({error}). Import the file again.") from error
    if not benchmark.is_possible:
        raise InputError(f"{case.path} holds figures that nobody can have measured. Import the file again.")
    return benchmark


def _machine(row: Mapping[str, Any]) -> dict[str, Any]:
    capability = (row["compute_major"], row["compute_minor"])
    return {**row, "compute_capability": None if None in capability else capability}


def _ceiling(row: Mapping[str, Any]) -> dict[str, Any]:
    ceiling = {**row, "arithmetic": _arithmetic(row), "source": "diag calibrate"}
    return {**row, "ceiling": ceiling, "is_disturbed": bool(row["is_disturbed"])}


def _measurement(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "arithmetic": _arithmetic(row), "is_disturbed": bool(row["is_disturbed"])}


def _arithmetic(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Booleans are numbers in SQLite."""
    if row["input_type"] is None:
        return None
    return {
        "input": row["input_type"],
        "accumulator": row["accumulator_type"],
        "is_tensor": bool(row["is_tensor"]),
        "is_sparse": bool(row.get("is_sparse")),
    }
