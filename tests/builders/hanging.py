"""Synthetic evidence of jobs that stand still: an analysis made by hand, and rows of a case. None was captured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diag.ranks.hang import (
    Call,
    Cause,
    Fault,
    GroupLabel,
    GroupRow,
    HangAnalysis,
    MemberRow,
    RankRow,
    Suspect,
    Undecided,
    Wait,
)
from diag.ranks.job import Job
from diag.store.case import Case

TENSOR_PARALLEL = GroupLabel("41", "TENSOR_MODEL_PARALLEL_GROUP", (0, 1, 2, 3))


def call(rank: int, *, sequence: int = 7, group: GroupLabel = TENSOR_PARALLEL, op: str = "_all_gather_base") -> Call:
    return Call(
        entry=1, source=1, rank=rank, group=group, op=op, sequence=sequence, is_p2p=False, peer=None,
        input_sizes="[[4]]", output_sizes="[[16]]", dtypes='["Float"]', created_ns=None, timeout_ns=None, stack_id=None,
    )  # fmt: skip


def host_blocked(rank: int = 3) -> Fault:
    waiting = tuple(each for each in range(4) if each != rank)
    return Fault(Cause.HOST, (rank,), TENSOR_PARALLEL, call(0), 7, waiting, is_queue_empty=True)


def analysis(
    *,
    faults: Sequence[Fault] = (),
    absent: Sequence[int] = (),
    suspects: Sequence[Suspect] = (),
    undecided: Sequence[Undecided] = (),
    world_size: int | None = 4,
    called: int = 6,
) -> HangAnalysis:
    """Of four ranks: 0 to 2 wait for rank 3, which has not called what they have, but `called` collectives before."""
    dumped = tuple(rank for rank in range(4) if rank not in absent)
    waiting = [rank for rank in dumped if rank != 3] if faults or suspects else []
    return HangAnalysis(
        world_size=world_size,
        dumped=dumped,
        absent=tuple(absent),
        faults=tuple(faults),
        suspects=tuple(suspects),
        undecided=tuple(undecided),
        ranks=tuple(
            RankRow(rank, 1, "waiting", 1, call(rank), (Wait(rank, 3, call(rank), "not called"),)) for rank in waiting
        ),
        groups=(
            GroupRow(
                TENSOR_PARALLEL,
                (*(MemberRow(rank, 7, 6, 1) for rank in range(3)), MemberRow(3, called, called, 0)),
                call(0) if waiting else None,
            ),
        ),
    )


@contextmanager
def case_with(
    folder: Path,
    *,
    beats: Sequence[Mapping[str, Any]] = (),
    events: Sequence[Mapping[str, Any]] = (),
    threads: Sequence[Mapping[str, Any]] = (),
    measurements: Sequence[Mapping[str, Any]] = (),
) -> Iterator[Job]:
    """A job of whose rows only what matters is given."""
    with Case.create(folder / f"{len(list(folder.iterdir()))}.diag") as case, case.transaction():
        source = case.add_source(kind="synthetic", path="made by hand", sha256="", size_bytes=0, time_resolution_ns=1)
        for beat in beats:
            case.insert("heartbeat", [{"source_id": source, "time_ns": 1, "written_ns": 1, **beat}])
        for line, event in enumerate(events, 1):
            told = {**event, "fields": json.dumps(event.get("fields", {}))}
            case.insert("log_event", [{"source_id": source, "line": line, "text": "the line", **told}])
        for thread in threads:
            case.insert("thread_stack", [{"source_id": source, "dump": 0, **thread}])
        for each in measurements:
            made = {
                "op": "all_reduce",
                "backend": "nccl",
                "n_ranks": 4,
                "size_bytes": 8,
                "is_in_place": 0,
                "time_ns": 1.0,
            }
            case.insert("comm_measurement", [{"source_id": source, **made, **each}])
        case.finish_source(source, {})
        yield Job(case)
