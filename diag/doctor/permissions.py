"""What this user may see: counters of the GPU, samples of the CPU, other processes."""

from __future__ import annotations

from pathlib import Path

from diag.collect.access import PTRACE_SCOPE, ptrace_scope
from diag.collect.gpu import ALLOW_COUNTERS
from diag.doctor.check import Check

TOPIC = "Permissions"

CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON = 19, 21, 38
"""linux/capability.h"""

_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_DRIVER = Path("/proc/driver/nvidia/params")


def capabilities(status: Path = Path("/proc/self/status")) -> frozenset[int]:
    """Numbers of the capabilities in force; none where the system does not tell."""
    for line in (_text(status) or "").splitlines():
        if line.startswith("CapEff:"):
            mask = int(line.split()[1], 16)
            return frozenset(bit for bit in range(mask.bit_length()) if mask >> bit & 1)
    return frozenset()


def counters(held: frozenset[int], params: Path = _DRIVER) -> Check:
    """Whether ncu may read performance counters (NVIDIA, ERR_NVGPUCTRPERM)."""
    name = "GPU performance counters (ncu)"
    values = dict(line.split(": ", 1) for line in (_text(params) or "").splitlines() if ": " in line)
    admin_only = values.get("RmProfilingAdminOnly")
    if admin_only is None:
        return Check(TOPIC, name, "missing", f"{params} does not tell: no driver of NVIDIA here, or an old one")
    if admin_only == "0":
        return Check(TOPIC, name, "ok", "all users may read them (RmProfilingAdminOnly is 0)")
    if CAP_SYS_ADMIN in held:
        return Check(TOPIC, name, "ok", "only administrators may read them, and this process is one (CAP_SYS_ADMIN)")
    return Check(
        TOPIC, name, "limited", "only administrators may read them (RmProfilingAdminOnly is 1)", ALLOW_COUNTERS
    )


_ALLOWED = {
    -1: "everything",
    0: "all but raw tracepoints",
    1: "samples of programs and of the kernel, no events of whole CPUs",
    2: "samples of programs, not of the kernel",
}
"""By perf_event_paranoid, for users without CAP_PERFMON (kernel documentation, admin-guide/sysctl/kernel.rst)."""


def cpu_samples(held: frozenset[int], paranoid: Path = _PARANOID) -> Check:
    """Whether nsys --sample may sample the CPU. Debian and Ubuntu know values above 2, which forbid it."""
    name = "CPU samples (perf_event_paranoid)"
    level = _number(paranoid)
    if level is None:
        return Check(TOPIC, name, "missing", f"{paranoid} is absent: this kernel has no perf events")
    if {CAP_PERFMON, CAP_SYS_ADMIN} & held:
        return Check(TOPIC, name, "ok", f"{level}, from which this process is exempt (CAP_PERFMON or CAP_SYS_ADMIN)")
    if level <= 2:
        return Check(TOPIC, name, "ok", f"{level}: {_ALLOWED[max(level, -1)]}")
    fix = "sudo sysctl kernel.perf_event_paranoid=2 (1 to see the kernel, too)"
    return Check(TOPIC, name, "limited", f"{level}: nothing, so diag run --sample records no samples", fix)


_SCOPES = {
    0: "any process of the same user",
    1: "only processes that it started itself",
    2: "none, but for administrators",
    3: "none at all, until the next boot",
}
"""By ptrace_scope (kernel documentation, admin-guide/LSM/Yama.rst)."""


def other_processes(held: frozenset[int], scope: Path = PTRACE_SCOPE) -> Check:
    """Whether the stacks of a running program can be read (py-spy, gdb)."""
    name = "Stacks of running programs (ptrace_scope)"
    level = ptrace_scope(scope)
    if level is None:
        return Check(TOPIC, name, "ok", "the kernel sets no limits (no Yama): those of the same user can be read")
    if level == 0 or (level < 3 and CAP_SYS_PTRACE in held):
        why = " (CAP_SYS_PTRACE)" if level else ""
        return Check(TOPIC, name, "ok", f"{level}: {_SCOPES[0] if not level else 'any process'}{why}")
    fix = "Use sudo py-spy, or: sudo sysctl kernel.yama.ptrace_scope=0" if level < 3 else "It takes a new boot."
    return Check(TOPIC, name, "limited", f"{level}: {_SCOPES.get(level, _SCOPES[3])}", fix)


def _number(file: Path) -> int | None:
    try:
        return int(_text(file) or "")
    except ValueError:
        return None


def _text(file: Path) -> str | None:
    try:
        return file.read_text()
    except OSError:
        return None
