"""The best that was measured, of what was asked for."""

from __future__ import annotations

import pytest

from diag.model.benchmark import MeasuredCeiling
from diag.model.ceilings import Arithmetic, Ceiling, Level
from diag.model.measured import best_rate

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
