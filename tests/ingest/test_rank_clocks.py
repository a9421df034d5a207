"""Ranks of a job on one axis: what an import stores of their clocks and of what told their ranks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diag.export import axis
from diag.export.perfetto import trace_of
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.rank_names import rank_of_environment, rank_of_file_name
from diag.store.case import Case
from tests.builders.nsys_export import NsysExport
from tests.builders.pairs import TorchTrace
from tests.builders.rank_job import BASE_NS, MS, RankJob

OPTIONS = ImportOptions(use_cache=False)


def ends_on_axis(case: Case) -> list[list[int]]:
    """Of each source, the ends of its collectives with the stored offset."""
    return [
        [row["t"] for row in case.rows(_ENDS, (source.id,))]
        for source in sorted(case.sources, key=lambda s: s.rank or 0)
    ]


_ENDS = """
    SELECT g.end_ns + s.clock_offset_ns AS t
      FROM collective c JOIN gpu_op g ON g.id = c.gpu_op_id JOIN source s ON s.id = c.source_id
     WHERE s.id = ?
     ORDER BY g.end_ns
"""


def test_offsets_are_stored_with_their_error(tmp_path: Path) -> None:
    offsets = {1: 5 * MS, 2: -3_000_000_000, 3: 40}
    job = RankJob(offset_ns=offsets, end_noise_ns=1_000)
    with open_inputs([job.write(tmp_path / "job")], OPTIONS) as case:
        by_rank = {source.rank: source for source in case.sources}
        for rank in (1, 2):
            source = by_rank[rank]
            assert source.clock_error_ns is not None
            assert 1_000 < source.clock_error_ns < 12_000
            assert source.clock_offset_ns == pytest.approx(BASE_NS - offsets[rank], abs=source.clock_error_ns)
        assert by_rank[3].clock_offset_ns == BASE_NS  # off by less than can be told
        assert by_rank[0].clock_error_ns is None
        assert "is moved by" in " ".join(case.notes(by_rank[2].id))
        assert "agrees with the first rank's within" in " ".join(case.notes(by_rank[3].id))
        for ends in zip(*ends_on_axis(case), strict=True):
            assert max(ends) - min(ends) < 20_000


def test_a_drift_is_stored_and_its_effect_is_in_the_error(tmp_path: Path) -> None:
    job = RankJob(n_steps=60, drift={1: 50e-6}, end_noise_ns=200)
    with open_inputs([job.write(tmp_path / "job")], OPTIONS) as case:
        source = next(source for source in case.sources if source.rank == 1)
        assert source.clock_drift == pytest.approx(50e-6, rel=0.05)
        first, *_, last = case.rows(_ENDS, (source.id,))
        half_ns = (last["t"] - first["t"]) / 2
        assert source.clock_error_ns == pytest.approx(50e-6 * half_ns, rel=0.4)
        assert "it gains" in " ".join(case.notes(source.id))


def test_exports_show_ranks_on_the_common_axis(tmp_path: Path) -> None:
    job = RankJob(n_ranks=2, offset_ns={1: 300 * MS})
    with open_inputs([job.write(tmp_path / "job")], OPTIONS) as case:
        text = "".join(trace_of(case, axis.parts(case, None), []))
    events = json.loads(text)["traceEvents"]
    ends: dict[int, list[float]] = {}
    for event in events:
        if event.get("ph") == "X" and "AllReduce" in event["name"]:
            ends.setdefault(event["pid"], []).append(event["ts"] + event["dur"])
    first, second = (sorted(times) for times in ends.values())
    assert first == pytest.approx(second, abs=0.01)  # µs


def test_traces_that_share_no_collective_keep_their_clocks(tmp_path: Path) -> None:
    paths = []
    for rank in range(2):
        trace = TorchTrace(pid=100 + rank, distributedInfo={"rank": rank, "world_size": 2})
        trace.kernel("gemm", 0, 1000)
        paths.append(trace.write(tmp_path / f"{rank}.json"))
    with open_inputs(paths, OPTIONS) as case:
        assert [source.clock_error_ns for source in case.sources] == [None, None]
        assert [source.rank_origin for source in case.sources] == ["distributedInfo"] * 2


def test_the_environment_of_nsys_tells_the_rank_and_nothing_else_of_it_is_kept(tmp_path: Path) -> None:
    export = NsysExport()
    gpu = export.process().gpu()
    gpu.kernel(0, 100)
    export.insert("TARGET_INFO_SYSTEM_ENV", name="DeviceEnvironment", value="TOKEN=secret;RANK=3;WORLD_SIZE=8")
    with open_inputs([export.write(tmp_path / "a.sqlite")], OPTIONS) as case:
        (source,) = case.sources
        assert (source.rank, source.rank_origin, source.world_size) == (3, "environment", 8)
        assert b"secret" not in case.path.read_bytes()


def test_the_rank_of_a_launcher_is_not_that_of_its_children(tmp_path: Path) -> None:
    export = NsysExport()
    for pid in (100, 101):
        export.process(pid).gpu().kernel(0, 100)
    export.insert("TARGET_INFO_SYSTEM_ENV", name="DeviceEnvironment", value="RANK=0;WORLD_SIZE=2")
    with open_inputs([export.write(tmp_path / "a.sqlite")], OPTIONS) as case:
        assert (case.sources[0].rank, case.sources[0].rank_origin) == (None, None)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank3.json", 3),
        ("trace_rank12.pt.trace.json.gz", 12),
        ("report_r7.nsys-rep", 7),
        ("run-rank_0.sqlite", 0),
        ("r2.sqlite", 2),
        ("node1_4711.pt.trace.json", None),
        ("frank3.json", None),
        ("gpu0.json", None),
        ("rank123456789012.json", None),
    ],
)
def test_ranks_in_file_names(name: str, rank: int | None) -> None:
    assert rank_of_file_name(f"job/{name}") == rank


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        (b"SLURM_PROCID=5;SLURM_NTASKS=16", (5, 16)),
        (b"RANK=1;SLURM_PROCID=5", (1, None)),
        (b"LOCAL_RANK=1;XRANK=2;RANK=x", (None, None)),
        (b"RANK=99999999", (None, None)),
        (b"WORLD_SIZE=4", (None, None)),
        (b"\xff\xfe;RANK=2", (2, None)),
        (None, (None, None)),
    ],
)
def test_ranks_in_environments(environment: object, told: tuple[int | None, int | None]) -> None:
    assert rank_of_environment(environment) == told
