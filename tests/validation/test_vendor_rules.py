"""Every disagreement in kind with NVIDIA's rules is listed, with its reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from diag.rules.vendor_rules import Pair
from tests.validation import vendor_rules

REAL_REPORTS = os.environ.get("DIAG_REAL_REPORTS")

pytestmark = pytest.mark.skipif(REAL_REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")


@pytest.fixture(scope="module")
def by_file() -> dict[str, list[Pair]]:
    return vendor_rules.of_reports(Path(REAL_REPORTS or ""))


def test_every_disagreement_has_its_reason(by_file: dict[str, list[Pair]]) -> None:
    unexplained = [kind for kind in vendor_rules.disagreements(by_file) if vendor_rules.reason_of(kind) is None]
    assert not unexplained


def test_the_page_lists_what_both_say(by_file: dict[str, list[Pair]]) -> None:
    page = Path(__file__).parents[2] / "docs" / "nvidia-rules.md"
    assert page.read_text("utf-8") == vendor_rules.page(by_file), "run: make docs"
