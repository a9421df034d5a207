"""Real reports as they came, for checks by hand: opened as SQLite, seen through a few plain views.

Nothing of diag's readers, case or timeline is used. `page` prints the views and the query below, so that its figures
can be worked out again with the sqlite3 shell alone.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

NSYS_VIEWS = """\
CREATE TEMP VIEW kernel AS SELECT start, "end", streamId AS stream, correlationId AS correlation,
  globalPid / 0x1000000 % 0x1000000 AS pid, value AS name, gridX, gridY, gridZ
  FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName;
CREATE TEMP VIEW copy AS SELECT start, "end", streamId AS stream, correlationId AS correlation,
  globalPid / 0x1000000 % 0x1000000 AS pid, bytes, copyKind, srcKind, dstKind FROM CUPTI_ACTIVITY_KIND_MEMCPY;
CREATE TEMP VIEW fill AS SELECT start, "end", correlationId AS correlation,
  globalPid / 0x1000000 % 0x1000000 AS pid FROM CUPTI_ACTIVITY_KIND_MEMSET;
CREATE TEMP TABLE call AS SELECT start, "end", correlationId AS correlation,
  globalTid / 0x1000000 % 0x1000000 AS pid, globalTid % 0x1000000 AS tid, value AS name
  FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId;
CREATE TEMP TABLE range AS SELECT start, "end", globalTid % 0x1000000 AS tid, COALESCE(text, value) AS name
  FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId WHERE "end" IS NOT NULL;
"""
KINETO_VIEWS = """\
CREATE TEMP VIEW kernel AS SELECT start, "end", tid AS stream, correlation, 0 AS pid, name,
  args ->> '$.grid' AS gridX, 1 AS gridY, 1 AS gridZ FROM event WHERE cat = 'kernel';
CREATE TEMP VIEW copy AS SELECT start, "end", tid AS stream, correlation, 0 AS pid, args ->> '$.bytes' AS bytes, name
  FROM event WHERE cat IN ('gpu_memcpy', 'memcpy');
CREATE TEMP VIEW fill AS SELECT start, "end", correlation, 0 AS pid FROM event WHERE cat IN ('gpu_memset', 'memset');
CREATE TEMP TABLE call AS SELECT start, "end", correlation, 0 AS pid, tid, name
  FROM event WHERE cat IN ('cuda_runtime', 'cuda_driver', 'runtime');
CREATE TEMP TABLE range AS SELECT start, "end", tid, name
  FROM event WHERE cat IN ('cpu_op', 'operator', 'user_annotation', 'python_function');
"""
COMMON_VIEWS = """\
CREATE INDEX temp.calls_in_order ON call (tid, start);
CREATE TEMP VIEW work AS SELECT start, "end", correlation, pid FROM kernel
  UNION ALL SELECT start, "end", correlation, pid FROM copy UNION ALL SELECT start, "end", correlation, pid FROM fill;
