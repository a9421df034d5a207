"""A job that stands still, looked at from outside: three real ranks on Gloo, one of which does not come."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from diag.collect import py_spy
from diag.collect.hang_capture import look, ranks_below
from diag.collect.stacks import dump
from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.input_file import silent
from diag.ranks.job import Job
from diag.ranks.stack_answer import stack_answer
from diag.ranks.stack_clusters import clusters
from tests.collect.watched import PROGRAMS, line_of, running, wait_for

LAUNCHER = """
import os, subprocess, sys
ranks = [
    subprocess.Popen([sys.executable, *sys.argv[1:]], env={**os.environ, "RANK": str(r), "WORLD_SIZE": "3"})
    for r in range(3)
]
for rank in ranks:
    rank.wait()
"""


@pytest.fixture(scope="module")
def needs_py_spy() -> None:
    if py_spy.find_py_spy() is None:
        pytest.skip("py-spy is not installed")
    with running("hot_line.py") as process:
        if "CAP_SYS_PTRACE" in (why := dump(process.pid).untold or ""):
            pytest.skip(why)


@contextmanager
def job_of_three(folder: Path, how: str) -> Iterator[subprocess.Popen[str]]:
    """Their launcher, once all ranks are in the step that does not end."""
    pytest.importorskip("torch")
    arguments = [str(PROGRAMS / "three_ranks.py"), f"file://{folder}/rendezvous", how]
    with running(LAUNCHER, *arguments) as launcher:
        assert launcher.stdout
        for _ in range(2):
            launcher.stdout.readline()
        yield launcher


@pytest.fixture(params=["sleep", "gil"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_rank_that_does_not_come_is_named(tmp_path: Path, how: str, needs_py_spy: None) -> None:
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    with job_of_three(tmp_path, how) as launcher:
        pids = [each.pid for each in ranks_below(launcher.pid)]
        wait_for(lambda: all(_is_asleep(pid) for pid in pids))
        looked = look([launcher.pid], evidence, silent, apart_s=0.3)
        assert launcher.poll() is None
        assert all(Path(f"/proc/{pid}").exists() for pid in pids)
    assert not looked.is_blank
    assert any("TORCH_NCCL_DEBUG_INFO_PIPE_FILE" in why for why in looked.why_not)
    with open_inputs([evidence], ImportOptions(use_cache=False)) as case:
        job = Job(case)
        assert [(s.rank, s.rank_origin, s.world_size, s.tool) for s in job.sources] == [
            (rank, "environment", 3, "diag hang") for rank in range(3)
        ]
        answer = stack_answer(job.stacks)
    (waiting,), (elsewhere,) = answer.waiting, answer.elsewhere
    assert (waiting.ranks, waiting.frames[0].function) == ((0, 2), "all_reduce")
    assert (elsewhere.ranks, elsewhere.moved) == ((1,), 0)
    assert elsewhere.own is not None
    assert elsewhere.own.function == "load_batch"
    assert [holder.rank for holder in answer.holders] == ([1] if how == "gil" else [])
    if how == "gil":
        (holder,) = answer.holders
        assert (holder.frames[0].line, holder.is_running) == (line_of("three_ranks.py", "PyDLL(None)"), False)
        assert (holder.state, bool(holder.waits_in) or os.geteuid() != 0) == ("S", True)


def _is_asleep(pid: int) -> bool:
    return _state(pid) == "S"


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_every_process_is_left_as_it_was(tmp_path: Path, needs_py_spy: None) -> None:
    """One that works, one that sleeps, one that is stopped, and one that runs no Python."""
    stands = "import time; print(flush=True); time.sleep(600)"
    sleeps = "import os; print(flush=True); os.execv('/bin/sleep', ['sleep', '600'])"
    with ExitStack() as stack:
        processes = [stack.enter_context(running(code)) for code in ("hot_line.py", stands, stands, sleeps)]
        pids = [process.pid for process in processes]
        wait_for(lambda: all(_is_asleep(pid) for pid in (pids[1], pids[3])))
        os.kill(pids[2], signal.SIGSTOP)
        wait_for(lambda: _state(pids[2]) == "T")
        before = [_condition(pid) for pid in pids]
        looked = look(pids, tmp_path, silent, apart_s=0.05, wait_s=0)
        wait_for(lambda: [_condition(pid) for pid in pids] == before)  # a sleep that was looked at begins anew
        assert [process.poll() for process in processes] == [None] * 4
    with open_inputs(looked.files, ImportOptions(use_cache=False)) as case:
        (stopped,) = (each for each in clusters(Job(case).stacks) if each.is_stopped)
    assert [thread.pid for thread in stopped.threads] == [pids[2]]


def _condition(pid: int) -> object:
    """What a look could change: state, signals that wait or are handled, threads, open files, who traces it."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    words = ("State", "SigPnd", "SigBlk", "SigIgn", "SigCgt", "ShdPnd", "Threads", "TracerPid", "Uid", "Umask")
    files = sorted((name, os.readlink(f"/proc/{pid}/fd/{name}")) for name in os.listdir(f"/proc/{pid}/fd"))
    return [line for line in lines if line.startswith(words)], sorted(os.listdir(f"/proc/{pid}/task")), files


