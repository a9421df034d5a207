"""Which `ncu` this machine has."""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from diag.ingest.nsys_tool import parse_version, release, run

NAMED_BY = "DIAG_NCU"

_VERSION = re.compile(r"Version (\d{4}(?:\.\d+)+)")
_TIMEOUT_S = 20.0
# NVIDIA's packages, CUDA toolkit, HPC SDK, conda.
_PLACES = (
    "/opt/nvidia/nsight-compute*/ncu",
    "/opt/nvidia/nsight-compute*/*/ncu",
    "/opt/nvidia/hpc_sdk/*/*/profilers/Nsight_Compute/ncu",
    "/usr/local/cuda*/bin/ncu",
    "$CONDA_PREFIX/bin/ncu",
)


@dataclass(frozen=True)
class Ncu:
    path: Path
    version: tuple[int, ...]

    @property
    def release(self) -> str:
        """The version as NVIDIA names it, for example `2024.3.2`."""
        return release(self.version)


def find_ncu() -> Ncu | None:
    """The newest ncu on this machine, or exactly the one that DIAG_NCU names; None when none of them answers."""
    first: dict[str, str] = {}
    for path in _candidates():
        first.setdefault(os.path.realpath(path), path)
    found = [ncu for path in first.values() if (ncu := _inspect(Path(path)))]
    return max(found, key=lambda ncu: ncu.version, default=None)


def _candidates() -> Iterator[str]:
    if named := os.environ.get(NAMED_BY):
        yield from filter(None, [shutil.which(named)])
        return
    yield from filter(None, [shutil.which("ncu")])
    for place in _PLACES:
        # An unset variable stays as it is and matches nothing.
        yield from glob.glob(os.path.expandvars(place))


def _inspect(path: Path) -> Ncu | None:
    try:
        outcome = run([path, "--version"], timeout_s=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(outcome.output)
    return Ncu(path, parse_version(match[1])) if match and outcome.status == 0 else None
