from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static, TextArea

from diag.store.reading import Blob
from diag.tui.app import DiagApp
from diag.tui.navigation import ToQuery
from diag.tui.widgets import rows
from diag.tui.widgets.rows import MOST_ROWS, Rows
from diag.tui.widgets.schema_tree import SchemaTree
from tests.tui.driving import LARGE, SMALL, check_picture, drive, press, settle, shown, until

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"


def said_below(pilot: Pilot[None]) -> str:
    return str(pilot.app.screen.query_one(".state", Static).content)


async def ask(pilot: Pilot[None], sql: str) -> str:
    assert isinstance(pilot.app, DiagApp)
    pilot.app.go(ToQuery(sql))
    await pilot.pause()
    await settle(pilot)
    return shown(pilot)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_sql_is_drawn(training: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "9", "ctrl+r")
        await check_picture(pilot, "sql")

    drive([training], scenario, size=size)


def test_rows_that_took_long_say_so(training: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "WORTH_SAYING_S", 0.0)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "9", "ctrl+r")
        assert re.search(r"rows, after \d+\.\d s", shown(pilot))

    drive([training], scenario)


def test_what_is_typed_is_asked(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "9")
        pilot.app.screen.query_one(TextArea).text = ""
        await press(pilot, *"SELECT", "space", *"41+1", "ctrl+r")
        assert "1 row" in shown(pilot)
        assert "41+1 = 42" in shown(pilot)

    drive([training], scenario)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELEKT 1", "✗ SQLite: near"),
        ("SELECT * FROM nowhere", "✗ SQLite: no such table"),
        ("DELETE FROM name", "✗ A case is read-only here"),
        ("PRAGMA query_only = OFF", "✗ A case is read-only here"),
        ("-- nothing", "asks for nothing"),
        ("", "asks for nothing"),
        ("SELECT 1; SELECT 2", "one statement"),
    ],
)
def test_what_is_wrong_is_said_in_the_app(training: Path, sql: str, said: str) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await ask(pilot, sql)
        assert said in said_below(pilot)
        assert "1 row" in await ask(pilot, "SELECT 1")

    drive([training], scenario)


def test_escape_interrupts_a_statement_and_the_case_answers_again(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, DiagApp)
        pilot.app.go(ToQuery(ENDLESS))
        await until(pilot, lambda: bool(pilot.app.screen.query(Rows)) and pilot.app.screen.query_one(Rows).is_running)
        await pilot.press("escape")
        await settle(pilot)
        assert "Stopped." in shown(pilot)
        assert "1 row" in await ask(pilot, "SELECT 1")

    drive([training], scenario)


def test_the_app_ends_while_a_statement_runs(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, DiagApp)
        pilot.app.go(ToQuery(ENDLESS))
        await until(pilot, lambda: bool(pilot.app.screen.query(Rows)) and pilot.app.screen.query_one(Rows).is_running)

    drive([training], scenario)


def test_values_of_every_kind_are_shown_safely(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        text = await ask(pilot, "SELECT NULL AS a, x'00ff41' AS b, 1.5 AS c, char(27) || '[31mred' AS d")
        assert "NULL" in text
        assert "(3 bytes) 00 ff 41" in text
        assert r"\x1b[31mred" in text
        text = await ask(pilot, "SELECT '[bold red]zq[/]' AS '[blink]wq[/]', printf('%.*c', 100000, 'x') AS long")
        assert "[bold red]zq[/]" in text
        assert "[blink]wq[/]" in text
        rows = pilot.app.screen.query_one(Rows)
        assert len(rows._found.rows[0][1]) < 20_000
        await ask(pilot, "SELECT zeroblob(10000000)")
        assert rows._found.rows == [[Blob(10_000_000, bytes(32))]]

    drive([training], scenario)


def test_rows_are_bounded(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000) SELECT i FROM n"
        assert "the first 1,000 rows; there are more" in await ask(pilot, sql)
        assert pilot.app.screen.query_one(DataTable).row_count == MOST_ROWS

    drive([training], scenario)


def test_the_schema_explains_itself_and_asks(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "9")
        tree = pilot.app.screen.query_one(SchemaTree)
        tree.focus()
        await press(pilot, "down", "down")
        assert "lost, guessed" in shown(pilot)
        await press(pilot, "up", "up", "enter")
        assert "SELECT * FROM source" in shown(pilot)
        assert "1 row" in shown(pilot)

    drive([training], scenario, size=LARGE)


def test_what_was_asked_before_comes_back(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await ask(pilot, "SELECT 1")
        await ask(pilot, "SELECT 2")
        await press(pilot, "ctrl+up")
        assert pilot.app.screen.query_one(TextArea).text == "SELECT 1"
        await press(pilot, "ctrl+down")
        assert pilot.app.screen.query_one(TextArea).text == "SELECT 2"

    drive([training], scenario)


def test_number_keys_are_text_in_the_box_and_screens_outside(training: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, DiagApp)
        await press(pilot, "9", "1")
        assert pilot.app.current_mode == "sql"
        await press(pilot, "escape", "1")
        assert pilot.app.current_mode == "overview"

    drive([training], scenario)
