"""Writing CPU ranges: as rows while a person can still browse them, as columns and summaries above that.

A trace may hold tens of millions of ranges. Up to `ROW_LIMIT` of a source they are rows of `cpu_range`; when there are
more, its rows give way to `range_summary` (per thread and name pattern) and to `column_block` arrays, which
`diag.timeline.ranges.load_ranges` reads back. Readers hand over chunks in any order; memory stays that of one chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diag.store.bulk import insert_columns
from diag.store.case import Case
from diag.store.names import pattern_of
from diag.timeline import nesting
from diag.timeline.ranges import COLUMNS, KINDS, OPEN_NS

ROW_LIMIT = 1_000_000
KNOWN_TEXTS = 100_000
BATCH_ROWS = 1 << 16

Column = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RangeChunk:
    """n ranges in parallel arrays. `texts[text_index[i]]` is the name of range i; optional columns have n entries."""

    thread_id: Column
    start_ns: Column
    end_ns: Column  # OPEN_NS where the end was not recorded
    kind: Column  # index into KINDS
    text_index: Column
    texts: Sequence[str]
    end_thread_id: Sequence[int | None] | None = None
    domain: Sequence[str | None] | None = None
    external_id: Sequence[int | None] | None = None
    shapes: Sequence[str | None] | None = None
    dtypes: Sequence[str | None] | None = None
    inputs: Sequence[str | None] | None = None
    category: Sequence[str | None] | None = None
    payload: Sequence[str | None] | None = None  # JSON

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass
class Summary:
    count: int
    total_ns: int
    min_ns: int
    max_ns: int

    def add(self, count: int, total_ns: int, min_ns: int, max_ns: int) -> None:
        self.count += count
        self.total_ns += total_ns
        self.min_ns = min(self.min_ns, min_ns)
        self.max_ns = max(self.max_ns, max_ns)


class RangeWriter:
    """Stores the ranges of one source, inside a transaction of the case. Call `finish` once all chunks are added."""

    def __init__(self, case: Case, source_id: int, *, expected: int = 0, row_limit: int = ROW_LIMIT) -> None:
        self.case = case
        self.source_id = source_id
        self.row_limit = row_limit
        self.count = 0
        self.as_columns = expected > row_limit
        self._blocks = 0
        self._ids: dict[str, int] = {}  # of texts, or of patterns once ranges are kept as columns
        self._first_row = int(case.value("SELECT COALESCE(MAX(id), 0) + 1 FROM cpu_range"))
        self._times: list[NDArray[np.int64]] = []  # of the rows of each chunk: thread, start, end, and whether it nests
        self._summaries: dict[tuple[int, int], Summary] = {}

    def add(self, chunk: RangeChunk) -> None:
        if not len(chunk):
            return
        self.count += len(chunk)
        if not self.as_columns and self.count > self.row_limit:
            self._turn_rows_into_columns()
        if self.as_columns:
            self._add_columns(chunk)
        else:
            self._add_rows(chunk)

    def finish(self) -> None:
        if self.as_columns:
            self._write_summaries()
        else:
            self._link_parents()

    def _add_rows(self, chunk: RangeChunk) -> None:
        groups = [text for text in (*(chunk.domain or ()), *(chunk.category or ())) if text is not None]
        ids = self._intern([*chunk.texts, *groups])
        name_ids = np.array([ids[text] for text in chunk.texts], np.int64)
        first = self._first_row + self.count - len(chunk)
        self._times.append(np.array([chunk.thread_id, chunk.start_ns, chunk.end_ns, np.isin(chunk.kind, _NESTING)]))

        def named(texts: Sequence[str | None] | None) -> list[int | None] | None:
            return None if texts is None else [None if text is None else ids[text] for text in texts]

        columns: dict[str, Sequence[Any] | None] = {
            "id": range(first, first + len(chunk)),
            "source_id": [self.source_id] * len(chunk),
            "thread_id": chunk.thread_id.tolist(),
            "end_thread_id": chunk.end_thread_id,
            "kind": [KINDS[kind] for kind in chunk.kind.tolist()],
            "domain_id": named(chunk.domain),
            "category_id": named(chunk.category),
            "name_id": name_ids[chunk.text_index].tolist(),
            "start_ns": chunk.start_ns.tolist(),
            "end_ns": [None if end == OPEN_NS else end for end in chunk.end_ns.tolist()],
            "external_id": chunk.external_id,
            "shapes": chunk.shapes,
            "dtypes": chunk.dtypes,
            "inputs": chunk.inputs,
            "payload": chunk.payload,
        }
        given = {name: values for name, values in columns.items() if values is not None}
        insert_columns(self.case.db, "cpu_range", given)

    def _intern(self, texts: Sequence[str]) -> dict[str, int]:
        """Ids of at least these texts. Most chunks repeat names, and some traces have a new name for every range."""
        if len(self._ids) > KNOWN_TEXTS:
            self._ids = {}
        new = [text for text in dict.fromkeys(texts) if text not in self._ids]
        self._ids |= self.case.intern(new)
        return self._ids

    def _add_columns(self, chunk: RangeChunk) -> None:
        patterns = [pattern_of(text) for text in chunk.texts]
        ids = self._intern(patterns)
        pattern_ids = np.array([ids[pattern] for pattern in patterns], np.int64)
        values = {
            "thread_id": chunk.thread_id,
            "start_ns": chunk.start_ns,
            "end_ns": chunk.end_ns,
            "name_id": pattern_ids[chunk.text_index],
            "kind": chunk.kind,
        }
        self.case.db.executemany(
            _INSERT_BLOCK,
            [
                (self.source_id, column, self._blocks, dtype, values[column].astype(dtype).tobytes())
                for column, dtype in COLUMNS.items()
            ],
        )
        self._blocks += 1
        self._summarise(values)

    def _summarise(self, values: dict[str, Column]) -> None:
        duration = values["end_ns"] - values["start_ns"]
        closed = values["end_ns"] != OPEN_NS
        key = (values["thread_id"] << 32 | values["name_id"])[closed]
        order = np.argsort(key, kind="stable")
        for first, stop in nesting.runs_of_equal(key[order]):
            group = duration[closed][order[first:stop]]
            thread_and_name = divmod(int(key[order[first]]), 1 << 32)
            figures = (stop - first, int(group.sum()), int(group.min()), int(group.max()))
            if known := self._summaries.get(thread_and_name):
                known.add(*figures)
            else:
                self._summaries[thread_and_name] = Summary(*figures)

    def _write_summaries(self) -> None:
        self.case.db.executemany(
            _INSERT_SUMMARY,
            [
                (self.source_id, thread_id, name_id, s.count, s.total_ns, s.min_ns, s.max_ns)
                for (thread_id, name_id), s in sorted(self._summaries.items())
            ],
        )

    def _turn_rows_into_columns(self) -> None:
        self.as_columns = True
        self._ids = {}
        last = 0
        while rows := self.case.db.execute(_ROWS, (self.source_id, last, BATCH_ROWS)).fetchall():
            ids, thread_id, start, end, kind, text = zip(*rows, strict=True)
            last = ids[-1]
            index: dict[str, int] = {}
            text_index = np.array([index.setdefault(name, len(index)) for name in text], np.int64)
            numbers = (np.array(thread_id, np.int64), np.array(start, np.int64), np.array(end, np.int64))
            kinds = np.array([KINDS.index(name) for name in kind], np.int64)
            self._add_columns(RangeChunk(*numbers, kinds, text_index, list(index)))
        self.case.db.execute(_DELETE_ROWS, (self.source_id,))
        self._times.clear()

    def _link_parents(self) -> None:
        thread_id, start_ns, end_ns, nests = np.concatenate([np.empty((4, 0), np.int64), *self._times], axis=1)
        rows = np.flatnonzero(nests)
        rows = rows[nesting.nesting_order(thread_id[rows], start_ns[rows], end_ns[rows])]
        parent = nesting.parents_by_thread(thread_id[rows], start_ns[rows], end_ns[rows])
        child = np.flatnonzero(parent >= 0)
        ids = rows + self._first_row
        in_order = child[np.argsort(ids[child])]  # of ids, so that each page is changed once
        self.case.db.executemany(_LINK_PARENT, zip(ids[parent[in_order]].tolist(), ids[in_order].tolist(), strict=True))


_NESTING = [index for index, kind in enumerate(KINDS) if kind not in ("process", "mark")]
_INSERT_BLOCK = "INSERT INTO column_block VALUES (?, 'cpu_range', ?, ?, ?, ?)"
_INSERT_SUMMARY = "INSERT INTO range_summary VALUES (?, ?, ?, ?, ?, ?, ?)"
_DELETE_ROWS = "DELETE FROM cpu_range WHERE source_id = ?"
_ROWS = """
    SELECT r.id, r.thread_id, r.start_ns, COALESCE(r.end_ns, 9223372036854775807), r.kind, n.text
      FROM cpu_range r JOIN name n ON n.id = r.name_id
     WHERE r.source_id = ? AND r.id > ?
     ORDER BY r.id
     LIMIT ?
"""
_LINK_PARENT = "UPDATE cpu_range SET parent_id = ? WHERE id = ?"
