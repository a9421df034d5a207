"""What a report of a million NVTX events takes: to decode, to turn into an export, and nsys to do the same."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from diag.ingest.nsys_rep.container import Container
from diag.ingest.nsys_rep.convert import write_export
from diag.ingest.nsys_rep.events import EventDecoder
from diag.ingest.nsys_rep.nvtx import NvtxReader
from diag.ingest.nsys_report import find_nsys
from tests.ingest.captures import annotated_program, capture_of

EVENTS = 1_000_000
SOURCE = Path(__file__).parent.parent / "ingest" / "nsys_rep" / "programs" / "many_annotations.c"


def test_a_million_nvtx_events(tmp_path: Path) -> None:
    nsys = find_nsys()
    if nsys is None:
        pytest.skip("no nsys is installed")
    program = annotated_program(nsys.path, SOURCE, tmp_path)
    options = ["--trace=nvtx", "--sample=none", "--cpuctxsw=none"]
    report = capture_of(nsys.path, tmp_path / "capture", [program, str(EVENTS)], options=options)
    decoded = _seconds(lambda: _decode(report))
    ours = _seconds(lambda: write_export(report, tmp_path / "ours.sqlite"))
    export = ["--type=sqlite", "--quiet=true", f"--output={tmp_path / 'theirs.sqlite'}"]
    theirs = _seconds(lambda: subprocess.run([nsys.path, "export", *export, report], check=True, capture_output=True))
    print(f"\n{EVENTS:,} NVTX events: decoded {decoded:.2f} s, exported {ours:.2f} s, by nsys {theirs:.2f} s")


def _decode(report: Path) -> None:
    decoder = EventDecoder([], in_lockstep=[NvtxReader()])
    with Container(report) as container:
        for block in container.blocks():
            for _ in decoder.rows(block):
                pass
    assert decoder.n_read == EVENTS + 1  # and a domain


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
