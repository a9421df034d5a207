"""Which evidence proves that a rank was restarted alone, and which does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from diag.ranks.analysis import analyse_hang
from diag.ranks.dumps import Dumps, RankDump
from diag.ranks.hang import Cause, HangAnalysis
from diag.ranks.heartbeats import RankBeat
from diag.ranks.log_events import LogEvent
from diag.ranks.restarts import restarts
from tests.builders.recorded_calls import Group, Recorded, job_of, rank_dump

S = 1_000_000_000
WORLD = (0, 1, 2, 3)


def stands(rank: int, *, completed_ns: int | None = 10 * S) -> RankDump:
    """Its first all-reduce completed after 10 s; it stands in the 41st."""
    calls = [
        Recorded("g", "all_reduce", number - 1, number, is_done=number < 41, created_ns=(8 + number) * S,
                 completed_ns=None if completed_ns is None or number == 41 else completed_ns + number * S)
        for number in range(1, 42)
    ]  # fmt: skip
    return rank_dump(rank, [Group("g", WORLD, 41, 40)], calls, world_size=4)


def began_at(at_s: int, rank: int = 2, *, record: int = 0, op: str = "all_reduce") -> RankDump:
    """It stands in what it called first."""
    calls = [Recorded("g", op, record, 1, created_ns=at_s * S)]
    return rank_dump(rank, [Group("g", WORLD, 1, 0)], calls, world_size=4)


def judged(*dumps: RankDump, beats: Sequence[RankBeat] = (), events: Sequence[LogEvent] = ()) -> HangAnalysis:
    job = job_of(dumps)
    return analyse_hang(job, restarts(job, beats, events, 4))


def beat(rank: int, pid: int, written_s: int, ended: str | None = None) -> RankBeat:
    at_ns = written_s * S
    return RankBeat(1, rank, 4, rank, None, "n0", pid, at_ns, at_ns, None, "S", None, None, ended)


def started(source: int, *ranks: int, times: int = 1) -> LogEvent:
    return LogEvent(source, 1, None, None, None, None, None, "launcher.workers", None,
                    {"ranks": list(ranks), "times": times}, "  global_ranks=")  # fmt: skip


def causes(found: HangAnalysis) -> list[tuple[Cause, tuple[int, ...]]]:
    return [(fault.cause, fault.ranks) for fault in found.faults]


def test_who_first_called_long_after_its_peers_completed_was_restarted() -> None:
    found = judged(*(stands(rank) for rank in (0, 1, 3)), began_at(300))
    assert causes(found) == [(Cause.RESTARTED, (2,))]
    assert "289.0 s after rank 0 completed a collective that needs it" in found.faults[0].where[0].says


def test_also_where_its_first_call_is_another_one_or_it_has_called_nothing_that_others_wait_in() -> None:
    found = judged(*(stands(rank) for rank in (0, 1, 3)), began_at(300, op="broadcast"))
    assert causes(found) == [(Cause.RESTARTED, (2,))]


@pytest.mark.parametrize(
    "late",
    [
        pytest.param(began_at(60), id="clocks may differ by that"),
        pytest.param(began_at(300, record=7), id="the recorder has forgotten its first calls"),
    ],
)
def test_a_rank_that_may_have_been_there_is_not_called_restarted(late: RankDump) -> None:
    found = judged(*(stands(rank) for rank in (0, 1, 3)), late)
    assert Cause.RESTARTED not in dict(causes(found))


def test_without_times_of_completion_nothing_is_proven() -> None:
    """As with Gloo: what an exception retired looks completed."""
    found = judged(*(stands(rank, completed_ns=None) for rank in (0, 1, 3)), began_at(300))
    assert Cause.RESTARTED not in dict(causes(found))


@pytest.mark.parametrize(
    "completed_s", [pytest.param(601, id="after its time-out"), pytest.param(100, id="and nothing was called after it")]
)
def test_calls_that_an_abort_ended_prove_nothing(completed_s: int) -> None:
    """A rank that is late for the first call of all, whose peers gave up before it came."""
    call = Recorded("g", "all_reduce", 0, 1, is_done=True, created_ns=0, completed_ns=completed_s * S)
    peers = [rank_dump(rank, [Group("g", WORLD, 1, 1)], [call], world_size=4) for rank in (0, 1, 3)]
    assert restarts(job_of([*peers, began_at(900)]), [], [], 4) == []


def test_a_job_that_was_restarted_as_a_whole_accuses_nobody_of_it() -> None:
    job = job_of([stands(0), *(began_at(300, rank) for rank in (1, 2, 3))])
    assert {one.what for one in restarts(job, [], [], 4)} == {"restarted with others"}


def test_a_recorder_that_counts_back_was_restarted() -> None:
    earlier = replace(stands(2, completed_ns=None), source=20)
    later = replace(began_at(300), source=21)
    found = judged(*(stands(rank, completed_ns=None) for rank in (0, 1, 3)), earlier, later)
    assert causes(found) == [(Cause.RESTARTED, (2,))]


def test_a_process_that_ended_and_one_that_runs() -> None:
    beats = [beat(2, 100, 50, "vanished"), *(beat(rank, 200 + rank, 90) for rank in WORLD)]
    found = judged(*(stands(rank) for rank in (0, 1, 3)), beats=beats)
    assert causes(found) == [(Cause.RESTARTED, (2,))]
    assert "its process 100 ended (vanished), and process 202 runs" in found.faults[0].where[0].says


@pytest.mark.parametrize(
    "earlier",
    [
        pytest.param(beat(2, 100, 50), id="both may live"),
        pytest.param(beat(2, 202, 50, "finished"), id="a copy of the same process"),
    ],
)
def test_heartbeats_that_do_not_prove_it(earlier: RankBeat) -> None:
    beats = [earlier, *(beat(rank, 200 + rank, 90) for rank in WORLD)]
    assert restarts(NO_DUMPS, beats, [], 4) == []


def test_launchers_that_started_their_ranks_unequally_often() -> None:
    events = [started(7, 0, 1), started(7, 2, 3, times=2)]
    assert [(one.rank, one.what) for one in restarts(NO_DUMPS, [], events, 4)] == [(2, "restarted"), (3, "restarted")]


@pytest.mark.parametrize(
    ("events", "n_ranks"),
    [
        pytest.param([started(7, 0, 1, times=2), started(7, 2, 3, times=2)], 4, id="all were restarted"),
        pytest.param([started(7, 2, 3, times=2)], 4, id="another launcher's lines are missing"),
        pytest.param([started(7, 0, 1), started(8, 2, 3, times=2)], 4, id="logs that may end at different times"),
        pytest.param([started(7, 0, 1), started(7, 2, 3, times=2)], None, id="how many ranks there are is not known"),
    ],
)
def test_launchers_that_do_not_prove_it(events: Sequence[LogEvent], n_ranks: int | None) -> None:
    assert restarts(NO_DUMPS, [], events, n_ranks) == []


NO_DUMPS = Dumps({}, None)
