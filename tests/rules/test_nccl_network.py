"""Which network NCCL uses between hosts."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.job_log import JobLog, Rank, nccl_log
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

NO_DEVICE = ("NET/IB : No device found.",)


def over_ib(_: int, __: int) -> str:
    return "NET/IB/0/GDRDMA"


def staged(_: int, __: int) -> str:
    return "NET/IB/0"


def sockets(_: int, __: int) -> str:
    return "NET/Socket/0"


def across(*ranks: Rank) -> JobLog:
    return nccl_log(*ranks)


def on_host(rank: int, **more: object) -> Rank:
    about = {"host": f"n{rank}", "local": 0, "n_hosts": 2, "via": over_ib, **more}
    return Rank(rank, **about)  # type: ignore[arg-type]


CASES = {
    "nccl.network": ThreeCases(
        fires=lambda: across(on_host(0), on_host(1, network="Socket", via=sockets, more=NO_DEVICE)),
        clear=lambda: across(on_host(0), on_host(1)),
        untold=lambda: across(*(on_host(r, network="Socket", via=sockets, more=NO_DEVICE) for r in range(2))),
    ),
}


def test_the_host_without_adapter_is_named(ask: Ask) -> None:
    finding = only_finding(ask("nccl.network", CASES["nccl.network"].fires()))
    assert finding.title == "host n1 communicates over sockets: NCCL found no InfiniBand device on host n1"
    assert "host n0 uses IB" in finding.claim
    assert finding.level == "critical"
    assert finding.subject.ranks == (1,)


def test_the_variable_that_switches_it_off_is_named(ask: Ask) -> None:
    off = {"NCCL_IB_DISABLE": "1"}
    log = across(*(on_host(rank, network="Socket", via=sockets, variables=off) for rank in range(2)))
    finding = only_finding(ask("nccl.network", log))
    assert finding.title == "hosts n0, n1 communicate over sockets: NCCL_IB_DISABLE=1 is set"
    assert finding.level == "warning"


def test_a_switch_that_is_zero_switches_nothing_off(ask: Ask) -> None:
    log = across(*(on_host(r, network="Socket", via=sockets, variables={"NCCL_IB_DISABLE": "0"}) for r in range(2)))
    (answer,) = ask("nccl.network", log)
    assert isinstance(answer, CannotTell)


def test_infiniband_through_the_hosts_memory(ask: Ask) -> None:
    log = across(*(on_host(rank, via=staged) for rank in range(2)))
    finding = only_finding(ask("nccl.network", log))
    assert finding.title == "InfiniBand without GPU Direct RDMA on hosts n0, n1"
    assert figures(finding)["channels without GDRDMA"] == 4


def test_a_job_on_one_host_has_no_network(ask: Ask) -> None:
    (answer,) = ask("nccl.network", nccl_log(Rank(0, network="Socket"), Rank(1, network="Socket")))
    assert isinstance(answer, Clear)


@pytest.mark.parametrize("said", ["Init START", "Bootstrap: Using eth0:10.0.0.1<0>"])
def test_without_communicators_it_cannot_tell(ask: Ask, said: str) -> None:
    (answer,) = ask("nccl.network", JobLog().add(Rank(0).line("Using network IB"), Rank(0).line(said)))
    assert isinstance(answer, CannotTell)
