"""FP64 arithmetic that may be there by accident."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.ncu_report import NcuReport, Value
from tests.rules.asking import Ask, ThreeCases, only_finding
from tests.rules.test_ncu_fused import COUNT
from tests.rules.test_ncu_pipes import ALU, FP64

SLOWDOWN = "device__attribute_single_to_double_precision_perf_ratio"


def fp64(busy: float, slowdown: int, **more: Value) -> NcuReport:
    return NcuReport.of({FP64.format("active"): busy, SLOWDOWN: slowdown, **more})


def mixed(fp64_share: int) -> NcuReport:
    """A hundred floating-point instructions on a device that is made for FP64, so many of them in FP64."""
    counts = {"dadd": fp64_share, "dmul": 0, "dfma": 0, "fadd": 100 - fp64_share, "fmul": 0, "ffma": 0}
    return fp64(40.0, 2, **{COUNT.format(opcode): n for opcode, n in counts.items()})


CASES = {
    "ncu.fp64": ThreeCases(
        fires=lambda: fp64(64.0, 64), clear=lambda: fp64(14.9, 64), untold=lambda: NcuReport.of({SLOWDOWN: 64})
    ),
}


def test_fp32_would_take_a_fraction_of_the_pipes_time(ask: Ask) -> None:
    """64 % of the launch, of which 1 / 64 remains."""
    assert only_finding(ask("ncu.fp64", fp64(64.0, 64))).recoverable_ns == 630_000


def test_the_launch_takes_no_less_than_its_other_units(ask: Ask) -> None:
    finding = only_finding(ask("ncu.fp64", fp64(64.0, 64, **{ALU.format("elapsed"): 80.0})))
    assert finding.recoverable_ns == pytest.approx(200_000, abs=1)


def test_a_kernel_in_fp64_on_a_device_made_for_it_is_clear(ask: Ask) -> None:
    (answer,) = ask("ncu.fp64", mixed(100))
    assert isinstance(answer, Clear)


def test_a_little_fp64_among_fp32_may_be_a_slip(ask: Ask) -> None:
    """40 % of the launch, of which half remains."""
    finding = only_finding(ask("ncu.fp64", mixed(30)))
    assert finding.confidence == "medium"
    assert finding.recoverable_ns == 200_000


def test_fp32_kernels_without_fp64_are_clear(ask: Ask) -> None:
    (answer,) = ask("ncu.fp64", mixed(0))
    assert isinstance(answer, Clear)


def test_without_counts_a_mix_cannot_be_told(ask: Ask) -> None:
    (answer,) = ask("ncu.fp64", fp64(40.0, 2))
    assert isinstance(answer, CannotTell)
    assert "op_dadd" in answer.because
