"""The help of every verb, as a manual page: what each option means, examples that work, statuses, where to go on."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from diag.cli.manual import ENVIRONMENT, STATUSES, VALUES, manual
from diag.cli.verb import Page
from diag.cli.verbs import app

ROOT = Path(__file__).parents[2]
COLUMNS = 80

PLAIN = {
    "ADDRESS", "BEFORE AFTER", "CASE", "CV", "FACTOR", "FIGURE", "FIGURES", "FILE", "FOLDER", "HOW", "ID", "JSON", "K",
    "KEY=VALUE", "LENGTH", "LESSON", "LIMITS", "METRIC", "N", "N,N,...", "NAME", "NAME=SIZE,...", "RANK", "REGEX",
    "TARGET", "TEXT", "TOKENS", "TYPE", "URL", "VARIABLE", "WAIT:WARMUP:ACTIVE", "X", "[HOST:]PORT",
}  # fmt: skip
"""Placeholders that stand for a name, a text or a number: they have no unit."""

CHOICE = re.compile(r"<[\w-]+(?:\|[\w-]+)+>")


@dataclass(frozen=True)
class Help:
    path: str
    command: Any
    context: Any

    @property
    def options(self) -> list[Any]:
        return [each for each in self.command.get_params(self.context) if each.param_type_name == "option"]


def helps(command: Any, name: str = "diag", parent: Any = None) -> Iterator[Help]:
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    context.terminal_width = COLUMNS
    yield Help(context.command_path, command, context)
    for each in getattr(command, "commands", {}).values():
        yield from helps(each, each.name, context)


HELPS = {each.path: each for each in helps(typer.main.get_command(app))}
ALL = pytest.mark.parametrize("path", HELPS)


def test_all_verbs_are_looked_at() -> None:
    assert {"diag", "diag report", "diag plan", "diag plan comm", "diag probe run"} <= HELPS.keys()
    assert all(isinstance(each.command, Page) for each in HELPS.values())


@ALL
def test_it_fits_a_terminal(path: str) -> None:
    lines = HELPS[path].context.get_help().splitlines()
    assert [line for line in lines if len(line) > COLUMNS] == []


@ALL
def test_sections_stand_in_the_order_of_a_manual(path: str) -> None:
    shown = HELPS[path].context.get_help()
    headings = re.findall(r"(?m)^(\w[\w ]+):(?: |$)", shown)
    order = [
        "Usage",
        "Arguments",
        "Options",
        "Commands",
        "Values",
        "Examples",
        "Exit status",
        "Environment",
        "See also",
    ]
    assert headings == [each for each in order if each in headings]
    assert {"Usage", "Options", "Examples", "Exit status", "See also"} <= set(headings)
    description = shown.split("\n\n")[1]
    assert description.strip().endswith((".", ";"))


@ALL
def test_options_and_arguments_are_explained(path: str) -> None:
    for param in HELPS[path].command.get_params(HELPS[path].context):
        assert param.help, f"{path} {param.opts}"
        assert re.fullmatch(r"[A-Za-z0-9].*", param.help), f"{path} {param.opts}: {param.help}"


@ALL
def test_a_value_tells_its_unit(path: str) -> None:
    for param in HELPS[path].options:
        if not (param.is_flag or param.count):
            shown = re.sub(r"^(?:--?[\w-]+(?:, | |$))+", "", param.get_help_record(HELPS[path].context)[0])
            assert shown in VALUES or shown in PLAIN or CHOICE.fullmatch(shown), f"{path} {param.opts}: {shown}"


@ALL
def test_its_units_are_explained(path: str) -> None:
    shown = HELPS[path].context.get_help()
    for param in HELPS[path].options:
        if unit := VALUES.get(param.metavar or ""):
            assert unit in " ".join(shown.partition("\nValues:\n")[2].split()), f"{path} {param.opts}"


@ALL
def test_examples_can_be_typed(path: str) -> None:
    """As they are shown, over several lines where they are long."""
    shown = HELPS[path].context.get_help().partition("\nExamples:\n")[2].partition("\n\n")[0]
    commands = [shlex.split(each) for each in re.sub(r"\\\n *", "", shown).splitlines()]
    assert commands == [shlex.split(each) for each in manual(HELPS[path].command.help).examples] != []
    for words in commands:
        if ">" in words:
            del words[words.index(">") :]
        command, rest = verb(words)
        if not isinstance(HELPS[path].command, TyperGroup):
            assert command is HELPS[path].command, words
        command.make_context("diag", rest)


@ALL
def test_statuses_are_those_of_the_contract(path: str) -> None:
    page = (ROOT / "docs" / "json-contract.md").read_text(encoding="utf-8").partition("# Exit statuses")[2]
    documented = {number for row in re.findall(r"(?m)^\| ([\d, ]+) \|", page) for number in row.split(", ")}
    statuses = manual(HELPS[path].command.help).statuses
    assert STATUSES.keys() <= statuses.keys()
    assert {number for each in statuses for number in re.findall(r"\d+", each)} <= documented
    for number, said in re.findall(r"(?m)^\| ([14]) \| (.+) \|$", page) if path != "diag" else ():
        assert (number in statuses) == (f"`{path.removeprefix('diag ')}`" in said), f"{path} and {number}: {said}"


@ALL
def test_what_it_refers_to_exists(path: str) -> None:
    page = manual(HELPS[path].command.help)
    assert page.see_also
    for each in page.see_also:
        assert (ROOT / each).is_file() or (each in HELPS and each != path), f"{path}: {each}"
    assert set(page.environment) <= ENVIRONMENT.keys()


def test_every_variable_that_is_read_is_documented() -> None:
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "diag").rglob("*.py"))
    read = {name for source in sources for name in re.findall(r'"(DIAG_[A-Z]+(?:_BYTES)?)"', source)}
    read -= {"DIAG_READING", "DIAG_UNREAD"}  # tables of a database
    assert {"DIAG_CACHE", "DIAG_NCU"} <= read <= ENVIRONMENT.keys()
    assert set(manual(HELPS["diag"].command.help).environment) == ENVIRONMENT.keys()


def verb(words: list[str]) -> tuple[Any, list[str]]:
    """The command that these words name, and what is left of them."""
    program, *rest = words
    assert program == "diag"
    command: Any = HELPS["diag"].command
    while isinstance(command, TyperGroup):
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest
