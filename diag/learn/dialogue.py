"""Who sits at the other end of a lesson: a terminal, a pipe, or a test."""

from __future__ import annotations

from typing import Protocol

from diag.learn.lesson import Command


class Dialogue(Protocol):
    def say(self, markdown: str) -> None: ...

    def ask(self, prompt: str) -> str:
        """One line. Raises UsageError where there is none left."""
        ...

    def run(self, command: Command) -> None:
        """Shows a command of diag and runs it; an error is shown, as a shell would, and not raised."""
        ...
