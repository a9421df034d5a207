"""Which processes hold memory of a GPU, as far as this one may see them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from diag.collect.nvml_errors import Untold
from diag.collect.nvml_library import Handle, call
from diag.collect.proc_process import stat_of
from diag.model.live import GpuProcess

_OWN_NAMESPACE = Path("/proc/self/ns/pid")
_FIRST_NAMESPACE = 0xEFFFFFFC
"""Inode of the machine's own PID namespace (include/linux/proc_ns.h, PROC_PID_INIT_INO)."""

HIDDEN = (
    "This container sees no process numbers but its own, so NVML names it no process. Start it with `--pid=host` "
    "(Kubernetes: `hostPID: true`)."
)


def sees_all_processes(namespace: Path = _OWN_NAMESPACE) -> bool:
    """Whether process numbers here are those of the machine, which are those that the driver keeps."""
    try:
        return os.stat(namespace).st_ino == _FIRST_NAMESPACE
    except OSError:
        return False


def state_of(pid: int) -> Literal["alive", "zombie", "gone"]:
    """Whether a process of this machine still runs; one that /proc hides from this user (hidepid) does."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return "gone"
    except PermissionError:
        pass
    stat = stat_of(pid)
    return "zombie" if stat is not None and stat.state in "ZX" else "alive"


class Processes:
    """Of one device. `is_all`: an empty list means that there is none, and a number that nobody has, that it ended."""

    def __init__(self, *, is_all: bool) -> None:
        self._is_all = is_all

    def read(self, nvml: Any, device: Handle) -> Sequence[Sequence[GpuProcess]]:
        """One answer: the processes by number, each once; one that also draws counts as compute, or as MPS client."""
        found: dict[int, GpuProcess] = {}
        for process in _listed(nvml, device):
            found.setdefault(process.pid, process)
        if not found and not self._is_all:
            raise Untold(HIDDEN)
        return [tuple(self._seen(found[pid]) for pid in sorted(found))]

    def _seen(self, process: GpuProcess) -> GpuProcess:
        return replace(process, state=state_of(process.pid)) if self._is_all else process


def _listed(nvml: Any, device: Handle) -> Iterator[GpuProcess]:
    yield from _others(nvml, device, "MPSCompute", "mps")
    yield from _of_kind(nvml, device, "Compute", "compute")
    yield from _others(nvml, device, "Graphics", "graphics")


def _others(nvml: Any, device: Handle, name: str, kind: Literal["mps", "graphics"]) -> Iterator[GpuProcess]:
    """None where NVML has no such list: MIG instances know no graphics, and old drivers no MPS."""
    try:
        yield from _of_kind(nvml, device, name, kind)
    except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound):
        return


def _of_kind(nvml: Any, device: Handle, name: str, kind: Literal["compute", "graphics", "mps"]) -> Iterator[GpuProcess]:
    # The unversioned name is the newest version, and an old driver has only the second.
    names = [f"nvmlDeviceGet{name}RunningProcesses_v{version}" for version in (3, 2)]
    for process in call(nvml, names, device):
        yield GpuProcess(process.pid, process.usedGpuMemory, kind)
