"""Whatever a file holds, what is shown is one printable line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from diag.render.escape import markdown_code, markdown_text, one_line, unicode_only

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=60)
TRICKY = st.text(st.sampled_from("ab1 |\\`*_<>[]()!#&~$@:.-+=\n\t"), max_size=30)
MARKDOWN = MarkdownIt("commonmark").enable("table").enable("strikethrough")


@given(ANY_TEXT)
def test_one_line_is_printable_and_can_be_encoded(text: str) -> None:
    assert one_line(text).isprintable()
    one_line(text).encode("utf-8")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\r\n\tb", "a b"),
        ("x\u202egnp.exe", r"x\u202egnp.exe"),
        ("\x9b2J", r"\x9b2J"),
        ("caf\udce9", r"caf\udce9"),
        ("行列積 é", "行列積 é"),
        ("", ""),
    ],
)
def test_what_cannot_be_shown_is_named(text: str, shown: str) -> None:
    assert one_line(text) == shown


@given(ANY_TEXT)
def test_unicode_only_can_be_encoded_and_keeps_the_rest(text: str) -> None:
    unicode_only(text).encode("utf-8")
    if not any(0xD800 <= ord(c) < 0xE000 for c in text):
        assert unicode_only(text) == text


@given(TRICKY)
def test_running_text_reads_in_markdown_as_it_was(text: str) -> None:
    html = MARKDOWN.render("x " + markdown_text(text))
    assert "<" not in html.removeprefix("<p>").removesuffix("</p>\n")
    assert _text_of(html).replace("\u200b", "") == ("x " + one_line(text)).strip()


@given(TRICKY)
def test_running_text_begins_no_block(text: str) -> None:
    rendered = MARKDOWN.render(markdown_text(text))
    assert rendered == "" or rendered.startswith("<p>")


@given(TRICKY, TRICKY)
def test_cells_stay_cells(name: str, prose: str) -> None:
    html = MARKDOWN.render(f"| a | b |\n| --- | --- |\n| {markdown_code(name)} | {markdown_text(prose)} |")
    assert html.count("<td>") == 2
    cells = html.split("<td>")[1:]
    assert _text_of(cells[0].split("</td>")[0]).strip() == (one_line(name) or "(no name)")
    assert _text_of(cells[1].split("</td>")[0]).replace("\u200b", "") == one_line(prose)


@pytest.mark.parametrize("text", ["@someone", "see #12", "https://x.example", "www.x.example", "a@x.example"])
def test_github_makes_no_link_of_it(text: str) -> None:
    assert text not in markdown_text(text)


def _text_of(html: str) -> str:
    for tag in ("<p>", "</p>\n", "<code>", "</code>"):
        html = html.replace(tag, "")
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        html = html.replace(entity, character)
    return html
