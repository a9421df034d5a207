"""HTML pages of made-up traces, and reading them back without a browser."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from diag.ingest.importer import ImportOptions, open_inputs
from diag.render.html import render_html, timeline_of
from diag.rules.analysis import AnalysisOptions
from diag.rules.stored import report_of
from tests.builders.nsys_export import NsysExport

VOID = {"meta", "br", "input", "link", "img", "hr"}
MS = 1_000_000

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "image": '"><img src=x onerror=alert(1)>',
    "end": "</script><script>alert(1)</script><!--",
    "style": "</style><style>body{display:none}</style>",
    "separators": "a\u2028b\u2029c",
    "escapes": "\x1b]0;owned\x07\x1b[2J\u202eevil\u2066\x00",
    "surrogate": "caf\udce9\ud800",
    "address": "javascript:alert(1) https://example.invalid/ `javascript:alert(1)`",
    "attribute": "' onmouseover='alert(1)' x=\"",
    "long": "gemm<" + "float, " * 14_000 + ">",
    "wide": "行列積 " * 4_000,
    "empty": "",
}
"""Names as a trace could hold them; "long" has 100 kB."""


class Page(HTMLParser):
    """Elements with attributes and text; fails on a tag that closes another."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(html)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), (tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for tag in dict.fromkeys(self.open):
            self.texts.setdefault(tag, []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def text(self, tag: str) -> str:
        return "".join(self.texts.get(tag, []))

    @property
    def policy(self) -> str:
        (meta,) = (each for each in self.all("meta") if each.get("http-equiv") == "Content-Security-Policy")
        return str(meta["content"])


def timeline_data(html: str) -> dict[str, Any]:
    """The data of the timeline as the script reads it."""
    text = html.partition('id="timeline-data">')[2].partition("</script>")[0]
    found: dict[str, Any] = json.loads(text)
    return found


def columns(row: dict[str, Any]) -> list[list[int]]:
    """Start differences, lengths, idle parts, kinds and names of a row: LEB128 read byte by byte."""
    numbers, value, shift = [], 0, 0
    for byte in base64.b64decode(row["data"]):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    assert len(numbers) == 5 * row["n"]
    return [numbers[at * row["n"] : (at + 1) * row["n"]] for at in range(5)]


def page_of(path: Path) -> str:
    """The page of a trace, as `diag report --format html` writes it."""
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        report = report_of(case, AnalysisOptions())
        return render_html(report, timeline_of(case, report))


def trace(path: Path, names: list[str], steps: int = 12) -> Path:
    """Steps of 10 ms with a kernel and a copy each; the GPU waits for the host in between."""
    export = NsysExport()
    process = export.process(name=names[0])
    thread, gpu = process.thread(name=names[-1]), process.gpu()
    for step in range(steps):
        at, name = 10 * MS * step, names[step % len(names)]
        launch = thread.call("cudaLaunchKernel", at + 2 * MS, at + 2 * MS + 5_000)
        gpu.kernel(at + 3 * MS, at + 6 * MS, name, correlation=launch)
        gpu.copy(at + 6 * MS, at + 7 * MS, 1_000_000)
        thread.range(name, at, at + 9 * MS)
        thread.range("load batch", at + 100, at + 2 * MS)
        thread.mark(name, at + 5 * MS)
    export.gpu_metric("SM Active", {10 * MS * step: step % 3 * 40 for step in range(steps)})
    return export.write(path)


@dataclass(frozen=True)
class Cell:
    text: str
    key: float | None  # that it is sorted by


class _Grids(HTMLParser):
    """The rows of all tables that can be sorted, by section."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: dict[str, list[list[Cell]]] = {}
        self.section, self.is_grid = "", False
        self.key: float | None = None
        self.said: list[str] | None = None  # of the cell that is read
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = dict(attrs)
        if tag == "section":
            self.section = str(has["id"])
        elif tag == "table":
            self.is_grid = has.get("class") == "grid"
        elif tag == "tr" and self.is_grid:
            self.rows.setdefault(self.section, []).append([])
        elif tag == "td" and self.is_grid:
            self.key, self.said = float(has["data-key"]) if has.get("data-key") else None, []  # type: ignore[arg-type]

    def handle_data(self, data: str) -> None:
        if self.said is not None:
            self.said.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "td" and self.said is not None:
            self.rows[self.section][-1].append(Cell("".join(self.said), self.key))
            self.said = None


def grids(html: str) -> dict[str, list[list[Cell]]]:
    """By section, the rows of its table without the header."""
    return {section: rows[1:] for section, rows in _Grids(html).rows.items()}
