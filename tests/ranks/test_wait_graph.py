"""The wait graph on jobs of a few ranks, call by call."""

from __future__ import annotations

from collections.abc import Sequence

from diag.ranks.analysis import analyse_hang
from diag.ranks.dumps import RankDump
from diag.ranks.hang import Cause, HangAnalysis, Where
from diag.ranks.signatures import CallSignature
from tests.builders.recorded_calls import Group, Recorded, job_of, rank_dump

WORLD = (0, 1, 2)


def call(
    sequence: int,
    op: str = "all_reduce",
    *,
    group: str = "g",
    record: int | None = None,
    done: bool = False,
    n: int = 4,
) -> Recorded:
    return Recorded(group, op, sequence if record is None else record, sequence, is_done=done, sizes=(n,))


def dump(
    rank: int, calls: Sequence[Recorded], called: int, completed: int, members: tuple[int, ...] = WORLD, **more: int
) -> RankDump:
    return rank_dump(rank, [Group("g", members, called, completed)], calls, **more)


def hang(*dumps: RankDump, where: Sequence[Where] = ()) -> HangAnalysis:
    return analyse_hang(job_of(dumps), where)


def waits(rank: int) -> RankDump:
    return dump(rank, [call(7)], 7, 6)


def test_who_has_not_called_what_others_wait_in_is_at_fault() -> None:
    found = hang(waits(0), waits(1), dump(2, [], 6, 6))
    (fault,) = found.faults
    assert (fault.cause, fault.ranks, fault.waiting) == (Cause.HOST, (2,), (0, 1))
    assert fault.is_queue_empty
    assert [(wait.rank, wait.on, wait.need) for row in found.ranks for wait in row.chain] == [
        (0, 2, "not called"),
        (1, 2, "not called"),
    ]


def test_who_called_all_is_convicted_by_what_its_peers_completed() -> None:
    found = hang(dump(0, [], 7, 7), dump(1, [], 7, 7), dump(2, [call(7)], 7, 6))
    (fault,) = found.faults
    assert (fault.cause, fault.ranks, fault.completed_by) == (Cause.DEVICE, (2,), (0, 1))


def test_a_broadcast_convicts_nobody_for_its_root_completes_first() -> None:
    found = hang(dump(0, [], 7, 7), dump(1, [], 7, 7), dump(2, [call(7, "broadcast")], 7, 6))
    assert not found.named
    (fault,) = found.faults
    assert (fault.cause, fault.candidates) == (Cause.UNFINISHED, WORLD)


def test_an_uneven_all_to_all_convicts_nobody_and_is_no_mismatch() -> None:
    found = hang(*(dump(rank, [call(7, "all_to_all", n=4 + rank)], 7, 6) for rank in WORLD))
    assert [fault.cause for fault in found.faults] == [Cause.UNFINISHED]


def test_a_rank_without_a_dump_is_a_suspect() -> None:
    found = hang(waits(0), waits(1))
    assert not found.faults
    assert [(each.rank, each.awaited_by) for each in found.suspects] == [(2, (0, 1))]
    assert [(each.rank, each.deciders) for each in found.undecided] == [(0, (2,)), (1, (2,))]


def test_a_suspect_of_which_a_log_says_that_it_ended_is_named() -> None:
    found = hang(waits(0), waits(1), where=[Where(2, "ended", "a log says: Killed")])
    (fault,) = found.faults
    assert (fault.cause, fault.ranks, fault.waiting) == (Cause.DEAD, (2,), (0, 1))
    assert not found.suspects


def test_a_stack_says_what_the_host_does() -> None:
    found = hang(waits(0), waits(1), dump(2, [], 6, 6), where=[Where(2, "gil", "a call holds the GIL")])
    assert [each.what for each in found.faults[0].where] == ["gil"]


def test_most_members_are_right() -> None:
    other = dump(1, [call(7, "_all_gather_base")], 7, 6)
    (fault,) = hang(waits(0), other, waits(2)).faults
    assert (fault.cause, fault.ranks) == (Cause.CALL, (1,))


