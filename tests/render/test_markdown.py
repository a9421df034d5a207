"""The report as Markdown: no name gets out of its cell, adds mark-up or makes a link."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from diag.render import render_markdown
from diag.rules.finding import Subject
from diag.rules.report import Report

MARKDOWN = MarkdownIt("commonmark").enable("table").enable("strikethrough")

NAMES = {
    "template": "void f<int*, A|B>(char const*)::[lambda()]",
    "html": "<script>alert(1)</script><img src=x onerror=y>",
    "link": "[click](https://x.example) ![img](http://x.example/a.png) <https://x.example> www.x.example",
    "ticks": "`a``b``` | `",
    "row": "a |\n| b | c |\n\n# heading\n- item",
    "slashes": "C:\\runs\\|\\",
    "mention": "@someone #1 a@x.example",
    "control": "\x1b[2J\u202e\x00",
    "surrogate": "caf\udce9",
    "long": "k" * 2_000,
    "empty": "",
}

ALLOWED = {"h2", "h3", "p", "ol", "ul", "li", "table", "thead", "tbody", "tr", "th", "td", "code", "strong", "br"}


@pytest.mark.parametrize("name", NAMES)
def test_no_name_adds_mark_up(hostile: Callable[[str], Report], name: str) -> None:
    html = MARKDOWN.render(render_markdown(hostile(NAMES[name])))
    assert set(re.findall(r"</?([a-z0-9]+)", html)) <= ALLOWED
    assert html.count("<h2>") == 1


@pytest.mark.parametrize("name", NAMES)
def test_rows_keep_their_cells(hostile: Callable[[str], Report], name: str) -> None:
    html = MARKDOWN.render(render_markdown(hostile(NAMES[name])))
    tables = html.split("<table>")[1:]
    assert len(tables) == 5
    for table in tables:
        n_columns = table.count("<th>") + table.count("<th ")
        for row in table.split("<tr>")[2:]:
            cells = re.findall(r"<td[^>]*>(.*?)</td>", row)
            assert len(cells) == n_columns
            if NAMES[name]:
                assert all(cells), row


def test_nothing_in_it_can_act_on_a_terminal(hostile: Callable[[str], Report]) -> None:
    for name in NAMES.values():
        text = render_markdown(hostile(name))
        assert all(c == "\n" or c.isprintable() for c in text)
        text.encode("utf-8")


def test_the_order_is_that_of_the_text(report: Report) -> None:
    headings = re.findall(r"^#+ (.*)$", render_markdown(report), re.MULTILINE)
    assert headings[1:6] == ["Why", "What to do", "What would refute it", "What could be won", "Also found"]
    assert headings[-3:] == ["Cannot tell", "Clear", "Read"]


def test_names_are_shown_whole_where_they_are_short(report: Report) -> None:
    assert "| 100.0 % | 50.0 ms | 10 | 5.0 ms | `gemm` |" in render_markdown(report)


def test_a_host_report_has_no_device_tables(host_report: Report) -> None:
    text = render_markdown(host_report)
    assert "### Devices" not in text
    assert "the capture has no GPU work" in text


def test_code_in_running_text_is_code(report: Report) -> None:
    lead, copies = report.findings
    copies = replace(copies, next=["Pin it (`pin_memory=True`), not a_b."])
    assert "Pin it (`pin_memory=True`), not a\\_b." in render_markdown(replace(report, findings=[lead, copies]))


def test_the_severity_comes_before_the_evidence(report: Report) -> None:
    text = render_markdown(report)
    assert text.index("critical, high confidence") < text.index("### Why") < text.index("| evidence |")


def test_a_kernel_that_the_title_names_is_not_named_again(report: Report) -> None:
    about = Subject(source=1, kernel="gemm", configuration="<<<1, 32>>>")
    waits = replace(report.findings[-1], title="gemm waits", subject=about)
    assert "**gemm waits** `F" in render_markdown(replace(report, findings=[*report.findings[:-1], waits]))
