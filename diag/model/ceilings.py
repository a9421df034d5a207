"""Ceilings: what a device does at most, of what, under which conditions, and how that is known.

A ceiling holds for its conditions only. Clocks are among them: Nsight Compute holds a device at its base clock,
datasheets speak of the boost clock, and a run has a clock of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

DataType = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int32", "int8", "int4"]

Level = Literal["dram", "l3", "l2", "l1", "shared", "host_to_device", "device_to_host"]
"""Where bytes move: a level of memory, or one direction of the link between a GPU and its host."""

Origin = Literal["measured", "report", "derived", "datasheet"]
"""How a ceiling is known, the best first.

measured: a micro-benchmark reached it on this device at these clocks. report: what the units of the device can
sustain, as the profile of a kernel tells it, times the clock during that kernel. derived: units per SM, from the
documentation of the architecture, times SMs and clock. datasheet: what is printed, at a clock that is rarely held.
"""


@dataclass(frozen=True)
class Arithmetic:
    """Operations as the units that carry them out know them: the type of what goes in, and of what sums are kept in."""

    input: DataType
    accumulator: DataType
    is_tensor: bool = False
    is_sparse: bool = False  # two of four weights are zero by agreement, and count as if they were worked out

    @property
    def unit(self) -> str:
        """Of a rate of such operations."""
        return "OP/s" if self.input.startswith("int") else "FLOP/s"

    @property
    def name(self) -> str:
        """
        >>> Arithmetic("fp64", "fp64").name, Arithmetic("fp16", "fp32", is_tensor=True).name
        ('FP64', 'FP16 tensor')
        >>> Arithmetic("fp16", "fp16", is_tensor=True, is_sparse=True).name
        'FP16 tensor, summed in FP16, sparse'
        """
        words = [self.input.upper() + (" tensor" if self.is_tensor else "")]
        if self.is_tensor and self.accumulator != usual_accumulator(self.input):
            words.append(f"summed in {self.accumulator.upper()}")
        return ", ".join([*words, *(["sparse"] if self.is_sparse else [])])


def usual_accumulator(of: DataType) -> DataType:
    """The type in which tensor cores sum products, unless told otherwise.

    >>> usual_accumulator("fp64"), usual_accumulator("bf16"), usual_accumulator("int8")
    ('fp64', 'fp32', 'int32')
    """
    if of == "fp64":
        return "fp64"
    return "int32" if of.startswith("int") else "fp32"


def arithmetic(key: str) -> Arithmetic:
    """What a key of the data files is about: `fp32`, `tensor_fp16`, `tensor_fp16_in_fp16`.

    Raises ValueError for a type that is none.

    >>> arithmetic("fp32").name, arithmetic("tensor_fp16").name, arithmetic("tensor_fp8_in_fp16").name
    ('FP32', 'FP16 tensor', 'FP8 tensor, summed in FP16')
    """
    types, _, accumulator = key.removeprefix("tensor_").partition("_in_")
    of = _data_type(types)
    if not key.startswith("tensor_"):
        return Arithmetic(of, of)
    return Arithmetic(of, _data_type(accumulator) if accumulator else usual_accumulator(of), is_tensor=True)


def _data_type(name: str) -> DataType:
    types: tuple[DataType, ...] = get_args(DataType)
    for known in types:
        if name == known:
            return known
    raise ValueError(f"{name!r} is no data type")


@dataclass(frozen=True)
class Ceiling:
    """A rate that a device cannot exceed under its conditions. Those that are None are not known or play no part."""

    per_s: float
    unit: str  # 'FLOP/s', 'OP/s', 'inst/s' or 'bytes/s'
    origin: Origin
    formula: str  # how `per_s` comes about, with its figures
    source: str
    arithmetic: Arithmetic | None = None  # of FLOP/s and OP/s
    level: Level | None = None  # of bytes/s
    access: str | None = None  # to memory: 'read', 'fill', 'copy', 'triad'; over a link: 'pinned', 'pageable'
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    sm_count: int | None = None
    error_share: float | None = None  # half-width of the interval of a measured ceiling, as a share of it

    @property
    def name(self) -> str:
        """
        >>> Ceiling(1.555e12, "bytes/s", "datasheet", "1,555 GB/s", "NVIDIA A100 datasheet", level="dram").name
        'DRAM'
        """
        if self.arithmetic is not None:
            return self.arithmetic.name
        return "instructions" if self.level is None else _LEVELS[self.level]


_LEVELS = {
    "dram": "DRAM",
    "l3": "L3",
    "l2": "L2",
    "l1": "L1",
    "shared": "shared memory",
    "host_to_device": "link host→device",
    "device_to_host": "link device→host",
}
