"""A real terminal to run the program in: tmux, with a server of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

PATIENCE_S = 60.0
PROMPT = "ready>"
needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
DIAG = str(Path(sys.executable).with_name("diag"))


@dataclass(frozen=True)
class Terminal:
    """A shell in a window of tmux. `screen` is what a user sees of it."""

    server: Sequence[str]

    @classmethod
    @contextmanager
    def opened(
        cls, folder: Path, *, size: tuple[int, int] = (80, 24), environment: Mapping[str, str] | None = None
    ) -> Iterator[Self]:
        terminal = cls(["tmux", "-f", "/dev/null", "-S", str(folder / "tmux.socket")])
        width, height = size
        where = ["new-session", "-d", "-x", str(width), "-y", str(height), "-c", str(folder)]
        shell = ["env", f"PS1={PROMPT} ", "sh"]
        terminal.tmux(*where, *shell, environment={"DIAG_CACHE": str(folder / "cache"), **(environment or {})})
        try:
            terminal.wait_for(PROMPT)
            yield terminal
        finally:
            subprocess.run([*terminal.server, "kill-server"], check=False, capture_output=True)

    def tmux(self, *words: str, environment: Mapping[str, str] | None = None) -> str:
        """What tmux answers to a command of its own."""
        command, env = [*self.server, *words], {**os.environ, **(environment or {})}
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S, env=env).stdout

    def type(self, *keys: str) -> None:
        """Keys by their names in tmux: 'Enter', 'C-c', 'Down', or characters."""
        self.tmux("send-keys", *keys)

    def run(self, *command: str) -> None:
        self.type(" ".join(command), "Enter")

    def resize(self, width: int, height: int) -> None:
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    @property
    def screen_with_codes(self) -> str:
        return self.tmux("capture-pane", "-p", "-e")

    def wait_for(self, *wanted: Callable[[str], bool] | str, with_codes: bool = False) -> str:
        """The screen once it fulfils all of this, or holds the texts."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            screen = self.screen_with_codes if with_codes else self.screen
            if all(each in screen if isinstance(each, str) else each(screen) for each in wanted):
                return screen
            assert time.monotonic() < deadline, f"waited in vain for {wanted!r}; the screen is:\n{screen}"
            time.sleep(0.05)  # tmux tells nobody when a screen changes
