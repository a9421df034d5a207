"""Options of captures, in reports that are built field by field, and what the reader of exports takes from them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.nsys_rep.capture import capture_rows
from tests.builders.nsys_report import Report, text
from tests.ingest.nsys_rep.conversion import converted, converted_build, rows


def with_options(options: dict[int, Any], folder: Path, version: bytes = b"2024.6.2.25-246234924588v0") -> Path:
    return converted_build(Report([], host={2: options}, sections={b"UI Data": text(6, version)}), folder)


def told(options: dict[int, Any], folder: Path) -> dict[str, list[str]]:
    """The values of each option."""
    values: dict[str, list[str]] = {}
    for name, value in rows(with_options(options, folder), "META_DATA_CAPTURE") or []:
        values.setdefault(name.decode(), []).append(value.decode())
    return values


def test_what_was_to_be_recorded(tmp_path: Path) -> None:
    types = told({2: {1: [12, 123, 4711, 127, 124]}}, tmp_path)["CAPTURE_EVENT_TYPE"]
    assert types == ["NvtxEvents", "Cuda", "OSRuntime", "Graphics"]


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (20, "COLLECT_NVTX_TRACE"),
        (21, "COLLECT_CUDA_TRACE"),
        (43, "COLLECT_GPU_MEMORY_USAGE"),
        (44, "COLLECT_UVM_CPU_PAGE_FAULTS"),
        (48, "COLLECT_UVM_GPU_PAGE_FAULTS"),
    ],
)
def test_switches_of_each_process(number: int, name: str, tmp_path: Path) -> None:
    options = told({26: [{number: 1}, {number: 0}, {}]}, tmp_path)
    assert [options[f"PROCESS_{index}:{name}"] for index in range(3)] == [["true"], ["false"], ["false"]]


@pytest.mark.parametrize(("number", "mode"), [(0, ["Graph"]), (1, ["Node"]), (2, None)])
def test_how_graphs_are_traced(number: int, mode: list[str] | None, tmp_path: Path) -> None:
    assert told({26: {49: {1: number}}}, tmp_path).get("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE") == mode


def test_numbers_and_words(tmp_path: Path) -> None:
    options = told({3: 1000, 12: {1: 7777, 2: 1, 3: 80000}, 67: {3: b"mine", 4: 1}, 69: {2: 2000000, 7: 2}}, tmp_path)
    for name, value in {
        "RATE_HZ": "1000",
        "OS_RUNTIME_OPTIONS:DURATION_THRESHOLD_NS": "7777",
        "OS_RUNTIME_OPTIONS:COLLECT_BACKTRACES": "true",
        "NVTX_OPTIONS:NVTX_DOMAIN_FILTER_STRING": "mine",
        "NVTX_OPTIONS:NVTX_DOMAIN_FILTER_MODE_INCLUDE": "true",
        "LINUX_PERF_OPTIONS:SAMPLING_PERIOD": "2000000",
        "LINUX_PERF_OPTIONS:CPU_IP_TRIGGER_TYPE": "Software",
    }.items():
        assert options[name] == [value]


def test_groups_that_were_not_set_are_not_told(tmp_path: Path) -> None:
    assert not [name for name in told({30: 1}, tmp_path) if ":" in name]


def test_command_lines_and_environments_are_not_told(tmp_path: Path) -> None:
    process = {10: b"secret-command", 11: b"--token=secret", 20: 1, 30: {1: b"TOKEN", 2: b"secret-value"}}
    assert b"secret" not in with_options({26: process}, tmp_path).read_bytes()


@given(st.binary(max_size=200))
def test_other_bytes_are_rows_or_no_message(data: bytes) -> None:
    try:
        described = list(capture_rows(data))
    except DecodeError:
        return
    assert all(set(columns) == set(table.columns) for table, columns in described)


def test_the_reader_of_exports_judges_a_capture_by_them_as_by_the_export_itself(
    real_reports: list[Path], tmp_path: Path
) -> None:
    (report,) = (path for path in real_reports if path.stem == "h200-fuser-2024.6")
    with_ours = tmp_path / "ours.sqlite"
    shutil.copyfile(report.with_suffix(".sqlite"), with_ours)
    with closing(sqlite3.connect(with_ours)) as db, db:
        db.execute("DELETE FROM META_DATA_CAPTURE")
        understood = rows(converted(report, tmp_path), "META_DATA_CAPTURE") or []
        db.executemany("INSERT INTO META_DATA_CAPTURE VALUES (CAST(? AS TEXT), CAST(? AS TEXT))", understood)
    assert judged(with_ours) == judged(report.with_suffix(".sqlite"))


def judged(export: Path) -> dict[str, Any]:
    """What an export can be asked for, and how graphs were traced."""
    with open_inputs([export], ImportOptions(use_cache=False)) as case:
        (row,) = case.rows("SELECT capabilities, graph_mode FROM source")
    return {"graph_mode": row["graph_mode"], **json.loads(row["capabilities"])}
