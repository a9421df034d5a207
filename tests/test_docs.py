"""What is generated is up to date, and what is written by hand names things that exist."""

from __future__ import annotations

import re
from pathlib import Path

from diag.learn import published
from diag.render import rule_pages
from diag.rules import thresholds
from diag.rules.engine import rules
from tests.docs.shown import PAGES
from tests.model import hardware_page
from tests.rules import case_table

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")


def test_rule_pages_are_what_the_rules_say() -> None:
    written = {path.name: path.read_text("utf-8") for path in (ROOT / "docs" / "rules").glob("*.md")}
    assert written == dict(rule_pages.pages()), "run: make docs"


def test_the_table_of_cases_is_what_the_rules_say_of_them() -> None:
    assert (ROOT / "docs" / "rule-cases.md").read_text("utf-8") == case_table.page(), "run: make docs"


def test_the_tables_of_hardware_are_what_the_data_say() -> None:
    written = (ROOT / "docs" / "hardware.md").read_text("utf-8")
    assert written == hardware_page.page(written), "run: make docs"


def test_the_lessons_are_published_as_they_are_taught() -> None:
    folder = ROOT / "docs" / "learn"
    written = {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*.md")}
    assert written == dict(published.pages()), "run: make docs"


def test_every_rule_has_its_thresholds_and_every_threshold_its_rule() -> None:
    assert set(thresholds.load()) <= set(rules())


def test_links_in_the_documentation_lead_somewhere() -> None:
    for page in [ROOT / "CHANGELOG.md", *map(ROOT.joinpath, PAGES)]:
        for target in LINK.findall(page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_targets_of_make_exist() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    for page in PAGES:
        named = re.findall(r"(?:`|^    )make ([a-z-]+)", (ROOT / page).read_text("utf-8"), re.MULTILINE)
        assert set(named) <= set(targets), page
