"""Reader of the CSV that `nvidia-smi --query-gpu=timestamp,index,… --format=csv --loop-ms=…` prints.

A header names the columns, with units in brackets: `timestamp, index, utilization.gpu [%], clocks.current.sm [MHz]`.
A row is what one GPU said at one time: `2026/03/01 12:00:00.200, 0, 97 %, 1410 MHz`; with `nounits` without the units.
What a GPU does not tell is a word in brackets, like `[N/A]` (nvidia-smi manual, "SELECTIVE QUERY OPTIONS").
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from diag.errors import InputError
from diag.ingest.input_file import InputFile
from diag.ingest.reader import Reader
from diag.store.case import Case

KIND = "smi-log"
QUERY = "--query-gpu=timestamp,index,utilization.gpu,clocks.sm,clocks.max.sm"
CAPTURE = f"nvidia-smi {QUERY} --format=csv --loop-ms=200 > gpus.csv"

_COLUMN = re.compile(r"(?P<name>[a-z][a-z0-9_.]*)(?: \[(?P<unit>[^]]+)\])?")
_VALUE = re.compile(r"(-?\d+(?:\.\d+)?)(?: \S+)?")
_TIME = "%Y/%m/%d %H:%M:%S.%f"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the log does not say its time zone


@dataclass(frozen=True)
class Column:
    name: str
    unit: str | None


@dataclass(frozen=True)
class Sample:
    gpu: int  # as nvidia-smi numbers them
    time_ns: int  # since 1970, by the clock and in the time zone of the host
    column: Column
    value: float


def looks_like(_: Path, head: bytes) -> bool:
    columns = _columns(head.partition(b"\n")[0].decode("utf-8", "replace"))
    return [column.name for column in columns[:2]] == ["timestamp", "index"]


def read(file: InputFile, case: Case) -> None:
    """Adds a log to the case, each column of each GPU as a series of samples. Raises InputError without any sample."""
    with file.data.open(encoding="utf-8", errors="replace", newline="") as lines:
        samples, n_damaged = _samples(lines)
    if not samples:
        raise InputError(f"{file.path} holds no counters of a GPU. Log some: {CAPTURE}")
    source_id = case.add_source(
        kind=file.kind, path=str(file.path), sha256=file.sha256, size_bytes=file.size_bytes, tool="nvidia-smi",
        time_resolution_ns=1_000_000, capture_start_ns=min(sample.time_ns for sample in samples),
        capture_end_ns=max(sample.time_ns for sample in samples),
    )  # fmt: skip
    names = case.intern(sample.column.name for sample in samples)
    series = {
        (gpu, column): case.insert_returning_id(
            "counter_series",
            {"source_id": source_id, "device": gpu, "name_id": names[column.name], "unit": column.unit},
        )
        for gpu, column in dict.fromkeys((sample.gpu, sample.column) for sample in samples)
    }
    case.insert(
        "counter",
        (
            {"series_id": series[sample.gpu, sample.column], "time_ns": sample.time_ns, "value": sample.value}
            for sample in samples
        ),
    )
    notes = [f"{n_damaged} rows are damaged and were left out."] if n_damaged else []
    case.finish_source(source_id, {KIND: len(samples)}, notes)


def _samples(lines: Iterable[str]) -> tuple[list[Sample], int]:
    """All samples, and how many rows are none."""
    rows = csv.reader(lines, skipinitialspace=True)
    columns = _columns(", ".join(next(rows, ())))
    samples: list[Sample] = []
    n_damaged = 0
    for row in rows:
        try:
            samples += _row(columns, row)
        except ValueError:
            n_damaged += 1
    return samples, n_damaged


def _columns(header: str) -> list[Column]:
    matches = (_COLUMN.fullmatch(cell.strip()) for cell in header.split(","))
    return [Column(match["name"], match["unit"]) if match else Column("", None) for match in matches]


def _row(columns: Sequence[Column], row: Sequence[str]) -> list[Sample]:
    """Raises ValueError for a row that is cut short."""
    time, gpu, *cells = row
    time_ns = (datetime.strptime(time, _TIME) - _EPOCH) // timedelta(microseconds=1) * 1000  # noqa: DTZ007
    return [
        Sample(int(gpu), time_ns, column, float(value[1]))
        for column, cell in zip(columns[2:], cells, strict=True)
        if column.name and (value := _VALUE.fullmatch(cell.strip()))
    ]


READER = Reader(KIND, "log of nvidia-smi", looks_like, read)
