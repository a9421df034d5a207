"""Tables of a case as CSV and Parquet: every row, readable names, the types that the case declares."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from pyarrow import parquet

from diag.errors import UsageError
from diag.export import axis, tables
from diag.export.findings import evidence_table, finding_table
from diag.export.table import csv_text, write_parquet
from diag.ingest.ranges import ROW_LIMIT, RangeWriter
from diag.rules.finding import Evidence, Finding, Subject
from diag.store.case import Case
from tests.builders.imported import imported
from tests.builders.nsys_export import NsysExport


def two_kernels() -> NsysExport:
    export = NsysExport()
    main = export.process(100).thread(101, "main")
    gpu = main.process.gpu(0)
    main.launch(gpu, called=0, start=100, end=300, name="void ns::gemm<float>(float*)", gridX=8)
    main.launch(gpu, called=10, start=400, end=500, name="softmax")
    main.range('step "1", warm', 0, 600)
    main.range("open", 700, None)
    return export


def rows_of(case: Case, name: str, window: str | None = None, *, as_stored: bool = False) -> list[dict[str, str]]:
    table = tables.table_of(case, name, axis.parts(case, window), as_stored=as_stored)
    return list(csv.DictReader(io.StringIO("".join(csv_text(table)))))


def test_names_stand_in_the_place_of_their_ids(tmp_path: Path) -> None:
    with imported(two_kernels(), tmp_path) as case:
        gemm, _ = rows_of(case, "gpu_op")
        call, _ = rows_of(case, "api_call")
    assert (gemm["name"], gemm["pid"], gemm["duration_ns"]) == ("void ns::gemm<float>(float*)", "100", "200")
    assert (gemm["grid_x"], gemm["copy_kind"]) == ("8", "")
    assert (call["name"], call["tid"]) == ("cudaLaunchKernel_v7000", "101")
    assert "name_id" not in gemm


def test_as_stored_means_as_stored(tmp_path: Path) -> None:
    with imported(two_kernels(), tmp_path) as case:
        for name in tables.tables_with_rows(case):
            (first, *_) = rows_of(case, name, as_stored=True)
            assert list(first) == [row["name"] for row in case.rows(f"PRAGMA table_info({name})")]


def test_a_window_keeps_the_rows_that_touch_it(tmp_path: Path) -> None:
    with imported(two_kernels(), tmp_path) as case:
        assert [row["name"] for row in rows_of(case, "gpu_op", "350ns:")] == ["softmax"]
        assert [row["name"] for row in rows_of(case, "cpu_range", "650ns:")] == ["open"]
        assert rows_of(case, "thread", "650ns:") == rows_of(case, "thread")


def test_csv_quotes_what_needs_it(tmp_path: Path) -> None:
    with imported(two_kernels(), tmp_path) as case:
        assert rows_of(case, "cpu_range")[0]["name"] == 'step "1", warm'


def test_parquet_keeps_types_and_nulls(tmp_path: Path) -> None:
    with imported(two_kernels(), tmp_path) as case:
        table = tables.table_of(case, "gpu_op", axis.parts(case, None))
        write_parquet(table, tmp_path / "ops.parquet")
        plain = rows_of(case, "gpu_op")
    read = parquet.read_table(tmp_path / "ops.parquet")
    assert str(read.schema.field("start_ns").type) == "int64"
    assert str(read.schema.field("copy_kind").type) == "string"
    assert read.column("copy_kind").to_pylist() == [None, None]
    assert read.column_names == list(plain[0])
    assert read.column("duration_ns").to_pylist() == [200, 100]


def test_an_empty_table_is_a_line_of_names(tmp_path: Path) -> None:
    with imported(two_kernels(), tmp_path) as case:
        table = tables.table_of(case, "cpu_sample", axis.parts(case, None))
        assert "".join(csv_text(table)).startswith("source_id,thread_id,tid,time_ns")
        write_parquet(table, tmp_path / "empty.parquet")
        assert "cpu_sample" not in tables.tables_with_rows(case)
    assert parquet.read_table(tmp_path / "empty.parquet").num_rows == 0


def test_an_unknown_table_is_named_with_the_known_ones(tmp_path: Path) -> None:
    with imported(two_kernels(), tmp_path) as case, pytest.raises(UsageError, match=r"no table 'nope'.*gpu_op"):
        tables.table_of(case, "nope", axis.parts(case, None))


def test_ranges_kept_as_columns_are_rows_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RangeWriter.__init__, "__kwdefaults__", {"expected": ROW_LIMIT, "row_limit": 1})
    with imported(two_kernels(), tmp_path) as case:
        assert "cpu_range" in tables.tables_with_rows(case)
        rows = rows_of(case, "cpu_range")
        assert [(row["name"], row["kind"], row["tid"], row["duration_ns"], row["end_ns"]) for row in rows] == [
            ('step "#", warm', "nvtx", "101", "600", "600"),
            ("open", "nvtx", "101", "", ""),
        ]
        assert [row["start_ns"] for row in rows_of(case, "cpu_range", "650ns:")] == ["700"]


def test_findings_and_their_evidence_are_tables(tmp_path: Path) -> None:
    finding = Finding(
        title="Idle", claim="It idles.", subject=Subject(1, process=100, device=0, window=(5, 10)),
        counterfactual="", refute="", next=["Look.", "Act."], share=0.5, rule="idle.gpu",
        evidence=[Evidence("idle", 5, "ns", "window - busy"), Evidence("cause", "loader", "text", "the range")],
    )  # fmt: skip
    write_parquet(finding_table([finding]), tmp_path / "finding.parquet")
    write_parquet(evidence_table([finding]), tmp_path / "evidence.parquet")
    (row,) = parquet.read_table(tmp_path / "finding.parquet").to_pylist()
    assert (row["severity"], row["share"], row["pid"], row["window_end_ns"]) == ("critical", 0.5, 100, 10)
    assert row["next"] == "Look.\nAct."
    evidence = parquet.read_table(tmp_path / "evidence.parquet").to_pylist()
    assert [(each["value"], each["text"], each["unit"]) for each in evidence] == [
        (5.0, None, "ns"), (None, "loader", "text"),
    ]  # fmt: skip
