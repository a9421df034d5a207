"""FP32 matrix products outside the tensor cores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from diag.rules.families import families
from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import H100, Scene

SIMT = "ampere_sgemm_128x64_nn"
TENSOR = "cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1"


def products(*names: str, hardware: Mapping[str, Any] | None = H100) -> NsysExport:
    """Ten kernels of 100 back to back, of these names in turn."""
    scene = Scene(hardware)
    for i in range(10):
        scene.gpu.kernel(100 * i, 100 * i + 100, names[i % len(names)])
    return scene.export


CASES = {
    "kernels.simt_gemm": ThreeCases(
        fires=lambda: products(SIMT),
        clear=lambda: products(TENSOR),
        untold=lambda: products("sgemm_32x32x32_NN", hardware=None),
    )
}

VOLTA = {"name": "Tesla V100-PCIE-16GB", "computeMajor": 7, "computeMinor": 0}
PASCAL = {"name": "Tesla P100-PCIE-16GB", "computeMajor": 6, "computeMinor": 0}


def test_the_bound_is_that_of_equal_parts_of_the_peaks(ask: Ask) -> None:
    """V100 PCIe: 14 TFLOP/s of FP32 are an eighth of 112 with FP16: seven eighths of 500 could be won."""
    finding = only_finding(ask("kernels.simt_gemm", products("volta_sgemm_128x64_nt", "other", hardware=VOLTA)))
    assert finding.recoverable_ns == 437
    assert "FP16 peaks at 8.0x" in finding.counterfactual
    assert finding.share == 0.5
    assert finding.severity == "warning"


def test_a_product_without_a_datasheet_has_no_bound(ask: Ask) -> None:
    unknown = {**H100, "name": "NVIDIA H100 of tomorrow"}
    finding = only_finding(ask("kernels.simt_gemm", products(SIMT, hardware=unknown)))
    assert finding.recoverable_ns is None
    assert "no bound is given" in finding.counterfactual


def test_tf32_is_offered_where_the_device_has_it(ask: Ask) -> None:
    hopper = only_finding(ask("kernels.simt_gemm", products(SIMT)))
    volta = only_finding(ask("kernels.simt_gemm", products("volta_sgemm_128x64_nt", hardware=VOLTA)))
    assert "set_float32_matmul_precision" in hopper.next[0]
    assert "bfloat16" in hopper.next[1]
    assert not any("TF32" in step or "bfloat16" in step for step in volta.next)
    assert figures(volta)["tensor cores for"] == "FP16"
    assert figures(hopper)["tensor cores for"] == "TF32, BF16 and FP16"


def test_where_tf32_is_allowed_already_the_shapes_are_to_be_looked_at(ask: Ask) -> None:
    finding = only_finding(ask("kernels.simt_gemm", products(SIMT, TENSOR)))
    assert "use TF32 already" in finding.claim
    assert "multiples of 4" in finding.next[0]


def test_a_device_without_tensor_cores_is_clear(ask: Ask) -> None:
    assert [type(a) for a in ask("kernels.simt_gemm", products("maxwell_sgemm_128x64_nn", hardware=PASCAL))] == [Clear]
    turing = {"name": "NVIDIA GeForce GTX 1660", "computeMajor": 7, "computeMinor": 5}
    assert [type(a) for a in ask("kernels.simt_gemm", products("volta_sgemm_128x64_nn", hardware=turing))] == [Clear]


def test_a_capability_that_no_table_has_tells_nothing(ask: Ask) -> None:
    (answer,) = ask(
        "kernels.simt_gemm", products(SIMT, hardware={"name": "NVIDIA X", "computeMajor": 99, "computeMinor": 0})
    )
    assert isinstance(answer, CannotTell)
    assert "99.0" in answer.because


def test_names_of_kernels_tell_the_generation_where_nothing_else_does(ask: Ask) -> None:
    finding = only_finding(ask("kernels.simt_gemm", products("volta_sgemm_128x64_nt", hardware=None)))
    assert "Kernel names (volta_…) point to a Volta GPU or a newer one, which has tensor cores for" in finding.claim
    (answer,) = ask("kernels.simt_gemm", products("maxwell_sgemm_128x64_nn", hardware=None))
    assert isinstance(answer, CannotTell)


@pytest.mark.parametrize(
    "name",
    [
        "ampere_sgemm_32x128_nn",
        "volta_sgemm_128x64_nt",
        "maxwell_sgemm_128x128_tn",
        "void cutlass::Kernel<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(Params)",
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel",
        "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true, cublasGemvTensorStridedBatched<float const>>(int)",
        "magma_sgemmEx_kernel",
        "sgemm_largek_lds64",
    ],
)
def test_fp32_matrix_products(name: str) -> None:
    assert families()["simt_gemm"].has(name)


@pytest.mark.parametrize(
    "name",
    [
        "volta_scudnn_128x128_stridedB_splitK_small_nn_v1",
        "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int, int, float const*)",
        "void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int, int)",
        "void explicit_convolve_sgemm<float, int, 1024, 5, 5, 3, 3, 3, 0, false>(int, int, int, float const*)",
    ],
)
def test_fp32_convolutions(name: str) -> None:
    assert families()["simt_convolution"].has(name)
    assert not families()["simt_gemm"].has(name)


@pytest.mark.parametrize(
    "name",
    [
        TENSOR,
        "volta_s884gemm_fp16_128x128_ldg8_f2f_nn",
        "ampere_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn",
        "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16_stage4_warpsize2x2x1_tensor16x8x8_kernel",
        "ampere_dgemm_64x64_nn",
        "volta_dgemm_128x64_nn",
        "ampere_cgemm_64x64_nn",
        "volta_fp16_sgemm_fp16_128x128_nn",
        "void gemmSN_NN_kernel<double, 256, 4, 2, 8, 3, 4, false>(int)",
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>(int)",
        "nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT",
        "void fbgemm_gpu::permute_2D_lengths_kernel<int>(int, int, int const*)",
        "void dgrad2d_grouped_direct_kernel<float, float, float, 3>(cudnnTensorStruct)",
    ],
)
def test_what_is_no_fp32_matrix_work(name: str) -> None:
    assert not families()["simt_gemm"].has(name)
    assert not families()["simt_convolution"].has(name)
