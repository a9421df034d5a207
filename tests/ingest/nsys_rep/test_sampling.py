"""Samples and scheduling of real reports, own captures and crafted events are what their exports say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.nsys_rep.calls import CallReader
from diag.ingest.nsys_rep.events import EventDecoder, EventReader
from diag.ingest.nsys_rep.sampling import MappingReader, SampleReader, SchedulingReader
from diag.ingest.nsys_tool import Nsys
from tests.builders.crafted_report import with_events
from tests.builders.nsys_report import message
from tests.ingest.captures import NoCapture, capture_of
from tests.ingest.nsys_rep.rows import Tables, assert_as_exported, exported_by, read, read_report, rows_of

TABLES = ("COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS", "SCHED_EVENTS")
THREAD = (1 << 48) + 5
NAME, MODULE = 1, 2


def readers() -> list[EventReader]:
    return [SampleReader(share_stacks=False), SchedulingReader(), MappingReader(), CallReader(share_stacks=False)]


def rows_of_samples(*samples: dict[int, Any]) -> Tables:
    return read(EventDecoder([SampleReader(share_stacks=False)]), [message({1: [{1: 31, 104: it} for it in samples]})])


def test_real_reports(exported_reports: Iterable[tuple[Path, Path]]) -> None:
    """Of the real reports here one has samples: 36,614, with 350,933 frames, and 1,040 switches."""
    n_rows = {}
    for report, export in exported_reports:
        ours = read_report(report, readers())
        n_rows[report.name] = [assert_as_exported(ours, export, table) for table in TABLES]
    assert n_rows.get("jetson-darknet.qdrep", [36_614, 350_933, 1040]) == [36_614, 350_933, 1040]


# ---- own captures --------------------------------------------------------------------------------------------------

SCHEDULING = "--cpuctxsw=process-tree"
CAPTURES = {
    "with calls": (
        *("--trace=osrt", "--osrt-threshold=1", "--osrt-backtrace-threshold=1"),
        *("--sample=process-tree", "--backtrace=fp", "--sampling-period=250000", SCHEDULING),
    ),
    "dwarf": ("--trace=none", "--sample=process-tree", "--backtrace=dwarf", "--samples-per-backtrace=1", SCHEDULING),
    "no stacks": ("--trace=none", "--sample=process-tree", "--backtrace=none", SCHEDULING),
    "system-wide": ("--trace=none", "--sample=system-wide", "--backtrace=fp", "--cpuctxsw=system-wide"),
}
WORK = """
import threading, time
def work(depth):
    if depth:
        return work(depth - 1) + 1
    return sum(i * i for i in range(20_000))
def rounds(n):
    for _ in range(15):
        work(n)
        time.sleep(0.0005)
