"""What a report says beside its events stands in its export row by row, in the same order, but for what is private.

Left out of the comparison are:
- of TARGET_INFO_SYSTEM_ENV: `DeviceEnvironment`, which is the profiler's environment, and the properties that are
  messages (`properties.MESSAGES`), which nsys writes as JSON or, up to 2022, as the bytes up to the first NUL;
- `Hostname` where the export at hand was made anonymous (its host is "host");
- of META_DATA_CAPTURE: options that are not understood, and command lines and environments;
- of META_DATA_EXPORT: what only the program that exports can know;
- of StringIds: what nothing refers to, as environments of processes, and what the profiled program printed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.messages import BYTES, Field, Message, message_class
from diag.ingest.nsys_rep import properties
from diag.ingest.nsys_rep.container import Container
from diag.ingest.nsys_report import Nsys, exported
from tests.ingest.captures import capture_of
from tests.ingest.nsys_rep.conversion import columns, converted, rows

PAIRS = ("h200-fuser-2024.6", "titanrtx-nvtx-22k", "titanrtx-nvtx-only", "v100-julia-one-kernel")
SAME_IN_ORDER = (
    *("PROCESSES", "ThreadNames", "ProcessStreams", "ANALYSIS_DETAILS"),
    *("TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_NIC_INFO", "TARGET_INFO_GPU"),
    *("TARGET_INFO_CUDA_CONTEXT_INFO", "TARGET_INFO_CUDA_NULL_STREAM", "TARGET_INFO_CUDA_STREAM"),
    *("TARGET_INFO_NVTX_CUDA_DEVICE", "TARGET_INFO_NVTX_CUDA_CONTEXT", "TARGET_INFO_NVTX_CUDA_STREAM"),
)
SINCE_2023 = ("META_DATA_CAPTURE", "META_DATA_EXPORT", "ANALYSIS_FILE")
"""Tables that exports of 2023.1 lack, though their reports hold what newer ones put there."""
SECRET = "a-token-that-nobody-may-see"
PROGRAM = """
import ctypes, subprocess, sys, threading, time

def work(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME
    time.sleep(1.5)  # nsys looks at names half a second after the start

threads = [threading.Thread(target=work, args=(name,)) for name in ("loader", "writer")]
for thread in threads:
    thread.start()
children = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1.5)"]) for _ in range(2)]
print("printed by the program")
for thread in threads:
    thread.join()
for child in children:
    child.wait()
"""


@pytest.fixture(scope="module")
def own_capture(nsys: Nsys, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A capture of several processes and named threads, with a secret in their environment and arguments."""
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIAG_TEST_TOKEN", SECRET)
        yield capture_of(nsys.path, folder / "capture", [sys.executable, "-c", PROGRAM, f"--token={SECRET}"])


def nsys_export(nsys: Nsys, report: Path, folder: Path) -> Path:
    """Its export with the tables that are empty, too."""
    (folder / "copy").mkdir()
    copy = folder / "copy" / report.name  # nsys may write beside its input
    copy.write_bytes(report.read_bytes())
    command: list[str | Path] = [
        nsys.path,
        "export",
        "--type=sqlite",
        "--lazy=false",
        f"--output={folder / 'nsys.sqlite'}",
        copy,
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=240)
    return folder / "nsys.sqlite"


def assert_same(ours: Path, theirs: Path) -> None:
    for table in SAME_IN_ORDER:
        assert (rows(ours, table) or []) == (rows(theirs, table) or []), table
        assert columns(ours, table) in ([], columns(theirs, table))
    expected = [row for row in rows(theirs, "TARGET_INFO_SYSTEM_ENV") or [] if is_comparable(row)]
    known = [row for row in rows(ours, "TARGET_INFO_SYSTEM_ENV") or [] if row[3] != 619]
    assert known == expected
    assert hostname(theirs) in (b"host", hostname(ours))
    for table in SINCE_2023:
        assert rows(ours, table)
        if rows(theirs, table) is not None:
            assert set(rows(ours, table) or []) <= set(rows(theirs, table) or []), table


def is_comparable(row: tuple[Any, ...]) -> bool:
    name = row[2].decode()
    return name != "Hostname" and name not in properties.LEFT_OUT


