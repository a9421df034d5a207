"""Ceilings know their conditions."""

from __future__ import annotations

import pytest

from diag.model.ceilings import Arithmetic, Ceiling

FP32 = Ceiling(
    19.5e12, "FLOP/s", "datasheet", "19.5 TFLOP/s", "A100 datasheet", Arithmetic("fp32", "fp32"), sm_clock_hz=1.41e9
)


def test_a_ceiling_of_the_sms_scales_with_their_clock() -> None:
    base = FP32.at_sm_clock(705e6)
    assert base.per_s == pytest.approx(9.75e12)
    assert (base.sm_clock_hz, base.formula) == (705e6, "(19.5 TFLOP/s) x 705.0 MHz / 1.4 GHz")


def test_a_ceiling_of_an_unknown_clock_cannot_be_moved_to_another() -> None:
    dram = Ceiling(1.555e12, "bytes/s", "datasheet", "1,555 GB/s", "A100 datasheet", level="dram")
    with pytest.raises(ValueError, match="1,555 GB/s"):
        dram.at_sm_clock(705e6)


def test_what_a_ceiling_is_of_is_its_name() -> None:
    assert FP32.name == "FP32"
    assert Ceiling(1e12, "inst/s", "report", "", "").name == "instructions"
    assert Ceiling(1e12, "bytes/s", "report", "", "", level="l1").name == "L1"
