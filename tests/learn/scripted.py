"""A reader whose answers are known beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from diag.errors import UsageError
from diag.learn.lesson import Command


class Scripted:
    def __init__(self, answers: Sequence[str] = ()) -> None:
        self.answers = list(answers)
        self.heard: list[str] = []
        self.commands: list[Command] = []

    def say(self, markdown: str) -> None:
        self.heard.append(markdown)

    def ask(self, prompt: str) -> str:
        if not self.answers:
            raise UsageError("no more answers")
        return self.answers.pop(0)

    def run(self, command: Command) -> None:
        self.commands.append(command)

    @property
    def all_heard(self) -> str:
        return "\n".join(self.heard)
