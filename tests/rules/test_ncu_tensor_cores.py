"""FP32 multiply-adds by the dozen, beside tensor cores that do nothing."""

from __future__ import annotations

from typing import Any

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.ncu_report import NcuReport
from tests.rules.asking import Ask, ThreeCases, only_finding
from tests.rules.test_ncu_pipes import FMA, TENSOR

FUSED = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
INSTRUCTIONS = "smsp__thread_inst_executed_pred_on.sum"
TURING = {"compute_capability_major": 7, "compute_capability_minor": 5, "multiprocessor_count": 24}


def product(*, fma: float = 80.0, tensor: float = 0.0, fused: float = 700, **more: float) -> NcuReport:
    """A kernel of a thousand instructions, most of them FP32 multiply-adds."""
    metrics = {FMA.format("active"): fma, TENSOR.format("active"): tensor, FUSED: fused, INSTRUCTIONS: 1000, **more}
    return NcuReport.of(metrics)


def on(report: NcuReport, device: str | None, attributes: Any) -> NcuReport:
    return NcuReport(report.launches, device=device, attributes=attributes)


CASES = {
    "ncu.tensor_cores": ThreeCases(
        fires=product,
        clear=lambda: product(tensor=30.0),
        untold=lambda: NcuReport.of({FMA.format("active"): 80.0, TENSOR.format("active"): 0.0}),
    ),
}


def test_the_datasheets_ratio_bounds_what_could_be_won(ask: Ask) -> None:
    """An A100 does 19.5 TFLOP/s in FP32 and 156 in TF32: an eighth of the 80 % remains."""
    finding = only_finding(ask("ncu.tensor_cores", product()))
    assert finding.recoverable_ns == 700_000
    assert finding.confidence == "medium"


def test_the_busiest_other_unit_bounds_it_too(ask: Ask) -> None:
    report = product(**{"lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 75.0})
    assert only_finding(ask("ncu.tensor_cores", report)).recoverable_ns == 250_000


def test_multiply_adds_in_fp16_count_as_those_in_fp32_do(ask: Ask) -> None:
    """On a V100, where FP16 has a pipe of its own; its limits are known, its FP32 peak is, too."""
    fp16 = "sm__inst_executed_pipe_fp16.avg.pct_of_peak_sustained_active"
    halves = {fp16: 90.0, "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum": 600}
    volta = {"compute_capability_major": 7, "compute_capability_minor": 0, "multiprocessor_count": 80}
    finding = only_finding(ask("ncu.tensor_cores", on(product(fma=5.0, fused=0, **halves), "Some GPU", volta)))
    assert "60.0 % of its instructions are multiply-adds. Their pipe is 90.0 % busy" in finding.claim
    assert finding.recoverable_ns == 900_000


@pytest.mark.parametrize("report", [product(fma=59.9), product(fused=499), product(tensor=1.0)])
def test_other_kernels_are_left_alone(ask: Ask, report: NcuReport) -> None:
    (answer,) = ask("ncu.tensor_cores", report)
    assert isinstance(answer, Clear)


def test_chips_without_tensor_cores_are_known(ask: Ask) -> None:
    (answer,) = ask("ncu.tensor_cores", on(product(), "NVIDIA GeForce GTX 1660", TURING))
    assert isinstance(answer, Clear)


def test_an_unknown_device_cannot_be_judged(ask: Ask) -> None:
    (answer,) = ask("ncu.tensor_cores", on(product(), None, {}))
    assert isinstance(answer, CannotTell)
    assert answer.because == "whether this device has tensor cores is not known"
