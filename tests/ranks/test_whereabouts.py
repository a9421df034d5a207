"""What stacks, heartbeats and logs say of a rank, and what that makes of a fault."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from diag.ranks.hang import Cause, Fault, Where
from diag.ranks.whereabouts import fused, load_whereabouts
from diag.store.case import Case

SECOND_NS = 1_000_000_000


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    with Case.create(tmp_path / "synthetic.diag") as made:
        about = {"path": "synthetic", "sha256": "", "size_bytes": 1, "time_resolution_ns": 1, "capabilities": "{}"}
        made.add_source(kind="job-log", **about)
        yield made


def add_stack(case: Case, rank: int, frames: Sequence[tuple[str, str]], *, holds_gil: bool = False) -> None:
    names = case.intern([text for frame in frames for text in frame])
    case.insert(
        "stack",
        [
            {"id": rank, "depth": depth, "symbol_id": names[function], "module_id": names[file], "line": 7}
            for depth, (function, file) in enumerate(frames)
        ],
    )
    row = {"source_id": 1, "dump": 0, "rank": rank, "name": "MainThread", "holds_gil": int(holds_gil)}
    case.insert("thread_stack", [row | {"is_current": 1, "stack_id": rank}])


def add_event(case: Case, kind: str, text: str, rank: int | None = None, **fields: object) -> None:
    row = {"source_id": 1, "line": 1, "rank": rank, "kind": kind, "fields": json.dumps(fields), "text": text}
    case.insert("log_event", [row])


@pytest.mark.parametrize(
    ("frames", "what"),
    [
        ([("acquire", "/usr/lib/python3.11/threading.py"), ("step", "train.py")], "lock"),
        ([("_next_data", "/x/site-packages/torch/utils/data/dataloader.py"), ("step", "train.py")], "data loader"),
        ([("save", "/x/site-packages/torch/serialization.py"), ("step", "train.py")], "checkpoint"),
        ([("synchronize", "/x/site-packages/torch/cuda/__init__.py"), ("step", "train.py")], "synchronize"),
        ([("recv", "/x/site-packages/torch/distributed/distributed_c10d.py"), ("step", "train.py")], "receive"),
        ([("step", "train.py")], "host"),
    ],
)
def test_a_stack_says_what_the_host_does(case: Case, frames: Sequence[tuple[str, str]], what: str) -> None:
    add_stack(case, 3, frames)
    (found,) = load_whereabouts(case)
    assert (found.rank, found.what) == (3, what)
    assert found.frame is not None
    assert found.frame.file == "train.py"
    assert found.sql is not None
    assert case.rows(found.sql)


def test_a_heartbeat_that_is_written_and_does_not_run_python_means_the_gil(case: Case) -> None:
    beat = {"source_id": 1, "world_size": 4, "written_ns": 60 * SECOND_NS}
    case.insert("heartbeat", [beat | {"rank": 1, "time_ns": SECOND_NS}, beat | {"rank": 2, "time_ns": 60 * SECOND_NS}])
    assert [(each.rank, each.what) for each in load_whereabouts(case)] == [(1, "gil")]


def test_only_who_ends_of_itself_has_ended(case: Case) -> None:
    add_event(case, "slurm.exit", "srun: error: node1: tasks 4-5: Killed", ranks=[4, 5])
    add_event(case, "slurm.exit", "srun: error: node2: tasks 6-7: Aborted (core dumped)", ranks=[6, 7])
    add_event(case, "nccl.warning", "NET/IB: Got completion from peer", 2, **{"class": "InfiniBand completion error"})
    assert [(each.rank, each.what) for each in load_whereabouts(case)] == [
        (4, "ended"),
        (5, "ended"),
        (2, "transport"),
    ]


def fault(cause: Cause) -> Fault:
    return Fault(cause, (1,), None, None, None, ())


@pytest.mark.parametrize(
    ("before", "what", "after"),
    [
        (Cause.HOST, "ended", Cause.DEAD),
        (Cause.HOST, "receive", Cause.CYCLE),
        (Cause.HOST, "lock", Cause.HOST),
        (Cause.DEVICE, "transport", Cause.TRANSPORT),
        (Cause.DEVICE, "lock", Cause.DEVICE),
    ],
)
def test_what_the_host_does_sharpens_the_cause(before: Cause, what: str, after: Cause) -> None:
    found = fused(fault(before), {1: [Where(1, what, "it is so")]})
    assert found.cause is after
    assert [each.what for each in found.where] == [what]
