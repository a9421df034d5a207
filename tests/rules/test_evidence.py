"""The SQL of evidence runs on the case and shows rows: of every rule's firing case, and of every real file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import AnalysisOptions, analyse
from diag.rules.finding import Evidence, Finding
from diag.store.case import Case
from tests.builders.imported import imported
from tests.rules.test_every_rule import CASES

REAL = Path(os.environ.get("DIAG_REAL_REPORTS", "/nonexistent"))
FILES = sorted([*REAL.glob("nsys/*.sqlite"), *REAL.glob("kineto/*.gz")])


def without_rows(case: Case, findings: Sequence[Finding]) -> Iterator[tuple[str, Evidence]]:
    """Evidence of something, whose SQL shows nothing. Raises what SQLite raises on SQL that is wrong."""
    for finding in findings:
        for evidence in finding.evidence:
            if evidence.sql is not None:
                row = case.db.execute(evidence.sql).fetchone()
                if row is None and not isinstance(evidence.value, str) and evidence.value > 0:
                    yield finding.rule, evidence


@pytest.mark.parametrize("rule_id", CASES)
def test_a_firing_case_shows_its_rows(rule_id: str, tmp_path: Path) -> None:
    with imported(CASES[rule_id].fires(), tmp_path) as case:
        assert not list(without_rows(case, analyse(case).findings))


@pytest.mark.parametrize("window", [None, "100us:", ":50ms"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_real_file_shows_its_rows(path: Path, window: str | None) -> None:
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        assert not list(without_rows(case, analyse(case, AnalysisOptions(window=window)).findings))
