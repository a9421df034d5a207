"""Cases that someone edited, or a disk did: the file is read by SQL, by the rules and by `diag query`."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.ranges import RangeWriter
from diag.rules.analysis import AnalysisOptions
from diag.rules.stored import report_of
from tests.fuzz import byte_mutations, contract, database_mutations, invariants, samples
from tests.fuzz.database_mutations import ODD_VALUES, columns_of, quoted, tables_of
from tests.fuzz.seeds import chance_of, every_seed

REAL = os.environ.get("DIAG_REAL_REPORTS")
UNREPORTED = ("nsys", "kineto", "columns")
SHIFTS = ("-{c}", "{c} * 1000000007", "{c} + 4611686018427387000", "{c} % 2", "{c} - 9000000000000000000")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A case of each kind of source, one whose ranges are kept as columns, and one with a report in it."""
    folder = tmp_path_factory.mktemp("whole")
    trace = folder / "trace.json"
    trace.write_text(json.dumps(samples.kineto_document()))
    export = samples.nsys_export().write(folder / "report.sqlite")
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(RangeWriter.__init__.__kwdefaults__ or {}, "row_limit", 10)
        columns = _kept(export, folder / "columns.diag")
    reported = _kept(export, folder / "reported.diag", with_report=True)
    nsys, kineto = _kept(export, folder / "nsys.diag"), _kept(trace, folder / "kineto.diag")
    return {"nsys": nsys, "kineto": kineto, "columns": columns, "reported": reported}


def _kept(path: Path, target: Path, *, with_report: bool = False) -> Path:
    with open_inputs([path], ImportOptions(use_cache=False, keep=target)) as case:
        if with_report:
            report_of(case, AnalysisOptions())
    return target


def test_whole_cases_keep_the_promise(whole: dict[str, Path]) -> None:
    assert {contract.examine(case) for case in whole.values()} == {"report"}


def test_a_case_without_hardware_keeps_the_promise(scratch: Path) -> None:
    export = samples.nsys_export().drop("TARGET_INFO_GPU", "StringIds").write(scratch / "report.sqlite")
    assert contract.examine(_kept(export, scratch / "kept.diag")) == "report"


@pytest.mark.slow
@pytest.mark.skipif(REAL is None, reason="DIAG_REAL_REPORTS names no folder of real reports")
def test_cases_of_real_files_keep_the_promise(scratch: Path) -> None:
    for path in (*Path(str(REAL), "nsys").glob("*.sqlite"), *Path(str(REAL), "kineto").glob("*.gz")):
        assert contract.examine(_kept(path, scratch / "kept.diag")) == "report", path


@every_seed
def test_a_case_with_other_values(seed: int, whole: dict[str, Path], scratch: Path) -> None:
    chance = chance_of("case values", seed)
    path = scratch / "kept.diag"
    shutil.copyfile(whole[chance.choice(UNREPORTED)], path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        for _ in range(chance.choice((1, 1, 3, 9))):
            print(f"seed {seed}: {_edit(db, chance)}")
    contract.examine(path)


def _edit(db: sqlite3.Connection, chance: random.Random) -> str:
    """Changes one column of some rows, as far as the table lets it: tables of a case are STRICT."""
    table = chance.choice(tables_of(db))
    columns = columns_of(db, table)
    column, every = chance.choice(columns), chance.choice((1, 2, 7))
    odd, change = chance.choice(ODD_VALUES), chance.choice(("?1", "?1", *SHIFTS))
    statement = (
        f"UPDATE OR IGNORE {quoted(table)} SET {quoted(column)} = {change.format(c=quoted(column))} "
        f"WHERE CAST({quoted(columns[0])} AS INTEGER) % {every} = 0 AND ?1 IS ?1"
    )
    try:
        return f"{table}.{column}: {db.execute(statement, (odd,)).rowcount} rows {change}, {str(odd)[:40]!r}"
    except sqlite3.Error as error:
        return f"{table}.{column}: {error}"


@every_seed
def test_a_case_with_other_bytes(seed: int, whole: dict[str, Path], scratch: Path) -> None:
    chance = chance_of("case bytes", seed)
    path = scratch / "kept.diag"
    content, mutation = byte_mutations.damaged(whole[chance.choice(UNREPORTED)].read_bytes(), chance)
    path.write_bytes(content)
    print(f"seed {seed}: {mutation}")
    contract.examine(path)


@every_seed
def test_a_case_with_another_report(seed: int, whole: dict[str, Path], scratch: Path) -> None:
    """What the rules once said is shown as it stands: whether it is true can no longer be told."""
    chance = chance_of("case report", seed)
    path = scratch / "kept.diag"
    shutil.copyfile(whole["reported"], path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        (body,) = db.execute("SELECT body FROM report").fetchone()
        content, mutation = byte_mutations.damaged(body.encode(), chance)
        db.execute("UPDATE report SET body = CAST(? AS TEXT)", (content,))
    print(f"seed {seed}: {mutation}")
    contract.examine(path, check=invariants.check_renderings)


@every_seed
def test_a_case_with_other_tables(seed: int, whole: dict[str, Path], scratch: Path) -> None:
    chance = chance_of("case tables", seed)
    path = scratch / "kept.diag"
    shutil.copyfile(whole[chance.choice(sorted(whole))], path)
    mutation = database_mutations.mutate(path, database_mutations.MUTATIONS, chance)
    print(f"seed {seed}: {mutation}")
    contract.examine(path)
