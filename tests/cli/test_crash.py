"""Killed at any moment, `diag` leaves a whole case or none, and the next run removes what lies about."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli import killed
from tests.cli.conftest import Command, small_export, snapshot

STEPS = 40
"""More than a report with -o takes; a test makes sure."""

every_step = pytest.mark.parametrize(
    "step", [pytest.param(step, marks=[] if step % 8 == 1 else pytest.mark.slow) for step in range(1, STEPS)]
)


def _killed_at(step: int, diag: Command, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, killed.__file__, str(step), *words],
        env=diag.environment(),
        capture_output=True,
        timeout=60,
        check=False,
    )


def _is_whole(case: Path) -> bool:
    with closing(sqlite3.connect(case)) as db:
        (kernels,) = db.execute("SELECT COUNT(*) FROM gpu_op WHERE kind = 'kernel'").fetchone()
        (said,) = db.execute("PRAGMA integrity_check").fetchone()
    return bool(kernels == 40 and said == "ok")


@every_step
def test_killed_at_a_step(step: int, diag: Command, export: Path, tmp_path: Path) -> None:
    kept = tmp_path / "out" / "kept.diag"
    kept.parent.mkdir()
    before = snapshot(export.parent)

    ran = _killed_at(step, diag, "report", export, "-o", kept)

    print(ran.stderr.decode())
    assert ran.returncode in (0, -signal.SIGKILL)
    assert snapshot(export.parent) == before
    assert all(map(_is_whole, [*diag.cases(), *kept.parent.glob("*.diag")]))
    shown = diag("report", export, "-o", kept).is_quiet_success()
    assert diag("report", export, "--no-cache").is_quiet_success() == shown
    assert len(diag.cases()) == 1
    assert not diag.leftovers()
    assert [file.name for file in kept.parent.iterdir()] == ["kept.diag"]


@every_step
def test_killed_while_a_kept_case_is_replaced(step: int, diag: Command, export: Path, tmp_path: Path) -> None:
    kept = tmp_path / "out" / "kept.diag"
    kept.parent.mkdir()
    shown = diag("report", export, "-o", kept).is_quiet_success()
    ran = _killed_at(step, diag, "report", export, "-o", kept, "--window", "0ns:20us")
    print(ran.stderr.decode())
    assert _is_whole(kept)
    assert diag("report", kept).is_quiet_success() == shown


def test_there_are_no_more_steps(diag: Command, export: Path, tmp_path: Path) -> None:
    assert _killed_at(STEPS, diag, "report", export, "-o", tmp_path / "kept.diag").returncode == 0
    diag.cases()[0].unlink()
    assert _killed_at(STEPS // 2, diag, "report", export, "-o", tmp_path / "kept.diag").returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_killed_at_any_time(seed: int, diag: Command, tmp_path: Path) -> None:
    path = small_export(20_000).write(tmp_path / "report.sqlite")
    before = snapshot(tmp_path)
    process = diag.start("report", path)
    time.sleep(random.Random(seed).uniform(0.2, 1.5))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    for case in diag.cases():
        with closing(sqlite3.connect(case)) as db:
            assert db.execute("SELECT COUNT(*) FROM gpu_op WHERE kind = 'kernel'").fetchone() == (20_000,)
    assert snapshot(tmp_path) == before
    diag("report", path).is_quiet_success()
    assert len(diag.cases()) == 1
    assert not diag.leftovers()
