"""SQL that people type, mistype or are given: it reads, or is refused in one sentence, and never writes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import typer

from diag.cli.query import QueryFormat, query
from diag.errors import DiagError
from diag.ingest.importer import ImportOptions, open_inputs
from tests.fuzz import byte_mutations, contract, samples
from tests.fuzz.seeds import chance_of, every_seed

QUESTIONS = (
    "SELECT kind, COUNT(*), SUM(end_ns - start_ns) FROM gpu_op GROUP BY 1 ORDER BY 3 DESC",
    "SELECT n.text, MAX(end_ns - start_ns) FROM api_call a JOIN name n ON n.id = a.name_id GROUP BY n.text",
    "WITH RECURSIVE up (id, n) AS (SELECT id, 0 FROM cpu_range UNION SELECT r.parent_id, n + 1 FROM cpu_range r "
    "JOIN up USING (id) WHERE r.parent_id IS NOT NULL) SELECT MAX(n) FROM up",
    "SELECT key, value FROM source, json_each(capabilities)",
    "SELECT * FROM pragma_table_info('gpu_op')",
)
REFUSED = (
    "DELETE FROM gpu_op",
    "DROP TABLE name",
    "CREATE TABLE t (a)",
    "CREATE TEMP TABLE t (a)",
    "UPDATE source SET path = 'x' RETURNING id",
    "INSERT INTO name VALUES (99999, 'a', 'a')",
    "VACUUM",
    "VACUUM INTO '{folder}/copy.sqlite'",
    "ATTACH '{folder}/new.sqlite' AS new",
    "ATTACH ':memory:' AS new",
    "DETACH main",
    "PRAGMA writable_schema = 1",
    "PRAGMA journal_mode = WAL",
    "PRAGMA query_only = OFF",
    "PRAGMA temp_store_directory = '{folder}'",
    "BEGIN IMMEDIATE",
    "SELECT load_extension('x')",
    "SELECT writefile('{folder}/x', 'x')",
    "SELECT readfile('/etc/passwd')",
    "SELECT 1; DROP TABLE name",
    "SELECT ?",
    "SELECT :a",
    "-- nothing",
    ";",
    "\x00",
    "SELECT '" + "x" * 2_000_000,
    "SELECT " + "(" * 5_000 + "1" + ")" * 5_000,
    "SELECT " + "1, " * 5_000 + "1",
    "SELECT 'caf\udce9'",
)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("case")
    kept = folder / "kept.diag"
    export = samples.nsys_export().write(tmp_path_factory.mktemp("export") / "report.sqlite")
    with open_inputs([export], ImportOptions(use_cache=False, keep=kept)):
        return kept


def _asked(case: Path, sql: str, output_format: QueryFormat = QueryFormat.JSON) -> str | None:
    """The sentence with which the query was refused, or None when it was answered."""
    before, names = case.read_bytes(), os.listdir(case.parent)
    try:
        with contract.bounded():
            query(case, sql, output_format, limit=10)
        said = None
    except DiagError as error:
        said = contract.one_sentence(error)
    except typer.Exit:
        said = None
    assert (case.read_bytes(), os.listdir(case.parent)) == (before, names)
    return said


@pytest.mark.parametrize("sql", REFUSED, ids=lambda sql: sql[:30].encode("unicode_escape").decode())
def test_what_is_more_than_reading_is_refused(sql: str, case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _asked(case, sql.replace("{folder}", str(case.parent)))
    assert not capsys.readouterr().out


@every_seed
def test_a_query_with_other_letters(seed: int, case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = chance_of("query", seed)
    content, mutation = byte_mutations.damaged(chance.choice(QUESTIONS).encode(), chance)
    sql, output_format = os.fsdecode(content.replace(b"\0", b"")), chance.choice(list(QueryFormat))
    said = _asked(case, sql, output_format)
    out = capsys.readouterr().out
    print(f"seed {seed}: {mutation}: {sql[:500]!a}")
    if said is None and output_format is QueryFormat.JSON:
        json.loads(out)
