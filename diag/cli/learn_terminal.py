"""The other end of a lesson: the reader at the terminal, or a pipe."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from diag.cli.terminal import color, width, write
from diag.errors import UsageError

if TYPE_CHECKING:
    from diag.learn.lesson import Command


class Terminal:
    """A `diag.learn.dialogue.Dialogue`."""

    def say(self, markdown: str) -> None:
        from rich.console import Console
        from rich.markdown import Markdown

        console = Console(width=width(), force_terminal=color(), highlight=False)
        with console.capture() as capture:
            console.print(Markdown(markdown))
        write("\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n\n")

    def ask(self, prompt: str) -> str:
        write(prompt)
        line = sys.stdin.readline()
        if not line:
            raise UsageError("There are no more answers. Type one for each question, or pipe a line for each.")
        if not sys.stdin.isatty():
            write(line)
        return line.rstrip("\n")

    def run(self, command: Command) -> None:
        from diag.cli.outcome import told
        from diag.cli.verbs import app

        write(f"$ diag {shlex.join(command)}\n\n")
        try:
            app(list(command), standalone_mode=False)
        except Exception as error:  # noqa: BLE001 - raised again unless it is expected
            told(error)
        write("\n")
