"""Processes read from outside: what grows, what appears, what ends, what is hidden, and what is never kept."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from diag.collect import descendants, proc, proc_process, proc_threads
from diag.collect.proc import ProcessTree
from diag.collect.proc_process import Followed
from diag.model.live import HostReading, ProcessReading, Snapshot
from diag.model.live_run import Step
from tests.collect.watched import line, process_cpu_ns, running, tell, wait_for

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to become another user")

CHILD = """
import subprocess, sys
children = []
def child():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    children.append(process)
    print(process.pid, flush=True)
"""


def by_pid(tree: ProcessTree) -> Mapping[int, ProcessReading]:
    return {each.pid: each for each in tree.read()}


def step(tree: ProcessTree, until_ns: int) -> Step:
    """From now until the watched process has run for so long."""

    def snapshot() -> Snapshot:
        return Snapshot(0, time.monotonic_ns(), 0, HostReading(1), processes=tree.read())

    before = snapshot()
    wait_for(lambda: process_cpu_ns(tree.pid) - before.processes[0].cpu_ns > until_ns)
    return Step(before, snapshot())


def test_a_busy_loop_is_seen_to_be_busy() -> None:
    with running("busy_loop.py") as process:
        tree = ProcessTree(process.pid)
        start_ns = process_cpu_ns(process.pid)
        seen = step(tree, 600_000_000)
        ran_ns = process_cpu_ns(process.pid) - start_ns
        ((before, after),) = seen.processes
        cores = seen.cores(before, after)
        assert cores is not None
        # 1.0 where it has a core for itself. Ticks of the counter are 10 ms, at either end.
        assert cores == pytest.approx(ran_ns / seen.elapsed_ns, rel=0.1)
        assert cores < 1.05
        assert after.threads[0].cpu_ns - before.threads[0].cpu_ns == pytest.approx(ran_ns, rel=0.05)
        assert after.threads[0].state == after.state == "R"
        assert after.threads[0].waits_in is None
        assert after.pid == process.pid
        assert after.parent_pid == os.getpid()
        assert after.resident_bytes is not None
        assert after.resident_bytes > 1_000_000


def test_a_thread_that_waits_for_a_lock_sleeps_in_the_kernel() -> None:
    with running("blocked_lock.py") as process:
        tree = ProcessTree(process.pid)
        wait_for(lambda: all(thread.state == "S" for thread in tree.read()[0].threads))
        main, waiter = tree.read()[0].threads
        assert main.tid == process.pid
        assert waiter.waits_in is None or waiter.waits_in.startswith("futex")  # None: kernel without symbols
        assert waiter.voluntary_switches
        again = tree.read()[0].threads[1]
        assert again is waiter  # it did not run, and so it was not read


def test_threads_that_wake_up_are_read_again() -> None:
    with running("threads.py", "3") as process:
        tree = ProcessTree(process.pid)
        before = tree.read()[0].threads[3]
        tell(process)
        wait_for(lambda: tree.read()[0].threads[3].cpu_ns > before.cpu_ns + 50_000_000)
        after = tree.read()[0].threads[3]
        assert after.tid == before.tid
        assert (after.involuntary_switches or 0) >= (before.involuntary_switches or 0)


def test_a_kernel_without_run_times_is_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc_threads, "_are_run_times_told", lambda: False)
    with running("busy_loop.py") as process:
        seen = step(ProcessTree(process.pid), 200_000_000)
        ((before, after),) = seen.processes
        assert after.threads[0].cpu_ns - before.threads[0].cpu_ns == pytest.approx(200_000_000, abs=60_000_000)


@pytest.mark.parametrize("are_told", [True, False])
def test_children_appear_and_die(are_told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if are_told and not proc_threads.are_children_told():
        pytest.skip("this kernel lists no children")
    monkeypatch.setattr(proc, "are_children_told", lambda: are_told)
    with running(CHILD + "print()\nwhile input() == '':\n child()\n") as process:
        tree = ProcessTree(process.pid)
        assert [each.pid for each in tree.read()] == [process.pid]
        tell(process)
        first = int(line(process))
        assert [each.pid for each in tree.read()] == [process.pid, first]
        tell(process)
        second = int(line(process))
        assert [each.pid for each in tree.read()] == [process.pid, *sorted((first, second))]
        assert by_pid(tree)[second].parent_pid == process.pid
        os.kill(first, 9)
        wait_for(lambda: by_pid(tree)[first].state == "Z")  # until its parent asks for it
        assert by_pid(tree)[first].resident_bytes == 0
        assert tree.untold == {}


def test_a_child_of_a_thread_that_ended_is_found() -> None:
    program = (
        CHILD + "import threading\nprint()\ninput()\nt = threading.Thread(target=child)\nt.start()\nt.join()\ninput()"
    )
    with running(program) as process:
        tree = ProcessTree(process.pid)
        tree.read()
        tell(process)
        child = int(line(process))
        wait_for(lambda: len(os.listdir(f"/proc/{process.pid}/task")) == 1)
        assert child in by_pid(tree)


def test_a_grandchild_is_followed_when_its_parent_has_ended() -> None:
    middle = CHILD + "child()\ninput()"
    program = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {middle!r}])
print("left", flush=True)
input()
"""
    with running(program) as process:
        tree = ProcessTree(process.pid)
        pids = set(by_pid(tree))
        assert len(pids) == 3
        (grandchild,) = (each for each in tree.read() if each.parent_pid in pids - {process.pid})
        os.kill(grandchild.parent_pid, 9)
        assert line(process) == "left"
        left = by_pid(tree)
        assert set(left) == {process.pid, grandchild.pid}
        assert left[grandchild.pid].parent_pid not in pids
        assert left[grandchild.pid].started_ns == grandchild.started_ns


