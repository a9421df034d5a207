"""What NVIDIA's own reader takes for some 600,000 figures: time, and the memory of all processes together.

One report has many launches with few values each, the other few launches with a value for each instruction. Both are
real ones whose launches are repeated. Run with: make bench, or pytest -s tests/bench/bench_ncu_official.py
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.ncu_official import package
from diag.ingest.ncu_official.read import read
from diag.ingest.ncu_rep.container import Block, opened
from tests.bench import measure

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = [
    pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports"),
    pytest.mark.skipif(package.version() is None, reason="ncu-report is not installed"),
]

TIMES = {"a100-selfjoin-higgs": 860, "a100-selfjoin-14launches": 6}
"""Reports, and how often their last launch (its block holds no names) or all but the first are repeated."""


@pytest.mark.parametrize("name", TIMES)
def test_half_a_million_figures(name: str, tmp_path: Path) -> None:
    report = repeated(Path(REPORTS or "", "ncu", f"{name}.ncu-rep"), tmp_path / f"{name}.ncu-rep", TIMES[name])
    n_metrics = n_instances = n_launches = 0
    for launch in read(report).launches:
        n_launches += 1
        n_metrics += len(launch.metrics)
        n_instances += sum(len(metric.instances) for metric in launch.metrics)
    read_s = wall_s(lambda: [None for _ in read(report).launches])
    import_s = wall_s(lambda: imported(report))
    diag = Path(sys.executable).with_name("diag")
    command: list[str | Path] = [
        diag,
        "export",
        report,
        "--with-ncu-report",
        "--table",
        "launch",
        "-o",
        tmp_path / "launches.csv",
    ]
    whole = measure.run(command, os.environ | {"DIAG_CACHE": str(tmp_path / "cache")})
    n_values = n_metrics + n_instances
    print(
        f"\n{name:>25}: {n_launches:,} launches, {n_metrics:,} metrics, {n_values:,} values with their instances; "
        f"read in {read_s:.1f} s ({1e6 * read_s / n_values:.1f} µs a value), imported in {import_s:.1f} s "
        f"({1e6 * import_s / n_values:.1f} µs); as a command {whole.wall_s:.1f} s, {whole.peak_bytes / 1e6:.0f} MB",
        end="",
    )


def repeated(source: Path, target: Path, times: int) -> Path:
    """A report with its launches over and over. The blocks that bring names come once."""
    data, container = source.read_bytes(), opened(source)
    (header_bytes,) = struct.unpack_from("<I", data, 4)
    starts = [8 + header_bytes, *(block.end for block in container.blocks[:-1])]
    blocks = [(block, data[at : block.end]) for block, at in zip(container.blocks, starts, strict=True)]
    again = [raw for block, raw in blocks if block.header.n_results and not block.header.strings.strings]
    if not again:
        (again,) = ([nameless(block, data)] for block, _ in blocks if block.header.n_results)
    target.write_bytes(data + b"".join(again) * (times - 1))
    return target


def nameless(block: Block, data: bytes) -> bytes:
    """A block of results without the names that its header brings."""
    header = type(block.header)()
    header.CopyFrom(block.header)
    header.ClearField("strings")
    encoded: bytes = header.SerializeToString()
    return struct.pack("<I", len(encoded)) + encoded + data[block.start : block.end]


def imported(path: Path) -> None:
    with open_inputs([path], ImportOptions(use_cache=False, with_ncu_report=True)):
        pass


def wall_s(work: Callable[[], object]) -> float:
    """Wall time, as the workers are processes of their own."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
