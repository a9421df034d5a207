"""Completion, as a shell asks for it: what is offered, how little is loaded for it, and that nothing is written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from diag.cli import completion
from tests.cli.conftest import DIAG

BASH = """
source <(diag --show-completion)
ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _diag_completion diag; echo "${COMPREPLY[*]}"; }
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DIAG_", "XDG_"))}
    return {**kept, "HOME": str(home), "PATH": f"{Path(DIAG).parent}:{os.environ['PATH']}", **more}


def bash(script: str, home: Path) -> Sequence[str]:
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=environment(home), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_bash_completes_what_is_typed(home: Path) -> None:
    offered = bash(
        f"{BASH} ask diag rep; ask diag report --form; ask diag log x --outcome k; ask diag report no-such", home
    )
    assert offered == ["report", "--format", "kept", ""]  # of the last, bash completes files
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("diag explain idle.g", ["idle.gpu"]),
        ("diag probe run vector", ["vector_add"]),
        ("diag probe inspect rms", ["rms_norm"]),
        ("diag plan memory --model llama-3.2", ["llama-3.2-1b"]),
        ("diag learn --exercise 1", ["1", "10", "11"]),
    ],
)
def test_names_that_diag_knows_are_offered(typed: str, offered: Sequence[str], home: Path) -> None:
    asked = {"_DIAG_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    done = subprocess.run([DIAG], env=environment(home, **asked), cwd=home, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout.split()) == (0, "", [*offered])
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_names_with_their_meaning(shell: str, home: Path) -> None:
    asked = {
        "_DIAG_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "diag rep",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run([DIAG], env=environment(home, **asked), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "report" in done.stdout
    assert "Read reports and traces" in done.stdout


def test_installed_on_demand_only_and_read_by_the_next_shell(home: Path) -> None:
    (home / ".bashrc").write_text("# mine\n")
    said = bash("diag --install-completion; true", home)
    assert str(home / ".bash_completions" / "diag.sh") in said[0]
    assert (home / ".bashrc").read_text().startswith("# mine\n")
    assert bash('source "$HOME/.bashrc"; complete -p diag', home) == ["complete -o default -F _diag_completion diag"]


def test_nothing_heavy_is_loaded() -> None:
    code = """
import sys
import diag.cli.verbs
from diag.cli import completion
for names in (completion.explained, completion.probes, completion.operators, completion.models, completion.lessons):
    assert names()
print(*{"numpy", "pandas", "torch", "triton", "jsonschema", "rich.markdown"} & sys.modules.keys())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_every_rule_is_offered() -> None:
    """Read from the source, they are those that are registered."""
    from diag.rules.engine import rules

    offered = completion.explained()
    assert len(offered) == len(set(offered))
    assert set(offered) - {"thresholds"} == {name for name, rule in rules().items() if not rule.is_of_plugin}


def test_probes_and_models_are_those_that_can_be_named() -> None:
    from diag.model.model_catalogue import known_model
    from diag.probes.catalogue import ALL, PROBES
    from diag.probes.collective import catalogue as collective

    assert completion.probes() == [*PROBES, ALL, *collective.PROBES, collective.ALL]
    assert completion.models()
    assert all(known_model(name) for name in completion.models())


def test_operators_are_named_as_their_files() -> None:
    pytest.importorskip("triton")
    from diag.kernels.catalogue import operators

    assert completion.operators() == list(operators())
