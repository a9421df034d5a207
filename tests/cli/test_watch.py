"""`diag watch` as its users run it, on processes of this machine."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from diag.collect.gpu import gpu_devices
from tests.cli.conftest import DIAG, Command
from tests.render.test_live_prometheus import parsed
from tests.terminal import PROMPT, Terminal, needs_tmux

BUSY = """
import sys, threading
def hot_line():
    while True:
        sum(range(1000))
threading.Thread(target=hot_line, name="hot", daemon=True).start()
print("started", flush=True)
sys.stdin.read()
"""
NO_PROCESS = 2**22 - 1
"""Linux gives no higher number than this one (proc(5), pid_max), and hardly ever this one."""


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[str]]:
    """A process with a busy thread, until its standard input is closed."""
    command = [sys.executable, "-c", BUSY]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield process
        process.kill()


def line_of(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def test_once_as_json(diag: Command, busy: subprocess.Popen[str]) -> None:
    said = json.loads(diag("watch", str(busy.pid), "--once", "--format", "json").is_quiet_success())
    assert said["schema"] == "diag.live/1"
    assert said["elapsed_ns"] >= 0.9e9
    (process,) = said["processes"]
    assert process["pid"] == busy.pid
    assert process["cores"] > 0
    assert process["threads"][0]["cores"] > 0
    assert len(process["threads"]) == 2


def test_once_as_text_with_stacks(diag: Command, busy: subprocess.Popen[str]) -> None:
    ran = diag("watch", str(busy.pid), "--once", "--every", "100ms", "--stacks", "10s")
    shown = ran.is_quiet_success()
    assert f"(pid {busy.pid})" in shown
    assert "Python stacks" in shown
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_in_a_pipe_it_writes_a_block_for_each_reading(diag: Command, busy: subprocess.Popen[str]) -> None:
    shown = diag("watch", str(busy.pid), "--every", "100ms", "--for", "2s").is_quiet_success()
    assert shown.count(f"(pid {busy.pid})") >= 3
    assert "\x1b" not in shown


def test_it_ends_with_the_process_and_says_its_last_words(diag: Command, busy: subprocess.Popen[str]) -> None:
    watching = diag.start("watch", str(busy.pid), "--every", "100ms")
    line_of(watching)
    assert busy.stdin is not None
    busy.stdin.close()
    busy.wait(timeout=30)
    out, err = watching.communicate(timeout=30)
    assert (watching.returncode, err) == (0, b"")
    last = out.decode().splitlines()[-1]
    assert f"(pid {busy.pid}) has ended after" in last
    assert "of memory" in last


def test_a_signal_ends_it_and_leaves_the_workload_alone(diag: Command, busy: subprocess.Popen[str]) -> None:
    watching = diag.start("watch", str(busy.pid), "--format", "json")
    assert json.loads(line_of(watching))["pid"] == busy.pid
    watching.send_signal(signal.SIGTERM)
    _, err = watching.communicate(timeout=30)
    assert watching.returncode == 143
    assert err == b"diag: interrupted; the workload goes on.\n"
    assert busy.poll() is None


def test_it_ends_when_its_reader_has_seen_enough(diag: Command, busy: subprocess.Popen[str]) -> None:
    watching = diag.start("watch", str(busy.pid), "--every", "100ms")
    line_of(watching)
    assert watching.stdout is not None
    watching.stdout.close()
    assert watching.wait(timeout=30) == 0


def test_no_such_process(diag: Command) -> None:
    assert str(NO_PROCESS) in diag("watch", str(NO_PROCESS)).is_one_sentence(3)


@pytest.mark.skipif(bool(gpu_devices()), reason="there is a GPU to watch")
def test_without_gpu_and_process_it_says_what_to_do(diag: Command) -> None:
    ran = diag("watch")
    assert ran.status == 4
    assert "Host" in ran.out
    assert ran.err.count("\n") == 1
    assert "diag watch PID" in ran.err
    assert json.loads(diag("watch", "--format", "json").out)["gpus"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--every", "1ms"], "100ms"),
        (["--every", "soon"], "not a time"),
        (["--every", "2h"], "1min"),
        (["--for", "0s"], "not a time"),
        (["--stacks", "1s"], "10s"),
        (["--listen", "nowhere"], "--listen"),
        (["--listen", "9400", "--once"], "--listen"),
        (["--thresholds", "none.toml"], "none.toml"),
        (["0"], "PID"),
        (["python"], "PID"),
        (["--format", "markdown"], "markdown"),
    ],
)
def test_wrong_usage_is_one_sentence(diag: Command, words: list[str], said: str, tmp_path: Path) -> None:
    pid = [] if words[0][0] != "-" else [str(os.getpid())]
    assert said in diag("watch", *pid, *words, cwd=tmp_path).is_one_sentence(2)


def test_a_recording_is_a_case(diag: Command, busy: subprocess.Popen[str], tmp_path: Path) -> None:
    kept = tmp_path / "live.diag"
    words: list[str | Path] = ["watch", str(busy.pid), "--every", "100ms", "--for", "1s", "--once", "--record", kept]
    diag(*words).is_quiet_success()
    report = diag("report", kept)
    assert report.status == 0, report.err
    assert str(kept) in diag(*words).is_one_sentence(2)


def test_a_case_that_a_signal_cuts_short_is_told_and_whole(
    diag: Command, busy: subprocess.Popen[str], tmp_path: Path
) -> None:
    kept = tmp_path / "live.diag"
    watching = diag.start("watch", str(busy.pid), "--every", "100ms", "--format", "json", "--record", kept)
    for _ in range(8):
        line_of(watching)
    watching.send_signal(signal.SIGINT)
    _, err = watching.communicate(timeout=30)
    assert watching.returncode == 130
    assert str(kept) in err.decode()
    assert diag("report", kept).status == 0


def test_prometheus_is_served_while_it_watches(diag: Command, busy: subprocess.Popen[str]) -> None:
    watching = diag.start("watch", str(busy.pid), "--listen", "0", "--format", "json")
    assert watching.stderr is not None
    url = watching.stderr.readline().decode().split()[-1]
    assert url.startswith("http://127.0.0.1:")
    line_of(watching)
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        samples = parsed(answer.read().decode())
    pids = {dict(labels)["pid"] for name, labels in samples if name == "diag_process_cpu_seconds_total"}
    assert pids == {str(busy.pid)}
    watching.terminate()
    watching.communicate(timeout=30)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    with Terminal.opened(tmp_path) as terminal:
        yield terminal


@needs_tmux
def test_the_live_picture_in_a_real_terminal(terminal: Terminal, busy: subprocess.Popen[str]) -> None:
    terminal.type(shlex.join([str(DIAG), "watch", str(busy.pid), "--every", "200ms"]), "Enter")
    screen = terminal.wait_for(f"(pid {busy.pid})", "PID", "TID", "over 0.2 s", "q quit")
    assert PROMPT not in screen
    terminal.type("?")
    terminal.wait_for("quit; the workload goes on")
    terminal.type("Escape")
    terminal.type("s")
    terminal.wait_for("asking took")
    terminal.type("f")
    terminal.wait_for("Cannot tell")
    terminal.type("f")
    terminal.resize(150, 40)
    terminal.wait_for("FAULTS/s", "THREADS")
    terminal.type("p")
    terminal.wait_for("PAUSED")
    terminal.type("q")
    terminal.wait_for(PROMPT)
    assert terminal.tmux("display-message", "-p", "#{cursor_flag} #{alternate_on}").split() == ["1", "0"]


@needs_tmux
def test_last_words_are_on_the_screen_of_the_shell(terminal: Terminal, busy: subprocess.Popen[str]) -> None:
    terminal.type(shlex.join([str(DIAG), "watch", str(busy.pid), "--every", "200ms"]), "Enter")
    terminal.wait_for("q quit")
    assert busy.stdin is not None
    busy.stdin.close()
    busy.wait(timeout=30)
    terminal.wait_for("has ended after", PROMPT)


@needs_tmux
def test_a_shell_gets_its_terminal_back_from_ctrl_c(terminal: Terminal, busy: subprocess.Popen[str]) -> None:
    terminal.type(shlex.join([str(DIAG), "watch", str(busy.pid)]) + "; stty -a | grep -ow -- '[-]*echo'", "Enter")
    terminal.wait_for("q quit")
    terminal.type("C-c")
    screen = terminal.wait_for("the workload goes on", PROMPT)
    assert screen.splitlines().count("echo") <= 1
    assert "-echo" not in screen.split("the workload goes on")[1]
