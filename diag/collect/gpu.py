"""Signs of a GPU that NVIDIA's tools can profile, found without loading a library."""

from __future__ import annotations

from pathlib import Path

_DEVICES = ("nvidia[0-9]*", "dxg", "nvhost-gpu", "nvgpu")
"""Of the driver on servers and desktops, of WSL 2, and of Jetson."""


def gpu_devices(folder: Path = Path("/dev")) -> list[str]:
    """Names of the device files."""
    return sorted({file.name for pattern in _DEVICES for file in folder.glob(pattern)})
