"""What NVML tells of the GPUs here, which `diag watch` reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

from diag.collect.gpu import gpu_devices
from diag.collect.nvml import Nvml
from diag.collect.nvml_device import Device
from diag.collect.nvml_processes import HIDDEN, sees_all_processes
from diag.doctor.check import Check
from diag.doctor.machine import GPU
from diag.model import units

NAME = "NVML (diag watch)"


def checks() -> Iterator[Check]:
    """None without the device file of a GPU: a GPU's library is not loaded in vain."""
    if gpu_devices() and find_spec("pynvml"):
        yield offers()


def offers(library: Any = None, *, sees_all: bool | None = None) -> Check:
    """Devices, activity of their SMs, processes. `library`: in place of pynvml."""
    is_all = sees_all_processes() if sees_all is None else sees_all
    with Nvml(library) as nvml:
        missing = nvml.untold.get("gpus")
        if not nvml.devices:
            said, _, fix = (missing or "").partition(". ")
            return Check(GPU, NAME, "limited", said.rstrip("."), fix or None)
        said = "; ".join(
            (
                f"driver {nvml.driver or 'of unknown version'}",
                _named(nvml.devices),
                _activity(nvml.devices),
                f"processes of {'the whole machine' if is_all else 'this container only'}",
            )
        )
    fix = " ".join(filter(None, (missing, None if is_all else HIDDEN)))
    return Check(GPU, NAME, "limited" if fix else "ok", said, fix or None)


def _named(devices: Sequence[Device]) -> str:
    """'2 × NVIDIA H100 80GB HBM3, 3 MIG instances'"""
    names = Counter(device.identity.name for device in devices if device.identity.parent_uuid is None)
    gpus = [f"{count} × {name}" for name, count in names.items()]
    instances = sum(device.identity.parent_uuid is not None for device in devices)
    return ", ".join([*gpus, *([units.count(instances, "MIG instance")] if instances else [])])


def _activity(devices: Sequence[Device]) -> str:
    telling = sum(device.has_gpm for device in devices)
    if not telling:
        return "no activity of SMs (GPM: Hopper and newer)"
    return f"activity of SMs (GPM){'' if telling == len(devices) else f' on {telling} of {len(devices)}'}"
