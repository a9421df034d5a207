"""Ceilings know their conditions."""

from __future__ import annotations

from diag.model.ceilings import Arithmetic, Ceiling

FP32 = Ceiling(
    19.5e12, "FLOP/s", "datasheet", "19.5 TFLOP/s", "A100 datasheet", Arithmetic("fp32", "fp32"), sm_clock_hz=1.41e9
)


def test_what_a_ceiling_is_of_is_its_name() -> None:
    assert FP32.name == "FP32"
    assert Ceiling(1e12, "inst/s", "report", "", "").name == "instructions"
    assert Ceiling(1e12, "bytes/s", "report", "", "", level="l1").name == "L1"
