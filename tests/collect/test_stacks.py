"""Python stacks of real processes: where they are, and why there are none."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from diag.collect import access, py_spy, stacks
from diag.collect.proc_process import stat_of
from diag.collect.stacks import dump, is_python
from diag.model.live import ThreadStack
from tests.builders.nsys_report import script
from tests.collect.watched import PROGRAMS, as_nobody, line, line_of, running, wait_for

is_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes root, to become another user")


@pytest.fixture(scope="module")
def spy() -> Path:
    found = py_spy.find_py_spy()
    if found is None:
        pytest.skip("py-spy is not installed")
    with running("hot_line.py") as process:
        if "CAP_SYS_PTRACE" in (why := dump(process.pid).untold or ""):
            pytest.skip(why)
    return found


def one(threads: Sequence[ThreadStack], name: str) -> ThreadStack:
    (found,) = (thread for thread in threads if thread.name == name)
    return found


def test_the_hot_line_is_found(spy: Path) -> None:
    with running("hot_line.py") as process:
        found = dump(process.pid)
    assert found.untold is None
    assert found.pid == process.pid
    assert found.took_ns > 0
    (main,) = found.threads
    leaf, root = main.frames
    assert (leaf.function, leaf.file, leaf.line) == (
        "hot",
        str(PROGRAMS / "hot_line.py"),
        line_of("hot_line.py", "# the hot line"),
    )
    assert root.function == "<module>"
    assert main.tid == main.pid == process.pid
    assert main.is_running
    assert main.holds_gil


def test_the_lock_that_blocks_a_thread_is_found(spy: Path) -> None:
    with running("blocked_lock.py") as process:
        wait_for(lambda: any(thread.name == "waiter" and not thread.is_running for thread in dump(process.pid).threads))
        waiter = one(dump(process.pid).threads, "waiter")
        assert waiter.tid in {int(tid) for tid in os.listdir(f"/proc/{process.pid}/task")} - {process.pid}
    assert waiter.frames[0].function == "blocked"
    assert waiter.frames[0].line == line_of("blocked_lock.py", "# the blocked line")
    assert not waiter.holds_gil


def test_a_stopped_process_is_read_and_stays_stopped(spy: Path) -> None:
    with running("hot_line.py") as process:
        os.kill(process.pid, 19)
        wait_for(lambda: state(process.pid) == "T")
        found = dump(process.pid)
        assert found.threads[0].frames[-1].function == "<module>"
        assert state(process.pid) == "T"


@is_root
def test_threads_of_a_container_have_their_number_outside(spy: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    program = "import os\nprint(flush=True)\nprint(os.getpid(), flush=True)\ninput()"
    with running(program, prefix=("unshare", "--pid", "--fork", "--kill-child")) as process:
        assert line(process) == "1"
        (inside,) = map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
        wait_for(lambda: state(inside) == "S")
        (main,) = dump(inside).threads
        assert main.tid == inside
        assert not main.is_running


def test_what_runs_no_python_is_said_to_run_none(spy: Path) -> None:
    with running("import os\nprint(flush=True)\nos.execvp('sleep', ['sleep', '1000'])") as process:
        wait_for(lambda: not is_python(process.pid))
        assert dump(process.pid).untold == f"Process {process.pid} does not run Python."


def test_a_process_whose_py_spy_ends_by_itself_gets_no_signal(tmp_path: Path) -> None:
    program = "import signal\nprint(flush=True)\nsignal.sigwait({signal.SIGCONT})\n"
    block = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCONT})\n"
    with running(block + program) as process:
        assert dump(process.pid, py_spy=script(tmp_path / "py-spy", "exit 1")).untold
        pending = next(
            line for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if "ShdPnd" in line
        )
        assert (process.poll(), int(pending.split()[1], 16)) == (None, 0)


def test_a_process_that_has_ended_or_never_was(spy: Path) -> None:
    program = "import os\nprint(flush=True)\npid = os.fork()\nif not pid: os._exit(0)\nprint(pid, flush=True)\ninput()"
    with running(program) as process:
        zombie = int(line(process))
        wait_for(lambda: state(zombie) == "Z")
        assert dump(zombie).untold == f"There is no process {zombie} any more."
        assert not is_python(zombie)
    assert dump(process.pid).untold == f"There is no process {process.pid} any more."
    assert dump(process.pid).threads == []
    assert not is_python(process.pid)


@is_root
def test_another_user_is_told_whose_process_it_is(spy: Path) -> None:
    with running("hot_line.py") as process, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = Path(shutil.copy(spy, folder))
        copy.chmod(0o755)
        why, is_worth_it = as_nobody(lambda: [dump(process.pid, py_spy=copy).untold, is_python(process.pid)])
    assert why == (
        f"Process {process.pid} belongs to user 0: run diag as that user or with sudo; "
        "in a container, give it --cap-add SYS_PTRACE."
    )
    assert is_worth_it


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        (None, "although it is of the same user"),
        (0, "although it is of the same user"),
        (1, "sudo sysctl kernel.yama.ptrace_scope=0"),
        (2, "Only those with CAP_SYS_PTRACE may trace here (kernel.yama.ptrace_scope is 2)"),
        (3, "only a new boot changes that"),
    ],
)
def test_the_limit_of_the_kernel_that_applies_is_named(scope: int | None, words: str) -> None:
    why = access.why_not_traced(os.getpid(), scope)
    assert words in why
    assert ("sysctl" in why) == (scope == 1)


def test_a_process_under_a_debugger_is_said_to_be() -> None:
    program = """
