"""From what a user asks for to runs: each a probe in one variant, under one setup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import get_args

from diag.errors import UsageError
from diag.kernels.operator import DType
from diag.model.near import did_you_mean, near
from diag.probes.probe import Device, Probe, Scale, Setup, Shape

LARGEST = 1 << 31
"""Of one size: indices of kernels have 32 bits."""


@dataclass(frozen=True)
class Wish:
    """What of a probe is asked for; None: its own choice, or all."""

    device: Device
    scale: Scale = "small"
    dtype: DType | None = None
    variant: str | None = None
    shape: Shape = field(default_factory=dict)  # sizes in the place of those of the scale


@dataclass(frozen=True)
class Run:
    probe: Probe
    variant: str
    setup: Setup

    @property
    def name(self) -> str:
        """Also that of its NVTX ranges."""
        return f"{self.probe.name} {self.variant} {self.setup.dtype}"


def runs_of(probes: Sequence[Probe], wish: Wish, cache_bytes: int, note: Callable[[str], None]) -> Sequence[Run]:
    """Those that the wish leaves of these probes; of several, one that has none of it is noted and passed over.

    Raises UsageError where that is true of all.
    """
    runs: list[Run] = []
    refusals: list[UsageError] = []
    for probe in probes:
        try:
            runs += _of(probe, wish, cache_bytes)
        except UsageError as error:
            refusals.append(error)
    if not runs:
        raise refusals[0]
    for refusal in refusals:
        note(str(refusal))
    return runs


def _of(probe: Probe, wish: Wish, cache_bytes: int) -> Sequence[Run]:
    known = probe.dtypes[wish.device]
    dtype = wish.dtype or known[0]
    if dtype not in known:
        raise UsageError(f"{probe.name} has no {dtype} on this device. Choose --dtype from: {', '.join(known)}.")
    setup = Setup(wish.device, dtype, _shape(probe, wish), 0 if wish.scale == "tiny" else cache_bytes)
    every = probe.variants(wish.device)
    if wish.variant is not None and wish.variant not in [each.name for each in every]:
        hint = did_you_mean(near(wish.variant, (each.name for each in every)))
        names = ", ".join(each.name for each in every)
        raise UsageError(f"{probe.name} has no variant {wish.variant!r}.{hint} Here it has: {names}.")
    wanted = [each for each in every if wish.variant in (None, each.name) and (not each.dtypes or dtype in each.dtypes)]
    if not wanted:
        raise UsageError(f"{probe.name} {wish.variant} has no {dtype}. Leave out --dtype or --variant.")
    return [Run(probe, each.name, setup) for each in wanted]


def _shape(probe: Probe, wish: Wish) -> Shape:
    shape = probe.shapes[wish.device][wish.scale]
    if unknown := wish.shape.keys() - shape.keys():
        raise UsageError(
            f"{probe.name} has no size {min(unknown)!r}. Write --shape {','.join(f'{k}={v}' for k, v in shape.items())}"
        )
    return {**shape, **wish.shape}


def parsed_shape(text: str) -> Shape:
    """Sizes by name: 'M=512,N=512,K=64'. Raises UsageError for what is no size.

    >>> parsed_shape("rows=16, columns=8")
    {'rows': 16, 'columns': 8}
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, _, size = (word.strip() for word in part.partition("="))
        if not name or not size.isascii() or not size.isdigit() or not 0 < int(size) < LARGEST:
            raise UsageError(
                f"--shape {text!r}: {part.strip()!r} is no size. Write NAME=SIZE,… with whole sizes from 1 to 2³¹ - 1, "
                "for example --shape M=512,N=512,K=64"
            )
        sizes[name] = int(size)
    return sizes


def parsed_dtype(text: str) -> DType:
    """Raises UsageError."""
    for known in get_args(DType):
        if text == known:
            return text  # type: ignore[return-value]
    every = list(chain(get_args(DType)))
    raise UsageError(f"--dtype {text!r} is no type of probes. Choose from: {', '.join(every)}.")
