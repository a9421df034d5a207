"""The report is what its script writes, and the walk through it shows what the commands print."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from diag.ingest.ncu_official.read import read
from tests.examples.shown import EXAMPLES, Shown, printed_by, shown_in

REPORT = EXAMPLES / "data/transpose.ncu-rep"
WALK = shown_in(EXAMPLES / "postmortem/README.md")
EXECUTED = [shown.command for shown in WALK]


def test_the_report_is_what_its_script_writes(tmp_path: Path) -> None:
    made = tmp_path / "made.ncu-rep"
    subprocess.run([sys.executable, EXAMPLES / "postmortem/make_report.py", made], check=True)
    assert made.read_bytes() == REPORT.read_bytes()
    assert b"Synthetic" in made.read_bytes()


def test_nvidias_own_reader_opens_it() -> None:
    pytest.importorskip("ncu_report")
    launches = read(REPORT).launches
    assert [launch.short_name for launch in launches] == ["transpose_rows", "transpose_tiles"]


def test_the_walk_goes_from_the_verdict_to_the_rows() -> None:
    assert [shown.command.split()[1] for shown in WALK] == ["report", "explain", "query", "query"]


@pytest.mark.parametrize("shown", WALK, ids=[f"{number} {shown.command[:20]}" for number, shown in enumerate(WALK)])
def test_a_command_prints_what_is_shown(shown: Shown, checkout: Path) -> None:
    printed = printed_by(shown.command, checkout)
    assert shown.fits(printed), printed
