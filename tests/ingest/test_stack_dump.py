"""Stacks as py-spy and faulthandler print them. The texts below are made by hand, as both print them."""

from __future__ import annotations

import faulthandler
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest import stack_dump
from diag.ingest.detect import detect
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.stack_dump_text import MOST_FRAMES, threads_of
from diag.ranks.job import Job

PY_SPY = """\
Process 4711: python train.py --token secret
Python v3.11.7 (/usr/bin/python3.11)

Thread 4711 (active+gil): "MainThread"
    inner (train.py:3)
        Arguments:
            key: "secret (train.py:1)"
        Locals:
            t: 1.5
    <module> (train.py:11)
Thread 4713 (idle): "Worker (1)"
    clock_nanosleep (libc.so.6)
    0x7f0c8bf278ec (libc.so.6)
    Thread.run (threading.py:982)
"""
FAULTHANDLER = """\
Timeout (0:00:05)!
Thread 0x00007f0c8b8246c0 (most recent call first):
  File "/home/me/train.py", line 5 in outer

Thread 0x00007f0c8c643b80 (most recent call first):
  File "/home/me/train.py", line ??? in work
  File "/home/me/train.py", line 11 in <module>
"""
FAULTHANDLER_3_14 = """\
Fatal Python error: Segmentation fault

Thread 0x00007f0c8b8246c0 [loader] (most recent call first):
  <no Python frame>

Current thread 0x00007f0c8c643b80 [python] (most recent call first):
  File "/home/me/train.py", line 9 in work

Current thread's C stack trace (most recent call first):
  Binary file "/lib/libc.so.6", at gsignal+0x12 [0x7f0c8be4524a]
  Binary file "/usr/bin/python3.14" [0x55d0c8be4524]

Extension modules: numpy (total: 1)
"""


def test_py_spy_without_its_local_variables() -> None:
    main, worker = threads_of(PY_SPY.splitlines())
    assert (main.pid, main.tid, main.name, main.is_main) == (4711, 4711, "MainThread", True)
    assert (main.is_running, main.holds_gil, main.is_current) == (True, True, True)
    assert [(f.function, f.file, f.line) for f in main.frames] == [
        ("inner", "train.py", 3),
        ("<module>", "train.py", 11),
    ]
    assert (worker.name, worker.is_running, worker.holds_gil, worker.is_main) == ("Worker (1)", False, None, False)
    assert [f.function for f in worker.frames] == ["clock_nanosleep", "0x7f0c8bf278ec", "Thread.run"]
    assert worker.frames[0].line is None


def test_faulthandler_lists_the_main_thread_last() -> None:
    other, main = threads_of(FAULTHANDLER.splitlines())
    assert (other.is_main, main.is_main, main.is_current, main.is_running) == (False, True, False, None)
    assert [(f.function, f.line) for f in main.frames] == [("work", None), ("<module>", 11)]


def test_faulthandler_of_newer_pythons_with_the_c_stack_of_the_current_thread() -> None:
    loader, main = threads_of(FAULTHANDLER_3_14.splitlines())
    assert (loader.name, loader.frames) == ("loader", [])
    assert (main.name, main.is_current, main.is_main) == ("python", True, True)
    assert [f.function for f in main.frames] == ["gsignal", "?", "work"]


def test_names_with_parentheses() -> None:
    lines = ['Thread 1 (idle): "x"', "    (anonymous namespace)::f (lib.so:7)", "    g (a:b.py)"]
    (thread,) = threads_of(lines)
    assert [(f.function, f.file, f.line) for f in thread.frames] == [
        ("(anonymous namespace)::f", "lib.so", 7),
        ("g", "a:b.py", None),
    ]


@pytest.mark.parametrize("text", [PY_SPY, FAULTHANDLER])
def test_several_dumps_in_one_file(text: str) -> None:
    assert [thread.dump for thread in threads_of((text + "\n" + text).splitlines())] == [0, 0, 1, 1]


def test_a_dump_without_a_header_begins_with_the_thread_that_came_first() -> None:
    one = FAULTHANDLER.splitlines()[1:]
    assert [thread.dump for thread in threads_of([*one, *one, *one])] == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("label", ["[rank{}]: ", "{}: "])
def test_ranks_that_speak_in_turn(label: str) -> None:
    lines = [label.format(rank) + line for line in FAULTHANDLER.splitlines() for rank in (3, 12)]
    threads = threads_of(lines)
    assert sorted((t.rank, len(t.frames), t.dump) for t in threads) == [(3, 1, 0), (3, 2, 0), (12, 1, 0), (12, 2, 0)]


def test_words_that_are_no_frames_end_a_stack() -> None:
    text = 'Stack (most recent call first):\n  File "a.py", line 1 in f\nloss 0.3\n    looks (like.py:1)\n'
    (thread,) = threads_of(text.splitlines())
    assert len(thread.frames) == 1


def test_the_real_faulthandler(tmp_path: Path) -> None:
    waits, go = threading.Event(), threading.Event()

    def wait_here() -> None:
        waits.set()
        go.wait()

    thread = threading.Thread(target=wait_here)
    thread.start()
    waits.wait()
    file = tmp_path / "rank5.txt"
    try:
        with file.open("w") as to:
            faulthandler.dump_traceback(to, all_threads=True)
    finally:
        go.set()
        thread.join()
    with _job(file) as job:
        assert job.sources[0].rank == 5
        current = next(each for each in job.stacks if each.is_current)
        assert current.is_main
        assert current.frames[0].function == "test_the_real_faulthandler"
        assert any("wait_here" in [frame.function for frame in each.frames] for each in job.stacks)


