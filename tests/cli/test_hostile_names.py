"""Whatever a trace calls things, and whatever the file is called: it is text in every output of every verb."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from diag.errors import ToolMissing
from diag.export import png
from tests.builders.nsys_export import NsysExport
from tests.cli.conftest import Command
from tests.render.pages import Page
from tests.render.plots.reading import parsed

MS = 1_000_000
NAMES = (
    b"<script>alert(1)</script>",
    b'"><img src=x onerror=alert(1)>',
    b"</script><!--",
    b"\x1b[31mred\x1b[2J\x1b]0;owned\x07",
    "\u202eevil\u2066 שלום".encode(),
    b"nul\0nul",
    b"\x9b2Jnot UTF-8\xff\xfe",
    b"gemm<" + b"float, " * 14_000 + b">",
    "\u2028lines\r\nand\ttabs\u2029".encode(),
    "行列🎉e\u0301\ufe0f".encode(),
    b"=cmd|' /C calc'!A0",
    b"[x](javascript:alert(1)) `code` | **bold** @someone #1",
    b"[bold red]mark-up[/] \\frac{%s}",
)
FILE = "\x1b[31m<script>\u202e[bold]`x|.sqlite"


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each name as that of a process, a thread, kernels, ranges, a mark and a counter."""
    made = NsysExport()
    for number, name in enumerate(NAMES):
        process = made.process(pid=100 + number, name=name)
        thread, gpu = process.thread(name=name), process.gpu()
        for step in range(12):
            at = 10 * MS * step
            launch = thread.call("cudaLaunchKernel", at + 2 * MS, at + 2 * MS + 5_000)
            gpu.kernel(at + 3 * MS, at + 6 * MS, name, correlation=launch)
            thread.range(name if step % 2 else f"step {step}", at, at + 9 * MS)
        thread.mark(name, MS)  # type: ignore[arg-type]
        made.gpu_metric(name.decode("utf-8", "replace").replace("\0", ""), {MS * at: at for at in range(20)})
    return made.write(tmp_path_factory.mktemp("hostile") / FILE)


def is_plain(text: str) -> None:
    """Neither control characters nor overrides of the reading direction reach a terminal; lines are what diag sets."""
    assert all(line.isprintable() for line in text.split("\n"))


def is_json(text: str) -> None:
    assert text.isascii()
    is_plain(text)
    json.loads(text)


def is_markdown(text: str) -> None:
    is_plain(text)
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert "<script" not in html
    assert "<img" not in html
    assert "<a " not in html


def is_page(text: str) -> None:
    assert text.isascii()
    is_plain(text)
    page = Page(text)
    assert [each.get("type") for each in page.all("script")] == ["application/json", None]
    assert not page.all("img")


PRINTED: Mapping[str, tuple[Sequence[str], Callable[[str], None]]] = {
    "text": (["report"], is_plain),
    "wide text": (["report", "--top", "100"], is_plain),
    "json": (["report", "--format", "json"], is_json),
    "markdown": (["report", "--format", "markdown"], is_markdown),
    "html": (["report", "--format", "html"], is_page),
    "compared": (["compare"], is_plain),
    "compared as markdown": (["compare", "--format", "markdown"], is_markdown),
    "compared as json": (["compare", "--format", "json"], is_json),
    "rows": (["query", "SELECT text FROM name"], is_plain),
}


@pytest.mark.parametrize("output", PRINTED)
def test_what_is_printed_is_text(diag: Command, export: Path, tmp_path: Path, output: str) -> None:
    words, is_safe = PRINTED[output]
    inputs = [export]
    if "compare" in words:
        other = tmp_path / export.name
        other.write_bytes(export.read_bytes())
        inputs.append(other)
    verb, *rest = words
    ended = diag(verb, *inputs, *rest)
    assert ended.status == 0, ended.err
    is_plain(ended.err)
    is_safe(ended.out)


def test_what_is_written_is_text(diag: Command, export: Path, tmp_path: Path) -> None:
    """Perfetto has its names as JSON, for the viewer to escape."""
    assert diag("export", export, "-o", tmp_path / "trace.json").status == 0
    json.loads((tmp_path / "trace.json").read_text("ascii"))
    ended = diag("export", export, "--plots", "-o", tmp_path / "plots")
    assert ended.status == 0, ended.err
    made = list((tmp_path / "plots").iterdir())
    assert len(made) > 2
    for file in made:
        parsed(file.read_text("utf-8"))


def test_pictures_hold_such_names(diag: Command, export: Path, tmp_path: Path) -> None:
    try:
        png.check()
    except ToolMissing as missing:
        pytest.skip(str(missing))
    ended = diag("export", export, "--plots", "--format", "png", "-o", tmp_path / "plots")
    assert ended.status == 0, ended.err
    for file in (tmp_path / "plots").iterdir():
        assert file.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_a_finding_is_explained_as_text(diag: Command, export: Path) -> None:
    document = json.loads(diag("report", export, "--format", "json").out)
    ended = diag("explain", document["findings"][0]["id"], export)
    assert ended.status == 0
    is_plain(ended.out)
