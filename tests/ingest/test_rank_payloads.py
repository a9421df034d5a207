"""Ranks of Nsight Systems reports, told by NCCL's payloads."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.job import Job
from diag.timeline.joined import traces_of
from tests.builders.nsys_export import NsysExport
from tests.ingest.test_collectives import DOMAIN, INIT, REDUCE, payload, with_schemas

OPTIONS = ImportOptions(use_cache=False)
N_CALLS, PERIOD_NS, WORK_NS = 20, 1_000_000, 200_000
SIZE_BYTES = 1 << 20


def record(export: NsysExport, main: object, rank: int, ahead_ns: int, late_ns: int) -> None:
    """All-reduces of one rank of two; it starts `late_ns` after it could, and they end together."""
    gpu = main.process.gpu()  # type: ignore[attr-defined]
    begin = struct.pack("<Qiii4x", 0xABC, 2, rank, rank)
    main.range("ncclCommInitRank", 0, 10, domain=DOMAIN, binaryData=payload(INIT, begin))  # type: ignore[attr-defined]
    for number in range(1, N_CALLS + 1):
        at = number * PERIOD_NS + number * number * 500 + ahead_ns
        body = payload(REDUCE, struct.pack("<QQi4x", 0xABC, SIZE_BYTES, 0))
        main.range("ncclAllReduce", at, at + 100, domain=DOMAIN, binaryData=body)  # type: ignore[attr-defined]
        main.launch(  # type: ignore[attr-defined]
            gpu, called=at + 50, start=at + 10_000 + late_ns, end=at + 110_000 + WORK_NS, name="ncclDevKernel_AllReduce"
        )


def reports(folder: Path) -> list[Path]:
    """Rank 1 starts 100 µs later, and its clock is 7 ms ahead."""
    paths = []
    for rank, (ahead_ns, late_ns) in enumerate([(0, 0), (7_000_000, 100_000)]):
        export, main = with_schemas()
        record(export, main, rank, ahead_ns, late_ns)
        paths.append(export.write(folder / f"{rank}.sqlite"))
    return paths


def test_two_reports_become_two_ranks_on_one_axis(tmp_path: Path) -> None:
    with open_inputs(reports(tmp_path), OPTIONS) as case:
        assert [(s.rank, s.rank_origin, s.world_size) for s in case.sources] == [(0, "payload", 2), (1, "payload", 2)]
        first, second = case.sources
        assert second.clock_offset_ns - first.clock_offset_ns == -7_000_000
        (arrivals,) = Job(case, traces_of(case)).side_by_side.arrivals
        assert arrivals.matched.group.size == 2
        assert arrivals.matched.size_bytes.tolist() == [SIZE_BYTES] * N_CALLS
        assert arrivals.last_ranks().tolist() == [1] * N_CALLS
        assert arrivals.late_by_ns == pytest.approx([100_000] * N_CALLS, abs=2)


def test_processes_of_one_report_are_ranks_of_their_own(tmp_path: Path) -> None:
    export, main = with_schemas()
    other = export.process(pid=101).thread()
    record(export, main, 0, 0, 0)
    record(export, other, 1, 0, 100_000)
    with open_inputs([export.write(tmp_path / "a.sqlite")], OPTIONS) as case:
        assert case.sources[0].rank is None
        side = Job(case, traces_of(case)).side_by_side
        assert [(s.rank, s.rank_origin, s.pid) for s in side.summaries] == [(0, "payload", 100), (1, "payload", 101)]
        (arrivals,) = side.arrivals
        assert arrivals.last_ranks().tolist() == [1] * N_CALLS
        assert side.clocks.shift_ns.tolist() == [0, 0]
