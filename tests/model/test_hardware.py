"""The tables of hardware: complete, sourced, and never guessed from."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from diag.model import hardware
from diag.model.hardware import Gpu, Product, SmLimits, gpu, product, sm_limits
from diag.model.tables import table, tables

LIMITS = table("limits.toml")
LINKS = table("links.toml")
PRODUCTS = tables("products", "products")
CAPABILITIES = [key for key in LIMITS if key not in ("sources", "common")]
NAMES = list(PRODUCTS)


def listed(name: str) -> Product:
    known = product(name)
    assert known is not None
    return known


def test_every_limit_has_a_source() -> None:
    assert set(LIMITS["sources"]) == {field.name for field in fields(SmLimits)}
    assert all(LIMITS["sources"].values())


def test_every_product_and_link_has_a_source() -> None:
    entries = [*PRODUCTS.items(), *LINKS.items()]
    assert [name for name, entry in entries if not entry.get("source")] == []


def test_every_capability_of_cuda_12_and_13_has_limits() -> None:
    known = "5.0 5.2 5.3 6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.3 11.0 12.0 12.1"
    assert known.split() == CAPABILITIES
    assert sm_limits((10, 1)) == sm_limits((11, 0))


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_limits_agree_with_each_other(capability: str) -> None:
    major, minor = map(int, capability.split("."))
    limits = sm_limits((major, minor))
    assert limits is not None
    assert limits.warps_per_sm % limits.sub_partitions == 0
    assert limits.shared_per_block_bytes <= limits.shared_per_block_optin_bytes <= limits.shared_per_sm_bytes
    assert limits.reserved_shared_per_block_bytes == (1024 if major >= 8 else 0)
    assert limits.shared_unit_bytes == (128 if major >= 8 else 256)
    assert limits.registers_per_block <= limits.registers_per_sm
    assert (limits.barriers_per_sm is not None) == (major >= 9)
    assert limits.barriers_per_sm in (None, limits.blocks_per_sm, 2 * limits.blocks_per_sm)
    assert bool(limits.tensor_cores) == (major >= 7)
    assert ("tf32" in limits.tensor_cores) == (major >= 8)
    assert (limits.portable_cluster_blocks is not None) == (major >= 9)


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_a_carve_out_goes_up_to_all_of_the_shared_memory(capability: str) -> None:
    major, minor = map(int, capability.split("."))
    limits = sm_limits((major, minor))
    assert limits is not None
    sizes = limits.carve_out_sizes_bytes
    assert list(sizes) == sorted(set(sizes))
    assert sizes[-1] == limits.shared_per_sm_bytes
    assert (len(sizes) > 1) == (major >= 7)
    assert all(size % 1024 == 0 for size in sizes)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_of_a_product_can_be(name: str) -> None:
    known = listed(name)
    assert sm_limits(known.compute_capability) is not None
    assert known.sm_count is None or 10 <= known.sm_count <= 200
    assert known.link is None or not known.is_integrated
    if known.base_clock_hz is not None and known.boost_clock_hz is not None:
        assert 0.5e9 < known.base_clock_hz < known.boost_clock_hz < 3e9
    if known.memory_bytes is not None and known.memory_bytes_per_s is not None:
        # A device reads all of its memory in 10 to 600 ms.
        assert 0.01 < known.memory_bytes / known.memory_bytes_per_s < 0.6


def test_geforce_cards_are_told_by_their_rate() -> None:
    assert {name for name in NAMES if listed(name).tensor_rate == "geforce"} == {
        name for name in NAMES if name.startswith("GeForce")
    }


def test_links_are_lanes_times_signalling_rate() -> None:
    for generation, transfers_per_s in (("3.0", 8e9), ("4.0", 16e9), ("5.0", 32e9)):
        entry = LINKS[f"PCIe {generation} x16"]
        assert entry["bytes_per_s"] == int(transfers_per_s * 16 * 128 / 130 / 8)


@pytest.mark.parametrize("name", ["NVIDIA H100 80GB HBM3", "H100 80GB HBM3"])
def test_the_driver_may_or_may_not_say_the_vendor(name: str) -> None:
    known = product(name)
    assert known is not None
    assert (known.compute_capability, known.sm_count) == ((9, 0), 132)


@pytest.mark.parametrize("name", ["NVIDIA H100", "H100 80GB", "NVIDIA A100-PG509-200", "", "NVIDIA "])
def test_a_name_that_is_not_listed_is_not_guessed(name: str) -> None:
    assert product(name) is None
    assert gpu({"name": name}) == Gpu(name)


def test_the_host_link_of_a_module_that_may_hang_on_nvlink_is_not_told() -> None:
    known = product("Tesla V100-SXM2-16GB")
    assert known is not None
    assert known.link is None


def test_what_the_report_says_goes_first() -> None:
    told = gpu({"name": "Tesla T4", "compute_major": 7, "compute_minor": 5, "sm_count": 20, "max_warps_per_sm": 16})
    assert told.sm_count == 20
    assert told.limits is not None
    assert (told.limits.warps_per_sm, told.limits.blocks_per_sm) == (16, 16)


def test_what_is_printed_of_whole_devices_is_not_said_of_another_cut_of_the_chip() -> None:
    """A 3080 of 12 GB has the name of the one of 10 GB, and a MIG slice may have that of its device."""
    known = gpu({"name": "NVIDIA GeForce RTX 3080", "sm_count": 70}).product
    assert known is not None
    assert (known.peaks, known.memory_bytes_per_s, known.sm_count) == (None, None, None)
    assert known.tensor_rate == "geforce"
    assert gpu({"name": "NVIDIA GeForce RTX 3080", "sm_count": 68}).product == product("GeForce RTX 3080")


def test_clock_memory_and_cache_of_the_report_go_first() -> None:
    told = gpu({"name": "Tesla T4", "clock_hz": 10**9, "memory_bandwidth_per_s": 10**11, "l2_bytes": 2**20})
    assert (told.boost_clock_hz, told.memory_bytes_per_s, told.l2_bytes) == (10**9, 10**11, 2**20)
    printed = gpu({"name": "Tesla T4"})
    assert (printed.boost_clock_hz, printed.memory_bytes_per_s, printed.l2_bytes) == (1_590_000_000, 320 * 10**9, 2**22)


def test_a_name_alone_may_be_enough() -> None:
    told = gpu({"name": "Tesla T4"})
    assert (told.compute_capability, told.sm_count) == ((7, 5), 40)
    assert told.limits == sm_limits((7, 5))


def test_an_unknown_capability_has_no_limits() -> None:
    told = gpu({"name": "NVIDIA X", "compute_major": 99, "compute_minor": 0, "sm_count": 7, "max_warps_per_sm": 64})
    assert (told.limits, told.sm_count, told.has_tensor_cores) == (None, 7, None)


@pytest.mark.parametrize(
    "facts",
    [
        {"name": "AMD Instinct MI210", "compute_major": 9, "compute_minor": 0, "warp_size": 64},
        {"name": "AMD Instinct MI210", "compute_major": 9, "compute_minor": 0},
        {"name": "", "compute_major": 9, "compute_minor": 0, "warp_size": 64},
    ],
)
def test_numbers_of_another_vendor_are_no_compute_capability(facts: dict[str, Any]) -> None:
    told = gpu(facts)
    assert (told.compute_capability, told.limits, told.sm_count) == (None, None, None)


def test_chips_without_tensor_cores_are_told_by_name() -> None:
    turing = {"compute_major": 7, "compute_minor": 5}
    assert gpu({"name": "NVIDIA GeForce GTX 1660 Ti", **turing}).has_tensor_cores is False
    assert gpu({"name": "NVIDIA GeForce RTX 2060", **turing}).has_tensor_cores is True
    assert gpu({"name": "Tesla P100-PCIE-16GB"}).has_tensor_cores is False


@pytest.mark.parametrize("value", [-1, 0, 1 << 62])
def test_damaged_facts_do_no_harm(value: int) -> None:
    told = gpu({"name": None, "compute_major": 9, "compute_minor": 0, "max_warps_per_sm": value, "sm_count": value})
    assert told.limits == sm_limits((9, 0))
    assert told.sm_count is None


def test_nothing_is_known_of_nothing() -> None:
    assert hardware.gpu({}) == Gpu()
