"""What reports of millions of events take: to decode, to write as an export, to import, and to answer a whole report.

NVTX events come from a capture, if an nsys is installed, which then shows what its own export costs. Work of the GPU,
calls and samples are built. Run with: make bench, or pytest -s tests/bench/bench_nsys_rep.py
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import overload

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.nsys_rep.container import Container
from diag.ingest.nsys_rep.convert import event_readers, write_export
from diag.ingest.nsys_rep.events import EventDecoder
from diag.ingest.nsys_tool import find_nsys
from tests.bench import measure
from tests.builders.nsys_report import Report, Value, message
from tests.ingest.captures import annotated_program, capture_of

N = 1_000_000
ANNOTATIONS = Path(__file__).parent.parent / "ingest" / "nsys_rep" / "programs" / "many_annotations.c"
PROCESS = (1 << 48) + (4242 << 24)
THREADS = [PROCESS + 4242 + i for i in range(8)]
NAMES = tuple(b"name_%d" % i for i in range(600))
Event = Mapping[int, Value]


@dataclass(frozen=True)
class Made(Sequence[Event]):
    """Events that are made when they are asked for: millions would not fit into memory."""

    n: int
    event: Callable[[int], Event]

    def __len__(self) -> int:
        return self.n

    @overload
    def __getitem__(self, at: int) -> Event: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Event]: ...
    def __getitem__(self, at: int | slice) -> Event | Sequence[Event]:
        return [self.event(i) for i in range(*at.indices(self.n))] if isinstance(at, slice) else self.event(at)


def gpu_event(i: int) -> Event:
    """A launch, the kernel that it launched, and a call that follows, again and again."""
    step, which = divmod(i, 3)
    at = 10**9 + 9_000 * step
    if which == 1:
        times = {1: at + 5_000, 2: at + 5_000 + 3_000 + step % 500}
        return {1: 79, 107: {**times, 3: 7_000 + step, 4: 0, 5: 1, 6: 7, 7: 3, 8: PROCESS, 9: 0, 101: kernel(step)}}
    times = {1: at, 2: at + 2_000 + step % 300} if which == 0 else {1: at + 3_000, 2: at + 3_800}
    correlation = 7_000 + step if which == 0 else 0
    return {1: 48, 108: {**times, 3: correlation, 6: which // 2, 7: 500 + which, 8: 0, 13: THREADS[0]}}


def kernel(i: int) -> bytes:
    """As CUPTI describes one on an H200."""
    name, blocks = i % 40, 64 << i % 8
    grid = {10: blocks, 11: 1, 12: 1, 13: 256, 14: 1, 15: 1, 16: 0, 17: 114_816, 18: 0, 19: 250_871_808, 20: i + 1}
    more = {21: 32, 22: 135_168, 23: 1, 24: 1, 26: 0, 28: 0, 31: 0, 32: 0, 33: 0, 35: 0, 36: 0}
    return message({1: name, 2: name + 100, 3: name + 200, 8: name, **grid, **more})


def os_call(i: int) -> Event:
    """One of twenty calls waits so long that its stack is taken."""
    at = 10**9 + 20_000 * (i // 8)
    base = {1: at, 2: at + 5_000 + i % 900, 3: 0, 6: 27, 7: 300 + i % 30, 8: 0, 13: THREADS[i % 8]}
    return {1: 75, 108: {**base, **({15: [*STACKS[i % 97]]} if i % 20 == 0 else {}), 20: 1}}


def thread_event(i: int) -> Event:
    """A sample, then a core that takes a thread up or lets it go. Nine of ten stacks were seen before."""
    i, is_switch = divmod(i, 2)
    at = 10**9 + 125_000 * (i // 8)
    if is_switch:
        return {1: 41, 106: {1: at, 3: i % 8, 4: i // 8 % 2, 5: 1, 6: THREADS[i % 8], 7: 1}}
    stack = STACKS[i % 97] if i % 10 else [*STACKS[i % 97][:-1], frame(i % 20_000)]
    how = {5: {1: 1, 2: 224_000 + i % 999}, 6: 1, 8: 9, 10: 1, 11: THREADS[i % 8], 12: 1, 14: 5_120}
    return {1: 65, 104: {1: at, 3: i % 8, 4: stack, **how}}


def frame(i: int) -> bytes:
    return message({1: 400 + i % 150, 2: 590 + i % 8, 8: 548_489_656_824 + 16 * i, 9: 1})


STACKS = [[frame(7 * stack + depth) for depth in range(10)] for stack in range(97)]
BUILT = {
    "1 M kernels, 2 M calls": Made(3 * N, gpu_event),
    "1 M OS calls": Made(N, os_call),
    "1 M samples, 1 M switches": Made(2 * N, thread_event),
}


@dataclass(frozen=True)
class Taken:
    """CPU time of this process; of the whole report wall time and memory."""

    n_events: int
    decode_s: float
    write_s: float
    import_s: float
    report: measure.Cost

    def __str__(self) -> str:
        each = f"{self.decode_s:7.2f} {self.decode_s / self.n_events * 1e6:6.2f} {self.write_s:7.2f}"
        report = f"{self.report.wall_s:8.2f} {self.report.peak_bytes / 1e6:8.0f}"
        return f"{self.n_events:10,} {each} {self.import_s:8.2f} {report}"


HEADING = (
    f"{'':>25} {'events':>10} {'decode s':>9} {'µs':>4} {'write s':>7} {'import s':>8} {'report s':>8} {'peak MB':>8}"
)


@pytest.fixture(scope="module", autouse=True)
def heading() -> None:
    print(f"\n{HEADING}", end="")


@pytest.mark.parametrize("name", BUILT)
def test_events_that_are_built(name: str, tmp_path: Path) -> None:
    report = tmp_path / "run.nsys-rep"
    report.write_bytes(Report(BUILT[name], strings=NAMES).content())
    show(name, taken_by(report, tmp_path))


def test_a_million_nvtx_events_and_what_nsys_takes(tmp_path: Path) -> None:
    nsys = find_nsys()
    if nsys is None:
        pytest.skip("no nsys is installed")
    program = annotated_program(nsys.path, ANNOTATIONS, tmp_path)
    options = ["--trace=nvtx", "--sample=none", "--cpuctxsw=none"]
    report = capture_of(nsys.path, tmp_path / "capture", [program, str(N)], options=options)
    show("1 M NVTX events", taken_by(report, tmp_path))

    export = tmp_path / "theirs.sqlite"
    options = ["--type=sqlite", "--quiet=true", f"--output={export}"]
    by_nsys = measure.run([nsys.path, "export", *options, report], os.environ)
    exported = f"exported in {by_nsys.wall_s:.2f} s, {by_nsys.peak_bytes / 1e6:.0f} MB"
    show("the same by nsys", f"{exported}; that imported in {cpu_s(lambda: imported(export)):.2f} s")


def show(name: str, told: object) -> None:
    print(f"\n{name:>25} {told}", end="")


def taken_by(report: Path, folder: Path) -> Taken:
    with Container(report) as container:
        n_events = container.n_events
    decode_s = cpu_s(lambda: decode(report))
    converted_s = cpu_s(lambda: write_export(report, folder / "ours.sqlite", share_stacks=True))
    imported_s = cpu_s(lambda: imported(report))
    diag = Path(sys.executable).with_name("diag")
    whole = measure.run([diag, "report", report], os.environ | {"DIAG_CACHE": str(folder / "cache")})
    return Taken(n_events, decode_s, converted_s - decode_s, imported_s, whole)


def decode(report: Path) -> None:
    decoder = EventDecoder(event_readers(share_stacks=True))
    with Container(report) as container:
        for block in container.blocks():
            for _ in decoder.rows(block):
                pass
        assert decoder.n_events == container.n_events


def imported(path: Path) -> None:
    with open_inputs([path], ImportOptions(use_cache=False)):
        pass


def cpu_s(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
