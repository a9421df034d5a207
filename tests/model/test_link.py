"""What links between host and device carry."""

from __future__ import annotations

import pytest

from diag.model.link import host_link_bytes_per_s, pcie_bytes_per_s


@pytest.mark.parametrize(
    ("speed", "lanes", "gigabytes"), [(8, 16, 15.75), (16, 16, 31.51), (32, 16, 63.02), (16, 8, 15.75)]
)
def test_pci_express(speed: float, lanes: int, gigabytes: float) -> None:
    assert pcie_bytes_per_s(speed, lanes) / 1e9 == pytest.approx(gigabytes, abs=0.01)


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [
        ("Tesla V100-SXM2-16GB", 15.75),
        ("Tesla T4", 15.75),
        ("NVIDIA A100-SXM4-40GB", 31.51),
        ("NVIDIA L4", 31.51),
        ("NVIDIA L40S", 31.51),
        ("NVIDIA H100 80GB HBM3", 63.02),
        ("NVIDIA H200", 63.02),
        ("NVIDIA GH200 480GB", 450.0),
    ],
)
def test_products(name: str, gigabytes: float) -> None:
    assert (host_link_bytes_per_s(name) or 0) / 1e9 == pytest.approx(gigabytes, abs=0.01)


@pytest.mark.parametrize("name", [None, "", "AMD Instinct MI210", "NVIDIA A1000", "NVIDIA T400"])
def test_others_are_not_known(name: str | None) -> None:
    assert host_link_bytes_per_s(name) is None
