"""What can be told of a kernel before any GPU runs it: its machine code, how it fits on an SM, its least time.

Nothing here is measured. The compiler's output is exact; what follows from it holds for a reference product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diag.model.ceilings import Ceiling
from diag.model.hardware import ComputeCapability, Product, product
from diag.model.occupancy import Occupancy
from diag.model.roofline import Side

REFERENCE_PRODUCTS: Mapping[str, str] = {
    "sm_80": "A100-SXM4-80GB",
    "sm_90": "H100 80GB HBM3",
    "sm_100": "B200",
    "sm_120": "GeForce RTX 5090",
}
"""Targets of the compiler, each with the product that lends it its number of SMs and its peaks."""

TENSOR_MEMORY_COLUMNS = 512
"""Of an SM that has tensor memory (PTX ISA, Tensor Memory); the blocks that reside on it share them."""


def capability_of(target: str) -> ComputeCapability:
    """
    >>> capability_of("sm_90"), capability_of("sm_120")
    ((9, 0), (12, 0))
    """
    digits = target.removeprefix("sm_")
    return int(digits[:-1]), int(digits[-1])


def reference_product(target: str) -> Product:
    """Raises KeyError for a target that is none of `REFERENCE_PRODUCTS`."""
    known = product(REFERENCE_PRODUCTS[target])
    if known is None:
        raise KeyError(target)
    return known


@dataclass(frozen=True)
class CompiledKernel:
    """What the compiler made of one kernel in one configuration."""

    name: str
    target: str  # 'sm_90'
    registers_per_thread: int
    stack_bytes: int  # of a thread: where registers spill to, and what called functions keep
    shared_bytes: int  # of a block
    threads: int  # of a block
    instructions: Mapping[str, int]  # in the code, not executed, by mnemonic: 'LDG.E.128'
    tensor_memory_columns: int = 0  # of a block; 10.0 and its kin alone have such memory
    programs: int | None = None  # of the grid: blocks

    def count(self, *opcodes: str) -> int:
        """Instructions in the code with these opcodes, whatever their modifiers.

        >>> CompiledKernel("k", "sm_90", 32, 0, 0, 128, {"LDG.E.128": 2, "LDG.E": 1}).count("LDG")
        3
        """
        return sum(n for mnemonic, n in self.instructions.items() if mnemonic.partition(".")[0] in opcodes)

    @property
    def local_loads(self) -> int:
        return self.count("LDL")

    @property
    def local_stores(self) -> int:
        return self.count("STL")

    @property
    def spills(self) -> bool:
        """Registers that did not fit lie on the stack. A stack alone, or local memory alone, is no proof."""
        return self.stack_bytes > 0 and self.local_loads + self.local_stores > 0

    @property
    def uses_tensor_cores(self) -> bool:
        """HMMA, HGMMA, QGMMA, IMMA, DMMA, UTCHMMA …; HFMA2.MMA has it among its modifiers and is none of them."""
        return any(mnemonic.partition(".")[0].endswith("MMA") for mnemonic in self.instructions)


@dataclass(frozen=True)
class NotCompiled:
    """A kernel that the compiler did not take for a target."""

    name: str
    target: str
    because: str


@dataclass(frozen=True)
class Excess:
    """More than an SM has for one block: the launch would fail."""

    resource: str  # 'shared memory'
    used: int
    limit: int
    unit: str  # of diag.model.units


@dataclass(frozen=True)
class InspectedKernel:
    """A compiled kernel on the SMs of its target's reference product."""

    compiled: CompiledKernel
    excesses: Sequence[Excess]
    occupancy: Occupancy | None  # None: not one block fits
    waves: float | None  # of its grid; None where the grid is not known or nothing fits

    @property
    def fits(self) -> bool:
        return not self.excesses and self.occupancy is not None


@dataclass(frozen=True)
class StaticRoofline:
    """The least time of a count of work: no launch that does it on this device can be faster."""

    flops: int
    n_bytes: int
    work: Ceiling
    traffic: Ceiling

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.n_bytes

    @property
    def ridge_point(self) -> float:
        """FLOP per byte from which on the ceiling of the work is the lower one."""
        return self.work.per_s / self.traffic.per_s

    @property
    def side(self) -> Side:
        return "memory" if self.intensity < self.ridge_point else "compute"

    @property
    def least_time_ns(self) -> float:
        """max(FLOPs / peak, bytes / bandwidth)"""
        return 1e9 * max(self.flops / self.work.per_s, self.n_bytes / self.traffic.per_s)


@dataclass(frozen=True)
class VariantInspection:
    """One variant of an operator, compiled for one target."""

    variant: str
    target: str
    kernels: Sequence[InspectedKernel]
    not_compiled: Sequence[NotCompiled]
    roofline: StaticRoofline | None  # None where a peak is not known
    spills_on_purpose: bool = False


@dataclass(frozen=True)
class Inspection:
    """An operator for one type of input: its variants, each for every target that was asked for."""

    operator: str
    dtype: str
    shape: Mapping[str, int]
    formula: str  # of FLOPs and bytes
    variants: Sequence[VariantInspection]
    left_out: Sequence[str] = ()  # names of variants that were not asked for
