"""What control groups leave to a process: of the CPU and of memory, in versions 1 and 2 (cgroups(7)).

A process is in a group, which is in another, up to the root; each may set limits, and all hold. In a container only
the innermost may be there to see. Hierarchies are looked for where systemd and container runtimes mount them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from diag.collect.proc_files import content

Pid = int | str  # 'self'


def cpu_quotas(pid: Pid, root: Path) -> Iterator[float]:
    """Limits, in cores: CPU time that is granted per period of time."""
    for folder in _folders(pid, "cpu", root):
        match _words(folder / "cpu.max") or _words(folder / "cpu.cfs_quota_us", folder / "cpu.cfs_period_us"):
            case [quota, period] if quota not in ("max", "-1"):
                yield int(quota) / int(period)


def memory_limits(pid: Pid, root: Path, below_bytes: int) -> Iterator[tuple[int, int]]:
    """(limit, what is left of it) of each limit that is lower than `below_bytes`.

    Pages of files that were not used lately count as left, as they do for Kubernetes when it evicts.
    """
    for folder in _folders(pid, "memory", root):
        limit = _words(folder / "memory.max") or _words(folder / "memory.limit_in_bytes")
        used = _words(folder / "memory.current") or _words(folder / "memory.usage_in_bytes")
        if limit and used and limit[0] != "max" and int(limit[0]) < below_bytes:
            limit_bytes = int(limit[0])
            yield limit_bytes, min(limit_bytes, max(0, limit_bytes - int(used[0]) + _inactive_bytes(folder)))


def _folders(pid: Pid, controller: str, root: Path) -> Iterator[Path]:
    """Of the group of a process and of those around it, whether they are there or not."""
    try:
        lines = content(str(root / f"proc/{pid}/cgroup")).decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return
    mounts = root / "sys/fs/cgroup"
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for mount in [mounts / controller] if controllers else [mounts, mounts / "unified"]:
            group = PurePosixPath(path.lstrip("/"))
            # A group outside of the container that diag is in has a path that leads up.
            yield from (mount / each for each in (group, *group.parents) if ".." not in each.parts)


def _words(*files: Path) -> list[str]:
    """Of all these files; none where one is missing."""
    try:
        return [word for file in files for word in content(str(file)).decode().split()]
    except OSError:
        return []


def _inactive_bytes(folder: Path) -> int:
    words = _words(folder / "memory.stat")
    told = dict(zip(words[::2], words[1::2], strict=False))
    return int(told.get("total_inactive_file") or told.get("inactive_file") or 0)
