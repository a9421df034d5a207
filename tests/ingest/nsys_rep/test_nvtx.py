"""NVTX events of a report equal those of its own export, in order, column by column and byte by byte."""

from __future__ import annotations

import json
import sqlite3
import struct
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.nsys_payload import Payloads
from diag.ingest.nsys_rep.convert import write_export
from diag.ingest.nsys_rep.nvtx import NVTX_EVENTS
from diag.ingest.nsys_tables import Export
from diag.ingest.nsys_tool import Nsys
from tests.builders.nsys_report import Report, Value, block, message
from tests.ingest.captures import annotated_program, capture_of

PROGRAMS = Path(__file__).with_name("programs")
MARK, PUSH_POP, START_END, CATEGORY, THREAD, DOMAIN, DOMAIN_DESTROY = 34, 59, 60, 33, 39, 75, 76
NVTX_ALONE = ("--trace=nvtx", "--sample=none", "--cpuctxsw=none")
PAIRS = ("h200-fuser-2024.6", "titanrtx-nvtx-22k", "titanrtx-nvtx-only")

Rows = list[dict[str, Any]]


def rows(export: Path, table: str) -> Rows:
    """A table's rows in the order of the file; texts as bytes."""
    with closing(sqlite3.connect(f"file:{export}?immutable=1", uri=True)) as db:
        db.text_factory = bytes
        cursor = db.execute(f'SELECT * FROM "{table}" ORDER BY rowid')
        names = [name for name, *_ in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]


def ours(report: Path, folder: Path) -> Path:
    export = folder / f"{report.stem}.ours.sqlite"
    write_export(report, export)
    return export


def assert_equal(report: Path, theirs: Path, folder: Path, table: str) -> Rows:
    expected, found = rows(theirs, table), rows(ours(report, folder), table)
    assert [{name: row[name] for name in expected[0]} for row in found] == expected
    return found


# -- real reports


@pytest.mark.parametrize("name", PAIRS)
def test_events_of_real_reports(name: str, real_reports: list[Path], tmp_path: Path) -> None:
    (report,) = (path for path in real_reports if path.stem == name)
    found = assert_equal(report, report.with_suffix(".sqlite"), tmp_path, "NVTX_EVENTS")
    assert len(found) == {"h200-fuser-2024.6": 652, "titanrtx-nvtx-22k": 21_998, "titanrtx-nvtx-only": 649}[name]


def test_diagnostics_of_a_real_report(real_reports: list[Path], tmp_path: Path) -> None:
    (report,) = (path for path in real_reports if path.stem == "h200-fuser-2024.6")
    found = assert_equal(report, report.with_suffix(".sqlite"), tmp_path, "DIAGNOSTIC_EVENT")
    assert len(found) == 12


def test_reports_hold_diagnostics_that_their_exports_lack(real_reports: list[Path], tmp_path: Path) -> None:
    (report,) = (path for path in real_reports if path.stem == "titanrtx-nvtx-22k")
    texts = [row["text"] for row in rows(ours(report, tmp_path), "DIAGNOSTIC_EVENT")]
    assert len(texts) == 8
    assert b"Number of NVTX events collected: \t21998." in texts


# -- captures of our own


def captured(nsys: Nsys, program: str, folder: Path, *arguments: str) -> Path:
    built = annotated_program(nsys.path, PROGRAMS / f"{program}.c", folder)
    return capture_of(nsys.path, folder / "capture", [built, *arguments], options=NVTX_ALONE)


def exported(nsys: Nsys, report: Path) -> Path:
    export = report.with_suffix(".theirs.sqlite")
    command: list[str | Path] = [
        nsys.path,
        "export",
        "--type=sqlite",
        "--force-overwrite=true",
        f"--output={export}",
        report,
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=240)
    return export


