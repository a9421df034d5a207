"""Which way GPUs of one host reach each other."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.job_log import CANCELLED, JobLog, Rank, nccl_log
from tests.rules.asking import Ask, Query, ThreeCases, figures, only_finding

SWITCHED_OFF = {"NCCL_P2P_DISABLE": "1"}


def shared(_: int, __: int) -> str:
    return "SHM/direct/direct"


def network(_: int, __: int) -> str:
    return "NET/Socket/0"


CASES = {
    "nccl.transport": ThreeCases(
        fires=lambda: nccl_log(*(Rank(rank, via=shared, variables=SWITCHED_OFF) for rank in range(2))),
        clear=lambda: nccl_log(Rank(0), Rank(1)),
        untold=lambda: JobLog().add(CANCELLED),
    ),
}


def test_the_variable_that_switches_it_off_is_named(ask: Ask, query: Query) -> None:
    finding = only_finding(ask("nccl.transport", CASES["nccl.transport"].fires()))
    assert finding.title == "GPUs of host n0 reach each other through shared memory: NCCL_P2P_DISABLE=1 is set"
    assert finding.level == "warning"
    assert finding.subject.ranks == (0, 1)
    assert figures(finding)["channels through the host"] == 4
    rows = query(CASES["nccl.transport"].fires(), finding.evidence[0])
    assert len(rows) == 4
    assert all("SHM/direct/direct" in row[-1] for row in rows)


def test_a_platform_without_peer_access_is_information_only(ask: Ask) -> None:
    said = (
        "P2P is disabled between connected GPUs 1 and 0. You can repress this message with NCCL_IGNORE_DISABLED_P2P=1.",
    )
    log = nccl_log(*(Rank(rank, via=shared, nvlink=None, more=said) for rank in range(2)))
    finding = only_finding(ask("nccl.transport", log))
    assert finding.level == "info"
    assert "NCCL says that peer access is disabled" in finding.claim


def test_the_network_within_a_host_is_worse(ask: Ask) -> None:
    finding = only_finding(
        ask("nccl.transport", nccl_log(*(Rank(rank, via=network, nvlink=None) for rank in range(2))))
    )
    assert finding.title == "GPUs of host n0 reach each other through the network"
    assert finding.level == "warning"


def test_what_goes_to_another_host_is_no_matter_of_this(ask: Ask) -> None:
    log = nccl_log(*(Rank(rank, host=f"n{rank}", local=0, via=network, n_hosts=2) for rank in range(2)))
    (answer,) = ask("nccl.transport", log)
    assert isinstance(answer, Clear)


@pytest.mark.parametrize("via", ["SHM/direct/direct", "direct shared memory", "SHM/CE/CE"])
def test_shared_memory_is_known_by_its_names_of_all_versions(ask: Ask, via: str) -> None:
    log = nccl_log(*(Rank(rank, via=lambda *_: via) for rank in range(2)))
    assert figures(only_finding(ask("nccl.transport", log)))[f"channels via {via}"] == 4


def test_without_connections_it_cannot_tell(ask: Ask) -> None:
    (answer,) = ask("nccl.transport", JobLog().add(Rank(0).line("Using network IB")))
    assert isinstance(answer, CannotTell)
    assert "NCCL_DEBUG=INFO" in answer.because
