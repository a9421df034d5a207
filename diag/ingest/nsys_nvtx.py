"""NVTX ranges of an Nsight Systems export: push/pop, start/end and marks, their texts and domains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from diag.ingest import nsys_statements as sql
from diag.ingest import nsys_tables as nsys
from diag.ingest.input_file import InputFile
from diag.ingest.nsys_tables import Export, as_text
from diag.ingest.ranges import RangeChunk, RangeWriter
from diag.store.case import Case
from diag.store.columns import numbers_of, open_query, prefetched
from diag.store.names import NUMBER, NUMBER_REPLACEMENT
from diag.timeline.ranges import KINDS

if TYPE_CHECKING:
    import pyarrow

_EVENT_TYPES = "ENUM_NSYS_EVENT_TYPE"
_KIND_OF_TYPE = {"NvtxPushPopRange": "nvtx", "NvtxStartEndRange": "process", "NvtxMark": "mark"}


def read_nvtx(export: Export, file: InputFile, case: Case, source_id: int, notes: list[str]) -> int | None:
    """Stores all ranges; returns their number, or None when NVTX was not captured."""
    if nsys.NVTX not in export:
        return None
    types = {label: number for number, label in nsys.DEFAULT_LABELS[_EVENT_TYPES].items()}
    types |= {label: number for number, label in export.labels(_EVENT_TYPES).items()}
    kinds = {types[name]: KINDS.index(kind) for name, kind in _KIND_OF_TYPE.items()}
    threads: dict[int, int] = dict(case.db.execute("SELECT key, value FROM map_thread"))
    domains = _domains(export, types["NvtxDomainCreate"])
    writer = RangeWriter(case, source_id, expected=export.count(nsys.NVTX))
    statement = export.sql(
        sql.NVTX_RANGES,
        nsys.NVTX,
        push_pop=str(types["NvtxPushPopRange"]),
        start_end=str(types["NvtxStartEndRange"]),
        mark=str(types["NvtxMark"]),
        string=export.string(nsys.NVTX, "textId"),
    )
    with open_query(file.data, statement, mode="immutable") as batches:
        for batch in prefetched(batches):
            writer.add(_chunk(batch, kinds, threads, domains, as_patterns=writer.as_columns))
    writer.finish()
    count = export.sql(sql.NVTX_COUNT, nsys.NVTX, types=", ".join(map(str, kinds)))
    if left_out := export.db.execute(count).fetchone()[0] - writer.count:
        notes.append(nsys.left_out_note(left_out, nsys.NVTX))
    if still_open := _open_ranges(case, source_id):
        notes.append(f"{still_open} NVTX ranges were still open when the capture ended.")
    return writer.count


def _chunk(
    batch: pyarrow.RecordBatch,
    kinds: dict[int, int],
    threads: dict[int, int],
    domains: dict[tuple[int, int], str],
    *,
    as_patterns: bool,
) -> RangeChunk:
    """With `as_patterns` texts are grouped in Arrow at once, for there may be as many of them as ranges."""
    text = batch.column("text").dictionary_encode()
    text_index, texts = numbers_of(text.indices).astype(np.int64), text.dictionary
    if as_patterns:
        import pyarrow.compute as pc

        patterns = pc.replace_substring_regex(texts, pattern=NUMBER, replacement=NUMBER_REPLACEMENT).dictionary_encode()
        text_index, texts = numbers_of(patterns.indices).astype(np.int64)[text_index], patterns.dictionary
    numbers = {name: numbers_of(batch.column(name)) for name in ("start_ns", "end_ns", "global_tid", "event_type")}
    chunk = RangeChunk(
        thread_id=_translate(numbers["global_tid"], threads),
        start_ns=numbers["start_ns"],
        end_ns=np.where(numbers["event_type"] == _mark_type(kinds), numbers["start_ns"], numbers["end_ns"]),
        kind=_translate(numbers["event_type"], kinds),
        text_index=text_index,
        texts=[as_text(value) for value in texts.to_pylist()],
    )
    if as_patterns:
        return chunk
    ends = _translate(numbers_of(batch.column("end_global_tid")), threads)
    keys = zip(numbers["global_tid"].tolist(), batch.column("domain").to_pylist(), strict=True)
    return RangeChunk(
        **{name: getattr(chunk, name) for name in ("thread_id", "start_ns", "end_ns", "kind", "text_index", "texts")},
        end_thread_id=[None if a == b else b for a, b in zip(chunk.thread_id.tolist(), ends.tolist(), strict=True)],
        domain=[domains.get((global_tid >> 24, domain)) for global_tid, domain in keys],
    )


def _mark_type(kinds: dict[int, int]) -> int:
    return next(number for number, kind in kinds.items() if KINDS[kind] == "mark")


def _translate(values: NDArray[np.int64], mapping: dict[int, int]) -> NDArray[np.int64]:
    distinct, index = np.unique(values, return_inverse=True)
    return np.array([mapping[value] for value in distinct.tolist()], np.int64)[index]


def _domains(export: Export, domain_create: int) -> dict[tuple[int, int], str]:
    """Name of each (process, domain id); domain 0, the default, has none."""
    statement = export.sql(sql.NVTX_DOMAINS, nsys.NVTX, string=export.string(nsys.NVTX, "textId"))
    rows = export.db.execute(statement, {"domain_create": domain_create})
    named = ((tid, domain, as_text(name)) for tid, domain, name in rows if isinstance(tid, int))
    return {(tid >> 24, domain): name for tid, domain, name in named if name}


def _open_ranges(case: Case, source_id: int) -> int:
    return int(case.value("SELECT COUNT(*) FROM cpu_range WHERE source_id = ? AND end_ns IS NULL", (source_id,)))