CREATE TEMP VIEW launched AS SELECT work.start, work."end", pid, call.start AS called, call."end" AS returned, call.tid,
  MAX(work."end") OVER (PARTITION BY pid ORDER BY work.start, call.start, work."end"
                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS busy_until
  FROM work LEFT JOIN call USING (pid, correlation) WHERE work."end" > work.start;
CREATE TEMP TABLE gap AS SELECT pid, busy_until AS start, start AS "end", called, tid
  FROM launched WHERE start > busy_until;
CREATE TEMP TABLE late AS SELECT pid, start, MIN(called, "end") AS "end", tid FROM gap WHERE called > start;
CREATE INDEX temp.ranges_in_order ON range (tid, start);
"""

UNION = """\
WITH piece (start, "end") AS ({pieces}),
     ordered AS (SELECT start, "end", MAX("end") OVER (ORDER BY start, "end"
                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached FROM piece)
SELECT COALESCE(SUM(MAX(0, "end" - MAX(start, COALESCE(reached, start)))), 0) FROM ordered"""
"""Measure of a union: what each piece, in order of start, adds to those before it."""


@dataclass(frozen=True)
class Value:
    """What one query says."""

    sql: str

    def of(self, original: sqlite3.Connection) -> float:
        (value,) = original.execute(self.sql).fetchone()
        return float(value or 0)

    def __str__(self) -> str:
        return f"`{self.sql}`"


@dataclass(frozen=True)
class Union:
    """Measure of the union of the pieces (start, end) that a query selects."""

    pieces: str

    def of(self, original: sqlite3.Connection) -> float:
        return Value(UNION.format(pieces=self.pieces)).of(original)

    def __str__(self) -> str:
        return f"\\|A\\|, A = `{self.pieces}`"


@dataclass(frozen=True)
class Without:
    """A less what B covers of it: |A ∪ B| - |B|."""

    a: str
    b: str

    def of(self, original: sqlite3.Connection) -> float:
        return Union(f"{self.a} UNION ALL {self.b}").of(original) - Union(self.b).of(original)

    def __str__(self) -> str:
        return f"\\|A ∪ B\\| − \\|B\\|, A = `{self.a}`, B = `{self.b}`"


@dataclass(frozen=True)
class Both:
    """What A and B share: |A| + |B| - |A ∪ B|."""

    a: str
    b: str

    def of(self, original: sqlite3.Connection) -> float:
        together = Union(f"{self.a} UNION ALL {self.b}").of(original)
        return Union(self.a).of(original) + Union(self.b).of(original) - together

    def __str__(self) -> str:
        return f"\\|A\\| + \\|B\\| − \\|A ∪ B\\|, A = `{self.a}`, B = `{self.b}`"


ByHand = Value | Union | Without | Both


@contextmanager
def original(path: Path) -> Iterator[sqlite3.Connection]:
    if path.name.endswith(".json.gz"):
        yield _kineto(path)
    elif path.suffix == ".sqlite":
        yield _nsys(path)
    else:
        with TemporaryDirectory() as folder:
            export = Path(folder, "export.sqlite")
            command = ["nsys", "export", "--type", "sqlite", "--output", str(export), str(_private_copy(path, folder))]
            subprocess.run(command, check=True, capture_output=True)
            yield _nsys(export)


def _private_copy(path: Path, folder: str) -> Path:
    copy = Path(folder, path.name)
    copy.write_bytes(path.read_bytes())
    return copy


def _nsys(export: Path) -> sqlite3.Connection:
    """A table that an export lacks is seen as empty."""
    db = sqlite3.connect(f"file:{export}?immutable=1", uri=True)
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    views = NSYS_VIEWS
    for table in _SEEN:
        if table not in tables:
            views = views.replace(table, f"(SELECT {_NO_ROWS})")
    db.executescript(views + COMMON_VIEWS)
    return db


_SEEN = ("NVTX_EVENTS", *(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "RUNTIME")))
_NO_ROWS = ", ".join(
    f"0 AS {column}"
    for column in (
        *("start", '"end"', "streamId", "correlationId", "globalPid", "globalTid", "demangledName", "nameId"),
        *("gridX", "gridY", "gridZ", "bytes", "copyKind", "srcKind", "dstKind", "text", "textId"),
    )
) + " WHERE 0"  # fmt: skip


def _kineto(path: Path) -> sqlite3.Connection:
    """The complete events of a PyTorch trace as one table; microseconds with decimals become whole nanoseconds."""
    with gzip.open(path) as file:
        events = json.load(file, parse_float=Decimal)["traceEvents"]
    db = sqlite3.connect(":memory:")
    db.execute('CREATE TABLE event (name, cat, start INTEGER, "end" INTEGER, tid TEXT, correlation INTEGER, args TEXT)')
    db.executemany(
        "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (
                event["name"],
                event["cat"].lower(),
                int(event["ts"] * 1000),
                int(event["ts"] * 1000) + int(event["dur"] * 1000),
                str(event["tid"]),
                event.get("args", {}).get("correlation"),
                json.dumps(event.get("args", {}), default=str),
            )
            for event in events
            if event["ph"] == "X" and "cat" in event
        ),
    )
    db.execute("CREATE INDEX by_correlation ON event (correlation)")
    db.executescript(KINETO_VIEWS + COMMON_VIEWS)
    return db
