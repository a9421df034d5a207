"""The PCIe link of a device that works."""

from __future__ import annotations

import pytest

from diag.model.live import GpuReading
from diag.rules.finding import CannotTell, Clear, Finding
from tests.builders.live import device, untold_device, watched
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

CASES = {
    "live.pcie_link": ThreeCases(
        fires=lambda: watched(lambda _: device(pcie_width=8)),
        clear=lambda: watched(lambda at: device(resident_pct=100.0 * (at % 2), pcie_generation=1 + 4 * (at % 2))),
        untold=lambda: watched(lambda _: untold_device("pcie_width_max")),
    ),
}


def test_both_links_are_told(ask: Ask) -> None:
    finding = only_finding(ask("live.pcie_link", watched(lambda _: device(pcie_generation=4))))
    assert finding.title == "GPU 0 has a PCIe 4.0 x16 link where 5.0 x16 is possible"
    told = figures(finding)
    assert [told["link now"], told["link at its best"]] == pytest.approx([31.5e9, 63.0e9], rel=0.01)


def test_an_idle_gpu_powers_its_link_down(ask: Ask) -> None:
    (answer,) = ask("live.pcie_link", watched(lambda _: device(resident_pct=0.0, pcie_generation=1)))
    assert isinstance(answer, CannotTell)
    assert "powers its link down" in answer.because


@pytest.mark.parametrize(("slow", "kind"), [(18, Finding), (17, Clear)])
def test_nine_tenths_of_the_busy_time(ask: Ask, slow: int, kind: type) -> None:
    def gpu(at: int) -> GpuReading:
        return device(pcie_width=8 if 1 <= at <= slow else 16)

    (answer,) = ask("live.pcie_link", watched(gpu))
    assert isinstance(answer, kind)
