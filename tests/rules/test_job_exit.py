"""How the processes of a job ended, and which end came first."""

from __future__ import annotations

import pytest

from tests.builders.job_log import CANCELLED, RAS_WELL, JobLog, Rank, elastic_report, nccl_log, timed_out, traceback_of
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

OOM = (
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4711.batch. Some of your processes may have been killed"
)
XID = "[1234.5] NVRM: Xid (PCI:0000:65:00): 79, pid=1122, name=python, GPU has fallen off the bus."

CASES = {
    "job.exit": ThreeCases(
        fires=lambda: JobLog().add(*elastic_report(2)),
        clear=lambda: nccl_log(Rank(0), Rank(1)),
        untold=lambda: RAS_WELL,
    ),
}


def test_the_rank_and_its_signal_are_named(ask: Ask) -> None:
    finding = only_finding(ask("job.exit", JobLog().add(*elastic_report(2))))
    assert finding.title == "A signal: rank 2"
    assert "SIGKILL" in finding.claim
    assert finding.subject.ranks == (2,)
    assert "not always the cause" in finding.claim


@pytest.mark.parametrize(
    ("line", "title"),
    [
        (OOM, "The host's memory ran out: step 4711.batch"),
        (CANCELLED, "The job's time was up: host n0"),
        (XID, "The driver reported a fault of a GPU: GPU PCI:0000:65:00, Xid 79, process 1122"),
        ("srun: error: n3: tasks 8-9: Killed", "A task ended with an error: ranks 8, 9"),
    ],
)
def test_what_the_machine_says(ask: Ask, line: str, title: str) -> None:
    assert only_finding(ask("job.exit", JobLog().add(line))).title == title


def test_want_of_memory_explains_the_signal(ask: Ask) -> None:
    finding = only_finding(ask("job.exit", JobLog().add(*elastic_report(2)).add(OOM)))
    assert finding.title.startswith("The host's memory ran out")
    assert figures(finding)["a signal"] == 1


def test_an_exception_that_speaks_of_a_peer_comes_last(ask: Ask) -> None:
    peer = "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:219, remote process exited"
    log = JobLog().add(*traceback_of("[rank0]: ", peer)).add(*traceback_of("[rank3]: ", "ValueError: bad batch"))
    finding = only_finding(ask("job.exit", log))
    assert finding.title == "An exception: rank 3"
    assert "Others that ended, too: rank 0" in finding.claim


def test_who_only_lost_a_peer_is_not_the_cause(ask: Ask) -> None:
    peer = "RuntimeError: Connection closed by peer [127.0.0.1]:28576"
    finding = only_finding(ask("job.exit", JobLog().add(*traceback_of("[rank0]: ", peer))))
    assert finding.level == "warning"
    assert "It only says that another rank is gone." in finding.claim
    assert only_finding(ask("job.exit", JobLog().add(*elastic_report(2)))).level == "critical"


def test_a_timeout_alone_is_no_end(ask: Ask) -> None:
    answers = ask("job.exit", JobLog().add(*timed_out(0, 7)))
    assert [type(answer).__name__ for answer in answers] == ["CannotTell"]
