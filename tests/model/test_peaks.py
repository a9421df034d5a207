"""Printed peaks against what follows from the units of the SMs: two tables that were written from different sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from diag.model.ceilings import Arithmetic, Ceiling, arithmetic
from diag.model.datasheets import datasheet_peaks, datasheets
from diag.model.hardware import Gpu, Product, gpu, product, sm_limits
from diag.model.tables import table, tables
from diag.model.throughput import derived_peaks, dram_peak, on_chip_peak, sm_throughput

NAMES = list(tables("products", "products"))
THROUGHPUT = {key: entry for key, entry in table("throughput.toml").items() if key != "sources"}
SHEETS = list(datasheets())


def listed(name: str) -> Product:
    known = product(name)
    assert known is not None
    return known


def printed(name: str, key: str) -> Ceiling:
    return datasheet_peaks(listed(name))[arithmetic(key)]


def derived(device: Gpu, key: str, clock_hz: float) -> Ceiling:
    return derived_peaks(device, clock_hz)[arithmetic(key)]


def both() -> Iterator[tuple[str, Arithmetic]]:
    """Products and arithmetic of which a peak is printed together with its clock."""
    for name in NAMES:
        yield from ((name, of) for of, peak in datasheet_peaks(listed(name)).items() if peak.sm_clock_hz)


@pytest.mark.parametrize(("name", "of"), list(both()), ids=lambda each: each if isinstance(each, str) else each.name)
def test_what_is_printed_follows_from_the_units(name: str, of: Arithmetic) -> None:
    """Datasheets round: 112 for 113.0 TFLOP/s, 362.05 for 366.4."""
    peak = datasheet_peaks(listed(name))[of]
    assert peak.sm_clock_hz is not None
    assert derived_peaks(gpu({"name": name}), peak.sm_clock_hz)[of].per_s == pytest.approx(peak.per_s, rel=0.015)


def test_that_is_said_of_hundreds_of_peaks() -> None:
    assert len(list(both())) > 500


def test_every_peak_has_a_source_and_a_product() -> None:
    assert all(sheet.source for sheet in datasheets().values())
    assert {listed(name).peaks for name in NAMES} - {None} == set(SHEETS)
    assert table("throughput.toml")["sources"].keys() == {
        "fp64", "fp32", "fp16", "bf16", "int32", "tensor", "shared_bytes", "l1_bytes"
    }  # fmt: skip


@pytest.mark.parametrize("name", SHEETS)
def test_sparse_is_twice_dense(name: str) -> None:
    sheet = datasheets()[name]
    for of, sparse in sheet.sparse.items():
        assert of.is_tensor
        assert of.input != "fp64"
        if of in sheet.dense:
            assert sparse == pytest.approx(2 * sheet.dense[of], rel=0.015), of.name


def test_a_peak_that_is_printed_with_sparsity_only_is_halved_and_says_so() -> None:
    """B200: 4.5 PFLOP/s of FP16 with sparsity."""
    peak = printed("NVIDIA B200", "tensor_fp16")
    assert peak.per_s == 2.25e15
    assert peak.formula == "4.5 PFLOP/s with sparsity / 2"
    assert peak.sm_clock_hz is None


def test_figures_that_everybody_knows() -> None:
    assert printed("Tesla V100-SXM2-16GB", "tensor_fp16").per_s == 125e12
    assert printed("NVIDIA A100-SXM4-80GB", "fp64").per_s == 9.7e12
    assert printed("NVIDIA A100-SXM4-80GB", "tensor_tf32").per_s == 156e12
    assert printed("NVIDIA H100 80GB HBM3", "tensor_bf16").per_s == 989.4e12
    assert printed("NVIDIA H200", "tensor_fp8").per_s == 1978.9e12
    assert printed("NVIDIA GeForce RTX 4090", "tensor_fp16").per_s == 165.2e12


def test_at_the_base_clock_an_a100_has_little_more_than_half() -> None:
    """108 SMs x 64 lanes x 2 x 765 MHz = 10.6 TFLOP/s, where the datasheet prints 19.5."""
    peak = derived(gpu({"name": "NVIDIA A100-PCIE-40GB"}), "fp32", 765e6)
    assert peak.per_s == 108 * 64 * 2 * 765e6
    assert peak.formula == "128 operations per clock and SM x 108 SMs x 765.0 MHz"
    assert (peak.origin, peak.unit, peak.sm_count) == ("derived", "FLOP/s", 108)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("GeForce")])
def test_a_geforce_sums_in_fp32_at_half_the_rate(name: str) -> None:
    device = gpu({"name": name})
    assert derived(device, "tensor_fp16", 1e9).per_s * 2 == derived(device, "tensor_fp16_in_fp16", 1e9).per_s


def test_a_geforce_that_is_not_listed_is_one_too() -> None:
    unlisted = gpu({"name": "NVIDIA GeForce RTX 9999", "compute_major": 8, "compute_minor": 9, "sm_count": 10})
    other = replace(unlisted, name="NVIDIA RTX 9999")
    assert unlisted.product is None
    assert derived(unlisted, "tensor_fp16", 1e9).per_s == 10 * 512 * 1e9
    assert derived(other, "tensor_fp16", 1e9).per_s == 10 * 1024 * 1e9
    assert derived(unlisted, "tensor_int8", 1e9) == derived(other, "tensor_int8", 1e9)


def test_an_a10g_has_half_of_an_a10_in_every_type() -> None:
    whole, half = (derived_peaks(replace(gpu({"name": name}), sm_count=1), 1e9) for name in ("NVIDIA A10", "A10G"))
    for of, peak in whole.items():
        assert half[of].per_s == peak.per_s / (2 if of.is_tensor else 1), of.name


@pytest.mark.parametrize("capability", list(THROUGHPUT))
def test_narrower_types_are_never_slower(capability: str) -> None:
    major, minor = map(int, capability.split("."))
    throughput = sm_throughput((major, minor))
    assert throughput is not None
    keys = ["tensor_tf32", "tensor_fp16", "tensor_fp8", "tensor_fp4"]
    rates = [throughput.multiply_adds[of] for of in map(arithmetic, keys) if of in throughput.multiply_adds]
    assert rates == sorted(set(rates))
    assert throughput.multiply_adds[arithmetic("fp32")] in (64, 128)
    assert throughput.multiply_adds.get(arithmetic("fp64"), 1) <= 64
    assert throughput.has_sparsity == (major >= 8)


@pytest.mark.parametrize("capability", list(THROUGHPUT))
def test_tensor_cores_are_those_that_the_limits_know(capability: str) -> None:
    major, minor = map(int, capability.split("."))
    throughput, limits = sm_throughput((major, minor)), sm_limits((major, minor))
    assert throughput is not None
    assert limits is not None
    with_rate = {of.input for of in throughput.multiply_adds if of.is_tensor}
    assert with_rate & {"tf32", "bf16", "fp16"} <= set(limits.tensor_cores)
    assert bool(with_rate) == bool(limits.tensor_cores)


def test_without_tensor_cores_there_is_no_peak_of_theirs() -> None:
    device = gpu({"name": "NVIDIA GeForce GTX 1660 Ti", "compute_major": 7, "compute_minor": 5, "sm_count": 24})
    assert not any(of.is_tensor for of in derived_peaks(device, 1e9))
    assert derived(device, "fp32", 1e9).per_s == 24 * 128 * 1e9


@pytest.mark.parametrize("device", [Gpu(), gpu({"name": "NVIDIA X"}), gpu({"compute_major": 8, "compute_minor": 0})])
def test_of_an_unknown_device_nothing_is_said(device: Gpu) -> None:
    assert derived_peaks(device, 1e9) == {}
    assert on_chip_peak(device, "l1", 1e9) is None
    assert dram_peak(device) is None


def test_a_part_of_a_device_has_its_own_derived_peaks_and_no_printed_ones() -> None:
    part = gpu({"name": "NVIDIA A100-SXM4-40GB", "sm_count": 14})
    assert part.product is not None
    assert datasheet_peaks(part.product) == {}
    assert derived(part, "fp32", 1e9).per_s == 14 * 128 * 1e9


def test_memory_at_every_level() -> None:
    """A100 at 1 GHz: 108 x 128 bytes per clock from L1; Turing delivers 64. HBM at 1,555 GB/s."""
    a100 = gpu({"name": "NVIDIA A100-PCIE-40GB"})
    l1, dram = on_chip_peak(a100, "l1", 1e9), dram_peak(a100)
    assert l1 is not None
    assert dram is not None
    assert (l1.per_s, l1.level) == (108 * 128 * 1e9, "l1")
    assert (dram.per_s, dram.level, dram.origin) == (1555e9, "dram", "datasheet")
    turing = on_chip_peak(gpu({"name": "Tesla T4"}), "shared", 1e9)
    assert turing is not None
    assert turing.per_s == 40 * 64 * 1e9
    assert on_chip_peak(gpu({"compute_major": 6, "compute_minor": 1, "sm_count": 20}), "l1", 1e9) is None


def test_the_bandwidth_that_a_report_tells_goes_first() -> None:
    """A GH200's HBM at 2,619 MHz and 6,144 bits: 2 x 2.619e9 x 768 bytes."""
    told = dram_peak(gpu({"name": "NVIDIA GH200 120GB", "memory_bandwidth_per_s": 4_022_784_000_000}))
    assert told is not None
    assert (told.per_s, told.origin) == (4_022_784_000_000, "report")
