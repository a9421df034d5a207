"""The roofline model: figures worked out by hand, and what must hold of any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diag.model.ceilings import Arithmetic, Ceiling, Level
from diag.model.quantities import Measured
from diag.model.roofline import Ladder, Limit, Position, Rate, Roofline

LADDER = Ladder(low=0.6, even=0.1, slack=0.05)
FP32 = Arithmetic("fp32", "fp32")
FP64 = Arithmetic("fp64", "fp64")
FP16_TENSOR = Arithmetic("fp16", "fp32", is_tensor=True)
INT8_TENSOR = Arithmetic("int8", "int32", is_tensor=True)
FP64_TENSOR = Arithmetic("fp64", "fp64", is_tensor=True)


def moved(level: Level, bytes_per_s: float, peak: float) -> Rate:
    return Rate(
        Measured(bytes_per_s, "bytes/s", "b", ("b",)),
        Ceiling(peak, "bytes/s", "report", "p", "s", level=level),
    )


def done(arithmetic: Arithmetic, per_s: float, peak: float) -> Rate:
    unit = "OP/s" if arithmetic.input == "int8" else "FLOP/s"
    return Rate(
        Measured(per_s, unit, "w", ("w",)),
        Ceiling(peak, unit, "report", "p", "s", arithmetic=arithmetic),
    )


def issued(per_s: float, peak: float) -> Rate:
    return Rate(Measured(per_s, "inst/s", "i", ("i",)), Ceiling(peak, "inst/s", "report", "p", "s"))


def test_a_vector_add_stands_on_the_slope_of_device_memory() -> None:
    """1/12 FLOP/byte at 1,200 of 1,500 GB/s: 100 GFLOP/s of 125 that the slope allows; the flat roof is at 15,000."""
    at = Position(done(FP32, 100e9, 15_000e9), moved("dram", 1_200e9, 1_500e9))
    assert at.intensity == pytest.approx(1 / 12)
    assert at.ridge_point == pytest.approx(10)
    assert at.attainable_per_s == pytest.approx(125e9)
    assert at.share == pytest.approx(0.8)
    assert at.side == "memory"
    assert at.work_unit == "FLOP"


def test_right_of_the_ridge_point_the_roof_is_flat() -> None:
    at = Position(done(FP32, 9_000e9, 15_000e9), moved("dram", 300e9, 1_500e9))
    assert (at.intensity, at.attainable_per_s, at.side) == (30, 15_000e9, "compute")


rates = st.floats(1e3, 1e15)


@given(rates, rates, rates, rates)
def test_the_distance_to_the_roof_is_that_of_the_nearer_ceiling(
    work: float, peak: float, n_bytes: float, bandwidth: float
) -> None:
    """perf / min(peak, intensity x bandwidth) = max(perf / peak, bytes / bandwidth), whatever the figures."""
    at = Position(done(FP32, work, peak), moved("dram", n_bytes, bandwidth))
    assert at.share == pytest.approx(max(at.work.share, at.traffic.share))
    assert at.side == ("memory" if at.traffic.share > at.work.share else "compute")


def test_headroom_is_left_by_the_tightest_of_all_levels_and_pipelines() -> None:
    found = Roofline(
        traffic=[moved("dram", 300, 1000), moved("l2", 700, 1000), moved("l1", 500, 1000)],
        work=[done(FP32, 200, 1000), done(FP64, 400, 1000)],
        instructions=issued(650, 1000),
    )
    assert [limit.name for limit in found.limits] == ["DRAM", "L2", "L1", "FP32", "FP64", "instructions"]
    assert found.tightest.name == "L2"
    assert found.headroom == pytest.approx(0.3)
    main = found.main
    assert main is not None
    assert (main.traffic.name, main.work.name) == ("L2", "FP64")


def test_precisions_of_one_pipeline_take_turns() -> None:
    """A tenth of the peak of FP16 and two tenths of that of INT8 keep the tensor cores busy for three tenths."""
    found = Roofline(
        traffic=[moved("dram", 1, 1000)],
        work=[done(FP16_TENSOR, 100, 1000), done(INT8_TENSOR, 400, 2000), done(FP32, 250, 1000)],
    )
    compute = [limit for limit in found.limits if limit.side == "compute"]
    assert [limit.name for limit in compute] == ["FP16 tensor and INT8 tensor", "FP32"]
    assert [limit.share for limit in compute] == pytest.approx([0.3, 0.25])


def test_fp64_of_the_tensor_cores_is_counted_apart() -> None:
    found = Roofline([moved("dram", 1, 1000)], [done(FP16_TENSOR, 100, 1000), done(FP64_TENSOR, 200, 1000)])
    assert [limit.name for limit in found.limits] == ["DRAM", "FP16 tensor", "FP64 tensor"]


@pytest.mark.parametrize(
    ("memory", "compute", "bound"),
    [
        (0.59, 0.1, "latency"),
        (0.6, 0.1, "memory"),
        (0.2, 0.9, "compute"),
        (0.75, 0.66, "balanced"),
        (0.75, 0.64, "memory"),
        (0.95, 0.9, "balanced"),
        (1.04, 0.1, "memory"),
        (1.06, 0.1, None),
    ],
)
def test_the_ladder_of_bounds(memory: float, compute: float, bound: str | None) -> None:
    found = Roofline([moved("dram", memory * 1e12, 1e12)], [done(FP32, compute * 1e12, 1e12)])
    assert found.bound(LADDER) == bound


def test_a_point_above_its_roof_is_named() -> None:
    found = Roofline([moved("dram", 1.5e12, 1e12)], [done(FP32, 1e11, 1e12)])
    assert [limit.name for limit in found.above(LADDER.slack)] == ["DRAM"]
    assert found.headroom == 0


def test_a_kernel_without_floating_point_work_stands_under_the_instruction_roofline() -> None:
    found = Roofline([moved("dram", 4e11, 1e12), moved("l2", 0, 1e12)], [], instructions=issued(8e10, 3.2e11))
    (at,) = found.positions  # nothing was moved at L2
    assert (at.work_unit, at.work.name, at.intensity) == ("inst", "instructions", 0.2)
    assert found.main == at


def test_next_to_no_work_is_none() -> None:
    little, enough = (
        Roofline([moved("dram", 4e11, 1e12)], [done(FP32, share * 1e12, 1e12)], instructions=issued(8e10, 3.2e11))
        for share in (0.009, 0.011)
    )
    assert little.counts_instructions
    assert not enough.counts_instructions


def test_a_kernel_of_integer_tensor_work_is_none_of_instructions() -> None:
    found = Roofline([moved("dram", 4e11, 1e12)], [done(INT8_TENSOR, 5e14, 1e15)], instructions=issued(8e9, 3.2e11))
    assert found.main is not None
    assert (found.main.work_unit, found.main.work.name, found.main.intensity) == ("OP", "INT8 tensor", 1250)


def test_one_side_alone_gives_no_verdict() -> None:
    assert Roofline([moved("dram", 4e11, 1e12)], []).bound(LADDER) is None


def test_units_that_only_the_profiler_saw_count() -> None:
    found = Roofline(
        [moved("dram", 1e11, 1e12)], [done(FP32, 1e11, 1e12)], units=[Limit("SM speed of light", "compute", 0.85)]
    )
    assert found.bound(LADDER) == "compute"
    assert found.headroom == pytest.approx(0.15)
