"""`--format html`: to a pipe, a file or a terminal, with the timeline of the case, in an encoding without µ."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import DIAG, Command, small_export


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return small_export().write(tmp_path / "run.sqlite")


def test_the_page_goes_to_standard_output(diag: Command, export: Path) -> None:
    html = diag("report", export, "--format", "html").is_quiet_success()
    assert html.startswith("<!doctype html>\n")
    assert html.endswith("</html>\n")
    assert 'id="timeline-data"' in html
    assert "gemm_1" in html


def test_the_page_of_a_cached_case_is_the_same(diag: Command, export: Path) -> None:
    assert diag("report", export, "-f", "html").out == diag("report", export, "-f", "html").out


def test_every_encoding_can_hold_it(diag: Command, export: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    assert diag("report", export, "-f", "html", env=plain).out == diag("report", export, "-f", "html").out


def test_a_terminal_is_told_how_to_write_it_to_a_file(diag: Command, export: Path) -> None:
    words = [str(DIAG), "report", str(export), "--format", "html"]
    reader, terminal = pty.openpty()
    with subprocess.Popen(words, env=diag.environment(), stdin=terminal, stdout=terminal, stderr=terminal):
        os.close(terminal)
        shown = b"".join(iter(lambda: read(reader), b""))
    os.close(reader)
    assert b"Write it to a file: diag report" in shown.splitlines()[-1]


def read(terminal: int) -> bytes:
    """Some of what was written; nothing once the other end is closed, which Linux calls an error."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""


def test_a_comparison_has_no_page(diag: Command, export: Path) -> None:
    ended = diag("compare", export, export, "--format", "html")
    assert ended.status == 2
    assert re.search(r"'html' is not one of", ended.err)
