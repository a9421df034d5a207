"""Stacks of many ranks: who belongs together, who stands alone, who holds the GIL. All threads here are synthetic."""

from __future__ import annotations

from collections.abc import Sequence

from diag.model.live import Frame
from diag.ranks.heartbeats import RankBeat
from diag.ranks.stack_clusters import clusters, tree
from diag.ranks.thread_stacks import RankThread, gil_holders, main_threads, stood, with_ranks

MAIN = Frame("main", "/home/me/train.py", 50)
STEP = Frame("train_step", "/home/me/train.py", 30)
LOAD = Frame("load_batch", "/home/me/data.py", 14)
TORCH = "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"


def all_reduce(line: int = 2801) -> Frame:
    return Frame("all_reduce", TORCH, line)


def thread(
    rank: int | None,
    frames: Sequence[Frame],
    *,
    dump: int = 0,
    tid: int = 1,
    pid: int | None = None,
    source: int = 1,
    is_main: bool = True,
    holds_gil: bool | None = None,
    host: str | None = None,
) -> RankThread:
    return RankThread(
        source_id=source, dump=dump, rank=rank, host=host, pid=pid, tid=tid, name=None, time_ns=None, is_main=is_main,
        is_current=False, is_running=None, holds_gil=holds_gil, state=None, waits_in=None, frames=tuple(frames),
    )  # fmt: skip


def beat(rank: int, pid: int, host: str | None = None) -> RankBeat:
    return RankBeat(1, rank, None, None, None, host, pid, 0, 0, None, None, None, None, None)


def test_the_odd_one_out_comes_first() -> None:
    waiting = [thread(rank, [all_reduce(2800 + rank), STEP, MAIN]) for rank in range(15) if rank != 9]
    alone, together = clusters([*waiting, thread(9, [LOAD, MAIN])])
    assert (alone.ranks, alone.own) == ((9,), LOAD)
    assert together.ranks == tuple(rank for rank in range(15) if rank != 9)
    assert together.own == STEP


def test_ranks_in_different_lines_of_own_code_stand_apart() -> None:
    other = Frame("train_step", "/home/me/train.py", 31)
    assert [each.ranks for each in clusters([thread(0, [all_reduce(), STEP]), thread(1, [all_reduce(), other])])] == [
        (0,),
        (1,),
    ]


def test_other_threads_of_a_rank_do_not_count() -> None:
    (found,) = clusters([thread(0, [LOAD], is_main=False, tid=2), thread(0, [STEP])])
    assert found.frames == (STEP,)


def test_the_last_dump_counts_and_says_who_moved() -> None:
    (found,) = clusters(
        [
            thread(0, [STEP], dump=0),
            thread(0, [STEP], dump=1),
            thread(1, [LOAD], dump=0),
            thread(1, [STEP], dump=1),
        ]
    )
    assert (found.ranks, found.moved) == ((0, 1), 1)


def test_of_two_files_about_one_rank_the_later_one_counts() -> None:
    (found,) = clusters([thread(0, [LOAD], source=1), thread(0, [STEP], source=2)])
    assert found.frames == (STEP,)


def test_whether_a_thread_stood() -> None:
    dumps = [thread(0, [STEP], dump=at) for at in range(3)]
    assert stood(dumps[0], dumps) is True
    assert stood(dumps[0], [*dumps, thread(0, [LOAD], dump=3)]) is False
    assert stood(dumps[0], dumps[:1]) is None


def test_who_holds_the_gil_in_every_dump() -> None:
    def dumps(holds: Sequence[bool]) -> list[RankThread]:
        return [thread(4, [STEP], dump=at, holds_gil=each) for at, each in enumerate(holds)]

    assert [each.rank for each in gil_holders(dumps([True, True]))] == [4]
    assert not gil_holders(dumps([True, False]))
    assert not gil_holders(dumps([True]))  # one moment proves nothing: somebody always has it
    moved = [thread(4, [STEP], dump=0, holds_gil=True), thread(4, [LOAD], dump=1, holds_gil=True)]
    assert not gil_holders(moved)


def test_a_rank_is_known_by_the_heartbeat_of_its_process() -> None:
    beats = [beat(3, 100, "a"), beat(4, 100, "b"), beat(5, 200)]
    (here,) = with_ranks([thread(None, [STEP], pid=100, host="b")], beats)
    (anywhere,) = with_ranks([thread(None, [STEP], pid=100)], beats)
    (alone,) = with_ranks([thread(None, [STEP], pid=200, host="c")], beats)
    (told,) = with_ranks([thread(9, [STEP], pid=200)], beats)
    assert (here.rank, anywhere.rank, alone.rank, told.rank) == (4, None, 5, 9)


def test_processes_without_a_rank_are_kept_apart() -> None:
    assert len(main_threads([thread(None, [STEP], pid=1), thread(None, [STEP], pid=2)])) == 2


def test_the_tree_parts_where_the_ranks_do() -> None:
    found = clusters([*(thread(rank, [all_reduce(), STEP, MAIN]) for rank in range(3)), thread(3, [LOAD, MAIN])])
    (root,) = tree(found)
    assert root.frames == (MAIN,)
    assert [(each.frames, [t.rank for t in each.threads]) for each in root.below] == [
        ((LOAD,), [3]),
        ((STEP, all_reduce()), [0, 1, 2]),
    ]
