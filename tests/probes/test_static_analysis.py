"""Figures that follow from machine code, worked out by hand, and every operator of the catalogue held to its word."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import pytest

if find_spec("torch") is None or find_spec("triton") is None:
    pytest.skip("torch and triton are not installed (pip install 'gpu-diag[probes]')", allow_module_level=True)

from diag.kernels.operator import Count
from diag.model.inspection import REFERENCE_PRODUCTS, CompiledKernel, Excess, reference_product
from diag.probes.static_analysis import arithmetic_of, inspected, static_roofline

SMALL = CompiledKernel("k", "sm_90", 32, 0, 0, 128, {"FFMA": 4, "LDG.E.128": 2}, programs=1056)


def test_each_target_has_a_product_of_its_capability() -> None:
    for target in REFERENCE_PRODUCTS:
        major, minor = reference_product(target).compute_capability
        assert target == f"sm_{major}{minor}"
        assert reference_product(target).sm_count


def test_a_small_kernel_fills_the_sms() -> None:
    found = inspected(SMALL)
    assert found.fits
    assert found.occupancy is not None
    assert (found.occupancy.blocks_per_sm, found.occupancy.theoretical_pct) == (16, 100.0)
    assert found.occupancy.limiters == ("registers", "warps")  # 65,536 / (32 x 128) = 64 warps / 4
    assert found.waves == 1056 / (16 * 132)


def test_waves_of_an_unknown_grid_are_not_known() -> None:
    assert inspected(replace(SMALL, programs=None)).waves is None


@pytest.mark.parametrize(("target", "fits"), [("sm_80", True), ("sm_90", True), ("sm_100", True), ("sm_120", False)])
def test_a_block_of_128_kb_fits_on_data_centre_gpus_alone(target: str, fits: bool) -> None:
    found = inspected(replace(SMALL, target=target, shared_bytes=131_072))
    assert found.fits is fits
    if not fits:
        assert found.excesses == (Excess("shared memory of a block", 131_072, 99 * 1024, "bytes"),)
        assert (found.occupancy, found.waves) == (None, None)


def test_99_kb_just_fit_on_sm_120() -> None:
    assert inspected(replace(SMALL, target="sm_120", shared_bytes=99 * 1024)).fits
    assert not inspected(replace(SMALL, target="sm_120", shared_bytes=99 * 1024 + 1)).fits


def test_more_registers_than_a_block_may_have() -> None:
    found = inspected(replace(SMALL, registers_per_thread=255, threads=512))
    assert [(each.resource, each.used, each.limit) for each in found.excesses] == [
        ("registers of a block", 16 * 32 * 256, 65_536)
    ]


def test_tensor_memory_bounds_the_blocks_of_an_sm() -> None:
    kernel = replace(SMALL, target="sm_100", tensor_memory_columns=128)
    occupancy = inspected(kernel).occupancy
    assert occupancy is not None
    assert (occupancy.blocks_per_sm, occupancy.limiters) == (4, ("tensor_memory",))
    assert occupancy.theoretical_pct == 100 * 16 / 64
    whole = inspected(replace(kernel, tensor_memory_columns=1024))
    assert [each.resource for each in whole.excesses] == ["tensor memory columns of a block"]
    as_many = inspected(replace(kernel, tensor_memory_columns=32)).occupancy  # 16 blocks, as by warps
    assert as_many is not None
    assert as_many.limiters == ("registers", "warps", "tensor_memory")


def test_spills_need_a_stack_and_local_memory() -> None:
    assert replace(SMALL, stack_bytes=8, instructions={"STL": 1, "LDL.LU.64": 2}).spills
    assert not replace(SMALL, stack_bytes=8).spills
    assert not replace(SMALL, instructions={"LDL": 1}).spills


@pytest.mark.parametrize("tensor", ["HMMA.16816.F32", "HGMMA.64x128x16.F32", "UTCHMMA", "DMMA.8x8x4"])
def test_the_code_tells_whether_tensor_cores_work(tensor: str) -> None:
    on_tensor_cores = replace(SMALL, instructions={tensor: 1})
    assert on_tensor_cores.uses_tensor_cores
    assert arithmetic_of([SMALL, on_tensor_cores], "fp16").name == "FP16 tensor"
    assert arithmetic_of([on_tensor_cores], "fp32").name == "TF32 tensor"
    assert arithmetic_of([SMALL], "fp16").name == "FP32"
    assert not replace(SMALL, instructions={"HFMA2.MMA": 3}).uses_tensor_cores


def test_a_static_roofline_on_both_sides_of_its_ridge_point() -> None:
    tensor = replace(SMALL, instructions={"HGMMA.64x128x16.F32": 8})
    n = 4096
    count = Count(flops=2 * n**3, read_bytes=4 * n * n, written_bytes=2 * n * n, formula="2 n^3")
    roofline = static_roofline(count, [tensor], "sm_90", "fp16")
    assert roofline is not None
    assert roofline.ridge_point == 989.4e12 / 3.35e12
    assert (roofline.intensity, roofline.side) == (2 * n**3 / (6 * n * n), "compute")
    assert roofline.least_time_ns == pytest.approx(1e9 * 2 * n**3 / 989.4e12)
    add = static_roofline(Count(n, 8 * n, 4 * n, "n"), [SMALL], "sm_90", "fp32")
    assert add is not None
    assert (add.intensity, add.side) == (1 / 12, "memory")
    assert add.least_time_ns == pytest.approx(1e9 * 12 * n / 3.35e12)
