"""The best that was measured, of what was asked for."""

from __future__ import annotations

import pytest

from diag.model.benchmark import Benchmark, Machine, MeasuredCeiling
from diag.model.ceilings import Arithmetic, Ceiling, Level
from diag.model.hardware import gpu
from diag.model.measured import Known, at_clocks, best_rate

FP32, FP64 = Arithmetic("fp32", "fp32"), Arithmetic("fp64", "fp64")


def moved(per_s: float, level: Level, access: str) -> MeasuredCeiling:
    ceiling = Ceiling(per_s, "bytes/s", "measured", "bytes / time", "diag calibrate", level=level, access=access)
    return MeasuredCeiling(ceiling, repeats=20, conditions="2 threads")


def done(per_s: float, of: Arithmetic) -> MeasuredCeiling:
    ceiling = Ceiling(per_s, of.unit, "measured", "FLOP / time", "diag calibrate", arithmetic=of)
    return MeasuredCeiling(ceiling, repeats=20, conditions="2 threads")


CEILINGS = [
    moved(40e9, "dram", "read"),
    moved(50e9, "dram", "copy"),
    moved(45e9, "dram", "fill"),
    moved(200e9, "l2", "copy"),
    done(300e9, FP32),
    done(350e9, FP32),
    done(170e9, FP64),
]


def test_a_level_goes_as_fast_as_its_fastest_access() -> None:
    assert best_rate(CEILINGS, level="dram") == CEILINGS[1]
    assert best_rate(CEILINGS, level="dram", access="fill") == CEILINGS[2]


def test_an_arithmetic_goes_as_fast_as_any_code_that_did_it() -> None:
    assert best_rate(CEILINGS, arithmetic=FP32) == CEILINGS[5]


def test_what_was_not_measured_has_no_ceiling() -> None:
    assert best_rate(CEILINGS, level="l1") is None
    assert best_rate(CEILINGS, level="l2", access="read") is None
    assert best_rate(CEILINGS, arithmetic=Arithmetic("fp32", "fp32", is_tensor=True)) is None


def test_a_rate_is_either_of_arithmetic_or_of_a_level() -> None:
    with pytest.raises(ValueError, match="not of both"):
        best_rate(CEILINGS)
    with pytest.raises(ValueError, match="not of both"):
        best_rate(CEILINGS, arithmetic=FP32, level="dram")


H100 = gpu({"name": "NVIDIA H100 80GB HBM3", "uuid": "GPU-aa-11"})


def on(
    name: str = "NVIDIA H100 80GB HBM3", *, uuid: str | None = None, n_units: int = 132, per_s: float = 3e12
) -> Benchmark:
    machine = Machine("cuda", name, n_units, uuid=uuid, compute_capability=(9, 0))
    return Benchmark(machine, [moved(per_s, "dram", "copy")])


def test_what_was_measured_on_the_device_itself_goes_before_its_product() -> None:
    known = Known([on(per_s=3.1e12), on(uuid="AA11", per_s=3e12), on(uuid="GPU-bb-22", per_s=3.2e12)])
    assert [each.ceiling.per_s for each in known.of(H100)] == [3e12]


def test_another_device_of_the_product_stands_in_for_it() -> None:
    assert Known([on(uuid="GPU-bb-22")]).of(H100) == on().ceilings


def test_other_products_parts_of_a_device_and_cpus_say_nothing() -> None:
    cpu = Benchmark(Machine("cpu", "NVIDIA H100 80GB HBM3", 132, uuid="GPU-aa-11"), [moved(1e11, "dram", "read")])
    assert not Known([on("NVIDIA H200"), on(n_units=16), cpu]).of(H100)
    assert not Known([on()]).of(gpu({}))


def test_what_came_with_the_evidence_goes_before_what_is_stored() -> None:
    given, earlier = on(per_s=3e12), on(per_s=3.3e12)
    assert Known([given], [earlier]).of(H100) == given.ceilings
    assert Known([on("NVIDIA H200")], [earlier]).of(H100) == earlier.ceilings


def clocked(level: Level | None, *, sm: float | None, memory: float | None) -> MeasuredCeiling:
    of = FP32 if level is None else None
    ceiling = Ceiling(1e12, "", "measured", "", "", of, level, sm_clock_hz=sm, memory_clock_hz=memory)
    return MeasuredCeiling(ceiling, 5, "")


@pytest.mark.parametrize(
    ("level", "sm_hz", "memory_hz", "holds"),
    [
        (None, 1.75e9, None, True),
        (None, 1.72e9, None, True),
        (None, 1.59e9, 2.6e9, False),
        (None, None, 2.6e9, False),
        ("dram", 1.2e9, 2.6e9, True),
        ("dram", 1.75e9, 1.6e9, False),
        ("l2", 1.2e9, 2.6e9, False),
    ],
)
def test_a_ceiling_holds_at_its_own_clock(
    level: Level | None, sm_hz: float | None, memory_hz: float | None, holds: bool
) -> None:
    measured = clocked(level, sm=1.75e9, memory=2.6e9)
    assert (at_clocks(measured, sm_clock_hz=sm_hz, memory_clock_hz=memory_hz) is not None) is holds


def test_a_ceiling_of_unknown_clock_holds_at_none() -> None:
    assert at_clocks(clocked(None, sm=None, memory=None), sm_clock_hz=1.75e9, memory_clock_hz=2.6e9) is None
