"""Times of a recording, in reports built field by field. Expected values are those that nsys 2022.4 exports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from diag.ingest.nsys_rep.recording import recording_rows
from tests.builders.nsys_report import Report
from tests.ingest.nsys_rep.conversion import converted_build, rows

VM = 1 << 48
STATE = {1: b"Local (CLI)", 3: VM}
# Of a capture of 2022: most offsets are negative, in two's complement of 64 bits.
OFFSETS = {
    (9, 10): b"0",
    (7, 1): b"-15400010118",
    (3, 11): b"18446744073709551615",
    (3, 9): b"16744480985073398434",
    (1, 3): b"18446642624448801984",
}
UTC_NS = 1702364553296912932


def clocks(offsets: dict[tuple[int, int], bytes]) -> dict[int, Any]:
    return {1: [{1: a, 2: b, 5: offset, 6: b"Offset"} for (a, b), offset in offsets.items()]}


def start_time(offsets: dict[tuple[int, int], bytes], folder: Path) -> list[tuple[Any, ...]] | None:
    export = converted_build(Report([], host={1: STATE, 16: clocks(offsets)}), folder)
    return rows(export, "TARGET_INFO_SESSION_START_TIME")


def details(host: dict[int, Any], folder: Path) -> list[tuple[Any, ...]] | None:
    return rows(converted_build(Report([], host={1: STATE, **host}), folder), "ANALYSIS_DETAILS")


def test_utc_and_local_time(tmp_path: Path) -> None:
    assert start_time(OFFSETS, tmp_path) == [(UTC_NS, b"2023-12-12T07:02:33", b"2023-12-12T07:02:33")]


@pytest.mark.parametrize(
    ("offset", "local"),
    [(b"28800000000000", b"2023-12-11T23:02:33"), (b"18446711673709551616", b"2023-12-12T16:02:33")],
)
def test_local_time_west_and_east_of_greenwich(offset: bytes, local: bytes, tmp_path: Path) -> None:
    assert start_time({**OFFSETS, (9, 10): offset}, tmp_path) == [(UTC_NS, b"2023-12-12T07:02:33", local)]


def test_without_a_time_zone_only_utc_is_known(tmp_path: Path) -> None:
    offsets = {clocks: offset for clocks, offset in OFFSETS.items() if clocks != (9, 10)}
    assert start_time(offsets, tmp_path) == [(UTC_NS, b"2023-12-12T07:02:33", None)]


@pytest.mark.parametrize("lost", [(7, 1), (1, 3), (3, 9)])
def test_without_a_way_to_utc_no_time_is_told(lost: tuple[int, int], tmp_path: Path) -> None:
    assert start_time({clocks: offset for clocks, offset in OFFSETS.items() if clocks != lost}, tmp_path) is None


@pytest.mark.parametrize("offset", [b"", b"soon", b"9" * 5000, b"1500000000000000000000"])
def test_an_offset_that_is_no_number_tells_no_time(offset: bytes, tmp_path: Path) -> None:
    assert start_time({**OFFSETS, (3, 9): offset}, tmp_path) is None


@pytest.mark.parametrize(
    ("host", "row"),
    [
        ({17: 15400010118, 18: 24025298723, 19: 24025298723}, (8625288605, 15400010118, 24025298723)),
        ({17: 142323021866, 18: 142927627653, 19: 143015700853}, (604605787, 142323021866, 142927627653)),
        ({17: 15400010118, 19: 24025298723}, (8625288605, 15400010118, 24025298723)),
        # With samples at a rate of 10 kHz, as in 2021: periods of 0.1 ms.
        ({2: {3: 10000}, 17: 233479744, 18: 3993632192}, (3760200000, 233400000, 3993600000)),
        ({2: {3: 1000}, 17: 233479744, 18: 3993632192}, (3760000000, 233000000, 3993000000)),
        ({2: {3: 1 << 62}, 17: 5, 18: 7}, (2, 5, 7)),
        ({2: {3: -1}, 17: 5, 18: 7}, (2, 5, 7)),
    ],
)
def test_how_long_a_recording_lasted(host: dict[int, Any], row: tuple[int, int, int], tmp_path: Path) -> None:
    assert details(host, tmp_path) == [(VM, *row)]


@pytest.mark.parametrize("host", [{17: 50, 18: 40}, {18: 40}, {17: -(1 << 63), 18: (1 << 63) - 1}, {}])
def test_a_recording_without_a_beginning_before_its_end_has_no_details(host: dict[int, Any], tmp_path: Path) -> None:
    assert details(host, tmp_path) is None


@given(st.binary(max_size=200))
def test_other_bytes_are_rows_or_no_message(data: bytes) -> None:
    try:
        told = list(recording_rows(data))
    except DecodeError:
        return
    assert all(set(columns) == set(table.columns) for table, columns in told)
