"""Why another process may not be looked into, and what to do (ptrace(2), "Ptrace access mode checking")."""

from __future__ import annotations

import os
from pathlib import Path

from diag.collect.proc_files import content, fields

PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_IN_A_CONTAINER = "in a container, give it --cap-add SYS_PTRACE"


def ptrace_scope(file: Path = PTRACE_SCOPE) -> int | None:
    """None where the kernel has no such limits (no Yama)."""
    try:
        return int(content(str(file)))
    except (OSError, ValueError):
        return None


def why_not_read(pid: int) -> str:
    """Why this process may not read what /proc keeps for the owner of process `pid`, and what to do.

    It does not name the process, so that many with the same reason can stand together.
    """
    return _another_user(pid, "It") or (
        f"It has rights that diag lacks, or hides its memory (PR_SET_DUMPABLE): run diag with sudo; {_IN_A_CONTAINER}."
    )


def why_not_traced(pid: int, scope: int | None) -> str:
    """Why this process may not stop and read process `pid`, and what to do. `scope` as `ptrace_scope` gives it."""
    if tracer := _number(pid, b"TracerPid"):
        return f"Process {pid} is held by a debugger (process {tracer}): end that first."
    if scope is not None and scope >= 3:
        return "The kernel lets nobody trace processes (kernel.yama.ptrace_scope is 3); only a new boot changes that."
    if why := _another_user(pid, f"Process {pid}"):
        return why
    if scope:
        allow = " or allow it with: sudo sysctl kernel.yama.ptrace_scope=0" if scope == 1 else ""
        return (
            f"Only those with CAP_SYS_PTRACE may trace here (kernel.yama.ptrace_scope is {scope}): "
            f"{_IN_A_CONTAINER}; elsewhere run diag with sudo{allow}."
        )
    return (
        f"Process {pid} may not be traced, although it is of the same user: run diag with sudo; {_IN_A_CONTAINER}, "
        "and see that its seccomp profile allows ptrace."
    )


def _another_user(pid: int, who: str) -> str | None:
    owner = _number(pid, b"Uid")
    if owner is None or owner == os.geteuid():
        return None
    return f"{who} belongs to user {owner}: run diag as that user or with sudo; {_IN_A_CONTAINER}."


def _number(pid: int, name: bytes) -> int | None:
    """The first number of a line of `status`; None where the process is gone or hidden."""
    try:
        return int(fields(content(f"/proc/{pid}/status"))[name].split()[0])
    except (OSError, KeyError):
        return None
