"""Which collective PyTorch's watchdog gave up on."""

from __future__ import annotations

from diag.rules.finding import CannotTell
from tests.builders.job_log import RAS_WELL, JobLog, asked_to_dump, elastic_report, timed_out
from tests.rules.asking import Ask, ThreeCases, figures, only_finding


def one_did_not_come() -> JobLog:
    """Ranks 0, 1 and 3 wait in collective 167; rank 2 had enqueued 166."""
    log = JobLog()
    for rank in (0, 1, 3):
        log.add(*timed_out(rank, 167))
    return log.add(asked_to_dump(2, 0, 166))


CASES = {
    "job.watchdog": ThreeCases(
        fires=one_did_not_come,
        clear=lambda: JobLog().add(*elastic_report(1)),
        untold=lambda: RAS_WELL,
    ),
}


def test_the_rank_that_did_not_come_is_the_subject(ask: Ask) -> None:
    finding = only_finding(ask("job.watchdog", one_did_not_come()))
    assert finding.title == "ranks 0, 1, 3 waited 600.1 s in ALLREDUCE 167; rank 2 had not called it"
    assert finding.subject.ranks == (2,)
    assert finding.confidence == "high"
    assert figures(finding)["last enqueued by rank 2"] == 166


def test_whoever_complains_is_not_blamed(ask: Ask) -> None:
    finding = only_finding(ask("job.watchdog", JobLog().add(*timed_out(0, 167)).add(*timed_out(1, 167))))
    assert finding.subject.ranks == (0, 1)
    assert finding.confidence == "medium"
    assert "those that complain are those that waited" in finding.claim


def test_the_first_in_time_counts_not_the_first_in_the_file(ask: Ask) -> None:
    log = JobLog().add(*timed_out(1, 900, op="BROADCAST", second=40)).add(*timed_out(0, 7, second=21))
    assert "ALLREDUCE 7" in only_finding(ask("job.watchdog", log)).title


def test_ranks_of_a_group_are_those_of_the_job_by_their_label(ask: Ask) -> None:
    lines = [line.replace("[Rank 9]", "[Rank 1]") for line in timed_out(9, 5)]
    assert only_finding(ask("job.watchdog", JobLog().add(*lines))).subject.ranks == (9,)


def test_a_status_of_ras_tells_nothing_of_it(ask: Ask) -> None:
    (answer,) = ask("job.watchdog", RAS_WELL)
    assert isinstance(answer, CannotTell)
