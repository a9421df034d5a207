"""`--with-ncu-report`: another reader, another case."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Command, snapshot
from tests.ingest.ncu_official.needs import official_reader

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    official_reader()
    folder = tmp_path / "reports"
    folder.mkdir()
    path = folder / "kernels.ncu-rep"
    path.write_bytes(Path(REPORTS or "", "ncu", "cuda-course.ncu-rep").read_bytes())
    return path


def test_each_reader_has_its_own_cached_case(copy: Path, diag: Command) -> None:
    before = snapshot(copy.parent)
    ours = diag("report", copy)
    theirs = diag("report", copy, "--with-ncu-report")
    assert (ours.status, theirs.status) == (0, 0)
    assert len(diag.cases()) == 2
    assert "ncu-report" in diag("report", copy, "--with-ncu-report", "--format", "json").out
    assert len(diag.cases()) == 2
    assert snapshot(copy.parent) == before


def test_tables_are_exported_as_the_package_reads_them(copy: Path, diag: Command, tmp_path: Path) -> None:
    table = tmp_path / "sources.csv"
    diag("export", copy, "-o", table, "--table", "source_note", "--with-ncu-report").is_quiet_success()
    assert "Read by NVIDIA's ncu-report" in table.read_text()


def test_what_diag_cannot_read_may_be_tried_with_the_package(copy: Path, diag: Command) -> None:
    copy.write_bytes(b"NVR\x00" + b"\xff" * 60)
    assert diag("report", copy).is_one_sentence(3).endswith("can read it: --with-ncu-report")
    assert "finds no launch in it" in diag("report", copy, "--with-ncu-report").is_one_sentence(3)
    assert not diag.leftovers()
    assert not diag.cases()
