"""A heartbeat tells apart what the rank does, and is gone when the rank is."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from diag.collect import heartbeat, heartbeat_writer
from diag.collect.heartbeat import Heartbeat
from diag.collect.heartbeat_page import BYTES, Beat, read_beat, write_alive, write_beat
from diag.model.heartbeat import Heartbeat as Told

PATIENCE_S = 60.0
"""Only a program that is broken takes that long, on however slow a machine."""

PROGRAM = """
import ctypes, os, signal, sys, time
from diag.collect.heartbeat import Heartbeat

with Heartbeat(sys.argv[1], rank=3, world_size=8, every_s=0.05) as beat:
    beat(step=7, phase="forward")
    print("ready", flush=True)
    sys.stdin.readline()
    exec(sys.argv[2])
"""
HOLD_GIL = "ctypes.PyDLL(None).sleep(60)"
STAND = "sys.stdin.readline()"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start_one(code: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path), code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        started.append(process)
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == b"ready\n"
        process.stdin.write(b"go\n")
        process.stdin.flush()
        return process

    yield start_one
    for process in started:
        process.kill()
        with process:
            process.wait()


def told(folder: Path) -> Told:
    return msgspec.json.decode((folder / "rank3.heartbeat.json").read_bytes(), type=Told)


def wait_for(folder: Path, condition: Callable[[Told], bool]) -> Told:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if (folder / "rank3.heartbeat.json").exists() and condition(found := told(folder)):
            return found
        time.sleep(0.02)
    raise AssertionError(f"not so within {PATIENCE_S} s; last: {told(folder)}")


def test_a_rank_that_stands_in_a_call_still_runs_python(tmp_path: Path, start: Callable[..., object]) -> None:
    start(STAND)
    first = wait_for(tmp_path, lambda beat: beat.step == 7)
    later = wait_for(tmp_path, lambda beat: beat.time_ns > first.time_ns)
    assert (later.step, later.phase, later.ended, later.beat_ns) == (7, "forward", None, first.beat_ns)
    assert (later.rank, later.world_size, later.host) == (3, 8, os.uname().nodename)


def test_a_rank_whose_gil_is_held_runs_no_python(tmp_path: Path, start: Callable[..., object]) -> None:
    start(HOLD_GIL)
    beat = wait_for(tmp_path, lambda beat: beat.written_ns - beat.time_ns > 2e9)
    assert (beat.ended, beat.state) == (None, "S")


def test_a_stopped_rank_is_told_apart_from_one_whose_gil_is_held(
    tmp_path: Path, start: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    process = start(STAND)
    process.send_signal(signal.SIGSTOP)
    assert wait_for(tmp_path, lambda beat: beat.state == "T").ended is None


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("pass", "finished"),
        ("raise KeyError('lost')", "KeyError: 'lost'"),
        ("sys.exit(3)", "SystemExit: 3"),
        ("os._exit(3)", "vanished without a word: killed, crashed, or left with os._exit"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "vanished without a word: killed, crashed, or left with os._exit"),
        ("os.execv('/bin/sleep', ['sleep', '60'])", "replaced by another program (exec)"),
    ],
)
def test_how_a_rank_ended(tmp_path: Path, start: Callable[..., object], code: str, ended: str) -> None:
    start(code)
    beat = wait_for(tmp_path, lambda beat: beat.ended is not None)
    assert (beat.ended, beat.step) == (ended, 7)


def test_a_forked_child_is_not_the_rank(tmp_path: Path, start: Callable[..., object]) -> None:
    start("pid = os.fork()\nif pid == 0: beat(step=99); sys.exit()\nos.waitpid(pid, 0); sys.stdin.readline()")
    first = wait_for(tmp_path, lambda beat: True)
    later = wait_for(tmp_path, lambda beat: beat.written_ns > first.written_ns + 3e8)
    assert (later.step, later.ended) == (7, None)


def test_nothing_outlives_the_rank_nor_waits_for_it(
    tmp_path: Path, start: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    process = start("try: os.wait()\nexcept ChildProcessError: print('no child', flush=True)\nsys.stdin.readline()")
    assert process.stdout
    assert process.stdout.readline() == b"no child\n"
    assert _writers(tmp_path)
    process.kill()
    assert process.stdout.read() == b""  # else somebody would still hold its output open
    deadline = time.monotonic() + PATIENCE_S
    while _writers(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _writers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["rank3.heartbeat.json"]


def _writers(folder: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if b"heartbeat_writer" in line and os.fsencode(folder) in line:
            found.append(path.parent.name)
    return found


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match="No heartbeat is written"), Heartbeat(tmp_path / "file", rank=0) as beat:
        beat(step=1)


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "rank3.heartbeat.json"
    heartbeat_writer._replace(str(path), "old")
    monkeypatch.setattr(os, "replace", is_full)
    heartbeat_writer._replace(str(path), "new")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [(path.name, "old\n")]


def test_a_folder_that_is_deleted_may_come_back(tmp_path: Path, start: Callable[..., object]) -> None:
    start(STAND)
    wait_for(tmp_path, lambda beat: beat.step == 7)
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    assert wait_for(tmp_path, lambda beat: beat.step == 7).ended is None


def test_a_clock_that_is_set_changes_no_age(tmp_path: Path) -> None:
    """The page has the time of a clock that nobody sets; the file that of the wall, as it is when it is written."""
    page = memoryview(bytearray(BYTES))
    write_alive(page, time.monotonic_ns() - 5 * 10**9)
    write_beat(page, Beat(1, 7, "forward", "finished"))
    heartbeat_writer._write_until_end(_about(tmp_path, os.getpid()), page, os.pidfd_open(os.getpid()))
    beat = told(tmp_path)
    assert 5e9 <= beat.written_ns - beat.time_ns < 65e9


def test_a_rank_that_ends_while_it_is_looked_at_has_told_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = memoryview(bytearray(BYTES))
    write_beat(page, Beat(1, 7, "forward", ""))
    rank = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    def has_just_closed_it(*_: object) -> bool:
        write_beat(page, Beat(1, 7, "forward", "finished"))
        rank.communicate(b"\n")
        return False

    monkeypatch.setattr(heartbeat_writer, "_shares_page", has_just_closed_it)
    with rank:
        heartbeat_writer._write_until_end(_about(tmp_path, rank.pid), page, os.pidfd_open(rank.pid))
    assert told(tmp_path).ended == "finished"


def _about(folder: Path, pid: int) -> dict[str, Any]:
    rank = {"schema": "diag.heartbeat/1", "rank": 3}
    path = str(folder / "rank3.heartbeat.json")
    shared = {"descriptor": 0, "link": os.readlink("/proc/self/fd/0")}  # any file that this process has open
    return {"rank": rank, "pid": pid, "every_s": 0.01, "path": path, **shared}


def test_a_rank_that_nobody_tells_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with pytest.warns(RuntimeWarning, match="Pass rank="), Heartbeat(tmp_path) as beat:
        beat(step=1)


def test_a_beat_costs_microseconds() -> None:
    """A beat is one time and one copy into memory; on any machine a thousand take far less than 100 ms."""
    page = memoryview(bytearray(BYTES))
    started = time.perf_counter()
    for step in range(1_000):
        write_beat(page, Beat(time.time_ns(), step, "forward", ""))
    assert time.perf_counter() - started < 0.1


def test_a_page_is_read_whole_or_not_at_all() -> None:
    page = memoryview(bytearray(BYTES))
    write_beat(page, Beat(5, 9, "phase " + "é" * 500, "x" * 5_000))
    beat = read_beat(page)
    assert beat is not None
    assert (beat.beat_ns, beat.step, beat.ended) == (5, 9, "x" * 512)
    assert beat.phase == "phase " + "é" * 125
    page[8] += 1  # as if it stopped while writing
    assert read_beat(page) is None


def test_torch_is_not_needed() -> None:
    code = f"import sys; import {heartbeat.__name__}; sys.exit(bool(sys.modules.keys() & {{'torch', 'numpy'}}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
