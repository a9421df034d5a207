"""Every command that the documentation shows is executed, or it is said why not; its verbs and options exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from glob import glob
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from diag.cli.manual import manual
from diag.cli.outcome import run
from diag.cli.verbs import app
from tests.docs.shown import PAGES, PROGRAMS, Shown, commands, inline
from tests.docs.stand_ins import EXECUTED_BY, NOT_RUN, SLOW, executed_by_its_test, make, why_not

COMPLETE = re.compile(r"^diag (?:plan (?!.*--(?:against|fit)\b)\w+ --|explain [a-z]+\.\w+$)")
"""What the text names and can be run as it stands: it takes no files."""

SHOWN = {page: [*commands(page), *(each for each in inline(page) if COMPLETE.match(each.text))] for page in PAGES}
ALL = [each for of_page in SHOWN.values() for each in of_page]
TYPED = [each for each in ALL if not each.is_grammar]
OPERATORS = set("|&;<>()")
DIAG = ("diag", ".venv/bin/diag")
QUIET = re.compile(r"^diag (?:plan|explain) ")
"""They have nothing to say beside their answer."""

OWN_PROCESS = re.compile(r"^diag (?:calibrate|hang|probe|watch)\b")
"""They start processes, or measure."""

OUTCOMES = {"--fail-on": (0, 1), "^zgrep": (1,), "before.txt after.txt": (4,), "^diag calibrate": (0, 4)}
"""What a command ends with, where that is not 0: a regression; nothing found; nothing told, as the page says, or as on
a machine that other programs keep busy."""

ITSELF = re.compile(r"(?<= )4711(?= |$)")
"""The process that pages watch: here the one that runs the tests."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and a cache and ceilings of its own elsewhere."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DIAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DIAG_CEILINGS", str(tmp_path / "ceilings"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("JOB", "night")  # that pages leave to the shell of their reader
    monkeypatch.delenv("COLUMNS", raising=False)
    return folder


def with_commands(*, slow: bool) -> list[str]:
    return [
        page
        for page, of_page in SHOWN.items()
        if any(bool(SLOW.search(each.text)) == slow and not each.is_grammar and not why_not(each) for each in of_page)
    ]


