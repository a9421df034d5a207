"""Our reader and NVIDIA's own put the same into the case, value for value: every table and column of real reports.

What the official one does not tell is named here, with the reason; everything else is compared, and so is whatever is
added to the case later.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.ncu_rep.container import opened
from diag.store.case import Case
from tests.builders.nsys_report import Value
from tests.ingest.ncu_official.needs import official_reader
from tests.ingest.ncu_rep.patched import with_fields, with_result

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")

NO_PROCESS = "the package tells of no process"
NO_SETTINGS = "the package does not tell how the tool was set"
NO_HEADER = "the package does not tell what stands in the header of a report"

UNTOLD: Mapping[str, Mapping[str, str]] = {
    "launch": {
        "process_id": NO_PROCESS,
        "tid": NO_PROCESS,
        "is_clock_locked": NO_SETTINGS,
        "cache_control": NO_SETTINGS,
        "replay": NO_SETTINGS,
    },
    "source": {
        "sha256": "of the same file",
        "tool_version": NO_HEADER,
        "schema_version": NO_HEADER,
        "host": NO_HEADER,
        "is_cut": "the package reads a report that is cut without a word",
        "capabilities": "counts of the rows that are compared one by one",
    },
    "launch_instruction": {"sass": "machine code as text needs NVIDIA's disassembler, which the package holds"},
}
"""Columns that are not compared, and why."""

TOLD_BY_METRICS = frozenset(
    ["device", "device_id", "context", "stream", *(f"{size}_{axis}" for size in ("grid", "block") for axis in "xyz")]
)
"""Columns of a launch that the package tells with its metrics alone, and not where it has no metric `launch__*`."""

COMPARED_IF = {
    "launch_instruction": "file_id IS NOT NULL",  # what else there is, the package alone tells: code without lines
}
"""Conditions for a row to be compared."""

ASIDE: Mapping[str, str] = {
    "process": NO_PROCESS,
    "process_device": NO_PROCESS,
    "source_note": "what each reader has to say for itself",
    "name": "texts are compared where they are used",
    "metric": "names and units are compared with their values",
}
"""Tables that are not compared, and why."""


def reports() -> list[Path]:
    return sorted(Path(REPORTS, "ncu").glob("*.ncu-rep")) if REPORTS else []


@pytest.mark.parametrize("report", reports(), ids=lambda path: path.stem)
def test_both_readers_put_the_same_into_the_case(report: Path) -> None:
    ours, differences = compared(report)
    assert ours["launch_metric"].total() > 0
    assert not differences, "\n".join(differences)


def test_there_are_reports_to_compare() -> None:
    assert len(reports()) >= 9


# ---- what no real report has ---------------------------------------------------------------------------------------

RANGES, COMMAND_LISTS, GRAPHS = 7, 8, 9
"""Fields of a block's header that count results of these kinds; the last two are those of releases after 2022."""


@pytest.fixture
def report() -> Path:
    return Path(REPORTS or "", "ncu", "cuda-course.ncu-rep")


def test_nvtx_ranges_are_the_same(report: Path, tmp_path: Path) -> None:
    thread = 12541  # that launches the kernels
    default = {1: 0, 3: [{1: b"step 3"}, {1: b"attention"}, {1: b"a"}]}
    library = {1: 7, 3: [{1: b"gemm"}]}
    state: Value = {
        1: [{1: 0, 2: b"<default domain>"}, {1: 7, 2: b"library"}],
        2: [{1: thread, 2: [default, library]}, {1: thread + 1, 2: [{1: 0, 3: [{1: b"of another thread"}]}]}],
        3: [{1: 7, 3: [{1: 5, 2: b"epoch"}, {1: 6, 2: b"warm-up"}]}],
    }
    patched = tmp_path / "ranges.ncu-rep"
    patched.write_bytes(with_fields(report, {21: state}))
    ours, differences = compared(patched)
    assert ours["launch_range"].total() == 2 * 6
    assert not differences, "\n".join(differences)


