"""Every disagreement in kind with NVIDIA's rules is listed, with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.rules.vendor_rules import Pair
from tests.validation import vendor_rules


@pytest.fixture(scope="module")
def by_file(real_reports: Path) -> dict[str, list[Pair]]:
    return vendor_rules.of_reports(real_reports)


def test_every_disagreement_has_its_reason(by_file: dict[str, list[Pair]]) -> None:
    unexplained = [kind for kind in vendor_rules.disagreements(by_file) if vendor_rules.reason_of(kind) is None]
    assert not unexplained


def test_the_page_lists_what_both_say(by_file: dict[str, list[Pair]]) -> None:
    page = Path(__file__).parents[2] / "docs" / "nvidia-rules.md"
    assert page.read_text("utf-8") == vendor_rules.page(by_file), "run: make docs"
