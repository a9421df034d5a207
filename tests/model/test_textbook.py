"""Figures that every textbook has."""

from __future__ import annotations

import pytest

from diag.model.operator_arguments import Arguments
from diag.model.operators import Work, work_of


def work(operator: str, *shapes: tuple[int, ...]) -> Work:
    found = work_of(operator, Arguments(shapes, ["float"] * len(shapes)))
    assert found is not None
    return found


def per_s(amount: float | None, duration_ns: float) -> float:
    assert amount is not None
    return amount / duration_ns * 1e9


def test_a_vector_add_of_fp32_does_a_twelfth_of_an_operation_per_byte() -> None:
    """c = a + b: one addition, and two reads and a write of 4 bytes."""
    assert work("aten::add", (1000,), (1000,)).intensity == 1 / 12


def test_2_to_the_28_elements_in_2_4_ms_are_1_34_tb_per_s() -> None:
    """3 x 4 bytes x 268,435,456 = 3.221 GB."""
    add = work("aten::add", (2**28,), (2**28,))
    assert per_s(add.n_bytes, 2_400_000) == pytest.approx(1.342e12, rel=1e-3)


def test_a_gemm_does_2_m_n_k_operations() -> None:
    """4096^3 in 9.5 ms: 2 x 68.7 G operations, 14.5 TFLOP/s."""
    gemm = work("aten::mm", (4096, 4096), (4096, 4096))
    assert gemm.flops == 2 * 4096**3
    assert per_s(gemm.flops, 9_500_000) == pytest.approx(14.47e12, rel=1e-3)


def test_a_square_gemm_of_fp32_does_n_sixths_per_byte() -> None:
    """2 n^3 operations over 3 n^2 values of 4 bytes."""
    assert work("aten::mm", (600, 600), (600, 600)).intensity == pytest.approx(100)


def test_a_matrix_times_a_vector_does_half_an_operation_per_byte() -> None:
    assert work("aten::mm", (10_000, 10_000), (10_000, 1)).intensity == pytest.approx(0.5, rel=1e-3)
