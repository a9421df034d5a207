"""Textbook figures."""

from __future__ import annotations

import pytest

from diag.model.intensity import gemm, vector_add


def test_a_vector_add_of_fp32_does_a_twelfth_of_an_operation_per_byte() -> None:
    assert vector_add(1000).flops_per_byte == 1 / 12


def test_2_to_the_28_elements_in_2_4_ms_are_1_34_tb_per_s() -> None:
    """3 x 4 bytes x 268,435,456 = 3.221 GB."""
    assert vector_add(2**28).bytes_per_s(2_400_000) == pytest.approx(1.342e12, rel=1e-3)


def test_a_gemm_does_2_m_n_k_operations() -> None:
    """4096^3 in 9.5 ms: 2 x 68.7 G operations, 14.5 TFLOP/s."""
    assert gemm(4096, 4096, 4096).flops_per_s(9_500_000) == pytest.approx(14.47e12, rel=1e-3)


def test_a_large_square_gemm_of_fp32_does_n_sixths_per_byte() -> None:
    """2 n^3 operations over 3 n^2 values of 4 bytes."""
    assert gemm(600, 600, 600).flops_per_byte == pytest.approx(100)


def test_a_gemv_does_half_an_operation_per_byte_of_its_matrix() -> None:
    assert gemm(1, 10_000, 10_000).flops_per_byte == pytest.approx(0.5, rel=1e-3)