def test_without_the_watched_process_its_descendants_are_still_read() -> None:
    with running(CHILD + "child()\ninput()") as process:
        tree = ProcessTree(process.pid)
        _, child = tree.read()
        process.kill()
        process.wait()
        assert [each.pid for each in tree.read()] == [child.pid]
        assert tree.untold == {"processes": f"Process {process.pid} has ended."}


def test_a_later_process_of_the_same_number_is_another() -> None:
    stat = proc_process.stat_of(os.getpid())
    assert stat
    assert Followed(stat).goes_on()
    assert not Followed(replace(stat, started_ns=stat.started_ns + 10_000_000)).goes_on()


@pytest.mark.parametrize("pid", [0, -1, 2**22 + 1, 2**80])
def test_a_process_that_is_not_there(pid: int) -> None:
    tree = ProcessTree(pid)
    assert tree.read() == ()
    assert tree.untold == {"processes": f"There is no process {pid}."}


def test_a_process_that_vanishes_while_it_is_read() -> None:
    with running("hot_line.py") as process:
        tree = ProcessTree(process.pid)
        tree.read()
        gone = next(iter(tree._followed.values()))
        assert gone.goes_on()
    reading = gone.reading(gone.threads.read())
    assert reading.threads == ()
    assert reading.read_bytes is None
    assert set(reading.untold) == {"read_bytes", "written_bytes"}
    assert list(gone.threads.children(of_all=True)) == []


def test_only_so_many_processes_are_read() -> None:
    with running(CHILD + "child()\nchild()\nchild()\ninput()") as process:
        line(process), line(process)
        tree = ProcessTree(process.pid, max_processes=2)
        assert len(tree.read()) == 2
        assert tree.untold == {"processes": "Only the first 2 processes are read."}


def test_of_too_many_threads_those_that_run_are_read() -> None:
    with running("threads.py", "40") as process:
        tree = ProcessTree(process.pid, max_threads=5)
        (before,) = tree.read()
        assert 5 <= len(before.threads) <= 6
        assert before.n_threads == 41, "all of them"
        assert before.untold["threads"].startswith("Of too many threads only the 5 that ran most")
        tell(process)
        worker = max(int(tid) for tid in os.listdir(f"/proc/{process.pid}/task"))
        wait_for(lambda: process_cpu_ns(process.pid) > before.cpu_ns + 100_000_000)
        seen = [tree.read()[0].threads for _ in range(proc._WHOLE_EVERY)]
        assert worker in {thread.tid for thread in seen[-1]}
        assert {len(threads) for threads in seen} <= {5, 6}
        assert seen[-1][0].tid == process.pid


def test_storage_and_page_faults_are_counted(tmp_path: Path) -> None:
    size = 8 << 20
    program = f"""
import mmap, os, sys
print(); input()
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
os.write(file, b"x" * {size})
os.fsync(file)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
os.lseek(file, 0, 0)
while os.read(file, 1 << 20): pass
memory = mmap.mmap(-1, {size})
memory.write(b"x" * {size})
print("done", flush=True); input()
"""
    kind = subprocess.run(
        ["stat", "--file-system", "--format=%T", tmp_path], capture_output=True, text=True, check=True
    ).stdout
    if kind.strip() in ("tmpfs", "overlayfs"):
        pytest.skip(f"{tmp_path} lies on {kind.strip()}, which is not storage")
    with running(program, str(tmp_path / "file")) as process:
        tree = ProcessTree(process.pid)
        (before,) = tree.read()
        tell(process)
        line(process)
        (after,) = tree.read()
    grown = {name: value - asdict(before)[name] for name, value in asdict(after).items() if name.endswith("_bytes")}
    assert size <= grown["read_bytes"] < 1.5 * size
    assert size <= grown["written_bytes"] < 1.5 * size
    assert grown["resident_bytes"] > size // 2
    assert after.minor_faults is not None
    assert before.minor_faults is not None
    assert after.minor_faults > before.minor_faults


def test_children_of_this_process_are_found_by_looking_at_all() -> None:
    with running("hot_line.py") as process:
        assert process.pid in descendants.children()
        assert descendants.parent_of(process.pid) == os.getpid()
    assert process.pid not in descendants.children()
    assert descendants.parent_of(process.pid) is None
