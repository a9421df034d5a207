"""The seven questions: what answers each with yes, with no, and not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.checklist import Answer, checklist
from diag.ranks.hang import Cause, Fault, HangAnalysis
from diag.ranks.job import Job
from tests.builders.hanging import TENSOR_PARALLEL, analysis, call, case_with, host_blocked
from tests.builders.nccl_tests import NcclTests, on_line

Rows = Sequence[Mapping[str, Any]]

BEATS: Rows = [{"rank": rank, "world_size": 4, "host": "a", "device": rank, "pid": 100 + rank} for rank in range(4)]
INITS: Rows = [
    {"kind": "nccl.init", "host": "a", "pid": 100 + rank, "device": rank, "fields": {"bus_id": f"{rank}000"}}
    for rank in range(4)
]
NETS: Rows = [{"kind": "nccl.net", "host": "a", "pid": 100 + rank, "fields": {"network": "IB"}} for rank in range(4)]
DIFFERS = Fault(Cause.CALL, (2,), TENSOR_PARALLEL, call(0), 7, (0, 1, 3))


def changed(rows: Rows, at: int, **more: object) -> Rows:
    return [{**row, **(more if number == at else {})} for number, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("number", "answer", "hang", "rows"),
    [
        (1, "yes", analysis(), {}),
        (1, "not known", analysis(faults=[host_blocked()]), {}),
        (1, "yes", analysis(world_size=None), {"beats": BEATS}),
        (1, "not known", analysis(world_size=None), {"beats": changed(BEATS, 0, world_size=5)}),
        (1, "not known", analysis(called=0), {}),
        (1, "no", analysis(faults=[DIFFERS]), {}),
        (1, "not known", analysis(absent=[1]), {}),
        (1, "not known", analysis(world_size=None), {}),
        (1, "not known", None, {}),
        (2, "yes", analysis(), {"beats": BEATS}),
        (2, "not known", None, {"beats": BEATS}),
        (2, "not known", analysis(called=0), {"beats": BEATS}),
        (2, "no", None, {"beats": changed(BEATS, 1, world_size=8)}),
        (2, "no", None, {"beats": changed(BEATS, 1, rank=2)}),
        (2, "no", None, {"beats": changed(BEATS, 1, rank=4)}),
        (2, "not known", None, {"beats": BEATS[:3]}),
        (2, "not known", None, {}),
        (3, "yes", None, {"beats": BEATS}),
        (3, "yes", analysis(), {"events": INITS}),
        (3, "no", None, {"beats": changed(BEATS, 1, device=0)}),
        (3, "no", None, {"events": changed(INITS, 1, fields={"bus_id": "0000"})}),
        (3, "no", None, {"events": [{"kind": "nccl.warning", "text": "Duplicate GPU detected : rank 0 and rank 1"}]}),
        (3, "not known", None, {"beats": changed(BEATS, 1, device=None)}),
        (3, "not known", None, {"beats": [{**row, "device": 0} for row in BEATS]}),
        (3, "not known", analysis(), {"beats": BEATS[:2], "events": INITS[:2]}),
        (3, "not known", None, {}),
        (4, "yes", analysis(), {"events": NETS}),
        (4, "no", analysis(), {"events": changed(NETS, 1, fields={"network": "Socket"})}),
        (4, "no", analysis(), {"events": [
            {"kind": "nccl.env", "fields": {"name": "NCCL_IB_GID_INDEX", "value": value}} for value in (1, 3)
        ]}),
        (4, "not known", analysis(), {"events": NETS[:2]}),
        (4, "not known", analysis(), {}),
        (5, "yes", None, {"beats": BEATS}),
        (5, "yes", analysis(), {"threads": [{"rank": rank} for rank in range(4)]}),
        (5, "no", None, {"beats": changed(BEATS, 1, ended="KeyError: 'x'")}),
        (5, "no", None, {"events": [{"kind": "slurm.oom"}]}),
        (5, "no", analysis(faults=[Fault(Cause.DEAD, (1,), None, None, None, ())]), {}),
        (5, "not known", None, {"beats": BEATS[:3]}),
        (5, "not known", None, {"beats": changed(BEATS, 1, written_ns=61 * 10**9)}),
        (5, "not known", None, {}),
        (6, "yes", None, {"events": [{"kind": "nccl.transport", "fields": {"via": "P2P/CUMEM"}}]}),
        (6, "no", None, {}),
        (7, "yes", None, {"measurements": [{"n_wrong": 0}]}),
        (7, "no", None, {"measurements": [{"n_wrong": 3}]}),
        (7, "not known", None, {"measurements": [{"n_wrong": None}]}),
        (7, "not known", None, {"measurements": [{"n_wrong": 0, "backend": "gloo"}]}),
        (7, "not known", analysis(), {"measurements": [{"n_wrong": 0, "n_ranks": 2}]}),
        (7, "not known", None, {}),
    ],
)  # fmt: skip
def test_answers(tmp_path: Path, number: int, answer: Answer, hang: HangAnalysis | None, rows: dict[str, Rows]) -> None:
    with case_with(tmp_path, **rows) as job:
        checks = checklist(job, hang)
    assert len(checks) == 7
    assert checks[number - 1].answer == answer, checks[number - 1]
    assert all(check.because.endswith((".", "line", "rank 1")) for check in checks)


def test_what_is_not_known_says_how_to_find_out(tmp_path: Path) -> None:
    with case_with(tmp_path) as job:
        assert all(check.next for check in checklist(job, None))


def test_connections_are_counted_by_their_kind(tmp_path: Path) -> None:
    vias = ["P2P/CUMEM"] * 3 + ["NET/Socket/0"]
    with case_with(tmp_path, events=[{"kind": "nccl.transport", "fields": {"via": via}} for via in vias]) as job:
        assert "P2P/CUMEM (3), NET/Socket/0 (1)" in checklist(job, None)[5].because


def test_a_benchmark_of_two_ranks_is_another_job(tmp_path: Path) -> None:
    for beat in BEATS:
        said = {"schema": "diag.heartbeat/1", "time_ns": 1, "written_ns": 1, **beat}
        (tmp_path / f"rank{beat['rank']}.heartbeat.json").write_text(json.dumps(said))
    NcclTests(on_line(200e9, 10e3), n_ranks=2).write(tmp_path / "nccl-tests.txt")
    with open_inputs([tmp_path], ImportOptions(use_cache=False)) as case:
        check = checklist(Job(case), None)[1]
    assert check.because.startswith("All 4 ranks were heard of once, with one world size"), check
