"""Processes that only start a program and wait for it: their environment is like its own, their stacks are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from diag.collect.proc_files import content, text
from diag.collect.stacks import is_python

_PROGRAMS = ("diag", "torchrun")
_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_WITHOUT_VALUE = ("-u", "-P", "-I", "-E", "-s", "-S", "-B", "-O", "-OO")
"""Options of Python that may stand before the script, with no value of their own."""


def only_starts_others(pid: int) -> bool:
    """Whether a process is no Python (a shell, nsys, srun), or one that starts the program. False where it is gone."""
    try:
        command = [text(word) for word in content(f"/proc/{pid}/cmdline").split(b"\0")]
    except OSError:
        return False
    return is_starter(command) or not is_python(pid)


def is_starter(command: Sequence[str]) -> bool:
    """Of the arguments nothing is kept: they may hold secrets.

    >>> is_starter(["python", "/opt/bin/diag", "run", "--", "python", "train.py"]), is_starter(["python", "train.py"])
    (True, False)
    >>> is_starter(["python3", "-u", "-m", "torch.distributed.run", "train.py"]), is_starter(["python", "-m", "train"])
    (True, False)
    """
    words = list(command[1:])
    while words and words[0] in _WITHOUT_VALUE:
        words.pop(0)
    if words[:1] == ["-m"]:
        return words[1:2] != [] and words[1] in _MODULES
    return words[:1] != [] and PurePosixPath(words[0]).name in _PROGRAMS
