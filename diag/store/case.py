"""The case: one SQLite file that holds all evidence of a run. `Case` is the only way to reach it."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from diag.errors import InputError, StorageError
from diag.store import columns, resolved
from diag.store.columns import Arrays, sqlite_uri
from diag.store.frames import frame_of
from diag.store.names import pattern_of
from diag.store.sqlite_errors import let_signals_in, reported

if TYPE_CHECKING:
    import pandas

APPLICATION_ID = 0x64_69_61_67  # "diag"
SCHEMA_VERSION = 9

NO_TIMELINE = (
    "launch", "ceiling", "measurement", "comm_measurement", "link", "live_snapshot",
    "process_group", "recorder_entry", "thread_stack", "heartbeat", "log_event", "serving_run",
    "memory_history",
)  # fmt: skip
"""Capabilities of sources that are no trace."""

Mode = Literal["ro", "rw", "immutable"]
"""Immutable: nothing else writes the file meanwhile. No lock is taken and no file appears beside it."""


@dataclass(frozen=True)
class Source:
    """One input file of the case."""

    id: int
    kind: str
    path: str
    sha256: str
    tool: str | None
    tool_version: str | None
    schema_version: str | None
    host: str | None
    rank: int | None  # in the distributed job
    clock_offset_ns: int
    time_resolution_ns: int
    capture_start_ns: int | None
    capture_end_ns: int | None
    graph_mode: str | None  # 'graph' or 'node': whether a launch of a CUDA graph is one row, or each of its nodes is
    capabilities: Mapping[str, int | None]
    clock_error_ns: int | None = None
    joined_to: int | None = None
    is_cut: int = 0  # 1: the file ends before its events do
    is_unread: int = 0  # 1: nothing of the file could be read; its note says why
    are_names_lost: int = 0  # 1: those of kernels, calls and ranges; they have others in their place
    events_declared: int | None = None
    events_read: int | None = None
    rank_origin: str | None = None  # what told the rank
    shard: str | None = None  # where its events lie, if not in this case
    world_size: int | None = None
    clock_drift: float | None = None  # seconds that its clock gains in a second against the other ranks'

    @property
    def has_timeline(self) -> bool:
        """Whether its events have times on one axis: profiles of launches and benchmarks are taken outside of any run,
        a watch of a workload saw moments only, and what a hanging job left behind is evidence of other kinds.
        """
        return not self.is_unread and not any(map(self.captured, NO_TIMELINE))

    def captured(self, fact: str) -> bool:
        """Whether the source recorded `fact` at all, be it that nothing happened."""
        return self.capabilities.get(fact) is not None

    def has(self, fact: str) -> bool:
        return bool(self.capabilities.get(fact))


class Case:
    """Read and write access to a case file.

    Open an existing one with `Case.open(path)`, make a new one with `Case.create(path)`; both are context managers.
    """

    def __init__(self, db: sqlite3.Connection, path: Path, mode: Mode) -> None:
        self.db = db
        self.path = path
        self.mode = mode
        let_signals_in(db)

    @property
    def writable(self) -> bool:
        return self.mode == "rw"

    @classmethod
    def create(cls, path: Path) -> Case:
        """A new, empty case at `path`, tuned for one bulk load: a crash leaves a file to be thrown away.

        Raises StorageError when the file cannot be written.
        """
        try:
            db = sqlite3.connect(sqlite_uri(path, "rwc"), uri=True, isolation_level=None)
            db.execute("PRAGMA page_size = 8192")
            db.execute("PRAGMA journal_mode = MEMORY")
            db.execute("PRAGMA synchronous = OFF")
            db.execute("PRAGMA temp_store = MEMORY")
            db.executescript(_schema())
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        except sqlite3.Error as error:
            raise StorageError(f"Cannot write the case {path}: {error}. Choose another place with -o FILE.") from error
        return cls(db, path, "rw")

    @classmethod
    def open(cls, path: Path | str, mode: Mode = "ro") -> Case:
        """The case at `path`. Raises InputError when it is not a whole case of this version."""
        path = Path(path)
        try:
            db = sqlite3.connect(sqlite_uri(path, mode), uri=True, isolation_level=None)
        except sqlite3.Error as error:
            raise InputError(f"{path} cannot be opened as a case: {error}.") from error
        try:
            _check(db, path)
        except BaseException:
            db.close()
            raise
        return cls(db, path, mode)

    def __enter__(self) -> Case:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.db.close()

    # ---- reading -----------------------------------------------------------------------------------------------

    def rows(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[sqlite3.Row]:
        cursor = self.db.execute(sql, parameters)
        cursor.row_factory = sqlite3.Row
        return cursor.fetchall()

    def value(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Any:
        row = self.db.execute(sql, parameters).fetchone()
        return None if row is None else row[0]

    def arrays(self, sql: str, dtypes: Mapping[str, str]) -> Arrays:
        """Columns of a query whose every value is a number and not NULL, as arrays of the given NumPy types."""
        return columns.arrays(self.path, sql, dtypes, mode=self.mode)

    def frame(
        self,
        table: str | None = None,
        *,
        sql: str | None = None,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        as_stored: bool = False,
    ) -> pandas.DataFrame:
        """A table or view, or the rows of a query, as a pandas frame.

        A table comes as `diag export` gives it: texts in the place of name ids, pids and tids beside the ids of
        processes and threads, and the duration after the end; `as_stored` leaves all of it away. Raises InputError
        for a table that the case does not have, and for ranges that it keeps as columns only.
        """
        if (table is None) == (sql is None):
            raise InputError("Name a table, as in case.frame('gpu_op'), or give sql=…; not both.")
        if table is not None:
            self._check_table(table)
            of = resolved.plain_columns if as_stored else resolved.resolved_columns
            sql = resolved.query(of(self.db, table), table)
        return frame_of(self.db.execute(sql or "", parameters))

    def _check_table(self, table: str) -> None:
        if table not in self.tables:
            raise InputError(f"The case has no table {table!r}. It has: {', '.join(sorted(self.tables))}.")
        if table == "cpu_range" and self.value("SELECT 1 FROM column_block WHERE table_name = 'cpu_range' LIMIT 1"):
            raise InputError(
                "This case has more ranges than it keeps as rows. Use case.frame('range_summary'), "
                "diag.timeline.ranges.load_ranges(case, source_id), or diag export --format parquet --table cpu_range."
            )

    @cached_property
    def tables(self) -> frozenset[str]:
        sql = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
        return frozenset(name for (name,) in self.db.execute(sql))

    @cached_property
    def sources(self) -> list[Source]:
        fields = ", ".join(Source.__dataclass_fields__)
        return [
            Source(**{**dict(row), "capabilities": json.loads(row["capabilities"])})
            for row in self.rows(f"SELECT {fields} FROM source ORDER BY id")
        ]

    def forget_sources(self) -> None:
        """Whoever changes rows of `source` calls this: they are read again when they are asked for next."""
        self.__dict__.pop("sources", None)

    def source(self, source_id: int) -> Source:
        return next(source for source in self.sources if source.id == source_id)

    def notes(self, source_id: int) -> list[str]:
        return [row["text"] for row in self.rows("SELECT text FROM source_note WHERE source_id = ?", (source_id,))]

    @cached_property
    def names(self) -> Mapping[int, str]:
        return dict(self.db.execute("SELECT id, text FROM name"))

    @cached_property
    def patterns(self) -> Mapping[int, str]:
        return dict(self.db.execute("SELECT id, pattern FROM name"))

    # ---- writing -----------------------------------------------------------------------------------------------

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """While the block runs no other process writes the file, whose bytes may be copied."""
        self.db.execute("BEGIN")
        self.db.execute("SELECT 1 FROM source").fetchone()  # only a read takes the lock
        try:
            yield
        finally:
            self.db.execute("COMMIT")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Everything inside is written, or, on any error, nothing. A full disk becomes a StorageError."""
        self.db.execute("BEGIN")
        with reported(self.path):
            try:
                yield
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    def insert(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Small tables: rows as mappings with equal keys."""
        rows = list(rows)
        if rows:
            columns = ", ".join(rows[0])
            values = ", ".join(f":{column}" for column in rows[0])
            self.db.executemany(f"INSERT INTO {table} ({columns}) VALUES ({values})", rows)

    def insert_returning_id(self, table: str, row: Mapping[str, Any]) -> int:
        columns, values = ", ".join(row), ", ".join(f":{column}" for column in row)
        sql = f"INSERT INTO {table} ({columns}) VALUES ({values}) RETURNING id"
        return int(self.db.execute(sql, row).fetchone()[0])

    def add_source(self, **columns: Any) -> int:
        """A new row of `source`; returns its id. `capabilities` may be given later with `finish_source`."""
        return self.insert_returning_id("source", {**columns, "capabilities": "{}"})

    def finish_source(self, source_id: int, capabilities: Mapping[str, int | None], notes: Iterable[str] = ()) -> None:
        self.db.execute(
            "UPDATE source SET capabilities = ? WHERE id = ?", (json.dumps(capabilities, sort_keys=True), source_id)
        )
        self.insert("source_note", [{"source_id": source_id, "text": text} for text in notes])

    def intern(self, texts: Iterable[str]) -> dict[str, int]:
        """Ids of `texts` in the dictionary, adding those that it lacks."""
        wanted = list(dict.fromkeys(texts))
        self.db.executemany(
            "INSERT OR IGNORE INTO name (text, pattern) VALUES (?, ?)", ((text, pattern_of(text)) for text in wanted)
        )
        find = "SELECT id FROM name WHERE text = ?"
        return {text: self.db.execute(find, (text,)).fetchone()[0] for text in wanted}


def _schema() -> str:
    return resources.files("diag.store").joinpath("schema.sql").read_text("utf-8")


def _check(db: sqlite3.Connection, path: Path) -> None:
    try:
        if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise InputError(f"{path} is not a diag case. Make one with: diag report INPUT -o {path.name}")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA_VERSION:
            raise InputError(f"{path} is a case of schema {version}, this diag reads {SCHEMA_VERSION}. {IMPORT_AGAIN}")
        # A view in the place of a table could stand for anything, be it a query that never ends.
        if missing := _definitions() - _defined(db):
            raise InputError(f"{path} is no case any more: {min(missing)[1]} is not as diag made it. {IMPORT_AGAIN}")
        if path.stat().st_size < _size_bytes(db):
            raise InputError(f"{path} is cut short. {IMPORT_AGAIN}")
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be opened as a case: {error}. {IMPORT_AGAIN}") from error


IMPORT_AGAIN = "Import the original files again with: diag report INPUT -o CASE"
_DEFINITIONS = "SELECT type, name, sql FROM sqlite_master"


@cache
def _definitions() -> frozenset[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(_schema())
        return _defined(db)


def _defined(db: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    """Type, name and definition of all that is in it. Comments, and how it is set, may differ between releases."""
    return frozenset((kind, name, _without_comments(sql or "")) for kind, name, sql in db.execute(_DEFINITIONS))


def _without_comments(sql: str) -> str:
    r"""
    >>> _without_comments("CREATE TABLE a (  -- all\n  x INTEGER,   -- one\n  y TEXT\n)")
    'CREATE TABLE a ( x INTEGER, y TEXT )'
    """
    return " ".join(re.sub(r"--[^\n]*", " ", sql).split())


def _size_bytes(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()[0])
