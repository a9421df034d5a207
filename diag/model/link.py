"""The link between host and device: how fast it can be at most, in one direction.

The rate is that of the link itself, before packet headers: copies of a healthy PCIe link reach about 0.8 to 0.9 of it.
A machine may give a device a slower or narrower link than the device could use, so the rate is a bound, and a lead.
"""

from __future__ import annotations

import re

PCIE_BITS_PER_BYTE = 8 * 130 / 128
"""PCI Express 3.0 to 5.0 encode 128 bits as 130 (PCI Express Base Specification 5.0, 4.2.2)."""


def pcie_bytes_per_s(gigatransfers_per_s: float, lanes: int) -> float:
    """Rate of a PCI Express link of generation 3 to 5 in one direction.

    >>> [round(pcie_bytes_per_s(speed, 16) / 1e9, 2) for speed in (8, 16, 32)]
    [15.75, 31.51, 63.02]
    """
    return gigatransfers_per_s * 1e9 * lanes / PCIE_BITS_PER_BYTE


_GEN3_X16 = pcie_bytes_per_s(8, 16)
_GEN4_X16 = pcie_bytes_per_s(16, 16)
_GEN5_X16 = pcie_bytes_per_s(32, 16)
_C2C = 450e9

_LINKS = (
    (r"\bGH200\b", _C2C),  # NVIDIA Grace Hopper Superchip datasheet: NVLink-C2C, 900 GB/s both directions together
    (r"\bV100S?\b", _GEN3_X16),  # NVIDIA V100 datasheet: system interface PCIe Gen3, 32 GB/s
    (r"\bT4\b", _GEN3_X16),  # NVIDIA T4 datasheet: x16 PCIe Gen3
    (r"\bA100\b", _GEN4_X16),  # NVIDIA A100 datasheet: PCIe Gen4, 64 GB/s
    (r"\bA30\b", _GEN4_X16),  # NVIDIA A30 datasheet: PCIe Gen4, 64 GB/s
    (r"\bA10\b", _GEN4_X16),  # NVIDIA A10 datasheet: PCIe Gen4, 64 GB/s
    (r"\bL40S?\b", _GEN4_X16),  # NVIDIA L40S datasheet: PCIe Gen4 x16, 64 GB/s
    (r"\bL4\b", _GEN4_X16),  # NVIDIA L4 datasheet: PCIe Gen4 x16, 64 GB/s
    (r"\bH100\b", _GEN5_X16),  # NVIDIA H100 datasheet: PCIe Gen5, 128 GB/s
    (r"\bH200\b", _GEN5_X16),  # NVIDIA H200 datasheet: PCIe Gen5, 128 GB/s
)


def host_link_bytes_per_s(device_name: str | None) -> float | None:
    """What the link of a product to its host can carry in one direction, in bytes per second; None if not known.

    >>> host_link_bytes_per_s("NVIDIA GH200 480GB"), host_link_bytes_per_s("Quadro of my own")
    (450000000000.0, None)
    """
    name = device_name or ""
    return next((rate for pattern, rate in _LINKS if re.search(pattern, name)), None)
