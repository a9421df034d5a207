"""The app in a real terminal: tmux is one, and tells what it shows."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")

PATIENCE_S = 60.0


class Terminal:
    """80 columns, 24 lines, and a shell."""

    def __init__(self, environment: str) -> None:
        self.server = f"diag-test-{uuid.uuid4().hex[:8]}"
        self.environment = environment
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "sh")

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-L", self.server, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout

    def type(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def run(self, *words: str) -> None:
        self.type(f"{self.environment} {shlex.join(words)}; echo ended $?", "Enter")

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def until(self, is_so: Callable[[str], bool]) -> str:
        end_s = time.monotonic() + PATIENCE_S
        while not is_so(screen := self.screen()):
            assert time.monotonic() < end_s, screen
            time.sleep(0.05)
        return screen

    def close(self) -> None:
        self._tmux("kill-server")


@pytest.fixture(params=["", "TERM=xterm-16color", "NO_COLOR=1"])
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(f"DIAG_CACHE={shlex.quote(str(tmp_path))} {request.param}")
    yield made
    made.close()


def test_a_report_is_opened_looked_through_and_left(terminal: Terminal, training: Path) -> None:
    diag = Path(sys.executable).parent / "diag"
    terminal.run(str(diag), "tui", str(training))
    screen = terminal.until(lambda screen: "Found (6)" in screen)
    assert "● critical" in screen
    assert "█" in screen
    terminal.type("2")
    terminal.until(lambda screen: "Clear (" in screen)
    terminal.type("Enter")
    terminal.until(lambda screen: "Evidence" in screen)
    terminal.type("q")
    screen = terminal.until(lambda screen: "ended 0" in screen)
    assert "Evidence" not in screen
    terminal.type("echo typed", "Enter")
    terminal.until(lambda screen: "\ntyped" in screen)
