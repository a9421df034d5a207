"""Where a kernel stands under its roofs, and what it is bound by."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.ncu_report import KernelLaunch, NcuReport
from tests.launches.profiles import TIME, dram, instructions, l1, l2, tensor, vector
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
QUIET = {SM: 5.0}
"""The SMs have little to do beside: no pipeline that is not counted is at its limit."""


def report(*metrics: Mapping[str, float]) -> NcuReport:
    return NcuReport.of({name: value for each in (TIME, *metrics) for name, value in each.items()})


def doing(*, memory: float, compute: float) -> NcuReport:
    """Shares of the ceilings of device memory and of FP32."""
    return report(dram(1000 * memory), vector("f", fma=5000 * compute), QUIET)


CASES = {
    "ncu.roofline": ThreeCases(
        fires=lambda: doing(memory=0.3, compute=0.2),
        clear=lambda: doing(memory=0.85, compute=0.2),
        untold=lambda: report(dram(300)),
    ),
}


def test_headroom_is_what_the_nearest_roof_leaves(ask: Ask) -> None:
    finding = only_finding(ask("ncu.roofline", doing(memory=0.3, compute=0.2)))
    assert finding.recoverable_ns == 700_000
    assert finding.share == 0.7
    assert finding.title == "stencil waits: 30.0 % of its nearest roof"


@pytest.mark.parametrize(
    ("memory", "compute", "title"),
    [
        (0.7, 0.2, "stencil is bound by memory: 70.0 % of its nearest roof"),
        (0.2, 0.7, "stencil is bound by compute: 70.0 % of its nearest roof"),
        (0.7, 0.65, "stencil is balanced between memory and compute: 70.0 % of its nearest roof"),
    ],
)
def test_what_bounds_it_is_said(ask: Ask, memory: float, compute: float, title: str) -> None:
    assert only_finding(ask("ncu.roofline", doing(memory=memory, compute=compute))).title == title


def test_the_position_is_given_with_its_roof_and_its_clocks(ask: Ask) -> None:
    """2,000 operations and 300 bytes per cycle under 10,000 and 1,000: 6.67 per byte, 6,667 attainable."""
    finding = only_finding(ask("ncu.roofline", doing(memory=0.3, compute=0.2)))
    assert finding.claim.startswith(
        "FP32 at 2.0 TFLOP/s and 6.67 FLOP/byte of DRAM, left of the ridge point at 10 FLOP/byte: the roof above is "
        "DRAM with 6.7 TFLOP/s (by the report itself, SMs at 1.0 GHz, memory at 1.0 GHz). Of all its roofs, DRAM is "
        "nearest, at 30.0 %."
    )
    found = figures(finding)
    assert found["intensity over DRAM"] == pytest.approx(2000 / 300)
    assert found["ridge point"] == 10
    assert found["attainable at this intensity"] == pytest.approx(6.667e12, rel=1e-3)
    assert found["ceiling of FP32"] == 10_000e9


def test_what_the_datasheet_says_is_told_with_its_clock(ask: Ask) -> None:
    found = figures(only_finding(ask("ncu.roofline", doing(memory=0.3, compute=0.2))))
    assert found["FP32 by the datasheet at 1.4 GHz"] == 19.5e12
    assert found["DRAM by the datasheet"] == 1_555_000_000_000


def test_the_step_names_the_level_that_is_nearest_to_its_ceiling(ask: Ask) -> None:
    finding = only_finding(ask("ncu.roofline", report(dram(100), l2(2600), l1(3000), vector("f", fma=100), QUIET)))
    assert finding.title == "stencil is bound by memory: 65.0 % of its nearest roof"
    assert finding.next[0].startswith("Ask less of L2")


def test_a_kernel_of_integers_is_never_at_no_per_cent_of_memory(ask: Ask) -> None:
    finding = only_finding(ask("ncu.roofline", report(dram(100), vector("f"), vector("d"), instructions(280), QUIET)))
    assert finding.title == "stencil is bound by compute: 70.0 % of its nearest roof"
    assert finding.claim.startswith(
        "It does no work of any precision, so that its instructions are what counts. Instructions at 280.0 Ginst/s and "
        "2.8 inst/byte of DRAM"
    )


def test_a_kernel_of_tensor_cores_alone_is_judged_by_them(ask: Ask) -> None:
    kernel = report(dram(100), tensor("src_int8", 14_000, 20_000), instructions(20), QUIET)
    finding = only_finding(ask("ncu.roofline", kernel))
    assert finding.title == "stencil is bound by compute: 70.0 % of its nearest roof"
    assert finding.claim.startswith("INT8 tensor at 14.0 TOP/s and 140 OP/byte of DRAM, right of the ridge point")


def test_a_pipeline_that_nothing_counts_may_be_the_limit(ask: Ask) -> None:
    """A product on tensor cores, of which only FP32 and device memory were counted, is not far from its roof."""
    (unseen,) = ask("ncu.roofline", report(dram(300), vector("f", fma=1000)))
    assert isinstance(unseen, CannotTell)
    assert unseen.because.startswith("FP64, FP16, work of the tensor cores may be its limit")
    (copies,) = ask("ncu.roofline", report(dram(920), vector("f", fma=1000)))
    assert isinstance(copies, Clear)
    seen = only_finding(ask("ncu.roofline", report(dram(300), vector("f", fma=1000), {SM: 25.0})))
    assert seen.claim.endswith("Not counted: FP64, FP16, work of the tensor cores.")
    assert seen.confidence == "high"


def test_a_pipeline_that_only_ncu_saw_is_a_limit_too(ask: Ask) -> None:
    (answer,) = ask("ncu.roofline", report(dram(300), vector("f", fma=1000), {SM: 90.0}))
    assert isinstance(answer, Clear)


def test_every_share_has_a_formula_over_what_it_is_of(ask: Ask) -> None:
    busy = {"sm__throughput.avg.pct_of_peak_sustained_elapsed": 25.0}
    finding = only_finding(ask("ncu.roofline", report(dram(300), vector("f", fma=1000), busy)))
    formulas = {each.label: each.formula for each in finding.evidence}
    assert formulas["DRAM, of its ceiling"] == "DRAM / ceiling of DRAM"
    assert formulas["SM speed of light"] == "sm__throughput.avg.pct_of_peak_sustained_elapsed"
    assert figures(finding)["DRAM, of its ceiling"] == pytest.approx(0.3)
    assert figures(finding)["SM speed of light"] == 25


def test_a_point_above_its_roof_is_an_error(ask: Ask) -> None:
    (answer,) = ask("ncu.roofline", doing(memory=1.2, compute=0.2))
    assert isinstance(answer, CannotTell)
    assert answer.because.startswith("a point lies above its roof (DRAM at 120.0 % of its ceiling)")


def test_nothing_to_hold_against_memory_is_no_verdict(ask: Ask) -> None:
    (answer,) = ask("ncu.roofline", report(dram(300), vector("f")))
    assert isinstance(answer, CannotTell)
    assert "nor were its instructions" in answer.because


def test_what_could_be_won_must_matter(ask: Ask) -> None:
    """Two kernels far below their roofs, one of them with a hundredth of the time."""
    metrics = {**TIME, **dram(300), **vector("f", fma=1000), **QUIET}
    long = KernelLaunch({**metrics, "gpu__time_duration.sum": 99_000.0}, "long")
    short = KernelLaunch({**metrics, "gpu__time_duration.sum": 1_000.0}, "short")
    answers = ask("ncu.roofline", NcuReport([long, short]))
    assert only_finding(answers).subject.kernel == "long"
    assert [answer.subject.kernel for answer in answers if isinstance(answer, Clear)] == ["short"]
