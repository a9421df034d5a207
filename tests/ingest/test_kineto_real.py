"""The Kineto reader against real traces, each figure computed apart from it with `json.load`."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from diag.ingest import json_stream
from diag.store.case import Case
from tests.builders.kineto import imported

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
NAMES = [
    "cpu-only-rank.json.gz",
    "event-sync.json.gz",
    "gpu-only.json.gz",
    "h100-bert-small.json.gz",
    "job128-rank0.json.gz",
    "job128-rank1.json.gz",
    "nccl-message-sizes.json.gz",
    "resnet50-workers0.pt.trace.json.gz",
    "resnet50-workers4.pt.trace.json.gz",
    "vllm-graph-execution.json.gz",
]
KIND_OF = {
    "Kernel": "kernel",
    "kernel": "kernel",
    "Memcpy": "copy",
    "gpu_memcpy": "copy",
    "Memset": "memset",
    "gpu_memset": "memset",
}
API = {"Runtime", "cuda_runtime", "cuda_driver"}
RANGE_OF = {"Operator": "operator", "cpu_op": "operator", "user_annotation": "annotation", "python_function": "python"}

Json = dict[str, Any]


@pytest.fixture(scope="module", params=NAMES)
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Json, Case]]:
    """A real trace as `json` sees it, its numbers exact, and as the reader does."""
    if not REPORTS:
        pytest.skip("DIAG_REAL_REPORTS does not name the folder of real reports")
    path = Path(REPORTS, "kineto", request.param)
    with gzip.open(path) as file:
        document = json.load(file, parse_float=Decimal)
    with imported(path, tmp_path_factory.mktemp("case")) as case:
        yield document, case


def slices(document: Json, categories: Mapping[str, str] | set[str]) -> list[Json]:
    return [event for event in document["traceEvents"] if event["ph"] == "X" and event.get("cat") in categories]


def times(event: Json) -> tuple[int, int]:
    start, duration = event["ts"] * 1000, event["dur"] * 1000
    assert start == int(start)
    return int(start), int(start + duration)


def union_ns(intervals: list[tuple[int, int]]) -> int:
    total, reached = 0, -(2**63)
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reached)) if end > reached else 0
        reached = max(reached, end)
    return total


def test_gpu_operations_equal_those_of_the_file(real: tuple[Json, Case]) -> None:
    document, case = real
    expected = Counter(
        (KIND_OF[event["cat"]], event["name"], *times(event), event["args"]["stream"], event["args"]["correlation"])
        for event in slices(document, KIND_OF)
    )
    rows = case.rows("SELECT o.*, n.text FROM gpu_op o JOIN name n ON n.id = o.name_id")
    found = Counter(
        (row["kind"], row["text"], row["start_ns"], row["end_ns"], row["stream"], row["correlation"]) for row in rows
    )
    assert found == expected


def test_busy_time_equals_that_of_the_file(real: tuple[Json, Case]) -> None:
    document, case = real
    expected = union_ns([times(event) for event in slices(document, KIND_OF)])
    rows = case.rows("SELECT start_ns, end_ns FROM gpu_op")
    assert union_ns([(row["start_ns"], row["end_ns"]) for row in rows]) == expected


def test_calls_equal_those_of_the_file(real: tuple[Json, Case]) -> None:
    document, case = real
    expected = Counter(
        (event["name"], *times(event), event["pid"], int(event["tid"]), event["args"]["correlation"])
        for event in slices(document, API)
    )
    rows = case.rows(
        "SELECT n.text, a.start_ns, a.end_ns, p.pid, t.tid, a.correlation FROM api_call a"
        " JOIN name n ON n.id = a.name_id JOIN thread t ON t.id = a.thread_id JOIN process p ON p.id = t.process_id"
    )
    assert Counter(tuple(row) for row in rows) == expected


def test_every_operation_is_linked_to_the_call_that_launched_it(real: tuple[Json, Case]) -> None:
    document, case = real
    calls = {event["args"]["correlation"] for event in slices(document, API)}
    expected = sum(event["args"]["correlation"] in calls for event in slices(document, KIND_OF))
    found = case.value(
        "SELECT COUNT(*) FROM gpu_op o WHERE EXISTS (SELECT 1 FROM api_call a JOIN thread t ON t.id = a.thread_id"
        " WHERE a.correlation = o.correlation AND t.process_id = o.process_id)"
    )
    assert found == expected


def test_ranges_equal_those_of_the_file(real: tuple[Json, Case]) -> None:
    document, case = real
    expected = Counter(
        (
            "annotation" if event["name"].startswith("ProfilerStep#") else RANGE_OF[event["cat"]],
            event["name"],
            *times(event),
            int(event["tid"]),
            event["args"].get("External id") or None if event["cat"] != "python_function" else None,
        )
        for event in slices(document, RANGE_OF)
    )
    rows = case.rows(
        "SELECT r.kind, n.text, r.start_ns, r.end_ns, t.tid, r.external_id FROM cpu_range r"
        " JOIN name n ON n.id = r.name_id JOIN thread t ON t.id = r.thread_id"
    )
    assert Counter(tuple(row) for row in rows) == expected


def test_shapes_equal_those_of_the_file(real: tuple[Json, Case]) -> None:
    document, case = real
    shapes = (
        event["args"].get("Input Dims", event["args"].get("Input dims", []))
        for event in slices(document, {"cpu_op", "Operator"})
    )
    expected = Counter(str(shape) for shape in shapes if any(character.isdigit() for character in str(shape)))
    rows = case.rows("SELECT shapes FROM cpu_range WHERE shapes IS NOT NULL")
    assert Counter(str(json.loads(row["shapes"])) for row in rows) == expected
    assert case.sources[0].capabilities["shapes"] == (sum(expected.values()) or None)


def test_nothing_of_a_real_trace_is_left_out(real: tuple[Json, Case]) -> None:
    _, case = real
    assert case.notes(1) == []


def test_capabilities_count_rows(real: tuple[Json, Case]) -> None:
    document, case = real
    counts = Counter(KIND_OF[event["cat"]] for event in slices(document, KIND_OF))
    has_gpu = bool(counts)
    facts = case.sources[0].capabilities
    for kind in ("kernel", "copy", "memset"):
        assert facts[kind] == (counts[kind] if has_gpu else None)
    assert facts["sync"] == (len(slices(document, {"cuda_sync"})) or None)
    assert facts["api"] == (len(slices(document, API)) or None)
    assert [facts[fact] for fact in ("graph", "os_call", "sched", "cpu_sample", "diagnostic")] == [None] * 5


def test_clock_and_rank(real: tuple[Json, Case]) -> None:
    document, case = real
    (source,) = case.sources
    numbers = [event[field] for event in slices(document, {**KIND_OF, **RANGE_OF}) for field in ("ts", "dur")]
    assert source.time_resolution_ns == (1000 if all(number == int(number) for number in numbers) else 1)
    assert source.clock_offset_ns == document.get("baseTimeNanoseconds", 0)
    assert source.rank == document.get("distributedInfo", {}).get("rank")


def test_devices(real: tuple[Json, Case]) -> None:
    document, case = real
    described = document.get("deviceProperties", [])
    assert case.value("SELECT COUNT(*) FROM device") == len(described)
    used = {event["args"]["device"] for event in slices(document, KIND_OF)}
    rows = case.rows("SELECT ordinal, device_id FROM process_device")
    assert {row["ordinal"] for row in rows} == used
    assert all((row["device_id"] is not None) == bool(described) for row in rows)


@pytest.mark.skipif(not REPORTS, reason="DIAG_REAL_REPORTS does not name the folder of real reports")
def test_resnet_has_operations_that_last_no_tick(tmp_path: Path) -> None:
    with imported(Path(REPORTS or "", "kineto", "resnet50-workers0.pt.trace.json.gz"), tmp_path) as case:
        assert case.value("SELECT COUNT(*) FROM gpu_op") == 10_015
        assert case.value("SELECT COUNT(*) FROM gpu_op WHERE end_ns = start_ns") == 292
        assert case.value("SELECT COUNT(*) FROM gpu_op WHERE copy_kind = 'h2d' AND src_memory = 'pageable'") == 12
        assert case.value("SELECT name FROM process") == "python"


@pytest.mark.skipif(not REPORTS, reason="DIAG_REAL_REPORTS does not name the folder of real reports")
def test_a_real_trace_in_small_chunks_gives_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(REPORTS or "", "kineto", "nccl-message-sizes.json.gz")
    dumps = []
    for size in (json_stream.CHUNK_BYTES, 5000):
        monkeypatch.setattr(json_stream, "CHUNK_BYTES", size)
        folder = tmp_path / str(size)
        folder.mkdir()
        with imported(path, folder) as case:
            select = "SELECT start_ns, end_ns, correlation FROM {} ORDER BY 1, 2, 3"
            dumps.append(
                [[tuple(row) for row in case.rows(select.format(table))] for table in ("gpu_op", "api_call")]
                + [[row["text"] for row in case.rows("SELECT text FROM name ORDER BY 1")]]
            )
    assert dumps[0] == dumps[1]