@pytest.mark.parametrize(("kind", "called"), [(RANGES, "range"), (COMMAND_LISTS, "range"), (GRAPHS, "graph")])
def test_results_that_are_no_kernels_are_the_same(kind: int, called: str, report: Path, tmp_path: Path) -> None:
    names = [name.decode() for block in opened(report).blocks for name in block.header.strings.strings]
    chip = {"device__attribute_architecture": 352, "device__attribute_implementation": 354}  # by which units are known
    values = {"gpu__time_duration.sum": 777, "launch__device_id": 0, **chip}
    metrics: Value = [{1: names.index(name), 2: {5: value}} for name, value in values.items()]
    patched = tmp_path / "other.ncu-rep"
    patched.write_bytes(with_result(report, kind, {1: 12541, 2: 9, 4: metrics}))
    ours, differences = compared(patched)
    assert sum(f"'{called}'" in row for row in ours["launch"]) == 1
    assert not differences, "\n".join(differences)


# ---- comparing -----------------------------------------------------------------------------------------------------

Contents = Mapping[str, Counter[str]]


def compared(report: Path) -> tuple[Contents, list[str]]:
    """What our reader puts into the case, and what of it and of the official one's is not the same."""
    official_reader()
    ours, theirs = contents(report, with_ncu_report=False), contents(report, with_ncu_report=True)
    return ours, [
        f"{table}: {difference(ours[table], theirs[table])}" for table in ours if ours[table] != theirs[table]
    ]


def difference(ours: Counter[str], theirs: Counter[str]) -> str:
    """How many rows only one of them has, and the first of these."""
    only = {"ours": sorted(ours - theirs), "theirs": sorted(theirs - ours)}
    return "; ".join(f"{len(rows)} rows only {who}, as {rows[:3]}" for who, rows in only.items() if rows)


def contents(report: Path, *, with_ncu_report: bool) -> Contents:
    """Rows of each table, as texts that tell 1 from 1.0, with what ids mean in the place of ids."""
    options = ImportOptions(use_cache=False, with_ncu_report=with_ncu_report)
    with open_inputs([report], options) as case:
        meaning = meanings(case)
        return {table: Counter(rows(case, table, meaning)) for table in case.tables if table not in ASIDE}


Meanings = Mapping[str, Mapping[int, object]]


def meanings(case: Case) -> Meanings:
    """What each id stands for, by the column that holds it."""
    names = dict(case.db.execute("SELECT id, text FROM name"))
    return {
        **dict.fromkeys(("name_id", "short_name_id", "domain_id", "file_id"), names),
        "launch_id": dict(case.db.execute("SELECT id, number FROM launch")),
        "metric_id": {i: (name, unit) for i, name, unit in case.db.execute("SELECT id, name, unit FROM metric")},
        "device_id": dict(case.db.execute("SELECT id, gpu_index FROM device")),
    }


BARE_LAUNCHES = """
SELECT id FROM launch
 WHERE id NOT IN (SELECT launch_id FROM launch_metric JOIN metric m ON m.id = metric_id WHERE m.name GLOB 'launch__*')
"""


def rows(case: Case, table: str, meaning: Meanings) -> Iterator[str]:
    bare = {launch_id for (launch_id,) in case.db.execute(BARE_LAUNCHES)} if table == "launch" else set()
    cursor = case.db.execute(f'SELECT * FROM "{table}" WHERE {COMPARED_IF.get(table, "TRUE")}')
    columns = [column for column, *_ in cursor.description]
    left_out = {"id", "source_id", *UNTOLD.get(table, ())}
    for values in cursor:
        row = dict(zip(columns, values, strict=True))
        skipped = left_out | TOLD_BY_METRICS if row.get("id") in bare else left_out
        told = {column: value for column, value in row.items() if column not in skipped}
        yield repr([meaning.get(column, {}).get(value, value) for column, value in told.items()])
