"""Which GPUs and MIG instances NVML has here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from diag.collect.nvml_device import Device, Identity
from diag.collect.nvml_errors import LOST, Code, sentence
from diag.collect.nvml_gpm import Gpm
from diag.collect.nvml_library import Handle, text
from diag.collect.nvml_processes import Processes, sees_all_processes
from diag.collect.nvml_traffic import PcieTraffic, Turns

_NO_DEVICE = (
    "The driver sees no GPU. In a container ask for one (`--gpus all`); else look whether the bus sees it "
    "(`lspci -d 10de:`) and what `dmesg` says."
)
_WHY_NO_HANDLE: Mapping[int, str] = {
    Code.NO_PERMISSION: "this process may not open it. Give the container its device file, or this user the rights.",
    Code.GPU_IS_LOST: LOST,
}
_PROFILE = re.compile(r"\bMIG (\d+c\.)?(\d+g\.\S+)")
_MB_PER_GB = 1024


@dataclass(frozen=True)
class Listing:
    """GPUs in the order of NVML, each followed by its MIG instances. `missing`: why there are not more."""

    devices: Sequence[Device]
    missing: str | None
    turns: Turns  # of those that keep a reading waiting


def list_devices(nvml: Any) -> Listing:
    """Raises nvml.NVMLError where not even the number of devices is known."""
    processes, turns = Processes(is_all=sees_all_processes()), Turns()
    devices: list[Device] = []
    missing: list[str] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            missing.append(f"GPU {index}: {_WHY_NO_HANDLE.get(error.value) or sentence(error.value, 'gpus')}")
            continue
        gpu = _gpu(nvml, index, handle)
        devices.append(Device(nvml, gpu, handle, Gpm(handle), processes, PcieTraffic(turns)))
        if not gpu.is_in_mig_mode:
            continue
        try:
            for instance in _instances(nvml, handle):
                gpm = Gpm(handle, nvml.nvmlDeviceGetGpuInstanceId(instance))
                part = _instance(nvml, gpu, instance)
                devices.append(Device(nvml, part, instance, gpm, processes, PcieTraffic(turns)))
        except nvml.NVMLError as error:
            missing.append(f"MIG instances of GPU {index}: {sentence(error.value, 'gpus')}")
    said = " ".join(missing) or (None if devices else _NO_DEVICE)
    return Listing(tuple(devices), said, turns)


def _gpu(nvml: Any, index: int, handle: Handle) -> Identity:
    try:
        mode, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:
        mode = nvml.NVML_DEVICE_MIG_DISABLE
    return Identity(
        index=index,
        uuid=_named(nvml, nvml.nvmlDeviceGetUUID, handle, f"GPU {index}"),
        name=_named(nvml, nvml.nvmlDeviceGetName, handle, "GPU"),
        is_in_mig_mode=mode == nvml.NVML_DEVICE_MIG_ENABLE,
    )


def _named(nvml: Any, ask: Any, handle: Handle, otherwise: str) -> str:
    try:
        return text(lambda: ask(handle)) or otherwise
    except nvml.NVMLError:
        return otherwise


def _instances(nvml: Any, gpu: Handle) -> Iterator[Handle]:
    for number in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, number)
        except nvml.NVMLError:
            # No instance has this number, or this process may not see the one that has.
            continue


def _instance(nvml: Any, gpu: Identity, handle: Handle) -> Identity:
    name = _named(nvml, nvml.nvmlDeviceGetName, handle, gpu.name)
    return Identity(
        index=gpu.index,
        uuid=_named(nvml, nvml.nvmlDeviceGetUUID, handle, f"{gpu.uuid} MIG"),
        name=name,
        parent_uuid=gpu.uuid,
        mig_profile=_profile(nvml, name, handle),
    )


def _profile(nvml: Any, name: str, handle: Handle) -> str | None:
    """'3g.40gb', or '1c.3g.40gb' for a part of it: from the name, or in older drivers from the sizes.

    The profile's memory is rounded up: '3g.40gb' has 39.25 GB (NVIDIA, MIG User Guide, Supported MIG Profiles).
    """
    if found := _PROFILE.search(name):
        return f"{found[1] or ''}{found[2]}"
    try:
        size = nvml.nvmlDeviceGetAttributes_v2(handle)
    except nvml.NVMLError:
        return None
    whole, part = size.gpuInstanceSliceCount, size.computeInstanceSliceCount
    prefix = f"{part}c." if part < whole else ""
    return f"{prefix}{whole}g.{math.ceil(size.memorySizeMB / _MB_PER_GB)}gb"
