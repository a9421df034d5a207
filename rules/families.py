"""Families of kernels: what the name of a kernel says about its kind of work."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from diag.timeline import gpu_work
from diag.timeline.device import DeviceTimeline


@dataclass(frozen=True)
class Family:
    label: str
    why: str  # what the names rest on
    patterns: re.Pattern[str]
    exceptions: re.Pattern[str] | None

    def has(self, name: str) -> bool:
        return bool(self.patterns.search(name)) and not (self.exceptions and self.exceptions.search(name))


@cache
def families() -> Mapping[str, Family]:
    """By the keys of kernel_families.toml."""
    tables = tomllib.loads(resources.files("diag.rules").joinpath("kernel_families.toml").read_text("utf-8"))
    return {
        key: Family(
            label=entry["label"],
            why=entry["why"],
            patterns=re.compile("|".join(entry["patterns"])),
            exceptions=re.compile("|".join(entry["except"])) if entry["except"] else None,
        )
        for key, entry in tables.items()
    }


def is_of(device: DeviceTimeline, *keys: str) -> NDArray[np.bool_]:
    """For each operation of a device, whether it is a kernel of one of the families. Communication is of none."""
    ids = np.unique(device.ops.name_id[device.ops.kind == gpu_work.KERNEL]).tolist()
    wanted = [i for i in ids if any(families()[key].has(device.names.get(i, "")) for key in keys)]
    return np.asarray(
        (device.ops.kind == gpu_work.KERNEL) & np.isin(device.ops.name_id, wanted) & ~device.is_communication
    )


_UNNAMED = re.compile(r"(\(anonymous namespace\)|<unnamed>)::")
_NATIVE = re.compile(r"at::native::(?:binary_internal::)?(\w+)")
_WRAPPERS = {
    "gpu_kernel_impl", "gpu_kernel_impl_nocast", "opmath_gpu_kernel_with_scalars", "func_wrapper_t", "ReduceOp",
    "BinaryFunctor", "AUnaryFunctor", "BUnaryFunctor",
}  # fmt: skip


def operation(name: str) -> str:
    """What one of PyTorch's elementwise kernels computes, as all have the same short names; of others, the short name.

    >>> operation("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, char*>(int)")
    'AddFunctor'
    >>> operation("cupy_multiply__float64")
    'cupy_multiply__float64'
    """
    function, _, arguments = _UNNAMED.sub("", name).removeprefix("void ").partition("<")
    short = function.partition("(")[0].rpartition("::")[2]
    inside = _NATIVE.findall(arguments) if "elementwise_kernel" in short or short == "reduce_kernel" else []
    return next((found for found in inside if found not in _WRAPPERS), short)
