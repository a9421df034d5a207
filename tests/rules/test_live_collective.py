"""A device that looks busy and does little."""

from __future__ import annotations

import pytest

from diag.model.live import ProcessReading
from diag.rules.finding import Clear
from tests.builders.live import Watched, device, process, untold_device, watched
from tests.rules.asking import Ask, ThreeCases, only_finding

SPINNING = {
    "power_w": 180.0, "memory_active_pct": 1.0, "sm_active_pct": 12.0,
    "pcie_rx_bytes_per_s": 1e6, "pcie_tx_bytes_per_s": 1e6,
}  # fmt: skip


def ranks(at: int) -> list[ProcessReading]:
    return [process(at, rank=0, world_size=8)]


def spinning(**changes: object) -> Watched:
    return watched(lambda _: device(**{**SPINNING, **changes}), ranks)


CASES = {
    "live.busy_wait": ThreeCases(
        fires=spinning,
        clear=watched,
        untold=lambda: watched(lambda _: untold_device("power_w")),
    ),
}


@pytest.mark.parametrize(
    "sign",
    [
        {"power_w": 300.0},
        {"memory_active_pct": 12.0},
        {"pcie_rx_bytes_per_s": 5e9},
        {"sm_active_pct": 40.0},
        {"resident_pct": 80.0},
    ],
)
def test_every_sign_is_needed(ask: Ask, sign: dict[str, float]) -> None:
    (answer,) = ask("live.busy_wait", spinning(**sign))
    assert isinstance(answer, Clear)


def test_signs_must_come_together(ask: Ask) -> None:
    """Half of the time there is no power, the other half no memory traffic: that is no waiting."""
    case = watched(lambda at: device(**(SPINNING | ({"power_w": 600.0} if at % 2 else {"memory_active_pct": 50.0}))))
    (answer,) = ask("live.busy_wait", case)
    assert isinstance(answer, Clear)


def test_ranks_and_sm_activity_make_it_certain(ask: Ask) -> None:
    assert only_finding(ask("live.busy_wait", spinning())).confidence == "high"
    without_sm = spinning(sm_active_pct=None, untold={"sm_active_pct": "GPM needs a Hopper"})
    finding = only_finding(ask("live.busy_wait", without_sm))
    assert finding.confidence == "medium"
    assert "GPM needs a Hopper" in finding.claim


def test_of_one_process_it_may_be_tiny_kernels(ask: Ask) -> None:
    finding = only_finding(ask("live.busy_wait", watched(lambda _: device(**SPINNING, tensor_active_pct=None))))
    assert finding.confidence == "medium"
    assert "tiny kernels" in finding.title


def test_the_device_that_does_not_wait_is_named(ask: Ask) -> None:
    case = watched(lambda _: [device(**SPINNING), device(index=1, uuid="GPU-1", resident_pct=20.0)], ranks)
    finding = only_finding(ask("live.busy_wait", case))
    assert finding.next[0] == "Look at GPU 1: of those that were watched it does not wait."
