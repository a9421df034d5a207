"""What a GPU offers: the limits of an SM by compute capability, and what the name of a product tells.

The facts and their sources stand in `data/limits.toml`, `data/links.toml` and `data/products` (docs/hardware.md). What
a report says of its own device goes before them; what neither tells is None. How fast it calculates: `peaks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from diag.model.tables import table, tables

WARP_THREADS = 32
"""On every NVIDIA GPU; the wavefronts of AMD's data-centre GPUs have 64 and their limits are others."""

ComputeCapability = tuple[int, int]

TensorRate = Literal["full", "geforce", "half"]
"""Of the rates of its capability's tensor cores, a product has all; half where sums are kept in FP32; half of all."""


@dataclass(frozen=True)
class SmLimits:
    """What one SM offers to the blocks that reside on it. Registers are 32 bits wide."""

    warps_per_sm: int
    blocks_per_sm: int
    registers_per_sm: int
    registers_per_block: int
    registers_per_thread: int
    shared_per_sm_bytes: int
    shared_per_block_bytes: int
    shared_per_block_optin_bytes: int
    reserved_shared_per_block_bytes: int  # what the system takes of each block's allocation
    register_unit: int  # registers of a warp are a multiple of this
    shared_unit_bytes: int  # shared memory of a block is a multiple of this
    sub_partitions: int  # parts of an SM with registers of their own
    tensor_cores: tuple[str, ...]  # types that stand in for FP32: 'tf32', 'bf16', 'fp16'
    carve_outs_bytes: tuple[int, ...] = ()  # sizes that shared memory can be set to; empty: it has one size
    barriers_per_sm: int | None = None  # None: they do not limit
    portable_cluster_blocks: int | None = None  # None: without clusters

    @property
    def carve_out_sizes_bytes(self) -> tuple[int, ...]:
        """What an SM's shared memory can hold, smallest first."""
        return self.carve_outs_bytes or (self.shared_per_sm_bytes,)


@dataclass(frozen=True)
class Link:
    """The way between a GPU and its host."""

    name: str
    bytes_per_s: int  # peak of each direction, before the overhead of packets


@dataclass(frozen=True)
class Product:
    """What is printed about a product. `peaks`: its entry in `diag.model.peaks`."""

    name: str
    compute_capability: ComputeCapability
    source: str
    sm_count: int | None = None
    link: Link | None = None
    is_integrated: bool = False  # shares its memory with the host: no link lies between
    base_clock_hz: int | None = None  # of the SMs
    boost_clock_hz: int | None = None
    memory_bytes: int | None = None
    memory_bytes_per_s: int | None = None
    l2_bytes: int | None = None
    tensor_rate: TensorRate = "full"
    peaks: str | None = None


@dataclass(frozen=True)
class Gpu:
    """All that is known about a device. Each part may be unknown."""

    name: str | None = None
    uuid: str | None = None
    compute_capability: ComputeCapability | None = None
    sm_count: int | None = None
    limits: SmLimits | None = None
    product: Product | None = None
    boost_clock_hz: int | None = None  # of the SMs, at most
    memory_bytes_per_s: int | None = None  # of device memory, in theory
    l2_bytes: int | None = None

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
    known = _as_listed(name, facts)
    capability = _capability(facts) or (known.compute_capability if known else None)
    limits = sm_limits(capability) if capability else None
    return Gpu(
        name=name,
        uuid=facts.get("uuid"),
        compute_capability=capability,
        sm_count=_plausible(facts.get("sm_count")) or (known.sm_count if known else None),
        limits=_as_reported(limits, facts) if limits else None,
        product=known,
        boost_clock_hz=_positive(facts.get("clock_hz")) or (known.boost_clock_hz if known else None),
        memory_bytes_per_s=_positive(facts.get("memory_bandwidth_per_s"))
        or (known.memory_bytes_per_s if known else None),
        l2_bytes=_positive(facts.get("l2_bytes")) or (known.l2_bytes if known else None),
    )


def _as_listed(name: str | None, facts: Mapping[str, Any]) -> Product | None:
    """The product of this name, without what it says of whole devices if this is another cut of the chip, or a part."""
    known = product(name) if name else None
    sm_count = _plausible(facts.get("sm_count"))
    if known is None or sm_count is None or known.sm_count in (None, sm_count):
        return known
    return replace(known, sm_count=None, memory_bytes=None, memory_bytes_per_s=None, l2_bytes=None, peaks=None)


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


def _positive(value: int | None) -> int | None:
    return value if value is not None and value > 0 else None


@cache
def _limits() -> Mapping[ComputeCapability, SmLimits]:
    entries = table("limits.toml")
    return {
        parsed_capability(capability): _sm_limits({**entries["common"], **values})
        for capability, values in entries.items()
        if capability not in ("sources", "common")
    }


def _sm_limits(values: Mapping[str, Any]) -> SmLimits:
    fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    return SmLimits(**fields)


def sm_limits(capability: ComputeCapability) -> SmLimits | None:
    """
    >>> sm_limits((9, 0)).warps_per_sm, sm_limits((7, 5)).warps_per_sm, sm_limits((1, 0))
    (64, 32, None)
    """
    return _limits().get(todays(capability))


def todays(capability: ComputeCapability) -> ComputeCapability:
    """CUDA 13 calls 11.0 what CUDA 12 called 10.1.

    >>> todays((10, 1)), todays((10, 0))
    ((11, 0), (10, 0))
    """
    return (11, 0) if capability == (10, 1) else capability


@cache
def _products() -> Mapping[str, Product]:
    links = {name: Link(name, entry["bytes_per_s"]) for name, entry in table("links.toml").items()}
    return {name: _product(name, entry, links) for name, entry in tables("products", "products").items()}


def _product(name: str, entry: Mapping[str, Any], links: Mapping[str, Link]) -> Product:
    link = links[entry["link"]] if "link" in entry else None
    capability = parsed_capability(entry["compute_capability"])
    return Product(**{**entry, "name": name, "compute_capability": capability, "link": link})


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


def parsed_capability(capability: str) -> ComputeCapability:
    major, minor = capability.split(".")
    return int(major), int(minor)
