"""NVTX ranges of an Nsight Systems export: push/pop, start/end and marks, their texts and domains."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from diag.ingest import collectives, nsys_enums
from diag.ingest import nsys_nvtx_statements as sql
from diag.ingest import nsys_tables as nsys
from diag.ingest.input_file import InputFile
from diag.ingest.nsys_payload import Payloads
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
    types = {label: number for number, label in nsys_enums.labels(_EVENT_TYPES).items()}
    types |= {label: number for number, label in export.labels(_EVENT_TYPES).items()}
    kinds = {types[name]: KINDS.index(kind) for name, kind in _KIND_OF_TYPE.items()}
    wanted = ", ".join(map(str, kinds))
    payloads = Payloads.of(export)
    counted = sql.NVTX_COUNT_PAYLOADS if payloads.schemas else sql.NVTX_COUNT
    count = export.sql(counted, nsys.NVTX, types=wanted)
    n_ranges, n_payloads = export.db.execute(count).fetchone()
    writer = RangeWriter(case, source_id, expected=export.count(nsys.NVTX))
    if n_payloads:
        collectives.read_nvtx(export, payloads, case, source_id, notes)
    extras = None
    # Columns hold neither categories nor payloads; of millions of ranges the export itself remains.
    if not writer.as_columns and _has_extras(export, wanted):
        extras = _Extras(_categories(export, types["NvtxCategory"]), payloads)
    threads: dict[int, int] = dict(case.db.execute("SELECT key, value FROM map_thread"))
    domains = _domains(export, types["NvtxDomainCreate"])
    statement = export.sql(
        sql.NVTX_RANGES,
        nsys.NVTX,
        push_pop=str(types["NvtxPushPopRange"]),
        start_end=str(types["NvtxStartEndRange"]),
        mark=str(types["NvtxMark"]),
        string=export.string(nsys.NVTX, "textId"),
        extras=export.sql(sql.NVTX_EXTRAS, nsys.NVTX, json_string=export.string(nsys.NVTX, "jsonTextId"))
        if extras
        else "",
    )
    with open_query(file.data, statement, mode="immutable") as batches:
        for batch in prefetched(batches):
            writer.add(_chunk(batch, kinds, threads, domains, extras, as_patterns=writer.as_columns))
    writer.finish()
    if left_out := n_ranges - writer.count:
        notes.append(nsys.left_out_note(left_out, nsys.NVTX))
    if extras and extras.left_out:
        notes.append(f"Payloads of {extras.left_out:,} NVTX ranges are damaged or too long and were left out.")
    if still_open := _open_ranges(case, source_id):
        notes.append(f"{still_open:,} NVTX ranges were still open when the capture ended.")
    return writer.count


MOST_PAYLOAD_BYTES = 64 << 20
"""Of all ranges together: a framework may attach the same long description to each of a million ranges."""


@dataclass
class _Extras:
    """What some ranges carry beside their text."""

    categories: Mapping[tuple[int, int, int], str]  # by process, domain and number
    payloads: Payloads
    left_out: int = 0
    kept_bytes: int = 0

    def category_of(self, process: int, domain: int, number: int) -> str | None:
        return self.categories.get((process, domain, number), f"#{number}") if number else None

    def payload_of(self, text: bytes, binary: bytes) -> str | None:
        payload = _json_of(self.payloads, text, binary)
        if payload is not None and self.kept_bytes + len(payload) <= MOST_PAYLOAD_BYTES:
            self.kept_bytes += len(payload)
            return payload
        self.left_out += bool(text or binary)
        return None


def _json_of(payloads: Payloads, text: bytes, binary: bytes) -> str | None:
    if binary and (values := payloads.decode(binary)):
        return json.dumps(values)
    if not text or len(text) >= nsys.LONGEST_TEXT_BYTES:  # cut, and so no JSON any more
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    return text.decode("utf-8")


def _chunk(
    batch: pyarrow.RecordBatch,
    kinds: dict[int, int],
    threads: dict[int, int],
    domains: dict[tuple[int, int], str],
    extras: _Extras | None,
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
    elsewhere = ends.astype(object)
    elsewhere[ends == chunk.thread_id] = None
    process, domain = numbers["global_tid"] >> 24, numbers_of(batch.column("domain"))
    chunk = replace(
        chunk,
        end_thread_id=elsewhere.tolist(),
        domain=_named(process, domain, domains),
    )
    if extras is None:
        return chunk
    keys = zip(process.tolist(), domain.tolist(), strict=True)
    categories, texts, binaries = (batch.column(name).to_pylist() for name in ("category", "payload", "binary"))
    return replace(
        chunk,
        category=[extras.category_of(*key, number) for key, number in zip(keys, categories, strict=True)],
        payload=[extras.payload_of(*pair) for pair in zip(texts, binaries, strict=True)],
    )


def _named(
    process: NDArray[np.int64], domain: NDArray[np.int64], domains: Mapping[tuple[int, int], str]
) -> list[str | None]:
    """Name of each domain, where it has one."""
    named = np.full(len(domain), None, object)
    for key, name in domains.items():
        named[(process == key[0]) & (domain == key[1])] = name
    return named.tolist()


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


def _categories(export: Export, category_name: int) -> dict[tuple[int, int, int], str]:
    """Name of each (process, domain id, category)."""
    statement = export.sql(sql.NVTX_CATEGORIES, nsys.NVTX, string=export.string(nsys.NVTX, "textId"))
    rows = export.db.execute(statement, {"category_name": category_name})
    named = ((tid, domain or 0, number, as_text(name)) for tid, domain, number, name in rows if isinstance(tid, int))
    return {(tid >> 24, domain, number): name for tid, domain, number, name in named if name}


def _has_extras(export: Export, types: str) -> bool:
    return bool(export.db.execute(export.sql(sql.NVTX_HAS_EXTRAS, nsys.NVTX, types=types)).fetchone()[0])


def _open_ranges(case: Case, source_id: int) -> int:
    return int(case.value("SELECT COUNT(*) FROM cpu_range WHERE source_id = ? AND end_ns IS NULL", (source_id,)))
