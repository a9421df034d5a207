from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell
from diag.rules.hang_words import NO_OWN_FRAME
from tests.builders.folders import Folder
from tests.rules import hanging
from tests.rules.asking import Analyse, Ask, Query, ThreeCases, figures, only_finding
from tests.rules.test_hang_alive import IN_ALL_REDUCE, LOADS, stacks

CASES = {
    "hang.blocked": ThreeCases(hanging.absent_host, hanging.healthy, lambda: hanging.absent_host([0, 2])),
    "hang.mismatch": ThreeCases(hanging.other_shape, hanging.healthy, lambda: hanging.other_shape([0, 2])),
    "hang.cycle": ThreeCases(hanging.both_receive_first, hanging.healthy, lambda: hanging.both_receive_first([0])),
    "hang.unfinished": ThreeCases(hanging.stuck_call, hanging.healthy, lambda: hanging.stuck_call([0, 2])),
}


def test_it_names_the_rank_and_says_how_it_knows(ask: Ask) -> None:
    finding = only_finding(ask("hang.blocked", hanging.absent_host()))
    assert finding.subject.ranks == (1,)
    assert "nothing outstanding on this rank: host blocked" in finding.title
    assert figures(finding)["call"] == "all_reduce 2 of default_pg 0"
    assert figures(finding)["waiting ranks"] == 2


def test_stacks_are_asked_for_only_where_there_are_none(ask: Ask) -> None:
    assert "py-spy" in only_finding(ask("hang.blocked", hanging.absent_host())).next[-1]
    library = [("recv", "/usr/lib/python3.11/multiprocessing/connection.py", 250)]
    for frames, told in ((LOADS, ["Look at read (/home/me/data.py:14)."]), (library, [NO_OWN_FRAME])):
        known = stacks(IN_ALL_REDUCE, frames, IN_ALL_REDUCE)
        assert only_finding(ask("hang.blocked", Folder((hanging.absent_host(), known)))).next == told


def test_without_its_dump_the_rank_is_only_a_suspect(ask: Ask) -> None:
    (answer,) = ask("hang.blocked", hanging.absent_host([0, 2]))
    assert isinstance(answer, CannotTell)
    assert "rank 1" in answer.because


def test_the_other_shape_is_shown(ask: Ask) -> None:
    finding = only_finding(ask("hang.mismatch", hanging.other_shape()))
    assert finding.subject.ranks == (1,)
    assert "[[8]] Float" in finding.claim


def test_the_verdict_is_the_hang(report_on: Analyse) -> None:
    report = report_on(hanging.absent_host())
    assert report.verdict.title.startswith("Rank 1 holds up the job")
    assert [(row.rank, row.state, row.waits_for) for row in report.ranks] == [
        (0, "waiting", [1]),
        (1, "blocked", []),
        (2, "waiting", [1]),
    ]
    (group,) = report.groups
    assert (group.ranks, group.enqueued, group.completed) == ([0, 1, 2], [2, 1, 2], [1, 1, 1])


@pytest.mark.parametrize("rule_id", CASES)
def test_the_rows_behind_it_are_there(ask: Ask, query: Query, rule_id: str) -> None:
    recorded = CASES[rule_id].fires()
    finding = only_finding(ask(rule_id, recorded))
    for evidence in finding.evidence:
        assert evidence.sql is None or query(recorded, evidence)
