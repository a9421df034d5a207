"""The case: what it keeps, what it refuses, and how an older one is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pandas
import pytest

from diag.errors import InputError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.store import frames, migrations
from diag.store.case import APPLICATION_ID, SCHEMA_VERSION, Case
from diag.store.names import pattern_of, short_kernel_name


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    with Case.create(tmp_path / "new.diag") as case:
        with case.transaction():
            source = case.add_source(
                kind="nsys-sqlite", path="a.sqlite", sha256="0", size_bytes=1, time_resolution_ns=1
            )
            case.finish_source(source, {"kernel": 0, "api": None}, ["one row was left out"])
        yield case


def test_a_new_case_says_what_it_is(case: Case) -> None:
    with closing(sqlite3.connect(case.path)) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def test_nothing_happened_differs_from_not_captured(case: Case) -> None:
    (source,) = case.sources
    assert (source.captured("kernel"), source.has("kernel")) == (True, False)
    assert (source.captured("api"), source.captured("never heard of")) == (False, False)
    assert case.notes(source.id) == ["one row was left out"]


def test_a_frame_holds_a_table_or_view(case: Case) -> None:
    assert list(case.frame("source")["path"]) == ["a.sqlite"]
    assert list(case.frame("finding").columns)[:4] == ["scope", "rank", "id", "rule"]
    with pytest.raises(InputError, match=r"no table 'nope'.*gpu_op"):
        case.frame("nope")


def test_a_frame_has_names_and_exact_integers(case: Case) -> None:
    late = 2**61 + 1
    ids = case.intern(["gemm", "softmax"])
    case.insert("process", [{"id": 1, "source_id": 1, "pid": 100}])
    case.insert("thread", [{"id": 1, "process_id": 1, "tid": 101}])
    rows = [
        {"source_id": 1, "thread_id": 1, "kind": "nvtx", "name_id": ids[name], "start_ns": late, "end_ns": end}
        for name, end in (("gemm", late + 7), ("softmax", None))
    ]
    case.insert("cpu_range", rows)
    frame = case.frame("cpu_range")
    assert frame["name"].tolist() == ["gemm", "softmax"]
    assert frame["tid"].tolist() == [101, 101]
    assert (str(frame["start_ns"].dtype), frame["start_ns"].tolist()) == ("int64", [late, late])
    assert (str(frame["end_ns"].dtype), int(frame["end_ns"][0])) == ("Int64", late + 7)
    assert (int(frame["duration_ns"][0]), frame["duration_ns"].isna().tolist()) == (7, [False, True])
    assert list(case.frame("cpu_range", as_stored=True)["name_id"]) == list(ids.values())


def test_a_frame_of_a_query_is_the_same_whatever_the_batches(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = """
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9)
        SELECT i, CASE WHEN i > 5 THEN i END AS late, CASE WHEN i < 3 THEN 'text' END AS text, NULL AS none,
               i / 2.0 AS half, CASE WHEN i > :most THEN 'x' END AS never
          FROM n
    """
    whole = case.frame(sql=sql, parameters={"most": 100})
    monkeypatch.setattr(frames, "BATCH", 2)
    parts = case.frame(sql=sql, parameters={"most": 100})
    pandas.testing.assert_frame_equal(parts, whole)
    assert str(whole["late"].dtype) == "Int64"
    assert str(whole["half"].dtype) == "float64"


def test_a_frame_of_nothing_still_has_its_columns(case: Case) -> None:
    assert "duration_ns" in case.frame("gpu_op").columns
    assert len(case.frame("gpu_op")) == 0


def test_a_frame_is_of_one_thing(case: Case) -> None:
    with pytest.raises(InputError, match="Name a table"):
        case.frame()
    with pytest.raises(InputError, match="Name a table"):
        case.frame("source", sql="SELECT 1")


def test_a_frame_of_ranges_that_are_columns_says_where_they_are(case: Case) -> None:
    case.insert(
        "column_block",
        [{"source_id": 1, "table_name": "cpu_range", "column_name": "kind", "block": 0, "dtype": "|i1", "data": b""}],
    )
    with pytest.raises(InputError, match="load_ranges"):
        case.frame("cpu_range")


def test_names_are_interned_once_with_their_pattern(case: Case) -> None:
    first = case.intern(["step 1", "step 2", "step 1"])
    assert case.intern(["step 2", "gemm"])["step 2"] == first["step 2"]
    assert {case.patterns[i] for i in first.values()} == {"step #"}


def test_an_error_inside_a_transaction_leaves_nothing_of_it(case: Case) -> None:
    def fail() -> None:
        with case.transaction():
            case.intern(["lost"])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert case.value("SELECT COUNT(*) FROM name WHERE text = 'lost'") == 0


def test_columns_arrive_in_the_types_asked_for(case: Case) -> None:
    columns = case.arrays("SELECT id, size_bytes FROM source", {"id": "i4", "size_bytes": "i8"})
    assert {name: (str(column.dtype), column.tolist()) for name, column in columns.items()} == {
        "id": ("int32", [1]),
        "size_bytes": ("int64", [1]),
    }


@pytest.mark.parametrize(
    ("was", "now", "opens"),
    [
        ("-- as the user gave it", "-- in other words", True),
        ("path                TEXT NOT NULL,", "path TEXT NOT NULL,", True),
        ("path                TEXT NOT NULL,", "path TEXT,", False),
        ("TEXT NOT NULL,     -- as the user gave it", "TEXT, -- NOT NULL", False),
        ("'$.findings')", "'$.findings--other\n')", False),
    ],
)
def test_a_case_may_be_commented_otherwise_but_not_defined_otherwise(
    was: str, now: str, opens: bool, case: Case, tmp_path: Path
) -> None:
    """Of the schema's text only what SQLite acts on counts."""
    path = tmp_path / "edited.diag"
    path.write_bytes(case.path.read_bytes())
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA writable_schema = ON")
        edited = db.execute("UPDATE sqlite_master SET sql = replace(sql, ?1, ?2) WHERE instr(sql, ?1)", (was, now))
        assert edited.rowcount > 0
    if opens:
        Case.open(path).close()
    else:
        with pytest.raises(InputError, match="is not as diag made it"):
            Case.open(path)


