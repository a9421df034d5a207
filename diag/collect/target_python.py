"""Whether a command runs Python, which one, and what is installed there: it need not be diag's own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PYTHON = re.compile(r"python[\d.]*t?$")
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_ENDING = ("-c", "-m")
_TIMEOUT_S = 20.0
_HEAD_BYTES = 256
_LONGEST_NAME = 40
_ASK = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


@dataclass(frozen=True)
class PythonCommand:
    """`python -u -m pkg arg` is ("python", ("-u",), ("-m", "pkg", "arg"))."""

    python: str
    options: tuple[str, ...]
    target: tuple[str, ...]
    """A script, or -m or -c and what belongs to them; then the program's own arguments."""

    @property
    def script(self) -> Path | None:
        return None if self.target[0] in _ENDING else Path(self.target[0])

    @property
    def name(self) -> str:
        """Of what runs: a script's, a module's, or none for code."""
        return self.script.stem if self.script else self.target[1] if self.target[0] == "-m" else ""


def python_command(command: Sequence[str]) -> PythonCommand | None:
    """None for what runs no Python, or none that could be told apart: an interactive one, a program of its own.

    >>> python_command(["python3", "-W", "error", "train.py", "-m"])
    PythonCommand(python='python3', options=('-W', 'error'), target=('train.py', '-m'))
    """
    if _PYTHON.match(Path(command[0]).name):
        return _of_python(command)
    program = shutil.which(command[0])
    python = _interpreter(Path(program)) if program else None
    return PythonCommand(python, (), (str(program), *command[1:])) if python else None


def _of_python(command: Sequence[str]) -> PythonCommand | None:
    at = 1
    while at < len(command) and command[at].startswith("-") and not command[at].startswith(_ENDING):
        if command[at] == "-":  # the program comes from standard input
            return None
        at += 2 if command[at] in _WITH_VALUE else 1
    target = tuple(command[at:])
    if target and target[0].startswith(_ENDING):
        option, value = target[0][:2], target[0][2:]  # python -cCODE
        target = (option, *((value,) if value else ()), *target[1:])
        if len(target) == 1:
            return None
    return PythonCommand(command[0], tuple(command[1:at]), target) if target else None


def _interpreter(program: Path) -> str | None:
    """The Python that the first line of a script names."""
    with program.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head.startswith(b"#!"):
        return None
    words = head[2:].partition(b"\n")[0].decode("utf-8", "replace").split()
    named = words[1] if len(words) == 2 and Path(words[0]).name == "env" else words[0] if len(words) == 1 else ""
    return named if _PYTHON.match(Path(named).name) else None


def name_of(command: Sequence[str]) -> str:
    """A name for files about a command, of letters that no profiler takes for anything else.

    >>> name_of(["python", "-u", "runs/train.py", "--lr=1"]), name_of(["./app"]), name_of(["python", "-c", "pass"])
    ('train', 'app', 'run')
    """
    python = python_command(command)
    name = python.name if python else Path(command[0]).stem
    return re.sub(r"[^\w.-]", "", name)[:_LONGEST_NAME] or "run"


def versions(python: str, packages: Sequence[str]) -> Mapping[str, str]:
    """Of those of the packages that are installed for this Python; none when it does not answer."""
    try:
        answer = subprocess.run(
            [python, "-c", _ASK, *packages],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
        found = json.loads(answer.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return {}
    return {str(name): str(version) for name, version in found.items()}
