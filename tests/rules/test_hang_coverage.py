from __future__ import annotations

from tests.builders.recorded_job import RecordedJob
from tests.rules import hanging
from tests.rules.asking import Ask, ThreeCases, only_finding


def without_members() -> RecordedJob:
    return hanging.healthy(members=None)


CASES = {
    "hang.absent": ThreeCases(lambda: hanging.absent_host([0, 2]), hanging.healthy, without_members),
    "hang.progress": ThreeCases(hanging.stuck_call, hanging.healthy, hanging.nameless),
}


def test_suspects_are_listed_and_so_is_what_their_dumps_decide(ask: Ask) -> None:
    finding = only_finding(ask("hang.absent", hanging.absent_host([0, 2])))
    assert finding.subject.ranks == (1,)
    assert "Rank 0 is undecided" in finding.claim
