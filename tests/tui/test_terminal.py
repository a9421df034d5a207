"""`diag tui` as a user runs it: in a real terminal, which it leaves as it found it."""

from __future__ import annotations

import re
import subprocess
from functools import partial
from pathlib import Path

import pytest

from diag.tui.navigation import TITLES
from tests.terminal import DIAG, PROMPT, Terminal, needs_tmux

pytestmark = needs_tmux


def is_back(screen: str) -> bool:
    """The shell asks for the next command, and nothing of the app is left."""
    return screen.rstrip().endswith(PROMPT) and "1Overview" not in screen


def is_chosen(title: str, screen: str) -> bool:
    """The title is set off in the menu."""
    return re.search(rf"\x1b\[[0-9;]*7m(\x1b\[[0-9;]*m)*{title}", screen) is not None


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=["small", "large"])
def test_every_screen_opens_and_the_terminal_comes_back(training: Path, tmp_path: Path, size: tuple[int, int]) -> None:
    with Terminal.opened(tmp_path, size=size) as terminal:
        terminal.run(DIAG, "tui", str(training))
        terminal.wait_for("Overview")
        for number, title in enumerate(TITLES.values(), 1):
            terminal.type(str(number))
            terminal.wait_for(partial(is_chosen, title), with_codes=True)
            assert "Traceback" not in terminal.screen
        terminal.type("Escape")  # out of the box of SQL; followed at once by a key it would be Alt
        terminal.wait_for("? Help")
        terminal.type("q")
        assert "Traceback" not in terminal.wait_for(is_back)


@pytest.mark.parametrize("variables", ["TERM=screen", "TERM=xterm-16color", "NO_COLOR=1"])
def test_a_report_is_opened_looked_through_and_left(training: Path, tmp_path: Path, variables: str) -> None:
    with Terminal.opened(tmp_path) as terminal:
        terminal.run("env", variables, DIAG, "tui", str(training))
        screen = terminal.wait_for("Found (6)")
        assert "● critical" in screen
        assert "█" in screen
        terminal.type("2")
        terminal.wait_for("Clear (")
        terminal.type("Enter")
        terminal.wait_for("Evidence")
        terminal.type("q")
        assert "Evidence" not in terminal.wait_for(is_back)
        terminal.run("echo", "ended", "$?")
        terminal.wait_for("ended 0")


def test_a_file_that_cannot_be_read_is_a_sentence_in_the_app(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a trace")
    with Terminal.opened(tmp_path) as terminal:
        terminal.run(DIAG, "tui", "notes.txt")
        screen = terminal.wait_for("is of a kind that diag does not know")
        assert "Traceback" not in screen
        terminal.type("C-q")
        terminal.wait_for(is_back)


def test_ctrl_c_and_resizing_do_no_harm(training: Path, tmp_path: Path) -> None:
    with Terminal.opened(tmp_path) as terminal:
        terminal.run(DIAG, "tui", str(training))
        terminal.wait_for("1Overview")
        for size in ((40, 10), (20, 5), (160, 50), (80, 24)):
            terminal.resize(*size)
        terminal.type("2")
        terminal.wait_for(partial(is_chosen, "Findings"), with_codes=True)
        terminal.type("q")
        terminal.wait_for(is_back)


def test_ctrl_z_gives_the_shell_back_and_fg_the_app(training: Path, tmp_path: Path) -> None:
    with Terminal.opened(tmp_path) as terminal:
        terminal.run(DIAG, "tui", str(training))
        terminal.wait_for("Found (6)")
        terminal.type("C-z")
        terminal.wait_for(is_back)
        terminal.run("fg")
        terminal.wait_for("Found (6)")
        terminal.type("2")
        terminal.wait_for("Clear (")
        terminal.type("q")
        terminal.wait_for(is_back)


def test_without_a_terminal_it_says_what_to_use(training: Path) -> None:
    done = subprocess.run(
        [DIAG, "tui", str(training)], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert "diag report" in done.stderr