def test_the_process_of_a_launcher_stands_for_the_ranks_it_started(tmp_path: Path) -> None:
    code = "import os, subprocess, sys; print(flush=True); sys.stdin.readline()"
    start = (
        "import os, subprocess, sys\n"
        f"worker = [sys.executable, '-c', {code!r}]\n"
        "for r in '01':\n"
        "    env = {**os.environ, 'RANK': r}\n"
        "    subprocess.Popen(worker, env=env, stdout=subprocess.PIPE).stdout.read(1)\n"
        "print(flush=True); sys.stdin.readline()"
    )
    with running(start) as launcher:
        assert [each.rank for each in ranks_below(launcher.pid)] == [0, 1]
        rank = ranks_below(launcher.pid)[0]
        assert [each.pid for each in ranks_below(rank.pid)] == [rank.pid]


def test_a_process_without_ranks_stands_for_itself() -> None:
    with running("print(flush=True); input()") as process:
        assert [(each.pid, each.rank) for each in ranks_below(process.pid)] == [(process.pid, _rank_here())]


def _rank_here() -> int | None:
    return int(os.environ["RANK"]) if "RANK" in os.environ else None


def test_a_process_that_is_gone_is_a_sentence(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with pytest.raises(InputError, match=f"There is no process {process.pid}"):
        look([process.pid], tmp_path, silent)


def test_a_process_that_waits_to_be_asked_for_has_ended(tmp_path: Path) -> None:
    with ExitStack() as stack:
        process = stack.enter_context(subprocess.Popen([sys.executable, "-c", ""]))
        wait_for(lambda: Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
        with pytest.raises(InputError, match="has ended"):
            look([process.pid], tmp_path, silent)


def test_of_what_runs_no_python_there_is_a_reason(tmp_path: Path) -> None:
    with running("import os; print(flush=True); os.execv('/bin/sleep', ['sleep', '60'])") as process:
        wait_for(lambda: os.readlink(f"/proc/{process.pid}/exe").endswith(("sleep", "coreutils", "busybox")))
        looked = look([process.pid], tmp_path, silent, wait_s=0)
    assert looked.is_blank
    assert "does not run Python" in looked.why_not[0]


@contextmanager
def started_by(folder: Path, name: str, *, rank: str = "1") -> Iterator[tuple[int, int]]:
    """Pids of a Python program called `name` with a rank, and of the program that it starts, with one worker."""
    program = folder / name
    program.write_text(STARTER)
    command = [sys.executable, str(program), "run", "--", sys.executable, "-c", TRAINS]
    environment = {**os.environ, "RANK": rank, "WORLD_SIZE": "2"}
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert process.stdin
        stack.callback(process.stdin.close)
        assert process.stdout
        yield process.pid, int(process.stdout.readline())


STARTER = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[3:]).returncode)"
TRAINS = """
import os, subprocess, sys
worker = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print(os.getpid(), flush=True)
sys.stdin.readline()
worker.communicate(b"x")
"""


@pytest.mark.parametrize("name", ["diag", "torchrun"])
def test_what_starts_the_program_with_its_rank_is_not_the_rank(tmp_path: Path, name: str) -> None:
    with started_by(tmp_path, name) as (starter, trains):
        assert [(each.pid, each.rank) for each in ranks_below(starter)] == [(trains, 1)]


def test_a_program_with_a_rank_is_the_rank_and_its_workers_are_not(tmp_path: Path) -> None:
    with started_by(tmp_path, "train.py") as (program, _):
        assert [each.pid for each in ranks_below(program)] == [program]


def test_a_shell_with_a_rank_is_not_the_rank(tmp_path: Path) -> None:
    code = "import os; print(os.getpid(), flush=True); input()"
    shell = [f"{sys.executable} -c '{code}'; true"]
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(
                ["sh", "-c", *shell], env={**os.environ, "RANK": "3"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        )
        assert process.stdin
        stack.callback(process.stdin.close)
        assert process.stdout
        trains = int(process.stdout.readline())
        assert [(each.pid, each.rank) for each in ranks_below(process.pid)] == [(trains, 3)]


def test_a_real_run_under_diag_is_looked_through(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    diag = str(Path(sys.executable).with_name("diag"))
    code = f"import os; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()) + '\\n'); input()"
    command = [diag, "run", "--with", "torch", "--no-overhead", "--", sys.executable, "-c", code]
    with ExitStack() as stack:
        process = stack.enter_context(
            subprocess.Popen(
                command, env={**os.environ, "RANK": "1"}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )  # fmt: skip
        assert process.stdin
        stack.callback(process.stdin.close)
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().endswith("\n"))
        assert [(each.pid, each.rank) for each in ranks_below(process.pid)] == [
            (int((tmp_path / "pid").read_text()), 1)
        ]
