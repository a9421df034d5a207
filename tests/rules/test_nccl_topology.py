"""NCCL's picture of a host, and what it made of it."""

from __future__ import annotations

from diag.rules.finding import CannotTell, Clear
from tests.builders.job_log import CANCELLED, JobLog, Rank, nccl_log
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

FILE = ("Loading topology file /etc/topo.xml",)


def uneven(*, file: bool = True) -> JobLog:
    more = FILE if file else ()
    return nccl_log(*(Rank(rank, nvlink=(240.0, 20.0), channels=2, more=more) for rank in range(2)))


def pairs(*channels: int, hosts: int = 1) -> JobLog:
    """One communicator of all ranks, and one of each two with as many channels as is said."""
    places = [(2 * number + local, number, local) for number in range(len(channels)) for local in range(2)]
    return nccl_log(
        *(
            Rank(process, 2 * len(channels), comm_id="0xa11", host=f"n{number}", local=local, n_hosts=len(channels))
            for process, number, local in places
        ),
        *(
            Rank(
                local,
                comm_id=f"0xabc{number}",
                channels=channels[number],
                host=f"n{number}",
                local=local,
                n_hosts=hosts,
                process=process,
            )
            for process, number, local in places
        ),
    )


CASES = {
    "nccl.topology": ThreeCases(
        fires=uneven,
        clear=lambda: nccl_log(Rank(0), Rank(1)),
        untold=lambda: nccl_log(Rank(0, nvlink=None), Rank(1, nvlink=None)),
    ),
    "nccl.channels": ThreeCases(
        fires=lambda: pairs(16, 16, 4),
        clear=lambda: pairs(16, 16),
        untold=lambda: nccl_log(Rank(0), Rank(1)),
    ),
}


def test_an_uneven_link_is_named_with_the_file_it_comes_from(ask: Ask) -> None:
    finding = only_finding(ask("nccl.topology", uneven()))
    assert finding.title == (
        "NCCL's picture of n0 has 20 GB/s one way and 240 GB/s the other between GPU 17000 and GPU 65000"
    )
    assert "/etc/topo.xml" in finding.claim
    assert "NCCL built 2 channels" in finding.claim
    assert "NCCL_TOPO_FILE" in finding.next[0]
    assert figures(finding)["n0: GPU 65000 : GPU 17000"] == 20e9


def test_without_a_file_it_speaks_of_the_links(ask: Ask) -> None:
    finding = only_finding(ask("nccl.topology", uneven(file=False)))
    assert "loaded from" not in finding.claim
    assert any("nvlink" in step for step in finding.next)


def test_rounding_makes_no_uneven_link(ask: Ask) -> None:
    (answer,) = ask("nccl.topology", nccl_log(Rank(0, nvlink=(240.0, 239.0)), Rank(1, nvlink=(240.0, 239.0))))
    assert isinstance(answer, Clear)


def test_the_poor_communicator_is_named_with_its_host(ask: Ask) -> None:
    finding = only_finding(ask("nccl.channels", pairs(16, 16, 4)))
    assert finding.title == "A communicator on host n2 has 4 channels, others like it 16"
    assert finding.subject.ranks == (4, 5)


def test_communicators_of_another_shape_are_no_measure(ask: Ask) -> None:
    log = nccl_log(Rank(0), Rank(1), Rank(0, n_ranks=3, comm_id="0xabc9", channels=2))
    (answer,) = ask("nccl.channels", log)
    assert isinstance(answer, CannotTell)


def test_without_lines_of_nccl_neither_can_tell(ask: Ask) -> None:
    for rule in CASES:
        (answer,) = ask(rule, JobLog().add(CANCELLED))
        assert isinstance(answer, CannotTell)
