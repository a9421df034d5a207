"""What a report counts becomes a roofline: each rate with its own peak, and nothing counted twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from diag.launches.kernel import Untold, profiled_kernels
from diag.launches.roofline import roofline_of
from diag.model.roofline import Roofline
from tests.builders.imported import imported
from tests.builders.ncu_report import A100, NcuReport
from tests.launches.profiles import GHZ, TIME, dram, instructions, l1, l2, tensor, vector

Found = Callable[..., Roofline | Untold]


@pytest.fixture
def found(tmp_path: Path) -> Found:
    """The roofline of one launch with some metrics on a device of some compute capability."""

    def measure(
        *metrics: Mapping[str, float],
        capability: tuple[int, int] = (8, 0),
        device: str | None = "NVIDIA A100-PCIE-40GB",
    ) -> Roofline | Untold:
        major, minor = capability
        attributes = {**A100, "compute_capability_major": major, "compute_capability_minor": minor}
        merged = {name: value for each in (TIME, *metrics) for name, value in each.items()}
        report = NcuReport(NcuReport.of(merged).launches, device, attributes)
        with imported(report, tmp_path) as case:
            (kernel,) = profiled_kernels(case, case.sources[0].id)
            return roofline_of(kernel)

    return measure


@pytest.fixture
def roofline(found: Found) -> Callable[..., Roofline]:
    def measure(*metrics: Mapping[str, float], **device: Any) -> Roofline:
        made = found(*metrics, **device)
        assert isinstance(made, Roofline), made
        return made

    return measure


def work(made: Roofline) -> dict[str, float]:
    """Operations per cycle by what they are of."""
    return {rate.name: rate.per_s / GHZ for rate in made.work}


def test_every_level_and_precision_has_its_own_peak(roofline: Callable[..., Roofline]) -> None:
    made = roofline(dram(500), l2(1000), l1(4000), vector("f", add=100, fma=450), vector("d", mul=1000))
    assert [(rate.name, rate.share) for rate in made.traffic] == [("DRAM", 0.5), ("L2", 0.25), ("L1", 0.4)]
    assert work(made) == {"FP64": 1000, "FP32": 1000}
    assert [rate.share for rate in made.work] == [0.1, 0.1]
    assert {rate.ceiling.origin for rate in made.rates} == {"report"}
    assert {rate.ceiling.sm_clock_hz for rate in made.rates} == {GHZ}


def test_an_instruction_of_fp16_works_on_a_pair(roofline: Callable[..., Roofline]) -> None:
    made = roofline(dram(500), vector("h", add=10, mul=20, fma=30))
    assert work(made) == {"FP16": 2 * 10 + 2 * 20 + 4 * 30}
    assert made.work[0].ceiling.per_s == 4 * 5000 * GHZ


def test_some_instructions_of_blackwell_work_on_a_pair_of_fp32(roofline: Callable[..., Roofline], found: Found) -> None:
    pairs = {
        f"smsp__sass_thread_inst_executed_op_f{operation}2_pred_on.sum.per_cycle_elapsed": 10.0
        for operation in ("add", "mul", "fma")
    }
    single = vector("f", add=1, mul=1, fma=1)
    assert work(roofline(dram(500), single, pairs, capability=(10, 0))) == {"FP32": 4 + 80}
    assert work(roofline(dram(500), single, pairs, capability=(9, 0))) == {"FP32": 4}
    made = found(dram(500), single, capability=(10, 0))
    assert isinstance(made, Untold)
    assert "fadd2" in made.because


def test_sparse_operations_are_part_of_all_and_are_not_added_to_them(roofline: Callable[..., Roofline]) -> None:
    whole = tensor("src_bf16_dst_fp32", 1000, 4000)
    dense = tensor("src_bf16_dst_fp32_sparsity_off", 600, 4000)
    sparse = tensor("src_bf16_dst_fp32_sparsity_on", 400, 8000)
    apart = roofline(dram(500), whole, dense, sparse)
    assert work(apart) == {"BF16 tensor": 600, "BF16 tensor, sparse": 400}
    assert sum(work(apart).values()) == 1000
    (pipeline,) = (limit for limit in apart.limits if limit.side == "compute")
    assert pipeline.share == pytest.approx(600 / 4000 + 400 / 8000)
    assert work(roofline(dram(500), whole)) == {"BF16 tensor": 1000}
    assert work(roofline(dram(500), whole, dense)) == {"BF16 tensor": 1000}


def test_sums_of_fp16_are_kept_apart_for_their_peak_is_another(roofline: Callable[..., Roofline]) -> None:
    made = roofline(
        dram(500),
        tensor("src_fp16", 900, 8000),
        tensor("src_fp16_dst_fp16", 400, 8000),
        tensor("src_fp16_dst_fp32", 500, 4000),
    )
    assert work(made) == {"FP16 tensor": 500, "FP16 tensor, summed in FP16": 400}
    assert work(roofline(dram(500), tensor("src_fp16", 900, 8000))) == {"FP16 tensor": 900}


def test_types_that_only_some_chips_have(roofline: Callable[..., Roofline]) -> None:
    made = roofline(
        dram(500),
        tensor("src_fp64", 100, 1000),
        tensor("src_tf32_dst_fp32", 200, 2000),
        tensor("src_fp8", 300, 8000),
        tensor("src_int8", 400, 8000),
        capability=(9, 0),
    )
    assert work(made) == {"FP64 tensor": 100, "TF32 tensor": 200, "FP8 tensor": 300, "INT8 tensor": 400}
    consumer = tensor("op_hmma_src_bf16_dst_fp32", 100, 1000)
    assert work(roofline(dram(500), consumer, capability=(12, 0))) == {"BF16 tensor": 100}
    # Hopper has other operations on the same path, so that one alone is not all of its work.
    assert work(roofline(dram(500), consumer, vector("f", add=1), capability=(9, 0))) == {"FP32": 1}


def test_only_for_volta_is_it_known_what_an_instruction_of_the_tensor_cores_does(
    roofline: Callable[..., Roofline],
) -> None:
    executed = {
        "smsp__inst_executed_pipe_tensor.sum.per_cycle_elapsed": 2.0,
        "sm__inst_executed_pipe_tensor.sum.peak_sustained": 4.0,
    }
    assert work(roofline(dram(500), executed, capability=(7, 0))) == {"FP16 tensor": 1024}
    ampere = roofline(dram(500), executed, vector("f", add=1))
    assert work(ampere) == {"FP32": 1}
    assert "FP16 tensor" in ampere.uncounted


def test_a_rate_is_never_held_against_the_peak_of_another_counter(roofline: Callable[..., Roofline]) -> None:
    """The bytes that L2 was asked for lack a peak here; those that it returned have one."""
    asked = {"lts__t_bytes.sum.per_second": 1000 * GHZ}
    returned = {
        "l1tex__m_xbar2l1tex_read_bytes.sum.per_second": 600 * GHZ,
        "l1tex__m_xbar2l1tex_read_bytes.sum.pct_of_peak_sustained_elapsed": 20.0,
    }
    made = roofline(dram(500), asked, returned, vector("f", add=1))
    level = made.traffic[1]
    assert (level.name, level.per_s / GHZ) == ("L2", 600)
    assert level.share == pytest.approx(0.2)
    assert [rate.name for rate in roofline(dram(500), asked, vector("f", add=1)).traffic] == ["DRAM"]


FMA_COUNTED = {name: value for name, value in vector("f", fma=10).items() if "peak" not in name}


def test_work_without_a_peak_is_not_passed_over(found: Found) -> None:
    """Else the kernel would look as if it did no floating-point work."""
    made = found(dram(500), FMA_COUNTED, instructions(100), device=None)
    assert isinstance(made, Untold)
    assert made.because == (
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained was not collected "
        "(ncu --section SpeedOfLight_RooflineChart)"
    )


def test_peaks_that_the_report_lacks_follow_from_the_device_at_the_clock_of_the_launch(
    roofline: Callable[..., Roofline],
) -> None:
    """Per clock, an SM of an A100 does 64 multiply-adds of FP32, issues 4 instructions, and L1 gives 128 bytes."""
    moved = {"dram__bytes.sum": 500e6, "l1tex__t_bytes.sum.per_second": 4000 * GHZ}
    made = roofline(moved, FMA_COUNTED, {"smsp__inst_executed.sum": 1e8})
    assert [(rate.name, rate.ceiling.origin) for rate in made.rates] == [
        ("DRAM", "datasheet"),
        ("L1", "derived"),
        ("FP32", "derived"),
        ("instructions", "derived"),
    ]
    assert [rate.ceiling.per_s for rate in made.rates] == [
        1_555_000_000_000,
        128 * 108 * GHZ,
        2 * 64 * 108 * GHZ,
        4 * 108 * GHZ,
    ]


def test_without_a_clock_only_what_is_printed_is_known(roofline: Callable[..., Roofline]) -> None:
    counts = {name.removesuffix(".per_cycle_elapsed"): value * 1e6 for name, value in FMA_COUNTED.items()}
    made = roofline({"dram__bytes.sum": 500e6, "smsp__cycles_elapsed.avg.per_second": "n/a"}, counts)
    (fp32,) = made.work
    assert (fp32.ceiling.origin, fp32.ceiling.per_s, fp32.ceiling.sm_clock_hz) == ("datasheet", 19.5e12, 1_410_000_000)


def test_what_is_printed_stands_beside_what_the_report_says(roofline: Callable[..., Roofline]) -> None:
    made = roofline(dram(500), vector("f", fma=10), vector("d"))
    assert [(other.name, other.origin) for other in made.others] == [
        ("FP64", "report"),
        ("DRAM", "datasheet"),
        ("FP32", "datasheet"),
    ]


def test_without_work_instructions_are_counted(roofline: Callable[..., Roofline]) -> None:
    made = roofline(dram(500), vector("f"), vector("d"), instructions(100))
    assert made.work == []
    assert made.instructions is not None
    assert made.instructions.share == 0.25
    assert made.main is not None
    assert (made.main.work_unit, made.main.intensity) == ("inst", 0.2)


def test_what_is_missing_is_named(found: Found) -> None:
    made = found(vector("f", fma=10))
    assert isinstance(made, Untold)
    assert made.because == (
        "dram__bytes.sum.per_second, dram__bytes.sum.peak_sustained were not collected "
        "(ncu --section SpeedOfLight_RooflineChart)"
    )


def test_a_device_whose_counters_could_not_be_read_has_peaks_of_zero(found: Found) -> None:
    made = found({**dram(500), "dram__bytes.sum.peak_sustained": 0.0}, vector("f"), device=None)
    assert isinstance(made, Untold)
    assert made.because == "the report gives 0 for its peaks"
