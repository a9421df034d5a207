"""Damaged exports, cases and traces: cut anywhere, or with bytes overwritten; and values that no column should hold."""

from __future__ import annotations

import json
import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from diag.errors import DiagError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.render import RENDERERS
from diag.rules.analysis import AnalysisOptions
from diag.rules.stored import report_of
from diag.store.case import SCHEMA_VERSION
from tests.cli.conftest import Command, small_export, snapshot

REAL = os.environ.get("DIAG_REAL_REPORTS")


def _reported(path: Path, output_format: str = "json") -> str:
    """The report, or the sentence of a DiagError; anything else that is raised fails the test."""
    try:
        with open_inputs([path], ImportOptions(use_cache=False)) as case:
            return RENDERERS[output_format](report_of(case, AnalysisOptions()), width=80, color=False, top=5)
    except DiagError as error:
        return str(error)


def _sample(folder: Path) -> Path:
    export = small_export(400)
    main = export.process(100, "again").thread()
    for i in range(100):
        main.range(f"layer {i % 7}", 1000 * i, 1000 * i + 900)
        main.os_call("read", 1000 * i + 100, 1000 * i + 200)
        main.sample(1000 * i + 50, "leaf", "main")
        main.switch(1000 * i + 20, is_in=i % 2 == 0)
    main.mark("here", 5)
    main.start_end("span", 3, 900)
    main.overhead("Buffer flush (Profiler)", 10, 20)
    export.diagnostic("Warning", "something")
    return export.write(folder / "sample.sqlite")


