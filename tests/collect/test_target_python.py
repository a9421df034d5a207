"""Telling which commands run Python, and what."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from diag.collect.target_python import PythonCommand, python_command, versions


@pytest.mark.parametrize(
    ("command", "options", "target"),
    [
        ("python train.py", (), ("train.py",)),
        ("python3.12 -u -W error train.py -m x", ("-u", "-W", "error"), ("train.py", "-m", "x")),
        ("/opt/bin/python -X dev -m pkg.train --lr 3", ("-X", "dev"), ("-m", "pkg.train", "--lr", "3")),
        ("python -c pass a", (), ("-c", "pass", "a")),
        ("python -mpkg a", (), ("-m", "pkg", "a")),
    ],
)
def test_a_python_command_in_its_parts(command: str, options: tuple[str, ...], target: tuple[str, ...]) -> None:
    words = command.split()
    assert python_command(words) == PythonCommand(words[0], options, target)


@pytest.mark.parametrize("command", ["ls -l", "python", "python -i", "python - x", "python -m", "pythonic x", "nosuch"])
def test_what_runs_no_python_program(command: str) -> None:
    assert python_command(command.split()) is None


@pytest.mark.parametrize(
    ("line", "python"),
    [
        ("#!/usr/bin/env python3", "python3"),
        ("#!/opt/venv/bin/python", "/opt/venv/bin/python"),
        ("#!/bin/sh", None),
        ("#! /usr/bin/env -S python3 -u", None),
        ("", None),
    ],
)
def test_a_script_says_on_its_first_line_who_runs_it(line: str, python: str | None, tmp_path: Path) -> None:
    script = tmp_path / "train"
    script.write_text(line + "\nprint()\n")
    script.chmod(0o755)
    found = python_command([str(script), "--lr", "3"])
    assert (found.python if found else None) == python
    if found:
        assert found.target == (str(script), "--lr", "3")
        assert found.script == script


def test_a_module_or_code_is_no_script() -> None:
    for command in (["python", "-m", "pkg"], ["python", "-c", "pass"]):
        python = python_command(command)
        assert python is not None
        assert python.script is None


def test_versions_are_those_of_the_other_python() -> None:
    found = versions(sys.executable, ["numpy", "no-such-package"])
    assert list(found) == ["numpy"]
    assert versions("/bin/false", ["numpy"]) == {}
    assert versions("/nowhere/python", ["numpy"]) == {}
