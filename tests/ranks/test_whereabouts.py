"""What stacks, heartbeats and logs say of a rank, and what that makes of a fault. All of it is synthetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from diag.model.live import Frame
from diag.ranks.hang import Cause, Fault, Where
from diag.ranks.heartbeats import RankBeat
from diag.ranks.log_events import LogEvent
from diag.ranks.thread_stacks import RankThread
from diag.ranks.whereabouts import fused, whereabouts

SECOND_NS = 1_000_000_000
VANISHED = "vanished without a word: killed, crashed, or left with os._exit"
ON_THE_LINK = {"class": "InfiniBand completion error"}
BROKEN = "RuntimeError: Connection closed by peer [10.0.0.1]:5057"


def thread(rank: int, frames: Sequence[tuple[str, str]], *, dump: int = 0, holds_gil: bool = False) -> RankThread:
    found = tuple(Frame(function, file, 7) for function, file in frames)
    return RankThread(1, dump, rank, None, 9, 9, "MainThread", None, True, True, None, holds_gil, None, None, found)


def beat(rank: int, ended: str | None = None, *, alive_s: int = 60, written_s: int = 60) -> RankBeat:
    times = alive_s * SECOND_NS, written_s * SECOND_NS
    return RankBeat(1, rank, 4, None, None, "n0", 100 + rank, *times, None, None, None, None, ended)


def event(kind: str, text: str, rank: int | None = None, pid: int | None = None, **fields: object) -> LogEvent:
    return LogEvent(1, 1, None, None, pid, rank, None, kind, None, fields, text)


def told(found: Sequence[Where]) -> list[tuple[int, str]]:
    return [(each.rank, each.what) for each in found]


@pytest.mark.parametrize(
    ("frames", "what"),
    [
        ([("acquire", "/usr/lib/python3.11/threading.py"), ("step", "train.py")], "lock"),
        ([("_next_data", "/x/site-packages/torch/utils/data/dataloader.py"), ("step", "train.py")], "data loader"),
        ([("save", "/x/site-packages/torch/serialization.py"), ("step", "train.py")], "checkpoint"),
        ([("synchronize", "/x/site-packages/torch/cuda/__init__.py"), ("step", "train.py")], "synchronize"),
        ([("recv", "/x/site-packages/torch/distributed/distributed_c10d.py"), ("step", "train.py")], "receive"),
        ([("recv", "/usr/lib/python3.11/multiprocessing/connection.py"), ("step", "train.py")], "host"),
        ([("step", "train.py")], "host"),
        ([("step", "/home/me/load/train.py")], "host"),
    ],
)
def test_a_stack_says_what_the_host_does(frames: Sequence[tuple[str, str]], what: str) -> None:
    (found,) = whereabouts([thread(3, frames)], [], [])
    assert (found.rank, found.what) == (3, what)
    assert found.frame == Frame("step", frames[-1][1], 7)


def test_the_gil_is_held_only_by_who_has_it_in_every_dump() -> None:
    decode = [("decode", "train.py")]
    assert told(whereabouts([thread(1, decode, holds_gil=True)], [], [])) == [(1, "host")]
    twice = [thread(1, decode, dump=dump, holds_gil=True) for dump in (0, 1)]
    assert told(whereabouts(twice, [], [])) == [(1, "host"), (1, "gil")]


def test_a_heartbeat_that_is_written_and_does_not_run_python_means_the_gil() -> None:
    assert told(whereabouts([], [beat(1, alive_s=1), beat(2)], [])) == [(1, "gil")]
    (found,) = whereabouts([], [replace(beat(1, alive_s=1), state="D")], [])
    assert "the kernel holds it" in found.says


def test_a_rank_that_was_started_again_has_not_ended() -> None:
    assert told(whereabouts([], [beat(1, "KeyError: 'x'", written_s=10), beat(1), beat(2)], [])) == []


def test_who_lost_its_connection_ended_with_others() -> None:
    beats = [beat(0, BROKEN), beat(1, VANISHED), beat(2, BROKEN)]
    assert told(whereabouts([], beats, [])) == [(0, "ended with others"), (1, "ended"), (2, "ended with others")]


def test_of_ranks_that_all_vanish_none_began_it() -> None:
    """As when the watchdog of each of them aborts it."""
    beats = [beat(rank, VANISHED) for rank in range(4)]
    assert {each.what for each in whereabouts([], beats, [])} == {"ended with others"}
    killed = event("slurm.exit", "srun: error: n0: tasks 0-3: Killed", ranks=[0, 1, 2, 3])
    assert {each.what for each in whereabouts([], [], [killed], 4)} == {"ended with others"}


def test_only_who_ends_of_itself_has_ended() -> None:
    events = [
        event("slurm.exit", "srun: error: node1: tasks 4-5: Killed", ranks=[4, 5]),
        event("slurm.exit", "srun: error: node2: tasks 6-7: Aborted (core dumped)", ranks=[6, 7]),
        replace(event("nccl.warning", "NET/IB: Got completion from peer", 2), fields=ON_THE_LINK),
    ]
    assert told(whereabouts([], [], events)) == [(4, "ended"), (5, "ended"), (2, "transport")]


def test_the_kernel_speaks_of_processes_whose_ranks_heartbeats_know() -> None:
    events = [
        event("kernel.oom", "Out of memory: Killed process 102 (python)", pid=102),
        event("xid", "NVRM: Xid (PCI:0000:65:00): 79, pid=103", pid=103),
    ]
    found = whereabouts([], [beat(rank) for rank in range(4)], events)
    assert told(found) == [(2, "ended"), (3, "xid")]
    assert told(whereabouts([], [], events)) == []


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


def test_of_ranks_that_look_alike_only_errors_of_devices_are_told() -> None:
    stuck = Fault(Cause.UNFINISHED, (), None, None, None, (), candidates=(0, 1))
    xid = Where(1, "xid", "a log says: Xid 79")
    assert fused(stuck, {0: [Where(0, "collective", "it is in a collective")], 1: [xid]}).where == (xid,)