@pytest.fixture(scope="module")
def whole_export(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return _sample(tmp_path_factory.mktemp("whole")).read_bytes()


@pytest.mark.parametrize("tenths", range(10))
def test_an_export_cut_short(tenths: int, whole_export: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.sqlite"
    size = len(whole_export) * tenths // 10
    for length in (size, size // 4096 * 4096 + 4096):
        path.write_bytes(whole_export[:length])
        before = snapshot(tmp_path)
        said = _reported(path)
        assert said.startswith((str(path), "{"))
        assert snapshot(tmp_path) == before


def _with_noise(content: bytes, seed: int) -> bytes:
    noisy, chance = bytearray(content), random.Random(seed)
    first = 0 if seed % 5 == 0 else 100  # the header, too, in one of five
    for _ in range(chance.choice((1, 4, 40, 400))):
        at = chance.randrange(first, len(noisy))
        run = chance.choice((1, 1, 8, 64))
        noisy[at : at + run] = chance.randbytes(run)[: len(noisy) - at]
    return bytes(noisy)


@pytest.mark.parametrize("seed", range(100))
def test_an_export_with_bytes_overwritten(seed: int, whole_export: bytes, tmp_path: Path) -> None:
    path = tmp_path / "noisy.sqlite"
    path.write_bytes(_with_noise(whole_export, seed))
    _reported(path)


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="DIAG_REAL_REPORTS is not set")
@pytest.mark.parametrize("seed", range(150))
def test_a_real_export_with_bytes_overwritten(seed: int, tmp_path: Path) -> None:
    reals = sorted(Path(str(REAL), "nsys").glob("*.sqlite"))
    original = reals[seed % len(reals)]
    path = tmp_path / "real.sqlite"
    path.write_bytes(_with_noise(original.read_bytes(), seed))
    _reported(path, ("json", "text", "markdown")[seed % 3])


@pytest.fixture(scope="module")
def whole_case(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("whole")
    with open_inputs([_sample(folder)], ImportOptions(use_cache=False, keep=folder / "kept.diag")) as case:
        case.value("SELECT 1")
    return (folder / "kept.diag").read_bytes()


@pytest.mark.parametrize("seed", range(40))
def test_a_case_with_bytes_overwritten(seed: int, whole_case: bytes, tmp_path: Path) -> None:
    path = tmp_path / "kept.diag"
    path.write_bytes(_with_noise(whole_case, seed))
    before = snapshot(tmp_path)
    _reported(path)
    assert snapshot(tmp_path) == before


# ---- values ------------------------------------------------------------------------------------------------------

EXTREMES = (-(2**63), -(2**62), -1, 0, 1, 2**31, 2**32, 2**53, 2**62, 2**63 - 1)
ODD = (None, "text", 1.5, 2**63 - 1)
ODDER = (b"\xff\xfe", 1e300, float("inf"), "12", "", "\x00", *(value for value in EXTREMES if value not in ODD))


@pytest.mark.parametrize("value", [*ODD, *(pytest.param(value, marks=pytest.mark.slow) for value in ODDER)], ids=repr)
def test_odd_values_in_any_column(value: object, tmp_path: Path) -> None:
    """Every third row of each table gets the value, one column after the other."""
    original = _sample(tmp_path)
    with closing(sqlite3.connect(original)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {table: [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')] for table in tables}
        loose = {
            table: f'CREATE TABLE "{table}" ({", ".join(f"{chr(34)}{name}{chr(34)}" for name in names)})'
            for table, names in columns.items()
        }
    for index in range(max(map(len, columns.values()))):
        path = tmp_path / f"{index}.sqlite"
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("ATTACH ? AS original", (str(original),))
            for table, names in columns.items():
                db.execute(loose[table])
                db.execute(f'INSERT INTO main."{table}" SELECT * FROM original."{table}"')
                if index < len(names):
                    db.execute(f'UPDATE main."{table}" SET "{names[index]}" = ? WHERE rowid % 3 = 1', (value,))
            db.commit()
            db.execute("DETACH original")
        said = _reported(path)
        assert said.startswith("{") or str(path) in said, said
        path.unlink()


@pytest.mark.parametrize("value", [None, *EXTREMES], ids=repr)
def test_the_same_odd_value_everywhere(value: int | None, tmp_path: Path) -> None:
    path = _sample(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            names = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
            db.execute(f"CREATE TABLE odd ({', '.join(f'{chr(34)}{name}{chr(34)}' for name in names)})")
            db.execute(f"INSERT INTO odd VALUES ({', '.join('?' for _ in names)})", [value] * len(names))
            db.execute(f'DROP TABLE "{table}"')
            db.execute(f'ALTER TABLE odd RENAME TO "{table}"')
        db.commit()
    _reported(path)


def test_a_thousand_tables(tmp_path: Path) -> None:
    path = _sample(tmp_path)
    with closing(sqlite3.connect(path)) as db, db:
        for number in range(1000):
            db.execute(f'CREATE TABLE "t{number}; DROP TABLE x" (a, "b"" c", d GENERATED ALWAYS AS (a + 1))')
    assert json.loads(_reported(path))["devices"]


def test_generated_columns_count_as_absent_or_are_read(tmp_path: Path) -> None:
    path = _sample(tmp_path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO k")
        names = [row[1] for row in db.execute("PRAGMA table_info(k)") if row[1] != "end"]
        columns = ", ".join(f'"{name}"' for name in names)
        db.execute(f'CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({columns}, "end" GENERATED ALWAYS AS (start + 400))')
        db.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL ({columns}) SELECT {columns} FROM k")
    assert json.loads(_reported(path))["sources"]


def test_triggers_and_views_are_never_run(tmp_path: Path) -> None:
    path = _sample(tmp_path)
    with closing(sqlite3.connect(path)) as db, db:
        endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, i AS label FROM n"
        db.execute("DROP TABLE ENUM_CUDA_MEMCPY_OPER")
        db.execute(f"CREATE VIEW ENUM_CUDA_MEMCPY_OPER AS {endless}")
        db.execute(f"CREATE VIEW OSRT_CALLCHAINS AS {endless}")
        db.execute("CREATE TRIGGER t AFTER INSERT ON NVTX_EVENTS BEGIN DELETE FROM NVTX_EVENTS; END")
    assert json.loads(_reported(path))["devices"][0]["n_kernels"] == 400


@pytest.mark.parametrize("table", ["StringIds", "NVTX_EVENTS"])
def test_a_huge_text_is_bounded(table: str, diag: Command, tmp_path: Path) -> None:
    path = _sample(tmp_path)
    with closing(sqlite3.connect(path)) as db, db:
        column = "value" if table == "StringIds" else "text"
        db.execute(f"UPDATE {table} SET {column} = CAST(zeroblob(100000000) AS TEXT) WHERE rowid IN (1, 2)")
    shown = diag("report", path, "--format", "json")
    assert shown.status in (0, 3)
    assert len(shown.out) < 10_000_000


# ---- a case that does not fit ------------------------------------------------------------------------------------


def _kept(diag: Command, folder: Path) -> Path:
    case = folder / "kept.diag"
    diag("report", _sample(folder), "-o", case, "--no-cache").is_quiet_success()
    return case


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION + 1, 999])
def test_a_case_of_another_schema(version: int, diag: Command, tmp_path: Path) -> None:
    case = _kept(diag, tmp_path)
    with closing(sqlite3.connect(case)) as db:
        db.execute(f"PRAGMA user_version = {version}")
    sentence = diag("report", case).is_one_sentence(3)
    assert f"schema {version}" in sentence
    assert "Import the original files again" in sentence


def test_a_case_with_a_view_for_a_table(diag: Command, tmp_path: Path) -> None:
    case = _kept(diag, tmp_path)
    with closing(sqlite3.connect(case)) as db, db:
        db.execute("DROP TABLE sync")
        db.execute("CREATE VIEW sync AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT i FROM n")
    assert "not as diag made it" in diag("report", case).is_one_sentence(3)


def test_a_case_cut_short(diag: Command, tmp_path: Path) -> None:
    case = _kept(diag, tmp_path)
    case.write_bytes(case.read_bytes()[:-5000])
    assert "cut short" in diag("report", case).is_one_sentence(3)


def test_a_case_in_wal_mode_stays_as_it_is(diag: Command, tmp_path: Path) -> None:
    case = _kept(diag, tmp_path)
    with closing(sqlite3.connect(case)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    before = snapshot(tmp_path)
    diag("report", case, "--window", "0ns:90us").is_quiet_success()
    diag("query", case).is_quiet_success()
    assert snapshot(tmp_path) == before


def test_a_damaged_case_in_the_cache_is_made_again(diag: Command, tmp_path: Path) -> None:
    path = _sample(tmp_path)
    shown = diag("report", path).is_quiet_success()
    (case,) = diag.cases()
    for length in (0, 50, 5000, case.stat().st_size - 100):
        case.write_bytes(case.read_bytes()[:length])
        assert diag("report", path).is_quiet_success() == shown


def test_a_cached_case_with_noise_is_removed_or_serves(diag: Command, tmp_path: Path) -> None:
    path = _sample(tmp_path)
    shown = diag("report", path).is_quiet_success()
    (case,) = diag.cases()
    whole = case.read_bytes()
    case.write_bytes(whole[:8192] + bytes(len(whole) - 8192))
    ran = diag("report", path)
    if ran.status:
        assert "removed" in ran.is_one_sentence(3)
    assert diag("report", path).is_quiet_success() == shown
