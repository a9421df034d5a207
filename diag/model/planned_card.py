"""The card that a plan is about: what is printed of a product, under the short name that people say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from diag.errors import UsageError
from diag.model.ceilings import Ceiling, arithmetic
from diag.model.datasheets import Peaks, datasheet_peaks
from diag.model.hardware import product
from diag.model.nvlink import nvlink
from diag.model.precision import Precision

SHORT: Mapping[str, str] = {
    "a100": "A100-SXM4-80GB",
    "a100-40gb": "A100-SXM4-40GB",
    "a100-pcie": "A100 80GB PCIe",
    "a10": "A10",
    "a30": "A30",
    "b200": "B200",
    "h100": "H100 80GB HBM3",
    "h100-pcie": "H100 PCIe",
    "h200": "H200",
    "l4": "L4",
    "l40s": "L40S",
    "rtx4090": "GeForce RTX 4090",
    "rtx5090": "GeForce RTX 5090",
    "t4": "Tesla T4",
    "v100": "Tesla V100-SXM2-32GB",
}
"""What people call a card → the product of `data/products`."""


@dataclass(frozen=True)
class Card:
    """Rates as printed. None: not printed, or there is no such link."""

    name: str
    memory_bytes: float
    memory_bytes_per_s: float | None
    nvlink_bytes_per_s: float | None  # out of the card, in one direction
    host_bytes_per_s: float | None  # of each direction
    peaks: Peaks
    source: str


def card(name: str) -> Card:
    """Of a short name, or of a product as the driver calls it. Raises UsageError for one without a printed memory.

    >>> card("h100").memory_bytes / (1 << 30), card("h100").nvlink_bytes_per_s
    (80.0, 450000000000)
    """
    known = product(SHORT.get(name.lower(), name))
    if known is None or known.memory_bytes is None:
        raise UsageError(
            f"--gpu {name!r} is none of {', '.join(SHORT)}, nor a product of docs/hardware.md with its memory. "
            "Name --memory 80GB instead, if memory is all that is asked."
        )
    links = nvlink(known.compute_capability) if _has_nvlink(known.name) else None
    return Card(
        name=known.name,
        memory_bytes=known.memory_bytes,
        memory_bytes_per_s=known.memory_bytes_per_s,
        nvlink_bytes_per_s=links.links * links.bytes_per_s if links else None,
        host_bytes_per_s=known.link.bytes_per_s if known.link else None,
        peaks=datasheet_peaks(known),
        source=known.source,
    )


def _has_nvlink(name: str) -> bool:
    """Of the modules on boards of several; cards with a bridge for two have it only where somebody put one."""
    return "SXM" in name or name in ("H100 80GB HBM3", "H200", "B200", "GB200")


@dataclass(frozen=True)
class Multiplier:
    """What multiplies the weights. `is_unpacked`: the card has no arithmetic for their type."""

    ceiling: Ceiling
    is_unpacked: bool


def multiplier(of: Card, weights: Precision) -> Multiplier | None:
    """Of the type itself where the card is printed to have it, else of BF16 or FP16, to which weights are unpacked."""
    own = of.peaks.get(arithmetic(weights.arithmetic))
    if own is not None:
        return Multiplier(own, weights.is_weight_only)
    for wider in ("tensor_bf16", "tensor_fp16"):
        if (ceiling := of.peaks.get(arithmetic(wider))) is not None:
            return Multiplier(ceiling, True)
    return None
