"""Whether all ranks run the same NCCL."""

from __future__ import annotations

from tests.builders.job_log import CANCELLED, JobLog, Rank, nccl_log
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

CASES = {
    "nccl.version": ThreeCases(
        fires=lambda: nccl_log(Rank(0), Rank(1, host="n1", local=0, version="2.26.2")),
        clear=lambda: nccl_log(Rank(0), Rank(1)),
        untold=lambda: JobLog().add(CANCELLED),
    ),
}


def test_each_version_is_named_with_its_hosts(ask: Ask) -> None:
    finding = only_finding(ask("nccl.version", CASES["nccl.version"].fires()))
    assert finding.title == "NCCL 2.26.2 and 2.27.7 in one job"
    assert finding.level == "critical"
    assert "2.26.2 on n1" in finding.claim
    assert figures(finding) == {"hosts with NCCL 2.26.2": 1, "hosts with NCCL 2.27.7": 1}
