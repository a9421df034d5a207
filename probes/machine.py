"""The device that probes run on: which it is, how large its last cache is, and how much memory it has left."""

from __future__ import annotations

import os
from importlib.util import find_spec

from diag.errors import OutOfMemory, ToolMissing
from diag.model import units
from diag.model.benchmark import Machine
from diag.probes.probe import Device

MOST_SHARE = 0.8
"""Of what is free: beside tensors, libraries want some for themselves."""


def check_torch() -> None:
    """Raises ToolMissing without PyTorch, before anything loads it."""
    if find_spec("torch") is None:
        raise ToolMissing("Probes run on PyTorch, which is not installed. Install it: pip install 'gpu-diag[probes]'")
    # Read when torch is loaded: below this level, its profiler announces each start and stop.
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")


def device_of(wanted: str) -> Device:
    """Of 'auto', 'cpu' and 'cuda'. Raises ToolMissing."""
    check_torch()
    import torch

    has_gpu = torch.cuda.is_available()
    if wanted == "cuda" and not has_gpu:
        raise ToolMissing(
            "PyTorch sees no CUDA GPU here. See what is missing with: diag doctor; or choose cpu as the device"
        )
    if wanted == "cpu" or not has_gpu:
        return "cpu"
    if find_spec("triton") is None:
        raise ToolMissing("On a GPU, probes run Triton kernels. Install it: pip install 'gpu-diag[probes]'")
    return "cuda"


def machine_of(device: Device) -> Machine:
    """As `diag calibrate` knows it, so that ceilings find their measurements."""
    import torch

    if device == "cuda":
        from diag.probes.calibration import cuda

        return cuda.machine_of(torch.cuda.get_device_properties(0))
    from diag.probes.calibration import cpu

    return cpu.machine_of()


def cache_bytes(device: Device) -> int:
    """Of the cache that is nearest to memory."""
    import torch

    if device == "cuda":
        return int(torch.cuda.get_device_properties(0).L2_cache_size)
    from diag.probes.calibration import host

    return host.caches().largest_bytes


def conditions(device: Device) -> str:
    """For people: what of the machine's state the times depend on."""
    import torch

    if device == "cuda":
        return f"torch {torch.__version__}, CUDA {torch.version.cuda}, clocks as they came"
    from diag.probes.calibration import cpu

    return cpu.state()


def check_memory(
    what: str, needs_bytes: int, device: Device, instead: str = "Choose a smaller --scale or --shape"
) -> None:
    """Raises OutOfMemory where so much is not free, before anything is allocated."""
    free_bytes = _free_bytes(device)
    if free_bytes is not None and needs_bytes > MOST_SHARE * free_bytes:
        raise OutOfMemory(
            f"{what} takes {units.size(needs_bytes)} of memory, and {units.size(free_bytes)} are free. "
            f"{instead}, or end other programs first."
        )


def _free_bytes(device: Device) -> int | None:
    if device == "cuda":
        import torch

        torch.cuda.empty_cache()  # PyTorch keeps what earlier tensors took
        return int(torch.cuda.mem_get_info()[0])
    from diag.probes.calibration import host

    return host.available_bytes()