@pytest.fixture(scope="module")
def all_kinds(nsys: Nsys, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return captured(nsys, "annotations", tmp_path_factory.mktemp("annotations"))


def test_every_kind_of_event(nsys: Nsys, all_kinds: Path, tmp_path: Path) -> None:
    found = assert_equal(all_kinds, exported(nsys, all_kinds), tmp_path, "NVTX_EVENTS")
    assert {row["eventType"] for row in found} == {
        *(MARK, PUSH_POP, START_END, CATEGORY, THREAD, DOMAIN, DOMAIN_DESTROY)
    }
    assert len({row["globalTid"] >> 24 for row in found}) == 2
    assert len({row["globalTid"] for row in found}) == 4
    for column, values in found[0].items():
        # `jsonText`, and binary payloads, no header of nsys 2022 lets a program attach.
        assert values is not None or column in ("jsonText", "binaryData") or any(row[column] for row in found)


def test_what_a_program_attached_is_what_is_read(all_kinds: Path, tmp_path: Path) -> None:
    export = ours(all_kinds, tmp_path)
    found = {row["text"]: row for row in rows(export, "NVTX_EVENTS")}
    strings = {row["id"]: row["value"] for row in rows(export, "StringIds")}
    assert found[b"u64"]["uint64Value"] == 0xFEDCBA9876543210 - (1 << 64)
    assert found[b"u64 zero"]["uint64Value"] == 0
    assert found[b"u64 in the middle"]["uint64Value"] == -(1 << 63)
    assert found[b"i64"]["int64Value"] == -6464646464
    assert found[b"u32"]["uint32Value"] == 0xFFFFFFF0
    assert found[b"i32"]["int32Value"] == -32
    assert found[b"double"]["doubleValue"] == 3.14159
    assert found[b"double zero"]["doubleValue"] == 0
    assert found[b"float"]["floatValue"] == pytest.approx(0.1)
    assert json.loads(strings[found[b"JSON"]["jsonTextId"]]) == {"layer": 1}
    assert found["wide é世".encode()]["end"] is None
    assert b"not UTF-8 \xff\xfe" in found
    assert found[b"ends on another thread"]["endGlobalTid"] != found[b"ends on another thread"]["globalTid"]
    assert found[b"never ends"]["end"] == max(row["end"] or 0 for row in found.values())


def test_diagnostics_of_a_capture(all_kinds: Path, tmp_path: Path) -> None:
    said = rows(ours(all_kinds, tmp_path), "DIAGNOSTIC_EVENT")
    wrong = next(row for row in said if b"wrong payload type" in row["text"])
    assert (wrong["timestampType"], wrong["source"], wrong["severity"]) == (2, 3, 2)  # host's time, analysis, warning
    started = next(row for row in said if row["text"] == b"Profiling has started.")
    assert (started["timestamp"], started["timestampType"], started["source"], started["severity"]) == (0, 1, 3, 1)


@pytest.mark.parametrize("n_events", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_many_events(n_events: int, nsys: Nsys, tmp_path: Path) -> None:
    report = captured(nsys, "many_annotations", tmp_path, str(n_events))
    export = ours(report, tmp_path)
    columns = ", ".join(f'"{name}"' for name in NVTX_EVENTS.columns if name != "binaryData")
    differ = f"SELECT rowid, {columns} FROM {{}}.NVTX_EVENTS EXCEPT SELECT rowid, {columns} FROM {{}}.NVTX_EVENTS"
    with closing(sqlite3.connect(f"file:{export}?immutable=1", uri=True)) as db:
        db.execute("ATTACH ? AS theirs", (str(exported(nsys, report)),))
        assert db.execute("SELECT count(*) FROM main.NVTX_EVENTS").fetchone() == (n_events + 1,)  # and a domain
        assert db.execute(differ.format("main", "theirs")).fetchall() == []
        assert db.execute(differ.format("theirs", "main")).fetchall() == []


# -- what no header of nsys 2022 lets a program attach, in reports that are built (see docs/formats/nsys-rep.md)


def built(folder: Path, *events: dict[int, Value], **parts: Any) -> Path:
    """Our export of a report of ranges, given by their fields beside the type and start."""
    ranges = [{1: PUSH_POP, 102: {1: PUSH_POP, 2: start, **event}} for start, event in enumerate(events)]
    report = folder / "built.nsys-rep"
    report.write_bytes(Report(ranges, strings=[b"a", b"b"], **parts).content())
    return ours(report, folder)


def test_fields_that_are_not_there_are_null_and_those_that_are_keep_their_value(tmp_path: Path) -> None:
    bare, full, other = rows(
        built(
            tmp_path,
            {},
            {4: 0, 5: 0, 6: 0, 7: b"", 9: 0, 10: -5, 11: 0, 12: 0, 13: 0, 8: {1: 5, 2: 6, 8: b"{}"}},
            {3: 1, 14: 0, 15: 1, 16: 2, 17: 3, 8: {}},
        ),
        "NVTX_EVENTS",
    )
    given = {"start": 0, "eventType": PUSH_POP}
    assert {name: value for name, value in bare.items() if value is not None} == given
    assert {name: value for name, value in other.items() if value is not None} == {**given, "start": 2}
    nulls = {"doubleValue", "uint32Value", "int32Value", "floatValue", "jsonTextId", "binaryData"}
    assert {name for name, value in full.items() if value is None} == nulls
    assert (full["end"], full["text"], full["uint64Value"], full["int64Value"]) == (-5, b"", 5, 6)
    assert full["jsonText"] == b"{}"
    zeros = ("rangeId", "category", "color", "globalTid", "endGlobalTid", "textId", "domainId")
    assert [full[name] for name in zeros] == [0] * len(zeros)


def test_a_field_that_nobody_knows_is_counted(tmp_path: Path) -> None:
    export = built(tmp_path, {50: 1}, {8: {1: 1, 30: 2}}, {50: 1}, {8: {9: [{1: 1, 2: b"", 7: 3}]}})
    unread = {row["what"]: row["count"] for row in rows(export, "DIAG_UNREAD")}
    assert unread == {b"102.50": 2, b"102.8.30": 1, b"102.8.9.7": 1}


SUM, PRODUCT = {1: b"sum", 2: 3}, {1: b"product", 2: 9, 3: 1}
ENTRIES = [
    {1: 19, 2: 512, 7: b"ratio", 8: b"a ratio"},
    {1: 16, 3: 4, 7: b"count"},
    {1: 16777315, 3: 8, 7: b"operation"},
    {1: 16, 2: 16, 3: 12, 4: 5, 7: b"five"},
]
SCHEMA = {1: 16777293, 2: 1, 3: 4, 4: ENTRIES, 5: b"my schema", 6: 32, 7: 4, 9: 1}
ENUM = {1: 1, 2: 16777315, 3: b"my enum", 4: [SUM, PRODUCT], 5: 4}
SCHEMAS = {
    1: 259,
    2: [{1: 1, 2: 1}, {1: 8, 2: 8}],
    3: [{1: 5 << 24, 2: [SCHEMA, {1: 1 << 32, 2: 2, 9: 0}], 4: [ENUM]}, {1: 6 << 24}],
    4: 0,
}


def test_schemas_of_payloads(tmp_path: Path) -> None:
    export = built(tmp_path, {}, payload_schemas=SCHEMAS)
    assert [tuple(row.values()) for row in rows(export, "NVTX_PAYLOAD_SCHEMAS")] == [
        (1, 16777293, b"my schema", 1, 4, 4, 32, 4),
        (0, 1 << 32, None, 2, None, 0, None, None),
    ]
    assert [tuple(row.values()) for row in rows(export, "NVTX_PAYLOAD_SCHEMA_ENTRIES")] == [
        (1, 16777293, 0, 512, 19, b"ratio", b"a ratio", None, None),
        (1, 16777293, 1, None, 16, b"count", None, None, 4),
        (1, 16777293, 2, None, 16777315, b"operation", None, None, 8),
        (1, 16777293, 3, 16, 16, b"five", None, 5, 12),
    ]
    assert [tuple(row.values()) for row in rows(export, "NVTX_PAYLOAD_ENUMS")] == [(1, 16777315, b"my enum", 2, 4)]
    assert [tuple(row.values()) for row in rows(export, "NVTX_PAYLOAD_ENUM_ENTRIES")] == [
        (1, 16777315, 0, b"sum", 3, None),
        (1, 16777315, 1, b"product", 9, 1),
    ]


def test_a_binary_payload_is_understood_by_its_schema(tmp_path: Path) -> None:
    data = struct.pack("<fIi5I", 0.5, 42, 9, *range(5))
    parts = [{1: 16777293, 2: data}, {1: 7, 2: b"more"}]
    export = built(tmp_path, {13: 1, 8: {9: parts[:1]}}, {13: 1, 8: {9: parts}}, {}, payload_schemas=SCHEMAS)
    one, two, none = (row["binaryData"] for row in rows(export, "NVTX_EVENTS"))
    assert none is None
    assert bytes.fromhex(two.decode()) == bytes.fromhex(one.decode()) + struct.pack("<4Q", 1, 7, 4, 0) + b"more"
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("ATTACH ? AS src", (str(export),))
        payloads = Payloads.of(Export.probe(db))
    assert payloads.decode(one) == payloads.decode(two) == {"count": 42, "operation": "product"}


@pytest.mark.parametrize("damage", [b"\xff", b"\x1a\x05abc"])
def test_damaged_schemas_are_a_loss_and_the_events_are_kept(damage: bytes, tmp_path: Path) -> None:
    content = Report([{1: PUSH_POP, 102: {1: PUSH_POP, 2: 1}}], payload_schemas=SCHEMAS).content()
    report = tmp_path / "damaged.nsys-rep"
    report.write_bytes(content.replace(block(message(SCHEMAS)), _of_length(damage, len(block(message(SCHEMAS))))))
    export = ours(report, tmp_path)
    assert len(rows(export, "NVTX_EVENTS")) == 1
    (reading,) = rows(export, "DIAG_READING")
    assert b"payloads of NVTX events" in reading["losses"]


def _of_length(body: bytes, n_bytes: int) -> bytes:
    """A block of this body, and what fills its place."""
    return block(body).ljust(n_bytes, b"\0")