def hostname(export: Path) -> bytes | None:
    return next((row[4] for row in rows(export, "TARGET_INFO_SYSTEM_ENV") or [] if row[2] == b"Hostname"), None)


def has_environments(report: Path) -> list[bytes]:
    """The variables of every process, `NAME=value`, and of the profiler, that a report holds."""
    property_ = Message("Property", {"number": Field(1), "value": Field(2, BYTES)})
    listed = Message("Properties", {"list": Field(1, property_, repeated=True)})
    state = Message("State", {"properties": Field(2, listed)})
    host = message_class(Message("Host", {"states": Field(1, state, repeated=True)}))
    with Container(report) as container:
        blocks = [text for text in container.strings if b"\0" in text]
        items = [item for state in host.FromString(container.host).states for item in state.properties.list]
        blocks += [item.value for item in items if properties.NAMES[item.number] == "DeviceEnvironment"]
    return [variable for block in blocks for variable in block.split(b"\0") if len(variable) > 24]


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair(name: str, real_reports: list[Path], tmp_path: Path) -> None:
    (report,) = (path for path in real_reports if path.stem == name)
    theirs = report.with_suffix(".sqlite")
    ours = converted(report, tmp_path)
    assert_same(ours, theirs)
    for table in ("PROCESSES", "TARGET_INFO_GPU", "ANALYSIS_DETAILS", "TARGET_INFO_SESSION_START_TIME"):
        assert rows(ours, table), table
    made_by = rows(theirs, "META_DATA_EXPORT") or rows(theirs, "EXPORT_META_DATA") or []
    assert set(rows(ours, "META_DATA_EXPORT") or []) <= set(made_by)


def test_options_of_the_capture_that_are_understood(real_reports: list[Path], tmp_path: Path) -> None:
    (report,) = (path for path in real_reports if path.stem == "h200-fuser-2024.6")
    told = set(rows(converted(report, tmp_path), "META_DATA_CAPTURE") or [])
    assert len(told) == 28
    assert {
        (b"CAPTURE_EVENT_TYPE", b"Cuda"),
        (b"PROCESS_0:COLLECT_GPU_MEMORY_USAGE", b"false"),
        (b"PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", b"Graph"),
    } <= told


def test_a_report_of_2021_as_nsys_exports_it(nsys: Nsys, real_reports: list[Path], tmp_path: Path) -> None:
    (report,) = (path for path in real_reports if path.stem == "jetson-darknet")
    theirs = nsys_export(nsys, report, tmp_path)
    ours = converted(report, tmp_path)
    assert_same(ours, theirs)
    assert len(rows(ours, "TARGET_INFO_CUDA_STREAM") or []) == 18


def test_a_capture_of_several_processes_and_named_threads(nsys: Nsys, own_capture: Path, tmp_path: Path) -> None:
    ours, theirs = converted(own_capture, tmp_path), nsys_export(nsys, own_capture, tmp_path)
    assert_same(ours, theirs)
    assert len(rows(ours, "PROCESSES") or []) >= 3
    strings = dict(rows(ours, "StringIds") or [])
    names = {strings[name] for name, _, _ in rows(ours, "ThreadNames") or []}
    assert {b"loader", b"writer"} <= names


def test_a_capture_has_the_strings_of_its_export_but_for_private_ones(
    nsys: Nsys, own_capture: Path, tmp_path: Path
) -> None:
    ours = dict(rows(converted(own_capture, tmp_path), "StringIds") or [])
    theirs = dict(rows(exported(own_capture, tmp_path / "nsys"), "StringIds") or [])
    assert ours.items() <= theirs.items()
    withheld = {theirs[key] for key in theirs.keys() - ours.keys()}
    assert b"printed by the program\n" in withheld
    assert any(b"\0" in text for text in withheld)


def test_secrets_of_a_capture_stay_in_it(own_capture: Path, tmp_path: Path) -> None:
    assert SECRET.encode() in b"".join(has_environments(own_capture))
    content = converted(own_capture, tmp_path).read_bytes()
    assert SECRET.encode() not in content
    assert b"printed by the program" not in content


def test_no_environment_of_a_real_report_reaches_its_export(real_reports: list[Path], tmp_path: Path) -> None:
    for report in real_reports:
        variables = has_environments(report)
        assert variables
        content = converted(report, tmp_path).read_bytes()
        assert [variable for variable in variables if variable in content] == []
