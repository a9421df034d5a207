"""The pages by which people change or extend diag: every path, module, command and name in them exists."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

import pytest

from diag import plugins
from diag.rules import engine
from tests.test_docs import LINK, ROOT

GUIDES = [ROOT / page for page in ("CONTRIBUTING.md", "docs/plugins.md", "examples/plugin/README.md")]
CODE = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"^    (\S.*?)(?:  +#.*)?$", re.MULTILINE)
PATH = re.compile(r"(?:\./)?[\w<>.-]+/[\w<>./-]*")
MODULE = re.compile(r"diag(\.\w+)+")
NAME_IN_FILE = re.compile(r"`(\w+)`(?: of| in)?\s+\(?`([\w/]+\.py)`")

each_guide = pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.name)


def words(guide: Path) -> set[str]:
    """All that stands in code or in commands, with the parts of `KEY=VALUE` apart."""
    text = guide.read_text("utf-8")
    found = {word for said in CODE.findall(text) + COMMAND.findall(text) for word in re.split(r"[\s=]+", said)}
    assert found
    return found


@each_guide
def test_links_lead_somewhere(guide: Path) -> None:
    for target in LINK.findall(guide.read_text("utf-8")):
        assert (guide.parent / target).exists(), target


@each_guide
def test_paths_exist(guide: Path) -> None:
    for path in filter(PATH.fullmatch, words(guide)):
        pattern = re.sub(r"<\w+>", "*", path.removeprefix("./"))
        assert any(any(folder.glob(pattern)) for folder in (ROOT, guide.parent)), path


@each_guide
def test_modules_can_be_imported(guide: Path) -> None:
    for module in filter(MODULE.fullmatch, words(guide) - {plugins.RULES, plugins.READERS}):
        assert resolve_name(module), module


@each_guide
def test_names_stand_in_the_files_that_are_said_to_have_them(guide: Path) -> None:
    for name, file in NAME_IN_FILE.findall(guide.read_text("utf-8")):
        assert re.search(rf"^\s*(?:def |class )?{name}\b", (ROOT / file).read_text("utf-8"), re.MULTILINE), (name, file)


def test_all_kinds_and_parts_of_a_rule_are_told() -> None:
    contributing, extending = (guide.read_text("utf-8") for guide in GUIDES[:2])
    kinds = {name for name in vars(engine) if name.endswith("_rule") and name != "trace_rule"}
    assert set(re.findall(r"`@(\w+)`", contributing)) == kinds
    assert set(re.findall(r"`(\w+_rule)`", extending)) == kinds
    assert all(f"*{section}*" in contributing for section in engine.SECTIONS)


def test_the_tests_of_the_threat_model_exist() -> None:
    page = (ROOT / "docs/threat-model.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", page)
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| attack ")]
    assert len(rows) > 20
    assert [row for row in rows if "::test_" not in row] == []
    missing = [name for file, name in named if f"def {name}(" not in (ROOT / file).read_text("utf-8")]
    assert missing == []
