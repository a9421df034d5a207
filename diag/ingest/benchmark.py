"""Reader of `diag.benchmark/1`: what `diag calibrate` and `diag probe run` wrote."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from diag.errors import InputError
from diag.ingest.input_file import InputFile
from diag.model.benchmark import SCHEMA, Benchmark, MeasuredCeiling, Measurement
from diag.model.ceilings import Arithmetic
from diag.model.communication import CollectiveMeasurement
from diag.store.case import Case

MOST_BYTES = 64 << 20
"""Of a file: a calibration has fifty ceilings, a run of all probes a hundred measurements."""

_MARK = b'"diag.benchmark/'


def looks_like_benchmark(head: bytes) -> bool:
    """Of any version, be it one that `load` refuses. What diag writes has the schema first, others may not."""
    return head.lstrip()[:1] == b"{" and _MARK in head


_MEASURE_AGAIN = "Measure again: diag calibrate -o FILE, or diag probe run NAME -o FILE"


def load(path: Path) -> Benchmark:
    """Raises InputError when the file is too large, no such file, or holds a rate or a time that cannot be."""
    if path.stat().st_size > MOST_BYTES:
        raise InputError(f"{path} is larger than a benchmark can be ({MOST_BYTES >> 20} MiB). Name another file.")
    try:
        benchmark = msgspec.json.decode(path.read_bytes(), type=Benchmark)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error).rstrip(".")
        raise InputError(f"{path} is no benchmark of diag ({said}). {_MEASURE_AGAIN}") from error
    if not benchmark.is_possible:
        raise InputError(f"{path} holds figures that nobody can have measured. {_MEASURE_AGAIN}")
    return benchmark


def read(file: InputFile, case: Case) -> int:
    """Adds a file to the case, inside the caller's transaction, and returns the source's id."""
    benchmark = load(file.data)
    machine = benchmark.machine
    source_id = case.add_source(
        kind=file.kind, path=str(file.path), sha256=file.sha256, size_bytes=file.size_bytes, tool="diag",
        tool_version=benchmark.diag_version, schema_version=SCHEMA, host=machine.host, time_resolution_ns=1,
    )  # fmt: skip
    capability = machine.compute_capability or (None, None)
    machine_id = case.insert_returning_id(
        "machine",
        {
            "source_id": source_id,
            "kind": machine.kind,
            "name": machine.name,
            "uuid": machine.uuid,
            "host": machine.host,
            "n_units": machine.n_units,
            "compute_major": capability[0],
            "compute_minor": capability[1],
        },
    )
    ids = {"source_id": source_id, "machine_id": machine_id}
    case.insert("ceiling", [{**ids, **_ceiling(each)} for each in benchmark.ceilings])
    case.insert("measurement", [{**ids, **_measurement(each)} for each in benchmark.measurements])
    case.insert("comm_measurement", [_collective(source_id, each) for each in benchmark.collectives])
    captured = {
        "ceiling": len(benchmark.ceilings) or None,
        "measurement": len(benchmark.measurements) or None,
        "comm_measurement": len(benchmark.collectives) or None,
    }
    case.finish_source(source_id, captured)
    return source_id


def _ceiling(each: MeasuredCeiling) -> Mapping[str, Any]:
    ceiling = each.ceiling
    return {
        **_arithmetic(ceiling.arithmetic),
        "is_sparse": None if ceiling.arithmetic is None else int(ceiling.arithmetic.is_sparse),
        "level": ceiling.level,
        "access": ceiling.access,
        "working_set_bytes": each.working_set_bytes,
        "per_s": ceiling.per_s,
        "unit": ceiling.unit,
        "error_share": ceiling.error_share,
        "sm_clock_hz": ceiling.sm_clock_hz,
        "memory_clock_hz": ceiling.memory_clock_hz,
        "repeats": each.repeats,
        "origin": ceiling.origin,
        "formula": ceiling.formula,
        "conditions": each.conditions,
        "is_disturbed": int(each.is_disturbed),
    }


def _measurement(each: Measurement) -> Mapping[str, Any]:
    names = (
        "probe", "variant", "dtype", "shape", "repeats", "median_ns", "p5_ns", "p95_ns", "end_to_end_ns", "flops",
        "n_bytes", "work_formula", "level", "baseline_ns", "max_abs_error", "max_rel_error", "tolerance", "conditions",
    )  # fmt: skip
    values = {name: getattr(each, name) for name in names}
    return {**_arithmetic(each.arithmetic), **values, "is_disturbed": int(each.is_disturbed)}


def _collective(source_id: int, each: CollectiveMeasurement) -> Mapping[str, Any]:
    names = (
        "backend", "n_ranks", "n_hosts", "dtype", "reduction", "size_bytes", "repeats", "n_wrong", "p5_ns", "p95_ns",
        "conditions",
    )  # fmt: skip
    values = {name: getattr(each, name) for name in names}
    of_call = {"op": each.op.value, "is_in_place": int(each.is_in_place), "time_ns": each.median_ns}
    return {"source_id": source_id, **of_call, **values}


def _arithmetic(of: Arithmetic | None) -> Mapping[str, Any]:
    return {
        "input_type": of.input if of else None,
        "accumulator_type": of.accumulator if of else None,
        "is_tensor": int(of.is_tensor) if of else None,
    }
