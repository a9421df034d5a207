"""Pairs of GPUs without NVLink, and GPUs far from the network."""

from __future__ import annotations

from diag.rules.finding import CannotTell, Clear
from tests.builders.topology import Topology
from tests.rules.asking import Ask, Query, ThreeCases, figures, only_finding


def bridged(a: str, b: str) -> str:
    """Pairs of neighbours have a bridge, as PCIe cards of an A100 may; others cross the sockets."""
    if a.startswith("GPU") and b.startswith("GPU"):
        return "NV12" if int(a[3:]) // 2 == int(b[3:]) // 2 else "SYS"
    return "PIX"


def one_sided(a: str, b: str) -> str:
    """Both cards belong to the first socket."""
    if a.startswith("GPU") and b.startswith("GPU"):
        return "NV18"
    return "PIX" if a in ("GPU0", "GPU1", "GPU2", "GPU3") else "SYS"


ALIKE = Topology(lambda a, b: "NV18" if b.startswith("GPU") else "PIX", cards=("NIC0", "NIC1"))

CASES = {
    "comm.topology": ThreeCases(
        fires=lambda: Topology(bridged), clear=lambda: ALIKE, untold=lambda: Topology(n_gpus=1, cards=("NIC0",))
    ),
    "comm.nics": ThreeCases(
        fires=lambda: Topology(one_sided, cards=("NIC0", "NIC1")),
        clear=lambda: ALIKE,
        untold=lambda: Topology(cards=()),
    ),
}


def test_pairs_across_are_counted_by_their_way(ask: Ask, query: Query) -> None:
    finding = only_finding(ask("comm.topology", Topology(bridged, cards=())))
    assert finding.title == "24 of 28 pairs of GPUs have no NVLink between them"
    assert "24 over SYS), GPU0 and GPU2 over SYS" in finding.claim
    assert figures(finding)["pairs with NVLink"] == 4
    assert finding.severity == "warning"
    assert len(query(Topology(bridged, cards=()), finding.evidence[0])) == 28


def test_a_host_without_any_nvlink_lacks_none(ask: Ask) -> None:
    (answer,) = ask("comm.topology", Topology(lambda a, b: "SYS"))
    assert isinstance(answer, Clear)


def test_old_names_of_connections_are_those_of_today(ask: Ask) -> None:
    finding = only_finding(ask("comm.topology", Topology(lambda a, b: bridged(a, b).replace("SYS", "SOC"), cards=())))
    assert "over SYS" in finding.claim


def test_gpus_far_from_every_card_are_named(ask: Ask) -> None:
    finding = only_finding(ask("comm.nics", Topology(one_sided, cards=("mlx5_0",))))
    assert finding.claim == "GPU4, GPU5, GPU6, GPU7 reach their nearest card over SYS, others over PIX."


def test_a_card_of_its_own_for_every_second_gpu_is_near_enough(ask: Ask) -> None:
    (answer,) = ask("comm.nics", Topology())
    assert isinstance(answer, Clear)


def test_without_cards_it_cannot_tell(ask: Ask) -> None:
    (answer,) = ask("comm.nics", Topology(cards=()))
    assert isinstance(answer, CannotTell)
