"""Which device the ranks of a job took."""

from __future__ import annotations

from dataclasses import replace

from diag.rules.finding import CannotTell
from tests.builders.job_log import JobLog, Rank, nccl_log, traceback_of
from tests.rules.asking import Ask, ThreeCases, only_finding

HOSTS = [Rank(rank, 4, f"n{rank // 2}", rank % 2, n_hosts=2) for rank in range(4)]
"""Two hosts with two ranks each."""


def by_rank_in_the_job() -> JobLog:
    return nccl_log(*(replace(rank, local=rank.rank) for rank in HOSTS))


def one_device_for_two() -> JobLog:
    return nccl_log(*HOSTS[:3], replace(HOSTS[3], local=0))


CASES = {
    "hang.binding": ThreeCases(one_device_for_two, lambda: nccl_log(*HOSTS), lambda: nccl_log(*HOSTS[:2])),
}


def test_ranks_on_one_bus_of_a_host_are_named(ask: Ask) -> None:
    finding = only_finding(ask("hang.binding", one_device_for_two()))
    assert (finding.subject.ranks, finding.severity) == ((2, 3), "critical")
    assert finding.title == "Ranks 2, 3: more than one rank on one device of host n1"
    assert "busId 17000" in finding.claim


def test_nccls_own_word_for_it_names_whoever_took_that_bus(ask: Ask) -> None:
    said = "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 17000"
    log = nccl_log(*HOSTS[:2], HOSTS[2], replace(HOSTS[3], local=0))
    finding = only_finding(ask("hang.binding", log.add(HOSTS[2].line(said, "WARN", "init.cc:943"))))
    assert finding.subject.ranks == (2, 3)
    assert said in finding.claim


def test_a_device_that_is_not_there_names_who_says_so(ask: Ask) -> None:
    said = traceback_of("[rank9]: ", "torch.AcceleratorError: CUDA error: invalid device ordinal")
    finding = only_finding(ask("hang.binding", nccl_log(*HOSTS).add(*said)))
    assert finding.subject.ranks == (9,)
    assert finding.title == "Rank 9: a device that the host does not have"


def test_a_binding_by_rank_in_the_job_is_no_fault_by_itself(ask: Ask) -> None:
    finding = only_finding(ask("hang.binding", by_rank_in_the_job()))
    assert (finding.subject.ranks, finding.severity, finding.confidence) == ((2, 3), "info", "low")
    assert "busId" in finding.claim


def test_one_host_alone_tells_nothing_of_it(ask: Ask) -> None:
    (answer,) = ask("hang.binding", nccl_log(*HOSTS[2:]))
    assert isinstance(answer, CannotTell)
    assert answer.because == "2 of 4 ranks say which device they took"