@pytest.mark.parametrize("page", with_commands(slow=False))
def test_commands_do_what_their_page_says(page: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for each in SHOWN[page]:
        if not SLOW.search(each.text):
            check(each, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("page", with_commands(slow=True))
def test_slow_commands_do_what_their_page_says(page: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    for each in SHOWN[page]:
        check(each, capsys)


@pytest.mark.parametrize("page", PAGES)
def test_verbs_and_options_exist(page: str) -> None:
    for each in [*SHOWN[page], *inline(page)]:
        for words in invocations(each.text):
            assert unknown(words) == [], each.place


@pytest.mark.parametrize("shown", [each for each in TYPED if why_not(each)], ids=lambda shown: shown.place)
def test_what_is_not_run_can_be_parsed(shown: Shown) -> None:
    for words in invocations(shown.text):
        parse(words)


def test_pages_show_what_commands_print() -> None:
    assert sum(each.printed is not None for each in ALL) > 12


def test_reasons_are_needed_and_name_tests_that_exist() -> None:
    for pattern, reason in NOT_RUN.items():
        assert any(re.search(pattern, each.text) for each in TYPED), f"no page shows {pattern} any more"
        for path in re.findall(r"tests/[\w/.]+", reason):
            assert (Path(__file__).parents[2] / path).exists(), reason


@pytest.mark.parametrize("page", EXECUTED_BY)
def test_tests_of_single_pages_run_what_those_show(page: str) -> None:
    executed = executed_by_its_test(page)
    assert executed
    assert set(executed) <= {each.text for each in commands(page)}


def test_help_shows_commands_that_can_be_parsed() -> None:
    examples = [example for _, said in helps() for example in manual(said).examples]
    assert len(examples) > 20
    for example in examples:
        program, *words = shlex.split(re.sub(r" > \S+$", "", example))
        assert program == "diag"
        parse(words)


# ---- running them --------------------------------------------------------------------------------------------------


def check(shown: Shown, capsys: pytest.CaptureFixture[str]) -> None:
    if shown.is_grammar or why_not(shown):
        return
    make(re.split(r"[\s;|&]+", shown.text))
    status, out, err = ran(ITSELF.sub(str(os.getpid()), shown.text), capsys)
    allowed = next((of for pattern, of in OUTCOMES.items() if re.search(pattern, shown.text)), (0,))
    assert status in allowed, f"{shown.place}\nended with {status}: {err or out}"
    assert "Traceback" not in err, f"{shown.place}\n{err}"
    assert err == "" or not QUIET.match(shown.text), f"{shown.place}\n{err}"
    if shown.printed is not None:
        assert re.fullmatch(pattern_of(shown.printed), out), f"{shown.place}\nprints\n{out}\nand not\n{shown.printed}"


def ran(text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Its exit status, and what it wrote to both streams. Where nothing but diag is needed, it runs in this process."""
    words = shlex.split(text)
    if words[0] == "diag" and not (OPERATORS & set(tokens(text))) and not OWN_PROCESS.match(text):
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("diag.cli.verbs.app", tree())
            patched.setattr(sys, "argv", ["diag", *globbed(words[1:])])
            status = run()
        return status, *capsys.readouterr()
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    return ended.returncode, ended.stdout, ended.stderr


def globbed(words: Sequence[str]) -> Iterator[str]:
    """As a shell does it: a pattern that nothing fits stays as it is."""
    for word in words:
        yield from sorted(glob(word)) or [word] if "*" in word and " " not in word else [word]


def pattern_of(printed: str) -> str:
    lines = (r"(?:.*\n)*?" if line == "…" else re.escape(line) + r" *\n" for line in printed.splitlines())
    return "".join(lines) + r"\n*"


# ---- parsing them --------------------------------------------------------------------------------------------------


def tokens(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def invocations(text: str) -> Iterator[list[str]]:
    """The arguments of each `diag` within a command, also of those in what a shell is told to do."""
    text = re.sub(r"\$\([^()]*\)", "WORD", text)  # what another command prints
    try:
        words = tokens(text)
    except ValueError:  # the quotes of a sentence
        words = text.split()
    for at, word in enumerate(words):
        if word in DIAG and (at == 0 or words[at - 1] in PROGRAMS or set(words[at - 1]) <= OPERATORS):
            end = next((i for i in range(at, len(words)) if set(words[i]) <= OPERATORS - {"(", ")"}), len(words))
            yield words[at + 1 : end]
        elif word.startswith("diag ") and at > 0:
            yield from invocations(word)


@cache
def tree() -> TyperGroup:
    """All verbs. To build it takes half a second."""
    of_all = typer.main.get_command(app)
    assert isinstance(of_all, TyperGroup)
    return of_all


def verb(words: Sequence[str]) -> tuple[Any, str, Sequence[str]]:
    """The command of Click that these words name, its name, and what is left of them."""
    command: Any = tree()
    at = 0
    while isinstance(command, TyperGroup) and at < len(words) and words[at] in command.commands:
        command, at = command.commands[words[at]], at + 1
    return command, " ".join(["diag", *words[:at]]), words[at:]


def parse(words: Sequence[str]) -> None:
    """Raises what Click says of arguments that the verb does not take."""
    command, name, rest = verb(words)
    assert not isinstance(command, TyperGroup), f"{name} has no {rest[:1]}"
    command.make_context(name, list(rest))


def unknown(words: Sequence[str]) -> list[str]:
    """Verbs and options among these words, which may be grammar, that diag does not have."""
    first, *others = words or ["--help"]
    names = first.split("|")
    return [each for name in names for each in _unknown([name, *others])]


def _unknown(words: Sequence[str]) -> list[str]:
    command, _, rest = verb(words)
    if isinstance(command, TyperGroup):
        rest = rest or ["--help"]
        if not rest[0].startswith("-") and not re.match(r"[A-Z…]", rest[0]):
            return [each for name in rest[0].split("|") for each in ([name] if name not in command.commands else [])]
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)} | {"-h", "--help"}
    own = rest[: rest.index("--")] if "--" in rest else rest
    options = [option for word in own for option in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", word)]
    return [option for option in options if option not in known]


def helps() -> Iterator[tuple[str, str]]:
    """Of each verb its path, and the text that its --help is made of."""
    yield from _helps(tree(), "diag")


def _helps(command: TyperGroup, name: str) -> Iterator[tuple[str, str]]:
    for each in command.commands.values():
        if isinstance(each, TyperGroup):
            yield from _helps(each, f"{name} {each.name}")
        else:
            yield f"{name} {each.name}", each.help or ""
