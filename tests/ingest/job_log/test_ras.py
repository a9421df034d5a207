"""The status of RAS, as text and as JSON: both come to the same events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.job_log import ras_json
from diag.ranks.job import Job
from tests.builders.job_log import RAS_BEHIND, RAS_DEAD, Whole, ras_text
from tests.ingest.job_log.reading import events

OLDER = """\
INCOMPLETE
  Missing communicator data from 1 job process
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21

"""
STATUS = """\
#0-0 (9e17999afaa87dbb) MISMATCH
  Communicator ranks have different status
  26 ranks have status NOCOMM
  4 ranks have status RUNNING
  Rank 0 -- GPU 0 managed by process 507285 on node 172.16.64.210
  Rank 8 -- GPU 0 managed by process 1598388 on node 172.16.64.212
  Rank 4 has status FINALIZE -- GPU 4 managed by process 507289 on node 172.16.64.210

"""
ERROR = """\
#0-0 (9e17999afaa87dbb) ERROR
  Asynchronous error on 1 rank
  Rank 3 reported Remote process error -- GPU 3 managed by process 507285 on node 172.16.64.210

"""


def lines(of: Whole) -> list[str]:
    return of.text.splitlines()


def kinds(of: Whole) -> list[tuple[str, dict[str, Any]]]:
    found = [(event.kind, dict(event.fields)) for event in events(*lines(of)) if event.kind != "nccl.version"]
    return [(kind, fields) for kind, fields in found if kind != "nccl.ras.group"]


def test_ranks_behind() -> None:
    assert kinds(RAS_BEHIND) == [
        ("nccl.ras.count", {"op": "AllReduce", "operation": 6650, "n_ranks": 30, "members": []}),
        ("nccl.ras.count", {"op": "AllReduce", "operation": 6649, "n_ranks": 2, "members": [0, 2]}),
    ]


def test_dead_and_missing() -> None:
    process, missing = (
        event for event in events(*lines(RAS_DEAD)) if event.kind in ("nccl.ras.process", "nccl.ras.missing")
    )
    assert process.fields == {"devices": [5], "is_dead": True}
    assert missing.fields == {"member": 21}
    assert (missing.place.host, missing.place.pid, missing.place.device) == ("172.16.64.213", 3487984, 5)
    assert missing.communicator == "0xcf264af53edbe986"


def test_2_24_lists_missing_ranks_in_one_line() -> None:
    row = "    0         1         4       7-8        32        32   RUNNING  INCOMPLETE"
    assert [fields for kind, fields in kinds(ras_text(row, errors=OLDER)) if kind == "nccl.ras.missing"] == [
        {"member": 21}
    ]


def test_status_and_errors_of_ranks() -> None:
    row = "    0         1         4       1-2        32        32  FINALIZE  ERROR,MISMATCH"
    assert kinds(ras_text(row, errors=ERROR, warnings=STATUS)) == [
        ("nccl.ras.error", {"error": "Remote process error", "members": [3]}),
        ("nccl.ras.status", {"status": "NOCOMM", "n_ranks": 26, "members": []}),
        ("nccl.ras.status", {"status": "RUNNING", "n_ranks": 4, "members": [0, 8]}),
        ("nccl.ras.status", {"status": "FINALIZE", "members": [4]}),
    ]


def rank(number: int, count: int, **status: Any) -> dict[str, Any]:
    states = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False}
    about = {"rank": number, "host": "10.0.0.1", "pid": 100 + number, "cuda_dev": number, "nvml_dev": number}
    return {**about, "status": {**states, **status}, "collective_counts": {"Broadcast": 0, "AllReduce": count}}


def status(*ranks: dict[str, Any], missing: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """In the form of NCCL 2.28.7, synthetic."""
    communicator = {
        "hash": "0xae94", "secondary_hash": "0x1:0x2", "size": 4, "ranks_count": len(ranks),
        "missing_ranks_count": len(missing or []), "ranks": list(ranks), "missing_ranks": missing or [],
    }  # fmt: skip
    head = {"nccl_version": "2.29.1", "cuda_runtime_version": 13000, "timestamp": "2025-12-19 13:06:53"}
    return {**head, "communicators_count": 1, "communicators": [communicator]}


def imported(path: Path, text: str) -> list[tuple[str, str | None, dict[str, Any]]]:
    path.write_text(text)
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        assert case.sources[0].kind == "nccl-ras"
        assert case.sources[0].tool_version == "2.29.1"
        return [(event.kind, event.host, dict(event.fields)) for event in Job(case).events]


def test_json(tmp_path: Path) -> None:
    gone = {
        "rank": 3,
        "host": "10.0.0.2",
        "pid": 7,
        "cuda_dev": 1,
        "status": {"unresponsive": True, "considered_dead": False},
    }
    found = imported(
        tmp_path / "ras.json", json.dumps(status(rank(0, 9), rank(1, 8), rank(2, 9, async_error=6), missing=[gone]))
    )
    assert found == [
        ("nccl.ras.group", None, {"ranks": 3, "ranks_per_comm": 4, "status": "RUNNING"}),
        ("nccl.ras.error", None, {"error": "Remote process error", "members": [2], "n_ranks": 1}),
        ("nccl.ras.count", None, {"members": [0, 2], "n_ranks": 2, "op": "AllReduce", "operation": 9}),
        ("nccl.ras.count", None, {"members": [1], "n_ranks": 1, "op": "AllReduce", "operation": 8}),
        ("nccl.ras.missing", "10.0.0.2", {"answers": False, "is_dead": False, "member": 3}),
    ]


def test_a_number_that_nccl_does_not_know_is_no_rank(tmp_path: Path) -> None:
    """It writes -1; beyond the size of the communicator there is none either."""
    gone = {"rank": -1, "status": {"unresponsive": True}}
    text = json.dumps(status(rank(0, 9), rank(-1, 8), rank(4, 8, abort_flag=True), missing=[gone]))
    assert imported(tmp_path / "ras.json", text) == [
        ("nccl.ras.group", None, {"ranks": 1, "ranks_per_comm": 4, "status": "RUNNING"}),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"communicators": "none"},
        {"communicators": [{"hash": "0x1", "size": 2, "ranks": [{"rank": 1 << 63}]}]},
        {"communicators": [{"hash": "x" * 9999, "size": 2}]},
        {"nccl_version": 2},
    ],
)
def test_a_damaged_status_is_refused_with_a_sentence(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "ras.json"
    path.write_text(json.dumps({**status(rank(0, 9)), **change}))
    with pytest.raises(InputError, match=r"is no status of NCCL's RAS .* Write it again"):
        ras_json.load(path)
