"""The example of a plug-in, installed as it stands: its file is read, its rule is asked, and its own tests pass."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.cli.conftest import Command, Outcome

ROOT = Path(__file__).parents[2]
EXECUTED = REPORT, EXPLAIN, PYTEST = (
    "diag report gpus.csv",
    "diag explain smi.clock",
    "pytest examples/plugin/tests",
)
HEADER = "timestamp, index, utilization.gpu [%], clocks.current.sm [MHz], clocks.max.sm [MHz]"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built and unpacked by pip, which takes some seconds, into a folder of its own and without a network."""
    folder = tmp_path_factory.mktemp("installed")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", folder)
    subprocess.run([sys.executable, "-m", "pip", "install", *options, ROOT / "examples/plugin"], check=True)
    return folder


def environment(installed: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.fspath(installed), "DIAG_PLUGINS": ""}


@pytest.fixture
def diag(installed: Path, tmp_path: Path) -> Callable[..., Outcome]:
    """With the plug-in."""
    return partial(Command(tmp_path / "cache"), env=environment(installed))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Synthetic: a second for each row, the first ten at the highest clock and ten at half of it."""
    clocks = [1980] * 10 + [990] * 10
    rows = [f"2026/03/01 12:00:{at:02}.000, 0, 97 %, {mhz} MHz, 1980 MHz" for at, mhz in enumerate(clocks)]
    path = tmp_path / "gpus.csv"
    path.write_text("\n".join([HEADER, *rows, ""]))
    return path


def test_a_log_is_diagnosed(diag: Callable[..., Outcome], log: Path) -> None:
    text = diag(*REPORT.split()[1:], cwd=log.parent).is_quiet_success()
    assert text.startswith("Busy at 50.0 % of the SMs' highest clock\n")
    assert "5.0 s at most" in text
    assert "GPU 0" in diag("explain", "smi.clock", log).is_quiet_success()


def test_the_rule_is_explained(diag: Callable[..., Outcome]) -> None:
    assert diag(*EXPLAIN.split()[1:]).is_quiet_success().startswith("smi.clock: A busy GPU runs well below")


def test_without_plugins_the_log_is_unknown(log: Path, tmp_path: Path, installed: Path) -> None:
    off = environment(installed) | {"DIAG_PLUGINS": "0"}
    ended = Command(tmp_path / "cache")("report", log, env=off)
    assert "is of a kind that diag does not know" in ended.is_one_sentence(3)


def test_its_own_tests_pass(installed: Path) -> None:
    program, tests = PYTEST.split()
    command = [sys.executable, "-m", program, "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    ended = subprocess.run(
        [*command, ROOT / tests],
        env=os.environ | environment(installed),
        cwd=installed,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert "8 passed" in ended.stdout


def test_nothing_of_a_plugin_is_loaded_for_help(installed: Path) -> None:
    code = "import sys\nfrom diag.cli.app import main\ntry: main()\nfinally: print('diag_smi_log' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", code, "--help"],
        env=os.environ | environment(installed),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.endswith("False\n")
