"""Whatever a trace calls things: it is text on every screen, and no control character reaches the terminal."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from diag.tui.app import DiagApp
from diag.tui.navigation import TITLES, ToQuery
from diag.tui.screens.evidence import EvidenceScreen
from tests.tui.driving import LARGE, drive, press, settle, shown, until

NAMES = {
    "markup": b"[bold red]zq[/]",
    "link": b"[@click=app.quit]zq[/]",
    "unclosed": b"[zq[/b]\\\\[",
    "escapes": b"\\u001b[31mzq\\u001b]0;title\\u0007",
    "right to left": "\u202ezq\u2066\u200f".encode(),
    "long": b"zq" * 50_000,
    "nul": b"zq\\u0000zq",
    "not UTF-8": b"zq\xff\xfe",
    "lines": b"zq\\n\\r\\tzq",
    "wide": "行列🎉e\u0301zq".encode(),
    "quotes": b"'zq\\\"; --",
}


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> bytes:
    return NAMES[request.param]


@pytest.fixture
def hostile(name: bytes, training: Path, tmp_path: Path) -> Path:
    """The trace with that name for its longest kernel, its data loader's range, and its device."""
    text = gzip.decompress(training.read_bytes())
    for known in (b"ampere_sgemm_128x64_tn", b"load batch", b"Synthetic GPU"):
        assert known in text
        text = text.replace(known, name)
    path = tmp_path / "[bold red]zq.pt.trace.json"
    path.write_bytes(text)
    return path


def check(pilot: Pilot[None]) -> None:
    text = shown(pilot)
    assert all(character.isprintable() or character == "\n" for character in text)
    assert all(width_of(line) <= pilot.app.size.width for line in text.splitlines())


def width_of(line: str) -> int:
    from rich.cells import cell_len

    return cell_len(line)


def test_no_name_does_anything_but_be_shown(hostile: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, DiagApp)
        for key in map(str, range(1, len(TITLES) + 1)):
            await press(pilot, key)
            check(pilot)
            if key == "9":
                await press(pilot, "escape")
        app.go(ToQuery("SELECT text, pattern, text AS \"[red]zq[/]\" FROM name WHERE text LIKE '%zq%'"))
        await press(pilot)
        assert "zq" in shown(pilot)
        check(pilot)
        for finding in app.session.report.findings:
            await app.push_screen(EvidenceScreen(finding.title, finding.evidence[0]))
            await press(pilot)
            check(pilot)
            await press(pilot, "escape")
        await pilot.press("ctrl+p")
        await until(pilot, lambda: bool(app.screen.query(Input)))
        app.screen.query_one(Input).value = "zq"
        await until(pilot, lambda: app.screen.query_one(OptionList).option_count > 0)
        check(pilot)
        await press(pilot, "escape", "1", "o")
        await settle(pilot)
        check(pilot)

    drive([hostile], scenario)


def test_mark_up_is_read_as_it_was_written(training: Path, tmp_path: Path) -> None:
    """Were it mark-up anywhere, its brackets would be gone there."""
    name = "[red]zq[/]"
    text = gzip.decompress(training.read_bytes()).decode()
    path = tmp_path / "[red]zq[ ].pt.trace.json"
    path.write_text(text.replace("ampere_sgemm_128x64_tn", name).replace("load batch", name))

    async def scenario(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, DiagApp)
        app.go(ToQuery("SELECT text, text AS \"[red]zq[/]\" FROM name WHERE text LIKE '[red]%'"))
        seen = 0
        for key in ["", *map(str, range(1, len(TITLES) + 1))]:
            await press(pilot, *filter(None, [key]))
            found = re.findall(r"(.{0,5})zq(.{0,3})", shown(pilot))
            seen += len(found)
            assert all(before == "[red]" and after in ("[/]", "[ ]") for before, after in found), shown(pilot)
        assert seen > 5
        hot = next(finding for finding in app.session.report.findings if finding.subject.kernel == name)
        assert hot.title.count("zq") == 1

    drive([path], scenario, size=LARGE)