def older(case: Case, path: Path, version: int) -> Path:
    """A case as an older diag would have left it: without a table and a column that came later."""
    path.write_bytes(case.path.read_bytes())
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("DROP TABLE source_note")
        db.execute("ALTER TABLE sync DROP COLUMN correlation")
        db.execute(f"PRAGMA user_version = {version}")
    return path


def test_an_older_case_is_brought_up_to_date_on_a_copy(case: Case, tmp_path: Path) -> None:
    old = older(case, tmp_path / "old.diag", migrations.OLDEST)
    before = old.read_bytes()
    with open_inputs([old], ImportOptions(use_cache=False)) as migrated:
        assert migrated.sources[0].path == "a.sqlite"
        assert migrated.notes(1) == []
        assert "correlation" in migrated.frame("sync").columns
    assert old.read_bytes() == before


def test_a_case_without_a_way_up_says_what_to_do(case: Case, tmp_path: Path) -> None:
    old = older(case, tmp_path / "old.diag", migrations.OLDEST - 1)
    with (
        pytest.raises(InputError, match=r"case of schema 0.*Import the original files again"),
        open_inputs([old], ImportOptions(use_cache=False)),
    ):
        pass


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("aten::view, op_id = 314290", "aten::view, op_id = #"),
        ("ProfilerStep#12", "ProfilerStep#"),
        ("tensor at 0x7f00, 3 of 4", "tensor at #, # of #"),
        ("block_3_head_7", "block_#_head_#"),
        ("train.py(37): step", "train.py(37): step"),
        ("3D_backbone conv2d", "3D_backbone conv2d"),
    ],
)
def test_patterns(text: str, pattern: str) -> None:
    assert pattern_of(text) == pattern
    assert pattern_of(pattern) == pattern


@pytest.mark.parametrize(
    ("demangled", "short"),
    [
        ("void at::native::f<4, F<c10::Half>, X<char*, 1> >(int, F)", "f"),
        ("void (anonymous namespace)::softmax_warp<float>(float*)", "softmax_warp"),
        (
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        ),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("", ""),
    ],
)
def test_short_kernel_names(demangled: str, short: str) -> None:
    assert short_kernel_name(demangled) == short
