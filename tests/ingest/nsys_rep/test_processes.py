"""Processes, threads and private texts, in reports that are built field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from diag.ingest.nsys_rep.processes import thread_rows
from tests.builders.nsys_report import Report, message, text
from tests.ingest.nsys_rep.conversion import converted_build, rows

VM = 1 << 48


def global_pid(pid: int) -> int:
    return VM + (pid << 24)


def process(pid: int, **fields: Any) -> dict[int, Any]:
    """An event that describes a process: `_5` is its field 5."""
    return {1: 27, 113: {1: 5, 2: global_pid(pid), **{int(name[1:]): value for name, value in fields.items()}}}


def test_a_process_is_called_by_its_name_else_by_its_path(tmp_path: Path) -> None:
    events = [
        process(10, _5=b"/a/b"),
        process(11, _6=b"name"),
        process(12, _5=b"/a/b", _6=b"name"),
        process(13, _5=b"", _6=b""),
        process(14, _7=b"/an/executable"),  # has neither
        process(12, _5=b"/c", _6=b"renamed"),
    ]
    assert rows(converted_build(Report(events), tmp_path), "PROCESSES") == [
        (global_pid(10), 10, b"/a/b"),
        (global_pid(11), 11, b"name"),
        (global_pid(12), 12, b"name"),
        (global_pid(13), 13, b""),
        (global_pid(12), 12, b"renamed"),
    ]


def test_nothing_of_a_process_remains_unread(tmp_path: Path) -> None:
    every = process(10, _4=0, _5=b"/a", _6=b"a", _7=b"/a", _8=b"/", _9=[b"x", b"y"], _11=64, _12=1, _13=0, _14=1)
    export = converted_build(Report([every], strings=[b"A=1\0B=2"]), tmp_path)
    assert rows(export, "DIAG_READING") == [(1, 1, 0, 0, b"")]
    assert rows(export, "DIAG_UNREAD") == []


def test_names_of_threads(tmp_path: Path) -> None:
    thread = global_pid(10) + 11
    threads = message({1: [{2: 0, 3: 20, 4: thread}, {2: 1, 4: thread + 1}, {2: 1, 3: -5, 4: thread}]})
    export = converted_build(Report([], strings=[b"main", b"loader"], behind_strings=[threads]), tmp_path)
    assert rows(export, "ThreadNames") == [(0, 20, thread), (1, None, thread + 1), (1, -5, thread)]


def test_outputs_of_processes_are_named_but_not_told(tmp_path: Path) -> None:
    output = {1: global_pid(10), 2: 1, 3: 2}
    strings = [b"a", b"/logs/pid_10_stdout.log", b"what the program printed", b""]
    newer = {b"UI Data": text(6, b"2024.6.2.25-246234924588v0")}
    report = Report([], strings=strings, outputs=[output, {**output, 2: 99, 3: 3}], sections=newer)
    export = converted_build(report, tmp_path)
    assert rows(export, "ProcessStreams") == [(global_pid(10), 1, 2), (global_pid(10), 99, 3)]
    assert rows(export, "ANALYSIS_FILE") == [(0, strings[1], 2, global_pid(10)), (1, None, 3, global_pid(10))]
    assert rows(export, "StringIds") == [(1, strings[1])]
    assert b"what the program printed" not in export.read_bytes()


def test_environments_stay_in_the_report(tmp_path: Path) -> None:
    events = [process(10, _6=b"a", _13=1), process(11, _6=b"b", _13=2), process(12, _6=b"c")]
    marks = [{1: 34, 102: {1: 34, 2: 5, 9: global_pid(10), 12: 0}}]
    report = Report([*events, *marks], strings=[b"loss=0.5", b"TOKEN=secret", b"A=secret\0B=2"])
    export = converted_build(report, tmp_path)
    assert rows(export, "StringIds") == [(0, b"loss=0.5")]
    assert b"secret" not in export.read_bytes()


def test_environments_stay_in_a_report_whose_processes_are_lost(tmp_path: Path) -> None:
    export = converted_build(Report([], strings=[b"A=secret\0B=2", b"ONLY=secret"]), tmp_path)
    assert not rows(export, "StringIds")


def test_a_name_that_a_program_also_printed_is_a_name(tmp_path: Path) -> None:
    """Equal texts are one string."""
    mark = {1: 34, 102: {1: 34, 2: 5, 9: global_pid(10), 12: 0}}
    report = Report([mark], strings=[b"train_step"], outputs=[{1: global_pid(10), 2: 9, 3: 0}])
    assert rows(converted_build(report, tmp_path), "StringIds") == [(0, b"train_step")]


def test_names_that_are_lost_can_be_told_apart(tmp_path: Path) -> None:
    """Not by numbers, which are left out where ranges are grouped by name."""
    marks = [{1: 34, 102: {1: 34, 2: 5, 9: global_pid(10), 12: text_id}} for text_id in (0, 26, 700)]
    names = rows(converted_build(Report(marks), tmp_path), "StringIds")
    assert names == [(0, b"(lost name a)"), (26, b"(lost name ba)"), (700, b"(lost name bay)")]


def test_arguments_stay_in_the_report(tmp_path: Path) -> None:
    export = converted_build(Report([process(10, _5=b"/a", _9=[b"--token", b"secret"])]), tmp_path)
    assert b"secret" not in export.read_bytes()


@given(st.binary(max_size=200))
def test_other_bytes_are_rows_or_no_message(data: bytes) -> None:
    try:
        described = list(thread_rows(data))
    except DecodeError:
        return
    assert all(set(columns) == set(table.columns) for table, columns in described)
