"""Real reports, made by other people on real GPUs, and captures that the tests make themselves."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from diag.ingest.nsys_report import find_nsys
from diag.ingest.nsys_tool import Nsys
from tests.ingest.captures import QUIET, capture_of
from tests.ingest.nsys_rep.rows import exported_by


@pytest.fixture(scope="session")
def real_reports() -> list[Path]:
    folder = Path(os.environ.get("DIAG_REAL_REPORTS", ""), "nsys")
    found = [path for path in sorted(folder.glob("*")) if path.suffix in (".nsys-rep", ".qdrep")]
    if not found:
        pytest.skip("DIAG_REAL_REPORTS names no folder of real reports")
    return found


@pytest.fixture(scope="session")
def exported_reports(real_reports: list[Path], tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Path]]:
    """Real reports and their exports: those beside them, and with an nsys also that of the Jetson's, which has none."""
    pairs = [(report, report.with_suffix(".sqlite")) for report in real_reports]
    if found := find_nsys():
        folder = tmp_path_factory.mktemp("exported")
        alone = [Path(shutil.copy(report, folder)) for report, export in pairs if not export.exists()]
        pairs += [(report, exported_by(found, report)) for report in alone]
    return [(report, export) for report, export in pairs if export.exists()]


@pytest.fixture(scope="session")
def os_calls(nsys: Nsys, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of calls of the OS runtime, some with their call stacks, of several threads and processes."""
    folder = tmp_path_factory.mktemp("captures")
    return capture_of(nsys.path, folder / "os_calls", [sys.executable, "-c", _WAITS], options=[*QUIET, "--stats=false"])


_WAITS = """
import subprocess, sys, threading, time
def wait(n):
    for _ in range(n):
        time.sleep(0.002)
threads = [threading.Thread(target=wait, args=(n,)) for n in (3, 5)]
for thread in threads: thread.start()
subprocess.run([sys.executable, "-c", "import time; time.sleep(0.01)"])
for thread in threads: thread.join()
"""
