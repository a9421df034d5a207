"""Pages that ncu prints of reports; `python -m tests.builders.printed_pages` prints those in tests/data/ncu_output."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.builders.printable_report import REPORT

FOLDER = Path(__file__).parents[1] / "data" / "ncu_output"
NCU = shutil.which("ncu")

PAGES: Mapping[str, tuple[str, ...]] = {
    f"{page}-{units}.{form}": ("--page", page, "--print-units", units, *(["--csv"] if form == "csv" else []))
    for page in ("raw", "details")
    for units in ("base", "auto")
    for form in ("csv", "txt")
}
"""Options by name."""

OTHERS: Mapping[str, tuple[str, ...]] = {
    "instances.csv": ("--page", "raw", "--csv", "--print-units", "base", "--print-metric-instances", "values"),
    "instances.txt": ("--page", "raw", "--print-metric-instances", "values"),
    "summary.csv": ("--page", "details", "--csv", "--print-summary", "per-kernel"),
    "summary.txt": ("--page", "details", "--print-summary", "per-gpu"),
    "rule-details.txt": ("--page", "details", "--print-rule-details"),
    "german-details.csv": ("--page", "details", "--csv"),
    "german-raw.txt": ("--page", "raw"),
}


def printed(report: Path, options: Iterable[str], locale: str = "C.UTF-8") -> bytes:
    """What ncu prints. Raises CalledProcessError when it cannot read the report, as one of a newer version."""
    assert NCU is not None
    environment = {**os.environ, "TZ": "UTC", "LC_ALL": locale}
    command = [NCU, "--import", str(report), *options]
    return subprocess.run(command, check=True, capture_output=True, timeout=120, env=environment).stdout


def locale_of(name: str) -> str:
    return "de_DE.UTF-8" if name.startswith("german-") else "C.UTF-8"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        report = REPORT.write(Path(folder) / "synthetic.ncu-rep")
        for name, options in {**PAGES, **OTHERS}.items():
            (FOLDER / name).write_bytes(printed(report, options, locale_of(name)))