def test_two_that_differ_have_no_majority() -> None:
    pair = (0, 1)
    found = hang(dump(0, [call(7)], 7, 6, pair), dump(1, [call(7, n=8)], 7, 6, pair))
    assert [(fault.cause, fault.ranks) for fault in found.faults] == [(Cause.TENSORS, pair)]


def test_an_absent_vote_may_turn_the_majority() -> None:
    found = hang(waits(0), dump(1, [call(7, n=8)], 7, 6))
    assert not found.named
    assert {each.rank: each.deciders for each in found.undecided} == {0: (2,), 1: (2,)}


def test_the_first_place_where_they_differ_counts() -> None:
    def of(rank: int, ops: Sequence[str]) -> RankDump:
        return dump(rank, [call(at, op) for at, op in enumerate(ops, 1)], 3, 0)

    ops = ["all_reduce", "broadcast", "all_gather"]
    (fault,) = hang(of(0, ops), of(1, ["all_reduce", "all_gather", "broadcast"]), of(2, ops)).faults
    assert (fault.cause, fault.ranks, fault.sequence) == (Cause.CALL, (1,), 2)


def test_devices_that_run_two_groups_in_different_orders_wait_for_each_other() -> None:
    groups = [Group("a", (0, 1), 1, 0), Group("b", (0, 1), 1, 0)]
    found = hang(
        rank_dump(0, groups, [call(1, group="a", record=0), call(1, group="b", record=1)]),
        rank_dump(1, groups, [call(1, group="b", record=0), call(1, group="a", record=1)]),
    )
    assert [(fault.cause, fault.ranks) for fault in found.faults] == [(Cause.CALL, (0, 1))]


def test_the_oldest_entries_may_be_overwritten() -> None:
    """A call older than what the recorder still holds was called all the same."""
    found = hang(
        dump(0, [call(7, record=900)], 7, 6),
        dump(1, [call(number, record=number, done=number < 7) for number in range(3, 8)], 7, 6),
        dump(2, [call(7, record=5000)], 7, 6),
    )
    assert [fault.cause for fault in found.faults] == [Cause.UNFINISHED]


def test_a_group_made_anew_is_another_one() -> None:
    def of(rank: int, calls: int) -> RankDump:
        groups = [Group("1", WORLD, 5, 5, "dp"), Group("2", WORLD, calls, 0, "dp")]
        return rank_dump(rank, groups, [call(1, group="2")] if calls else [])

    (fault,) = hang(of(0, 1), of(1, 1), of(2, 0)).faults
    assert (fault.cause, fault.ranks, str(fault.group)) == (Cause.HOST, (2,), "dp 2")


def test_a_status_that_counts_sends_tells_nothing_about_collectives() -> None:
    """Rank 1 sent something 90 times over that group: its status says so, and not how many all-reduces it called."""
    found = hang(waits(0), dump(1, [], 90, 90), waits(2))
    assert not found.named


def test_the_newest_dump_of_a_rank_speaks_and_an_older_one_tells_that_it_went_on() -> None:
    earlier = dump(2, [call(5, record=5, done=True)], 5, 5, source=10)
    later = dump(2, [call(6, record=6, done=True)], 6, 6, source=11)
    (fault,) = hang(waits(0), waits(1), earlier, later).faults
    assert (fault.cause, fault.ranks) == (Cause.LATE, (2,))


def test_a_rank_that_counts_anew_was_restarted() -> None:
    before = Recorded("g", "all_reduce", 50, 6, is_done=True, created_ns=1)
    after = Recorded("g", "all_reduce", 0, 1, is_done=True, created_ns=2)
    found = hang(waits(0), dump(2, [before], 6, 6, source=10), dump(2, [after], 1, 1, source=11))
    assert found.restarted == (2,)


def test_variants_of_a_collective_are_alike() -> None:
    names = ("nccl:_all_gather_base", "nccl:all_gather", "gloo:allgather", "nccl:all_gather_into_tensor_coalesced")
    assert {CallSignature(1, name, "[]", "[]", "[]", "[]").family for name in names} == {"all_gather"}
