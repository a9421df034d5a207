"""The tables of hardware: complete, sourced, and never guessed from."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from importlib import resources
from typing import Any

import pytest

from diag.model import hardware
from diag.model.hardware import Gpu, SmLimits, gpu, product, sm_limits

LIMITS: dict[str, Any] = tomllib.loads(resources.files("diag.model.data").joinpath("limits.toml").read_text())
PRODUCTS: dict[str, Any] = tomllib.loads(resources.files("diag.model.data").joinpath("products.toml").read_text())
CAPABILITIES = [key for key in LIMITS if key not in ("sources", "common")]


def test_every_limit_has_a_source() -> None:
    assert set(LIMITS["sources"]) == {field.name for field in fields(SmLimits)}
    assert all(LIMITS["sources"].values())


def test_every_product_and_link_has_a_source() -> None:
    entries = [*PRODUCTS["products"].items(), *PRODUCTS["links"].items()]
    assert [name for name, entry in entries if not entry.get("source")] == []


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_limits_agree_with_each_other(capability: str) -> None:
    major, minor = map(int, capability.split("."))
    limits = sm_limits((major, minor))
    assert limits is not None
    assert limits.warps_per_sm % limits.sub_partitions == 0
    assert limits.shared_per_block_bytes <= limits.shared_per_block_optin_bytes <= limits.shared_per_sm_bytes
    assert limits.reserved_shared_per_block_bytes == (1024 if major >= 8 else 0)
    assert limits.shared_unit_bytes == (128 if major >= 8 else 256)
    assert bool(limits.tensor_cores) == (major >= 7)
    assert ("tf32" in limits.tensor_cores) == (major >= 8)


def test_every_product_has_a_capability_with_limits() -> None:
    assert [name for name, entry in PRODUCTS["products"].items() if entry["compute_capability"] not in LIMITS] == []


def test_the_fp32_peak_of_a_product_is_that_of_its_lanes() -> None:
    """SMs x lanes x 2 x clock: the clock that follows must be one that a GPU can have."""
    for name in PRODUCTS["products"]:
        known = product(name)
        assert known is not None
        limits = sm_limits(known.compute_capability)
        if known.fp32_flops and known.sm_count and limits and limits.fp32_lanes:
            clock_hz = known.fp32_flops / (known.sm_count * limits.fp32_lanes * 2)
            assert 1.3e9 < clock_hz < 2.6e9, name


def test_links_are_lanes_times_signalling_rate() -> None:
    for generation, transfers_per_s in (("3.0", 8e9), ("4.0", 16e9), ("5.0", 32e9)):
        entry = PRODUCTS["links"][f"PCIe {generation} x16"]
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
