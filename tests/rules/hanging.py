"""Small jobs that stand still, and their healthy twins."""

from __future__ import annotations

from collections.abc import Sequence

from tests.builders.recorded_calls import Group, Recorded
from tests.builders.recorded_job import RecordedJob

ALL = (0, 1, 2)


def call(
    sequence: int,
    op: str = "all_reduce",
    *,
    is_done: bool = True,
    sizes: tuple[int, ...] = (4,),
    dtype: str = "Float",
    group: str = "0",
) -> Recorded:
    return Recorded(group, op, sequence - 1, sequence, is_done=is_done, sizes=sizes, dtype=dtype)


def everybody(
    called: int, completed: int, ranks: tuple[int, ...] | None = ALL, *, description: str = "default_pg"
) -> Sequence[Group]:
    return [Group("0", ranks, called, completed, description)]


def healthy(
    ranks: Sequence[int] = ALL, members: tuple[int, ...] | None = ALL, *, took_ns: int | None = None
) -> RecordedJob:
    """Every call completes."""
    return RecordedJob({rank: (everybody(2, 2, members), [call(1), call(2)]) for rank in ranks}, took_ns)


def waiting() -> tuple[Sequence[Group], Sequence[Recorded]]:
    return everybody(2, 1), [call(1), call(2, is_done=False)]


def absent_host(ranks: Sequence[int] = ALL) -> RecordedJob:
    """Rank 1 has not called the second all-reduce."""
    late = (everybody(1, 1), [call(1)])
    return RecordedJob({rank: late if rank == 1 else waiting() for rank in ranks})


def other_shape(ranks: Sequence[int] = ALL) -> RecordedJob:
    """Rank 1 calls the second all-reduce with more elements."""
    larger = (everybody(2, 1), [call(1), call(2, is_done=False, sizes=(8,))])
    return RecordedJob({rank: larger if rank == 1 else waiting() for rank in ranks})


def stuck_call(ranks: Sequence[int] = ALL) -> RecordedJob:
    """All called it and none completed it."""
    return RecordedJob({rank: waiting() for rank in ranks})


def both_receive_first(ranks: Sequence[int] = (0, 1)) -> RecordedJob:
    """Two ranks that receive before they send."""

    def of(rank: int) -> tuple[Sequence[Group], Sequence[Recorded]]:
        other = 1 - rank
        calls = [
            Recorded("0", f"recv {rank}<-{other}", 0, 0, 1, is_p2p=True),
            Recorded("0", f"send {rank}->{other}", 1, 0, 2, is_p2p=True),
        ]
        return everybody(2, 0, (0, 1)), calls

    return RecordedJob({rank: of(rank) for rank in ranks})


def nameless() -> RecordedJob:
    """Dumps that hold no calls and do not tell their ranks."""
    return RecordedJob({rank: ([Group("0", None, None, None, "default_pg")], []) for rank in ALL}, name="part{rank}x")
