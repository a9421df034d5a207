from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from diag.errors import UsageError
from diag.store.case import Case
from diag.store.reading import LONGEST_TEXT, Blob, TimeIsOver, first_rows
from diag.store.schema_notes import table_notes
from diag.store.sqlite_errors import IS_STOPPED, is_interrupt

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    with Case.create(tmp_path / "a.diag") as case:
        case.intern(["gemm", "softmax", "x" * (LONGEST_TEXT + 1)])
        yield case


def test_rows_are_the_first_ones(case: Case) -> None:
    found = first_rows(case.db, "SELECT id, id, text FROM name", 2)
    assert found.columns == ["id", "id_2", "text"]
    assert found.rows == [[1, 1, "gemm"], [2, 2, "softmax"]]
    assert found.is_cut
    assert not first_rows(case.db, "SELECT id FROM name", 3).is_cut


def test_values_are_bounded_and_those_that_are_no_text_can_be_read(case: Case) -> None:
    (row,) = first_rows(case.db, "SELECT text, x'0102', CAST(x'61ff' AS TEXT) FROM name WHERE id = 3", 5).rows
    assert row == ["x" * LONGEST_TEXT + "…", Blob(2, b"\1\2"), "a\ufffd"]


@pytest.mark.parametrize("sql", ["DELETE FROM name", "ATTACH 'b' AS b", "PRAGMA query_only = OFF", "", "SELECT"])
def test_only_reading_is_allowed_and_only_meanwhile(case: Case, sql: str) -> None:
    with pytest.raises(UsageError):
        first_rows(case.db, sql, 5)
    assert first_rows(case.db, "SELECT COUNT(*) FROM name", 5).rows == [[3]]
    case.intern(["written afterwards"])
    assert case.value("SELECT COUNT(*) FROM name") == 4


@pytest.mark.parametrize("bound", [{"seconds": 0.1}, {"most_steps": 10_000_000}])
def test_time_and_steps_are_bounded_once(case: Case, bound: dict[str, Any]) -> None:
    with pytest.raises(TimeIsOver) as raised:
        first_rows(case.db, ENDLESS, 5, **bound)
    assert is_interrupt(raised.value)
    assert first_rows(case.db, ENDLESS.replace("FROM n)", "FROM n LIMIT 1000000)"), 5).rows == [[1_000_000]]


@pytest.mark.parametrize("seconds", [None, 600.0])
def test_a_statement_ends_when_its_thread_is_told_to_stop(tmp_path: Path, seconds: float | None) -> None:
    stop, said = threading.Event(), list[bool]()

    def work() -> None:
        IS_STOPPED.set(stop.is_set)
        with Case.create(tmp_path / "a.diag") as case:
            stop.set()
            try:
                case.value(ENDLESS)
            except sqlite3.OperationalError as error:
                said.append(is_interrupt(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert said == [True]


def test_tables_and_columns_are_explained_by_the_schema(case: Case) -> None:
    tables = {table.name: table for table in table_notes(case.db)}
    assert tables["source_note"].note == "what was lost, guessed or left out while reading"
    source = {column.name: column for column in tables["source"].columns}
    assert source["path"].note == "as the user gave it"
    assert source["path"].kind == "TEXT"
    assert tables["finding"].is_view
    assert {column.name for column in tables["finding"].columns} >= {"id", "rule", "share"}
    explained = [column for table in tables.values() for column in table.columns if column.note]
    assert len(explained) > 100


def test_tables_with_odd_names_can_be_asked(case: Case, tmp_path: Path) -> None:
    other = tmp_path / "b.sqlite"
    with sqlite3.connect(other) as db:
        db.execute('CREATE TABLE "a ""b" (x)')
    case.db.execute("ATTACH ? AS source1", (str(other),))
    odd = table_notes(case.db)[-1]
    assert odd.sql == 'source1."a ""b"'
    assert first_rows(case.db, f"SELECT * FROM {odd.sql}", 5).columns == ["x"]
