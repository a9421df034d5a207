"""What reports of 600,000 metric values take to read and to import: launches of real reports, again and again.

Run with: make bench, or pytest -s tests/bench/bench_ncu.py. It needs DIAG_REAL_REPORTS.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.ncu_rep.container import Container, opened
from diag.ingest.ncu_rep.magic import MAGIC
from diag.ingest.ncu_rep.messages import BlockHeader, FileHeader, ProfileResult
from diag.ingest.ncu_rep.read import read
from tests.bench import measure

REPORTS = Path(os.environ.get("DIAG_REAL_REPORTS", ""), "ncu")
NAMES = ("cuda-course", "a10g-esmm-basic", "a10g-esmm-no-rules", "a100-selfjoin-full")
N_METRICS = 600_000

IMPORT = """
import sys, time
from pathlib import Path
from diag.ingest.importer import ImportOptions, open_inputs
started = time.process_time()
with open_inputs([Path(sys.argv[1])], ImportOptions(use_cache=False)):
    print(time.process_time() - started)
"""
"""A process of its own, so that its memory can be told."""


@dataclass(frozen=True)
class Numbers:
    """Of a report: an instance is a value of one instruction, opcode or size, of which a metric may have hundreds."""

    launches: int
    metrics: int
    instances: int


HEADING = " ".join(
    f"{column:>{width}}"
    for column, width in {
        "": 20,
        "launches": 8,
        "metrics": 8,
        "instances": 9,
        "read s": 7,
        "import s": 8,
        "µs/metric": 9,
        "µs/value": 8,
        "peak MB": 7,
    }.items()
)


@pytest.fixture(scope="module", autouse=True)
def heading() -> None:
    if not REPORTS.is_dir():
        pytest.skip("DIAG_REAL_REPORTS names no folder of real reports")
    print(f"\n{HEADING}", end="")


@pytest.mark.parametrize("name", NAMES)
def test_600_000_metric_values(name: str, tmp_path: Path) -> None:
    """Per metric, with the time that its instances take; and per value, be it of a metric or an instance."""
    show(name, REPORTS / f"{name}.ncu-rep", tmp_path)


def test_600_000_metric_values_without_instances(tmp_path: Path) -> None:
    bare = tmp_path / "bare.ncu-rep"
    bare.write_bytes(repeated(opened(REPORTS / "a10g-esmm-no-rules.ncu-rep"), 1, with_instances=False))
    show("no instances", bare, tmp_path)


def show(name: str, one: Path, folder: Path) -> None:
    n_times = -(-N_METRICS // numbers_of(one).metrics)
    many = folder / f"many-{one.name}"
    many.write_bytes(repeated(opened(one), n_times))

    started = time.process_time()
    numbers = numbers_of(many)
    read_s = time.process_time() - started

    imported = measure.run([sys.executable, "-c", IMPORT, many], os.environ)
    import_s = float(imported.output)
    counted = f"{numbers.launches:8,} {numbers.metrics:8,} {numbers.instances:9,} {read_s:7.2f} {import_s:8.2f}"
    each = f"{1e6 * import_s / numbers.metrics:9.2f} {1e6 * import_s / (numbers.metrics + numbers.instances):8.2f}"
    print(f"\n{name:>20} {counted} {each} {imported.peak_bytes / 1e6:7.0f}", end="")


def numbers_of(path: Path) -> Numbers:
    n_launches = n_metrics = n_instances = 0
    for launch in read(path).launches:
        n_launches += 1
        n_metrics += len(launch.metrics)
        n_instances += sum(len(metric.instances) for metric in launch.metrics)
    return Numbers(n_launches, n_metrics, n_instances)


def repeated(report: Container, n_times: int, *, with_instances: bool = True) -> bytes:
    """The report with its launches so often: first what it says of itself, then its code, then they."""
    about = []
    for block in report.blocks:
        header = BlockHeader(details=block.header.details, strings=block.header.strings, process=block.header.process)
        about.append(_prefixed(header.SerializeToString()))
    code, launches = [], []
    for kind, block, message in report.messages():
        if kind == "source":
            code.append(_block(message, process=block.header.process, n_sources=1))
        else:
            launch = message if with_instances else _bare(message)
            launches.append(_block(launch, process=block.header.process, n_results=1))
    start = MAGIC + _prefixed(FileHeader(version=report.version).SerializeToString())
    return b"".join([start, *about, *code, *launches * n_times])


def _bare(launch: bytes) -> bytes:
    result = ProfileResult.FromString(launch)
    for metric in result.metrics:
        metric.ClearField("elements")
    return bytes(result.SerializeToString())


def _block(message: bytes, **header: Any) -> bytes:
    payload = _prefixed(message)
    return _prefixed(BlockHeader(payload_bytes=len(payload), **header).SerializeToString()) + payload


def _prefixed(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data
