"""Whether NVIDIA's package is installed, found out without loading it."""

from __future__ import annotations

import platform
from importlib import metadata
from importlib.util import find_spec

MODULE = "ncu_report"
DISTRIBUTION = "ncu-report"
GET_IT = "pip install 'gpu-diag[ncu]'"


def version() -> str | None:
    """Its version; None when it is not installed, 'unknown' when nothing says which it is."""
    if find_spec(MODULE) is None:
        return None
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"


def is_offered_here() -> bool:
    """Whether NVIDIA publishes it for this machine: Linux on x86-64 (PyPI, ncu-report 2026.3.1)."""
    return (platform.system(), platform.machine()) == ("Linux", "x86_64")