threads = [threading.Thread(target=rounds, args=(n,)) for n in (2, 5, 9)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def sampled(nsys: Nsys, folder: Path, options: Sequence[str]) -> Path:
    said = subprocess.run([nsys.path, "status", "-e"], check=False, capture_output=True, text=True, timeout=60).stdout
    if "(process-tree): OK" not in said:
        pytest.skip("nsys may not sample here: nsys status -e")
    try:
        return capture_of(nsys.path, folder, [sys.executable, "-c", WORK], options=options, longest_s=8, attempts=6)
    except NoCapture:
        pytest.skip("nsys hangs whenever it samples on this machine: its agent does not notice that the program ended")


def test_own_captures(nsys: Nsys, tmp_path: Path) -> None:
    compare(sampled(nsys, tmp_path / "capture", CAPTURES["with calls"]), nsys, (*TABLES, "OSRT_API", "OSRT_CALLCHAINS"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dwarf", "no stacks", "system-wide"])
def test_other_own_captures(kind: str, nsys: Nsys, tmp_path: Path) -> None:
    compare(sampled(nsys, tmp_path / "capture", CAPTURES[kind]), nsys, TABLES)


def compare(report: Path, nsys: Nsys, tables: Sequence[str]) -> None:
    ours, export = read_report(report, readers()), exported_by(nsys, report)
    assert min(assert_as_exported(ours, export, table) for table in tables) > 0
    assert "DIAG_UNREAD" not in ours


# ---- crafted events ------------------------------------------------------------------------------------------------

SAMPLE = {1: 1000, 3: 4, 4: [{1: NAME, 2: MODULE, 8: 111}], 5: {1: 1, 2: 77}, 6: 1, 11: THREAD, 12: 1}
FLAGS = [{1: NAME, 2: MODULE, number: value} for number in (3, 4, 5, 6, 7, 8, 9) for value in (0, 1)]
SAMPLES = [
    {1: 7},
    *({**SAMPLE, number: 0} for number in (3, 6, 11)),
    {**SAMPLE, 1: -5},
    {**SAMPLE, 4: []},
    {**SAMPLE, 4: FLAGS},
    {**SAMPLE, 4: [{1: 10**6, 2: 10**6, 8: -5}]},
    {**SAMPLE, 5: []},
    {**SAMPLE, 5: [{1: 1}, {1: 1, 2: 3}]},
    {**SAMPLE, 5: [{1: 2, 2: 5}, {1: 1, 2: 6}]},
    {**SAMPLE, 5: [{1: 2, 2: 5}]},
    {**SAMPLE, 2: 1, **dict.fromkeys((7, 8, 9, 10, 14, 15, 16), 1)},
    {**SAMPLE, 12: 0, 13: 1},
    {number: value for number, value in SAMPLE.items() if number in (1, 4)},
]
SWITCH = {1: 10, 3: 4, 4: 1, 5: 1, 6: THREAD}
SWITCHES = [
    SWITCH,
    {**SWITCH, 4: 0, 5: 3, 8: 44},
    {**SWITCH, 1: -1, 3: 0, 7: 0, 9: 3, 10: 1},
    {1: 20, 2: 42, 3: 1, 4: 0, 5: 2},
]
MAPPING = {**dict.fromkeys(range(1, 11), 1), 11: {1: 1, 2: 1, 3: 1}, **dict.fromkeys(range(12, 17), 1)}


def test_crafted_events(os_calls: Path, nsys: Nsys, tmp_path: Path) -> None:
    crafted = tmp_path / "crafted.nsys-rep"
    events = [*({1: 31, 104: it} for it in SAMPLES), *({1: 41, 106: it} for it in SWITCHES), {1: 28, 109: MAPPING}]
    crafted.write_bytes(with_events(os_calls, events))
    ours, export = read_report(crafted, readers()), exported_by(nsys, crafted)
    n_rows = [assert_as_exported(ours, export, table) for table in TABLES]
    assert n_rows == [len(SAMPLES), len(SAMPLES) - 2 + len(FLAGS) - 1, len(SWITCHES)]
    ids = [row["id"] for row in rows_of(export, "COMPOSITE_EVENTS")[1]]
    assert ids == [row["id"] for row in ours["COMPOSITE_EVENTS"]]


# ---- what no export here can say -----------------------------------------------------------------------------------


def test_states_of_threads_are_in_a_column_of_later_versions() -> None:
    block = message({1: [{1: 41, 106: {1: 10, 3: 4, 4: 0, 5: 3, 6: THREAD, 8: 44}}]})
    assert read(EventDecoder([SchedulingReader()]), [block])["SCHED_EVENTS"] == [
        {"start": 10, "cpu": 4, "isSchedIn": 0, "globalTid": THREAD, "threadState": 3, "threadBlock": 44}
    ]


def test_fields_of_frames_that_are_not_understood_are_counted() -> None:
    frames = [{1: 5, 2: 6, 10: 1, 12: 1}, {1: 6, 2: 6, 10: 1}, {1: 5, 2: 6, 10: 1, 12: 1}]
    assert rows_of_samples({1: 7, 4: frames}, {1: 8, 4: frames})["DIAG_UNREAD"] == [
        {"what": "104.4.10", "count": 2},
        {"what": "104.4.12", "count": 1},
    ]


def test_mappings_have_no_rows_and_are_understood() -> None:
    decoder = EventDecoder([MappingReader()])
    assert read(decoder, [message({1: [{1: 28, 109: MAPPING}]})]) == {}
    assert (decoder.n_read, dict(decoder.unread)) == (1, {})
