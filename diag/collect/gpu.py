"""Signs of a GPU that NVIDIA's tools can profile, found without loading a library."""

from __future__ import annotations

from pathlib import Path

_DEVICES = ("nvidia[0-9]*", "dxg", "nvhost-gpu", "nvgpu")
"""Of the driver on servers and desktops, of WSL 2, and of Jetson."""

ALLOW_COUNTERS = (
    "Run as root, start the container with --cap-add SYS_ADMIN, or write `options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0` to /etc/modprobe.d/nvidia-profiling.conf and load the driver anew: "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)
"""What to do where only administrators may read counters."""


def gpu_devices(folder: Path = Path("/dev")) -> list[str]:
    """Names of the device files."""
    return sorted({file.name for pattern in _DEVICES for file in folder.glob(pattern)})