import ctypes, os
print(flush=True)
if os.fork() == 0:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)  # PTRACE_TRACEME: the parent is its debugger
    print(os.getpid(), flush=True)
input()
"""
    with running(program) as process:
        traced = int(line(process))
        assert access.why_not_traced(traced, None) == (
            f"Process {traced} is held by a debugger (process {process.pid}): end that first."
        )


def state(pid: int) -> str | None:
    stat = stat_of(pid)
    return stat.state if stat else None


def test_a_process_goes_on_when_py_spy_is_ended_while_it_holds_it(tmp_path: Path) -> None:
    holds = script(tmp_path / "py-spy", 'kill -STOP "$4"; exec sleep 1000')
    with running("hot_line.py") as process:
        found = dump(process.pid, py_spy=holds, timeout_s=0.3)
        assert found.untold == "py-spy had no answer within 0.3 s and was ended. Try again."
        assert found.took_ns >= 300_000_000
        wait_for(lambda: state(process.pid) in ("R", "S"))


@pytest.mark.parametrize(
    ("does", "why"),
    [
        (
            "echo 'Permission Denied: Try running again' >&2; exit 1",
            "may not be traced, although it is of the same user",
        ),
        ("echo 'Error: a riddle' >&2; exit 1", "py-spy failed (a riddle). Try again, or: pip install --upgrade py-spy"),
        ("exit 1", "py-spy failed (it said nothing)"),
        ("echo '{'", "gave an answer of an unknown form: pip install --upgrade py-spy"),
        ("echo '[{\"frames\": 1}]'", "gave an answer of an unknown form: pip install --upgrade py-spy"),
        ("yes", "The stacks take more than 1 MB and were left out."),
    ],
)
def test_whatever_py_spy_does_is_a_sentence(
    does: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(py_spy, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(stacks, "ptrace_scope", lambda: None)
    with running("hot_line.py") as process:
        found = dump(process.pid, py_spy=script(tmp_path / "py-spy", does))
        assert found.threads == []
        assert why in (found.untold or "")
        assert state(process.pid) == "R"


def test_without_py_spy_it_is_said_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert py_spy.find_py_spy() is None
    assert dump(os.getpid()).untold == "py-spy is not installed: pip install 'gpu-diag[live]'"
    script(tmp_path / "py-spy", "exit 1")
    assert py_spy.find_py_spy() == tmp_path / "py-spy"
    (tmp_path / "py-spy").write_text("no program")
    assert (dump(os.getpid()).untold or "").startswith(f"Cannot start {tmp_path / 'py-spy'}: ")


def test_python_is_known_by_its_program_or_its_library() -> None:
    assert is_python(os.getpid())
    with running("import os\nprint(flush=True)\nos.execvp('sleep', ['python3', '1000'])") as process:
        wait_for(lambda: not is_python(process.pid))
