"""A pipeline that the kernel runs into."""

from __future__ import annotations

from diag.rules.finding import Clear
from tests.builders.ncu_report import NcuReport, Value
from tests.rules.asking import Ask, ThreeCases, only_finding

ALU = "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_{}"
FMA = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_{}"
FP64 = "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_{}"
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_{}"
ISSUE = "sm__issue_active.avg.pct_of_peak_sustained_elapsed"
L2 = "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"


def piped(alu: float, fma: float, **more: Value) -> NcuReport:
    return NcuReport.of({ALU.format("active"): alu, FMA.format("active"): fma, **more})


CASES = {
    "ncu.pipes": ThreeCases(
        fires=lambda: piped(85.0, 20.0),
        clear=lambda: piped(79.9, 20.0),
        untold=lambda: NcuReport.of({ALU.format("active"): 85.0}),
    ),
}


def test_the_busiest_other_unit_is_what_remains(ask: Ask) -> None:
    """Issue slots are in use for 55 % of the launch, L2 for 35. That the pipe works is no loss of time."""
    report = piped(85.0, 20.0, **{ISSUE: 55.0, L2: 35.0, ALU.format("elapsed"): 82.0})
    finding = only_finding(ask("ncu.pipes", report))
    assert finding.recoverable_ns is None
    assert finding.level == "info"
    assert "No other unit of the device is busier than 55.0 %." in finding.claim


def test_busy_in_the_elapsed_cycles_is_busy_in_the_active_ones(ask: Ask) -> None:
    metrics: dict[str, Value] = {ALU.format("elapsed"): 20.0, FMA.format("elapsed"): 81.0}
    finding = only_finding(ask("ncu.pipes", NcuReport.of(metrics)))
    assert finding.title == "The FMA pipeline limits stencil: it is 81.0 % busy"


def test_pipelines_that_only_some_devices_have_count_where_they_were_measured(ask: Ask) -> None:
    finding = only_finding(ask("ncu.pipes", piped(10.0, 20.0, **{FP64.format("active"): 90.0})))
    assert finding.title.startswith("The FP64 pipeline")
    assert "Others: FMA 20.0 %, ALU 10.0 %." in finding.claim


def test_busy_tensor_cores_are_what_is_wanted(ask: Ask) -> None:
    (answer,) = ask("ncu.pipes", piped(10.0, 20.0, **{TENSOR.format("active"): 95.0}))
    assert isinstance(answer, Clear)
