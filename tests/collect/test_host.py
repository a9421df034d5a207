"""The host as a workload may use it: whole, or as much as control groups of either version leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diag.collect.host import read_host
from diag.model.live import HostReading
from tests.collect.watched import running, wait_for

GIB = 1 << 30
N_CORES = len(os.sched_getaffinity(0))
STAT = "cpu  100 20 30 4000 500 6 7 80 90 10\ncpu0 1 1 1 1\nintr 5\n"
MEMINFO = f"MemTotal: {64 * GIB // 1024} kB\nMemFree: 1 kB\nMemAvailable: {48 * GIB // 1024} kB\n"

FILES = dict[str, str]
V2: FILES = {
    "proc/self/cgroup": "0::/pods/job\n",
    "sys/fs/cgroup/pods/job/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/pods/job/memory.max": "max\n",
    "sys/fs/cgroup/pods/job/memory.current": "5\n",
    "sys/fs/cgroup/pods/cpu.max": "max 100000\n",
    "sys/fs/cgroup/pods/memory.max": f"{16 * GIB}\n",
    "sys/fs/cgroup/pods/memory.current": f"{10 * GIB}\n",
    "sys/fs/cgroup/pods/memory.stat": f"anon {6 * GIB}\nfile {4 * GIB}\ninactive_file {3 * GIB}\n",
}
V1: FILES = {
    "proc/self/cgroup": "9:cpu,cpuacct:/docker/a\n4:memory:/docker/a\n0::/docker/a\n",
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{8 * GIB}\n",
    "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{7 * GIB}\n",
    "sys/fs/cgroup/memory/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB}\n",
}
"""As in a container that sees its own group as the root, and the path outside of it."""
UNLIMITED: FILES = {
    "proc/self/cgroup": "9:cpu:/\n4:memory:/\n3:name=systemd:/x\n0::/../outside\n",
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{GIB}\n",
}


def machine(folder: Path, files: FILES) -> Path:
    for name, text in {"proc/stat": STAT, "proc/meminfo": MEMINFO, **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "cores", "total_bytes", "available_bytes"),
    [
        ({}, N_CORES, 64 * GIB, 48 * GIB),
        (V2, min(2, N_CORES), 16 * GIB, 9 * GIB),
        (V1, 1, 8 * GIB, 2 * GIB),
        (UNLIMITED, N_CORES, 64 * GIB, 48 * GIB),
    ],
    ids=["no groups", "version 2", "version 1", "no limits"],
)
def test_the_tightest_limit_holds(
    files: FILES, cores: int, total_bytes: int, available_bytes: int, tmp_path: Path
) -> None:
    # user, nice, system, irq and softirq, in ticks of 10 ms
    expected = HostReading(cores, (100 + 20 + 30 + 6 + 7) * 10_000_000, total_bytes, available_bytes)
    assert read_host(root=machine(tmp_path, files)) == expected


def test_a_machine_that_tells_nothing_has_cores_at_least(tmp_path: Path) -> None:
    assert read_host(root=tmp_path) == HostReading(N_CORES)


def test_the_affinity_of_the_watched_process_counts() -> None:
    with running("import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nprint()\ninput()") as process:
        assert read_host(process.pid).cores == 1
    assert read_host(process.pid).cores == read_host().cores


def test_this_machine_is_busy_while_a_loop_runs() -> None:
    with running("busy_loop.py"):
        before = read_host()
        assert before.cpu_busy_ns
        wait_for(lambda: (read_host().cpu_busy_ns or 0) > (before.cpu_busy_ns or 0) + 100_000_000)
    assert before.memory_total_bytes
    assert before.memory_available_bytes
    assert 0 < before.memory_available_bytes < before.memory_total_bytes
