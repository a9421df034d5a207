"""Profiles the kernels of a workload with Nsight Compute, and explains what it says when it cannot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from diag.collect import workload
from diag.collect.capture import Capture
from diag.collect.descendants import end_orphans
from diag.collect.ncu_options import NcuOptions, ncu_command
from diag.collect.ncu_tool import Ncu
from diag.errors import ToolMissing

_RETURNED = re.compile(r"The application returned an error code \((\d+)\)")

PERMISSION = (
    "This user may not read the GPU's performance counters (ERR_NVGPUCTRPERM). Run as root or with CAP_SYS_ADMIN, or "
    "let all users: write `options nvidia NVreg_RestrictProfilingToAdminUsers=0` to /etc/modprobe.d/nvidia-profiling"
    ".conf and load the driver anew. See https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)
_EXPLAINED = {
    "ERR_NVGPUCTRPERM": PERMISSION,
    "failed to connect to the CUDA driver": (
        "ncu found no CUDA driver. Run on a machine with an NVIDIA GPU, in a container with --gpus all."
    ),
    "driver resource was unavailable": (
        "Something else holds the GPU's counters: another profiler, or DCGM (pause it: dcgmi profiling --pause)."
    ),
    "No metrics to collect found": "ncu knows no such --set or --section. List them: ncu --list-sets, --list-sections",
    "does not exist or is not an executable": "ncu could not start the workload. Name an executable.",
}
_NO_KERNEL = (
    "ncu profiled no kernel. Does the workload launch any here? Check --kernel, a regular expression that the "
    "function's name must contain, and --launch-skip."
)


def record(ncu: Ncu, command: Sequence[str], folder: Path, options: NcuOptions) -> Capture:
    """Runs the workload under ncu, which writes into `folder`. Raises ToolMissing when ncu does not run it."""
    log = folder / "ncu.log"
    ended = workload.run(ncu_command(ncu.path, options, folder / "kernels", log, command))
    end_orphans()
    said = log.read_text("utf-8", "replace") if log.exists() else ""
    file = next(folder.glob("*.ncu-rep"), None)
    lacks = "" if file else why_nothing(said)
    if not file and ended.status and not _RETURNED.search(said):
        raise ToolMissing(lacks if lacks != _NO_KERNEL else f"ncu failed with {ended.status}: {_last_error(said)}.")
    return Capture(workload.Ended(status_of_workload(ended.status, said), ended.wall_ns), file, lacks)


def status_of_workload(status_of_ncu: int, said: str) -> int:
    """ncu ends with 1 whatever the workload ended with, and says that.

    >>> status_of_workload(1, "==ERROR== The application returned an error code (7)."), status_of_workload(0, "")
    (7, 0)
    """
    returned = _RETURNED.search(said)
    return int(returned[1]) if returned else status_of_ncu


def why_nothing(said: str) -> str:
    """Why ncu wrote no report, and what to do, from what it said."""
    return next((why for mark, why in _EXPLAINED.items() if mark in said), _NO_KERNEL)


def _last_error(said: str) -> str:
    errors = [line.removeprefix("==ERROR==").strip() for line in said.splitlines() if line.startswith("==ERROR==")]
    return errors[-1].rstrip(".")[:300] if errors else "it said nothing"
