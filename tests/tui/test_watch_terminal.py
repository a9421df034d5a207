"""Whatever ends a program that holds the terminal, the terminal is as it was."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

PATIENCE_S = 30.0

HOLDS = """
import os, signal, sys, time
from diag.cli.signals import ENDING
from diag.tui.watch.terminal import Terminal
ENDING.watch()
with Terminal() as terminal:
    terminal.draw(["drawn", "here"])
    while True:
        for key in terminal.keys(time.monotonic_ns() + 10**11):
            if key == "q":
                sys.exit()
            if key == "x":
                raise ValueError("broken")
        if terminal.is_stale:
            terminal.draw(["drawn", "again"])
"""


@dataclass
class Held:
    """A program that holds a terminal, seen from the terminal's other end."""

    process: subprocess.Popen[bytes]
    master: int
    slave: int
    before: list[object]
    seen: bytes = b""

    def read_until(self, text: bytes) -> None:
        while text not in self.seen:
            self.seen += os.read(self.master, 4096)

    def type(self, text: bytes) -> None:
        os.write(self.master, text)

    def next_status(self) -> int:
        """As `os.waitpid` has it, once the program ends or is suspended."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := os.waitpid(self.process.pid, os.WUNTRACED | os.WNOHANG))[0]:
            assert time.monotonic() < deadline, "it goes on"
            time.sleep(0.01)  # there is no waiting for a child with a bound
        return found[1]

    def is_given_back(self) -> bool:
        """Its settings are those of before, and it was told to show the other screen and the cursor again."""
        self.process.wait(timeout=PATIENCE_S)
        self.read_until(b"\x1b[?1049l")
        return termios.tcgetattr(self.slave) == self.before and b"\x1b[?25h" in self.seen and b"\x1b[?7h" in self.seen


@pytest.fixture
def held() -> Iterator[Held]:
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        stdin=slave,
        stdout=slave,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  # no threads are involved
        process_group=0,  # the one of the tests may be orphaned, and such a group cannot be suspended
    )
    here = Held(process, master, slave, before)
    here.read_until(b"here")
    yield here
    process.kill()
    process.communicate()
    os.close(master)
    os.close(slave)


def test_keys_come_at_once_and_are_not_echoed(held: Held) -> None:
    assert termios.tcgetattr(held.slave) != held.before
    held.type(b"q")
    assert held.is_given_back()
    assert held.process.returncode == 0
    assert b"q" not in held.seen.replace(b"\x1b[?", b"")


def test_after_an_error(held: Held) -> None:
    held.type(b"x")
    assert held.is_given_back()
    assert held.process.stderr is not None
    assert b"ValueError: broken" in held.process.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_after_a_signal(held: Held, number: signal.Signals) -> None:
    held.process.send_signal(number)
    assert held.is_given_back()


def test_while_suspended_it_belongs_to_the_shell(held: Held) -> None:
    held.process.send_signal(signal.SIGTSTP)
    assert os.WIFSTOPPED(held.next_status())
    held.read_until(b"\x1b[?1049l")
    assert termios.tcgetattr(held.slave) == held.before
    held.seen = b""
    held.process.send_signal(signal.SIGCONT)
    held.read_until(b"again")
    held.type(b"q")
    assert held.is_given_back()


def test_another_size_is_seen_at_once(held: Held) -> None:
    held.seen = b""
    termios.tcsetwinsize(held.slave, (30, 100))
    held.process.send_signal(signal.SIGWINCH)
    held.read_until(b"again")