def test_a_file_is_known_by_its_content(tmp_path: Path) -> None:
    for name, text in {"a": PY_SPY, "b": FAULTHANDLER, "c": "warming up\n" * 50 + FAULTHANDLER_3_14}.items():
        (tmp_path / name).write_text(text)
        assert detect(tmp_path / name) == "stack-dump"


def test_rows_of_a_case(tmp_path: Path) -> None:
    (tmp_path / "rank14.stack").write_text(PY_SPY)
    (tmp_path / "stacks-4711.txt").write_text(PY_SPY + "\n")
    (tmp_path / "all.txt").write_text("".join(f"[rank7]: {line}\n" for line in FAULTHANDLER.splitlines()))
    with _job(tmp_path) as job:
        told = {Path(source.path).name: (source.tool, source.rank, source.rank_origin) for source in job.sources}
        assert told == {
            "rank14.stack": ("py-spy", 14, "file name"),
            "stacks-4711.txt": ("py-spy", None, None),  # the number is that of the process
            "all.txt": ("faulthandler", 7, "content"),
        }
        assert all(source.capabilities == {"thread_stack": 2} for source in job.sources)
        assert not job.case.rows("SELECT * FROM name WHERE text LIKE '%secret%'")
        assert job.case.value("SELECT count(DISTINCT id) FROM stack") == 4  # equal stacks are kept once


def test_json_of_py_spy(tmp_path: Path) -> None:
    frame = {"name": "f", "filename": "/home/me/train.py", "line": 3, "locals": [{"repr": "secret"}]}
    thread = {
        "pid": 9, "thread_id": 1, "thread_name": "MainThread", "os_thread_id": 9, "active": True, "owns_gil": True,
        "frames": [frame],
    }  # fmt: skip
    file = tmp_path / "rank2.json"
    file.write_text(json.dumps([thread], indent=2))
    assert detect(file) == "stack-dump"
    with _job(file) as job:
        (read,) = job.stacks
        assert (read.rank, read.pid, read.is_main, read.holds_gil, read.frames[0].line) == (2, 9, True, True, 3)
    file.write_text(json.dumps([thread])[:-3])
    with pytest.raises(InputError, match="Take the dump again"), _job(file):
        pass


def test_hostile_stacks_are_bounded(tmp_path: Path) -> None:
    deep = 'Thread 1 (idle): "x"\n' + "    f (a.py:1)\n" * (3 * MOST_FRAMES)
    wide = (
        f'Thread 0xffffffffffffffff (idle): "{"n" * 10_000}\x1b[31m"\n    {"g" * 100_000} (a.py:99999999999999999999)\n'
    )
    slow = "".join(f"    {part * 1000}\n" for part in (" (x", "(a:1) ", "f (", ") ")) * 100
    file = tmp_path / "hostile"
    file.write_bytes((deep + wide + slow).encode() + b"\xff\xfe\0" * 1000)
    with _job(file) as job:
        assert max(len(each.frames) for each in job.stacks) == MOST_FRAMES
        assert max(map(len, (row["text"] for row in job.case.rows("SELECT text FROM name")))) <= 500


def test_too_large_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_dump, "MOST_BYTES", 100)
    (tmp_path / "big").write_text(PY_SPY)
    with pytest.raises(InputError, match="one file for each rank"), _job(tmp_path / "big"):
        pass


def test_reading_takes_time_in_proportion_to_the_lines() -> None:
    """Ten times the lines take ten times as long, not a hundred times: in calls, which no load changes."""

    def calls(n: int) -> int:
        counted = 0

        def count(*_: object) -> None:
            nonlocal counted
            counted += 1

        sys.setprofile(count)
        try:
            threads_of([line for i in range(n) for line in (f"[rank{i % 50}]: Thread {i} (idle)", "    f (a.py:1)")])
        finally:
            sys.setprofile(None)
        return counted

    assert calls(5_000) < 12 * calls(500)


@contextmanager
def _job(path: Path) -> Iterator[Job]:
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        yield Job(case)


def test_stacks_in_the_log_of_a_job_are_read_with_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "rank3.log"
    path.write_text(
        "n0:1:2 [0] NCCL INFO Using network IB\n" + "step\n" * 500_000 + "Fatal Python error: Aborted\n\n"
        "Current thread 0x00007fcd45a2eb80 (most recent call first):\n"
        '  File "/home/me/train.py", line 12 in init\n'
        '  File "/home/me/train.py", line 40 in <module>\n' + "step\n" * 500_000
    )
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        (source,) = case.sources
        (row,) = case.rows("SELECT rank, is_main, stack_id FROM thread_stack")
        depth = case.value("SELECT COUNT(*) FROM stack WHERE id = ?", (row["stack_id"],))
    assert source.kind == "job-log"
    assert source.has("log_event")
    assert source.has("thread_stack")
    assert (row["rank"], row["is_main"], depth) == (3, 1, 2)
