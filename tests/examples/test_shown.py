"""What pages show is compared line by line."""

from __future__ import annotations

import re
from pathlib import Path

from tests.examples.shown import EXAMPLES, Shown, shown_in


def test_a_page_that_shows_something_else_is_noticed() -> None:
    assert Shown("c", "a\n…\nd").fits("a\nb\nc\nd\n")
    assert Shown("c", "a\nb").fits("a\nb\n")
    assert not Shown("c", "a\n…\nx").fits("a\nb\nc\nd\n")
    assert not Shown("c", "a\nb").fits("a\nb\nc\n")


def test_commands_and_their_outputs_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Text\n```console\n$ one a\n1\n\n2\n$ two\n```\n```text\n$ three\n```\n")
    assert shown_in(page) == [Shown("one a", "1\n\n2"), Shown("two", "")]


def test_the_index_lists_every_example_and_nothing_else() -> None:
    named = set(re.findall(r"^\| \[([^\]]+)\]", (EXAMPLES / "README.md").read_text("utf-8"), re.MULTILINE))
    there = {path.name for path in EXAMPLES.iterdir() if path.name not in {"README.md", "__pycache__"}}
    assert named == there


def test_links_of_the_pages_lead_somewhere() -> None:
    for page in EXAMPLES.rglob("*.md"):
        for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page} links to {target}"
