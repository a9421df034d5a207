from __future__ import annotations

from diag.rules.finding import Clear
from tests.builders.recorded_calls import Group
from tests.builders.recorded_job import RecordedJob
from tests.rules import hanging
from tests.rules.asking import Ask, ThreeCases, only_finding

MOST_OF_TIMEOUT_NS = 400_000_000_000


def other_members() -> RecordedJob:
    """Rank 1 takes group 7 for one of ranks 0 and 1."""

    def groups(rank: int) -> list[Group]:
        ranks = (0, 1) if rank == 1 else hanging.ALL
        return [*hanging.everybody(1, 1), Group("7", ranks, -1, -1, "experts")]

    return RecordedJob({rank: (groups(rank), [hanging.call(1)]) for rank in hanging.ALL})


def other_sizes() -> RecordedJob:
    """Rank 1 takes the job for one of two ranks."""
    return RecordedJob(
        {rank: (hanging.everybody(1, 1, (0, 1) if rank == 1 else hanging.ALL), []) for rank in hanging.ALL}
    )


def no_members() -> RecordedJob:
    return hanging.healthy(members=None)


CASES = {
    "hang.groups": ThreeCases(other_members, hanging.healthy, no_members),
    "hang.init": ThreeCases(other_sizes, hanging.healthy, no_members),
    "hang.timeout": ThreeCases(
        lambda: hanging.healthy(took_ns=MOST_OF_TIMEOUT_NS), lambda: hanging.healthy(took_ns=1_000), hanging.healthy
    ),
}


def test_a_wrong_list_of_members_names_the_rank(ask: Ask) -> None:
    finding = only_finding(ask("hang.groups", other_members()))
    assert finding.subject.ranks == (1,)
    assert "[0, 1]" in finding.claim


def test_names_that_each_rank_counts_for_itself_are_no_fault(ask: Ask) -> None:
    """Groups made by their members alone: the second one of rank 0 is the first one of rank 2."""
    groups = {
        0: [Group("1", (0, 1), -1, -1, "pair"), Group("2", (0, 2), -1, -1, "pair")],
        1: [Group("1", (0, 1), -1, -1, "pair")],
        2: [Group("1", (0, 2), -1, -1, "pair")],
    }
    job = RecordedJob({rank: ([*hanging.everybody(1, 1), *of], [hanging.call(1)]) for rank, of in groups.items()})
    assert any(isinstance(answer, Clear) for answer in ask("hang.groups", job))


def test_a_wrong_world_size_names_the_rank(ask: Ask) -> None:
    assert only_finding(ask("hang.init", other_sizes())).subject.ranks == (1,)
