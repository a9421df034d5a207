"""Which profiler records a command, and what it records: from what the user asks for to files."""

from __future__ import annotations

import enum
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from diag.collect import ncu_capture, nsys_capture, overhead, torch_capture
from diag.collect.capture import Capture
from diag.collect.gpu import gpu_devices
from diag.collect.kernel_choice import Selection
from diag.collect.ncu_options import NcuOptions, exactly
from diag.collect.ncu_tool import Ncu, find_ncu
from diag.collect.nsys_options import NsysOptions
from diag.collect.target_python import PythonCommand, python_command, versions
from diag.collect.torch_capture import TorchOptions
from diag.errors import ToolMissing, UsageError
from diag.ingest.nsys_tool import find_nsys

_GET_NSYS = "Install Nsight Systems (developer.nvidia.com/nsight-systems), or record a PyTorch program: --with torch"
_GET_NCU = "Install Nsight Compute (developer.nvidia.com/nsight-compute), or name one: DIAG_NCU=PATH"


class Profiler(enum.StrEnum):
    NSYS = "nsys"
    NCU = "ncu"
    TORCH = "torch"


@dataclass(frozen=True)
class Plan:
    """What to run, and how each profiler would record it."""

    command: Sequence[str]
    nsys: NsysOptions
    ncu: NcuOptions
    torch: TorchOptions


def check_command(command: Sequence[str]) -> None:
    """Raises UsageError when there is no such program."""
    if shutil.which(command[0]) is not None:
        return
    if Path(command[0]).is_file():
        raise UsageError(f"{command[0]} is not executable. Run it with its interpreter, or: chmod +x {command[0]}")
    raise UsageError(f"There is no program {command[0]} that could be run. Give its path, or correct PATH.")


def profiler_for(command: Sequence[str]) -> Profiler:
    """nsys where there is a GPU to trace; else torch.profiler for a program that uses PyTorch, else nsys.

    Raises ToolMissing when there is none of them.
    """
    has_nsys = find_nsys() is not None
    if has_nsys and gpu_devices():
        return Profiler.NSYS
    if (python := python_command(command)) and uses_torch(python):
        return Profiler.TORCH
    if has_nsys:
        return Profiler.NSYS
    raise ToolMissing(f"No nsys is installed here, and {command[0]} is no Python program that uses torch. {_GET_NSYS}")


def uses_torch(python: PythonCommand) -> bool:
    """Whether its Python has torch and, where that is known, its script names it."""
    if "torch" not in versions(python.python, ["torch"]):
        return False
    try:
        return python.script is None or b"torch" in python.script.read_bytes()
    except OSError:
        return False


def record(plan: Plan, profiler: Profiler, folder: Path) -> Capture:
    """Runs the command under a profiler, which writes into `folder`. Raises ToolMissing or UsageError."""
    match profiler:
        case Profiler.NSYS:
            nsys = find_nsys()
            if nsys is None:
                raise ToolMissing(f"No nsys is installed here. {_GET_NSYS}")
            return nsys_capture.record(nsys, plan.command, folder, plan.nsys)
        case Profiler.NCU:
            return ncu_capture.record(usable_ncu(), plan.command, folder, plan.ncu)
        case Profiler.TORCH:
            return torch_capture.record(python_of(plan.command), folder, plan.torch)


def usable_ncu() -> Ncu:
    """Raises ToolMissing when no kernel could be profiled here, before the workload is run for it."""
    ncu = find_ncu()
    if ncu is None:
        raise ToolMissing(f"No ncu is installed here. {_GET_NCU}")
    if not gpu_devices():
        raise ToolMissing(
            "ncu profiles kernels on a GPU, and none is here. Run it where there is one; what a kernel needs can be "
            "told without: diag probe inspect"
        )
    return ncu


def python_of(command: Sequence[str]) -> PythonCommand:
    """Raises UsageError for what torch.profiler cannot be put around, ToolMissing where there is no torch."""
    python = python_command(command)
    if python is None:
        raise UsageError(
            f"--with torch runs Python programs, and {command[0]} is none. Write: diag run --with torch -- python "
            "train.py (or -m MODULE). For launchers such as torchrun, let them start diag run on one rank."
        )
    if "torch" not in versions(python.python, ["torch"]):
        raise ToolMissing(f"{python.python} has no torch. Name the Python of the program, or use --with nsys.")
    return python


def selected(plan: Plan, selection: Selection) -> Plan:
    """The plan for ncu to profile the launches that were chosen."""
    kernel = exactly(selection.functions)
    return replace(plan, ncu=replace(plan.ncu, kernel=kernel, launch_skip=selection.skip, launch_count=selection.count))


def why_no_overhead(plan: Plan, profiler: Profiler, capture: Capture) -> str | None:
    """Why running the workload again would not tell what the profiler costs; None where it would."""
    if profiler is Profiler.NCU:
        return "ncu runs each kernel many times over, so its overhead says nothing about the workload."
    is_partial = plan.nsys.is_partial if profiler is Profiler.NSYS else plan.torch.is_partial(capture.ended.wall_ns)
    if is_partial:
        return f"The overhead of {profiler} was not measured: only a part of the run was recorded."
    if overhead.input_is_gone():
        return f"The overhead of {profiler} was not measured: what the workload has read cannot be read again."
    return None
