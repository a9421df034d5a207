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
        server = ["tmux", "-f", "/dev/null", "-S", str(folder / "tmux.socket")]
        width, height = size
        where = ["new-session", "-d", "-x", str(width), "-y", str(height), "-c", str(folder)]
        shell = ["env", "PS1=$ ", "sh"]
        env = {**os.environ, "DIAG_CACHE": str(folder / "cache"), **(environment or {})}
        subprocess.run([*server, *where, *shell], check=True, env=env)
        try:
            yield cls(server)
        finally:
            subprocess.run([*server, "kill-server"], check=False, capture_output=True)

    def type(self, *keys: str) -> None:
        """Keys by their names in tmux: 'Enter', 'C-c', 'Down', or characters."""
        subprocess.run([*self.server, "send-keys", *keys], check=True)

    def run(self, *command: str) -> None:
        self.type(" ".join(command), "Enter")

    def resize(self, width: int, height: int) -> None:
        subprocess.run([*self.server, "resize-window", "-x", str(width), "-y", str(height)], check=True)

    @property
    def screen(self) -> str:
        return self._captured()

    @property
    def screen_with_codes(self) -> str:
        return self._captured("-e")

    def _captured(self, *options: str) -> str:
        command = [*self.server, "capture-pane", "-p", *options]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def wait_for(self, condition: Callable[[str], bool] | str, *, with_codes: bool = False) -> str:
        """The screen once it fulfils the condition, or holds the text."""
        holds = (lambda screen: condition in screen) if isinstance(condition, str) else condition
        deadline = time.monotonic() + PATIENCE_S
        while not holds(screen := self.screen_with_codes if with_codes else self.screen):
            assert time.monotonic() < deadline, f"waited in vain for {condition!r}; the screen is:\n{screen}"
            time.sleep(0.05)  # tmux tells nobody when a screen changes
        return screen
