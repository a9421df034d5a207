"""What a GPU offers: the limits of an SM by compute capability, and what the name of a product tells.

The facts and their sources stand in `data/limits.toml` and `data/products.toml`. What a report says of its own device
goes before them; what neither tells is None.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

WARP_THREADS = 32
"""On every NVIDIA GPU; the wavefronts of AMD's data-centre GPUs have 64 and their limits are others."""

ComputeCapability = tuple[int, int]


@dataclass(frozen=True)
class SmLimits:
    """What one SM offers to the blocks that reside on it. Registers are 32 bits wide."""

    warps_per_sm: int
    blocks_per_sm: int
    registers_per_sm: int
    registers_per_thread: int
    shared_per_sm_bytes: int
    shared_per_block_bytes: int
    shared_per_block_optin_bytes: int
    reserved_shared_per_block_bytes: int  # what the system takes of each block's allocation
    register_unit: int  # registers of a warp are a multiple of this
    shared_unit_bytes: int  # shared memory of a block is a multiple of this
    sub_partitions: int  # parts of an SM with registers of their own
    tensor_cores: tuple[str, ...]  # types that stand in for FP32: 'tf32', 'bf16', 'fp16'
    fp32_lanes: int | None = None  # FP32 multiply-adds per clock


@dataclass(frozen=True)
class Link:
    """The way between a GPU and its host."""

    name: str
    bytes_per_s: int  # peak of each direction, before the overhead of packets


@dataclass(frozen=True)
class Product:
    """What datasheets say. Peaks are FLOP/s at boost clock, dense; tensor cores accumulate in FP32."""

    compute_capability: ComputeCapability
    sm_count: int | None
    link: Link | None
    fp32_flops: float | None  # outside the tensor cores
    tf32_flops: float | None
    half_flops: float | None  # FP16 or BF16 inputs
    is_integrated: bool = False  # shares its memory with the host: no link lies between


@dataclass(frozen=True)
class Gpu:
    """All that is known about a device. Each part may be unknown."""

    name: str | None = None
    compute_capability: ComputeCapability | None = None
    sm_count: int | None = None
    limits: SmLimits | None = None
    product: Product | None = None

    @property
    def link(self) -> Link | None:
        return self.product.link if self.product else None

    @property
    def has_tensor_cores(self) -> bool | None:
        """None when the limits are not known. Chips of the GTX 16 line have none, whatever their capability says."""
        return None if self.limits is None else bool(self.limits.tensor_cores) and "GTX 16" not in (self.name or "")


def gpu(facts: Mapping[str, Any]) -> Gpu:
    """A device from a row of the case's table `device`; any fact may be None or absent."""
    name = facts.get("name")
    if is_not_nvidia(name, facts.get("warp_size")):
        return Gpu(name)
    known = product(name) if name else None
    capability = _capability(facts) or (known.compute_capability if known else None)
    limits = sm_limits(capability) if capability else None
    return Gpu(
        name=name,
        compute_capability=capability,
        sm_count=_plausible(facts.get("sm_count")) or (known.sm_count if known else None),
        limits=_as_reported(limits, facts) if limits else None,
        product=known,
    )


def is_not_nvidia(name: str | None, warp_size: int | None) -> bool:
    """AMD's GPUs report numbers that look like compute capabilities, such as 9.0."""
    return warp_size not in (None, WARP_THREADS) or (name or "").startswith(("AMD", "Radeon", "Instinct"))


def _capability(facts: Mapping[str, Any]) -> ComputeCapability | None:
    major, minor = facts.get("compute_major"), facts.get("compute_minor")
    return (major, minor) if major and minor is not None else None


_REPORTED = {
    "warps_per_sm": "max_warps_per_sm",
    "blocks_per_sm": "max_blocks_per_sm",
    "registers_per_sm": "max_registers_per_sm",
    "shared_per_sm_bytes": "max_shared_per_sm_bytes",
}


def _as_reported(limits: SmLimits, facts: Mapping[str, Any]) -> SmLimits:
    told: dict[str, Any] = {field: _plausible(facts.get(column)) for field, column in _REPORTED.items()}
    return replace(limits, **{field: value for field, value in told.items() if value is not None})


def _plausible(value: int | None) -> int | None:
    """A figure of a report, which may be damaged; None for what no hardware has."""
    return value if value is not None and 0 < value < 1 << 24 else None


@cache
def _limits() -> Mapping[ComputeCapability, SmLimits]:
    tables = _read("limits.toml")
    return {
        _parsed(capability): SmLimits(**{**tables["common"], **values, "tensor_cores": tuple(values["tensor_cores"])})
        for capability, values in tables.items()
        if capability not in ("sources", "common")
    }


def sm_limits(capability: ComputeCapability) -> SmLimits | None:
    """
    >>> sm_limits((9, 0)).warps_per_sm, sm_limits((7, 5)).warps_per_sm, sm_limits((1, 0))
    (64, 32, None)
    """
    return _limits().get(capability)


@cache
def _products() -> Mapping[str, Product]:
    tables = _read("products.toml")
    links = {name: Link(name, entry["bytes_per_s"]) for name, entry in tables["links"].items()}
    return {
        name: Product(
            compute_capability=_parsed(entry["compute_capability"]),
            sm_count=entry.get("sm_count"),
            link=links[entry["link"]] if "link" in entry else None,
            fp32_flops=entry.get("fp32_flops"),
            tf32_flops=entry.get("tf32_flops"),
            half_flops=entry.get("half_flops"),
            is_integrated=entry.get("is_integrated", False),
        )
        for name, entry in tables["products"].items()
    }


def product(name: str) -> Product | None:
    """What the name that a driver gives a GPU tells; None for a name that is not listed exactly.

    >>> product("NVIDIA H100 80GB HBM3").link
    Link(name='PCIe 5.0 x16', bytes_per_s=63015384615)
    >>> product("NVIDIA H100 80GB HBM9") is None
    True
    """
    return _products().get(name.removeprefix("NVIDIA "))


def host_link(name: str | None) -> Link | None:
    """The link of a product to its host at its full width; None where the name does not tell."""
    known = product(name) if name else None
    return known.link if known else None


def is_integrated(name: str | None) -> bool:
    """Whether a product is known to share its memory with the host."""
    known = product(name) if name else None
    return known is not None and known.is_integrated


def _parsed(capability: str) -> ComputeCapability:
    major, minor = capability.split(".")
    return int(major), int(minor)


def _read(file: str) -> Mapping[str, Any]:
    return tomllib.loads(resources.files("diag.model.data").joinpath(file).read_text("utf-8"))
