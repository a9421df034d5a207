"""The plug-in of docs/plugins.md works as it is printed there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import analyse
from diag.rules.finding import CannotTell, Clear, Finding
from tests.plugins.conftest import Install
from tests.plugins.packages import Package

PAGE = (Path(__file__).parents[2] / "docs/plugins.md").read_text("utf-8")
RULES, READER = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(THRESHOLDS,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
PRINTED = Package(
    "rack",
    {"diag.rules": "rack = rack.rules", "diag.readers": "rack = rack.reader:READER"},
    {"rules.py": RULES, "reader.py": READER, "thresholds.toml": THRESHOLDS},
)


def log(folder: Path, *watts: int) -> Path:
    path = folder / "rack.log"
    path.write_text("\n".join(["# rack power", *(f"{at} {value}" for at, value in enumerate(watts)), ""]))
    return path


def said(*paths: Path) -> list[Finding | Clear | CannotTell]:
    with open_inputs(paths, ImportOptions(use_cache=False)) as case:
        report = analyse(case)
    answers: list[Finding | Clear | CannotTell] = [*report.findings, *report.clear, *report.cannot_tell]
    return [answer for answer in answers if answer.rule == "rack.power"]


def test_it_fires_is_clear_and_cannot_tell(install: Install, tmp_path: Path) -> None:
    install(PRINTED)
    (finding,) = said(log(tmp_path, 9_900, 5_000, 9_800, 5_000))
    assert isinstance(finding, Finding)
    assert finding.share == 0.5
    assert isinstance(said(log(tmp_path, *[5_000] * 4))[0], Clear)
    (untold,) = said(Path(__file__).parents[2] / "examples/data/synthetic-training.pt.trace.json.gz")
    assert isinstance(untold, CannotTell)
    assert untold.because == "no power of the rack was logged"


def test_a_damaged_file_is_told_as_the_page_says(install: Install, tmp_path: Path) -> None:
    install(PRINTED)
    with pytest.raises(InputError, match=r"holds no samples\. Log some: rackctl power > FILE"):
        said(log(tmp_path))
