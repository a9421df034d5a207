"""What NCCL's RAS says of a running job."""

from __future__ import annotations

from pathlib import Path

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.job import Job
from diag.rules import engine, running
from diag.rules.finding import Clear
from tests.builders.job_log import CANCELLED, RAS_BEHIND, RAS_DEAD, RAS_WELL, JobLog
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

CASES = {
    "nccl.ras": ThreeCases(
        fires=lambda: RAS_DEAD,
        clear=lambda: RAS_WELL,
        untold=lambda: JobLog().add(CANCELLED),
    ),
}


def test_a_rank_that_is_gone_is_named_with_its_host(ask: Ask) -> None:
    finding = only_finding(ask("nccl.ras", RAS_DEAD))
    assert finding.title == "NCCL's RAS: rank 21 does not answer (host 172.16.64.213)"
    assert finding.level == "critical"
    assert finding.subject.ranks == (21,)


def test_one_look_at_ranks_behind_is_information(ask: Ask) -> None:
    finding = only_finding(ask("nccl.ras", RAS_BEHIND))
    assert finding.title == (
        "NCCL's RAS: ranks 0, 2 are behind in 0x27a079b828ff1a75: AllReduce operation 6649 where others launched 6650"
    )
    assert finding.level == "info"
    assert finding.confidence == "low"
    assert figures(finding) == {"behind in AllReduce of 0x27a079b828ff1a75": 1}


def test_two_looks_that_agree_show_that_it_stands_still(tmp_path: Path) -> None:
    first, second = tmp_path / "1.txt", tmp_path / "2.txt"
    RAS_BEHIND.write(first)
    second.write_text(f"{RAS_BEHIND.text}\n")
    with open_inputs([first, second], ImportOptions(use_cache=False)) as case:
        rule = engine.rules()["nccl.ras"]
        assert isinstance(rule, engine.JobRule)
        finding = only_finding(list(running.run_on_job(rule, Job(case), {})))
    assert finding.level == "critical"
    assert finding.confidence == "high"


def test_a_status_without_errors_is_clear(ask: Ask) -> None:
    (answer,) = ask("nccl.ras", RAS_WELL)
    assert isinstance(answer, Clear)
