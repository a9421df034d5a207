"""The inputs that are mutated hold everything that the readers read, so that no new table is forgotten."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from string import Formatter
from typing import Any

import msgspec
import pytest

import diag.ingest
from diag.ingest import (
    nsys_counter_statements,
    nsys_memory_statements,
    nsys_nvtx_statements,
    nsys_statements,
)
from diag.ingest.kineto_events import Args
from tests.builders.nsys_schema import SCHEMAS, TABLES
from tests.fuzz import samples

PARTS = {
    "table", "made", "series", "types", "string", "json_string", "extras", "stack_offset", "push_pop", "start_end",
    "mark", "earliest", "latest", "longest_ns", "last_device", "longest", *nsys_statements.CONDITIONS,
}  # fmt: skip
"""What is filled into statements beside columns."""

READERS = sorted(Path(diag.ingest.__path__[0]).glob("nsys_*.py"))


def _tables_read() -> set[str]:
    """Every table that a reader of exports names."""
    words = {word for reader in READERS for word in re.findall(r"\w+", reader.read_text("utf-8"))}
    return words & TABLES.keys()


def _columns_read() -> set[str]:
    modules = (nsys_statements, nsys_memory_statements, nsys_counter_statements, nsys_nvtx_statements)
    constants = [
        *nsys_statements.CONDITIONS.values(),
        *(value for module in modules for value in vars(module).values()),
    ]
    documentation = {module.__doc__ for module in modules}
    statements = [text for text in constants if isinstance(text, str) and text not in documentation]
    fields = {field for statement in statements for _, field, _, _ in Formatter().parse(statement) if field}
    return fields - PARTS


@pytest.fixture(scope="module")
def tables() -> dict[str, list[dict[str, Any]]]:
    """Rows of the samples of all schemas by their tables."""
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for schema in SCHEMAS:
        for table, rows in samples.nsys_export(schema).rows.items():
            found[table] += rows
    return found


def test_every_table_is_in_a_sample(tables: dict[str, list[dict[str, Any]]]) -> None:
    assert _tables_read() - {"StringIds"} <= tables.keys()  # the builder writes that one by itself


def test_every_column_is_in_a_sample(tables: dict[str, list[dict[str, Any]]]) -> None:
    filled = {column for rows in tables.values() for row in rows for column, value in row.items() if value is not None}
    assert _columns_read() <= filled


@pytest.mark.parametrize("field", msgspec.structs.fields(Args), ids=lambda field: field.name)
def test_every_argument_is_in_the_sample(field: msgspec.structs.FieldInfo) -> None:
    assert any(field.encode_name in event.get("args", {}) for event in samples.kineto_document()["traceEvents"])
