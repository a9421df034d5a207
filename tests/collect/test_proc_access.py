"""What of a process is kept and what never is, and what another user's process does not tell."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from diag.collect.proc import ProcessTree
from tests.collect.watched import as_nobody, line, running, tell, wait_for

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to become another user")

RANKS = {"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"}
SECRET = "hunter2-never-kept"


def test_a_rank_is_known_and_nothing_else_of_the_environment() -> None:
    with running("hot_line.py", SECRET, env={**RANKS, "API_TOKEN": SECRET, "RANKED": SECRET}) as process:
        tree = ProcessTree(process.pid)
        (reading,) = tree.read()
        assert (reading.rank, reading.local_rank, reading.world_size) == (3, 1, 8)
        assert SECRET.encode() in Path(f"/proc/{process.pid}/environ").read_bytes()
        kept = list(texts([tree, reading, tree.read()]))
        assert "python" in " ".join(map(str, kept))
        assert not [text for text in kept if SECRET in str(text)]


def texts(roots: list[object]) -> Iterator[object]:
    """All text and bytes that can be reached from some objects, without going through code."""
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType):
            continue
        seen.add(id(one))
        if isinstance(one, str | bytes):
            yield one
        waiting += gc.get_referents(one)


def test_a_rank_is_found_when_the_launcher_has_run_it() -> None:
    """Between fork and exec a process still has the environment of the launcher."""
    program = """
import os, sys
pid = os.fork()
if pid == 0:
    print(os.getpid(), flush=True)
    input()
    os.execve(sys.executable, [sys.executable, "-c", "print('is a rank', flush=True); input()"], os.environ | {ranks})
os.waitpid(pid, 0)
""".replace("{ranks}", repr(RANKS))
    with running(program) as process:
        tree = ProcessTree(process.pid)
        assert [each.rank for each in tree.read()] == [None, None]
        tell(process)
        line(process)
        assert [each.rank for each in tree.read()] == [None, 3]
        assert tree.read()[1].world_size == 8


HOSTILE = b"\x1b[31m)\xff R 1\n\\x"


def test_names_may_be_any_bytes() -> None:
    program = f"""
import ctypes, threading
def name(): ctypes.CDLL(None).prctl(15, ctypes.c_char_p({HOSTILE!r}), 0, 0, 0)
def other():
    name()
    print(flush=True)
    threading.Event().wait()
name()
threading.Thread(target=other, daemon=True).start()
input()
"""
    with running(program) as process:
        (reading,) = ProcessTree(process.pid).read()
    expected = HOSTILE.decode("utf-8", "backslashreplace")
    assert {reading.name, *(thread.name for thread in reading.threads)} == {expected}
    assert reading.parent_pid == os.getpid()
    expected.encode("utf-8")


def told(pid: int) -> dict[str, Any]:
    tree = ProcessTree(pid)
    readings = tree.read()
    return asdict(readings[0]) if readings else {"untold": dict(tree.untold)}


@is_root
def test_another_users_process_is_read_as_far_as_it_may_be() -> None:
    with running("blocked_lock.py", env=RANKS) as process:
        tree = ProcessTree(process.pid)
        wait_for(
            lambda: (
                [(each.state, bool(each.voluntary_switches)) for each in tree.read()[0].threads] == [("S", True)] * 2
            )
        )
        ours = told(process.pid)
        theirs = as_nobody(lambda: told(process.pid))
    assert ours["untold"] == {}
    assert ours["rank"] == 3
    assert theirs["rank"] is theirs["read_bytes"] is theirs["threads"][1]["waits_in"] is None
    assert theirs["cpu_ns"] == ours["cpu_ns"]
    assert theirs["threads"][1]["voluntary_switches"] == ours["threads"][1]["voluntary_switches"]
    why = "It belongs to user 0: run diag as that user or with sudo; in a container, give it --cap-add SYS_PTRACE."
    fields = {"read_bytes", "written_bytes", "rank", "local_rank", "world_size", "waits_in"}
    assert theirs["untold"] == dict.fromkeys(fields, why)


@is_root
def test_hidden_processes_are_said_to_be_hidden() -> None:
    libc = ctypes.CDLL(None, use_errno=True)

    def hide() -> None:
        assert libc.unshare(0x20000) == 0  # CLONE_NEWNS
        assert libc.mount(b"none", b"/", None, 0x44000, None) == 0  # MS_REC | MS_PRIVATE
        assert libc.mount(b"proc", b"/proc", b"proc", 0, b"hidepid=2") == 0

    with running("hot_line.py") as process:
        answer = as_nobody(lambda: told(process.pid), before=hide)
    why = f"Process {process.pid} is hidden: /proc is mounted with hidepid. Run diag as its user, or with sudo."
    assert answer == {"untold": {"processes": why}}
