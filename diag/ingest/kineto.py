"""Read the trace of a PyTorch profiler (Kineto, in Chrome's Trace Event Format) into a case.

The file is read once, in chunks of a few MB, and each chunk becomes rows at once, so that memory does not grow with the
trace. What needs the whole file (which process launched an operation, what the metadata at the end say) is settled by
SQL when all rows are in. Times stay as the trace gives them; its `baseTimeNanoseconds` becomes the clock offset.

Kineto gives the shared memory of a kernel as one number, static plus dynamic; it stands in `shared_static_bytes`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from diag.ingest import collectives
from diag.ingest import kineto_events as known
from diag.ingest import kineto_statements as sql
from diag.ingest.collectives import Row
from diag.ingest.input_file import LONGEST_NS, Bounds, InputFile, Progress, Step, silent
from diag.ingest.json_stream import Chunk, EventStream, FileBytes
from diag.ingest.kineto_account import Account
from diag.ingest.kineto_allocations import allocation_rows
from diag.ingest.kineto_events import (
    ABSENT,
    ALLOCATION,
    GPU_KINDS,
    LAUNCH_FLOW,
    MEMORY_EVENT,
    NO_ARGS,
    RANGES,
    Args,
    Event,
    OpenSlices,
)
from diag.ingest.kineto_slices import Slices, axes, dtypes, flow_id, host_place, inputs, no_negative, shapes
from diag.ingest.kineto_threads import Key, Threads
from diag.ingest.kineto_whole import WholeTrace
from diag.ingest.microseconds import NOT_A_TIME, nanoseconds
from diag.ingest.ranges import RangeChunk, RangeWriter
from diag.store.case import Case
from diag.store.names import short_kernel_name
from diag.timeline.ranges import KINDS, OPEN_NS

_TRACE = re.compile(rb'"traceEvents"|"deviceProperties"|"distributedInfo"|^\s*\[\s*\{(?=[^\[\]{}]*"ph"\s*:)')
_TOOL = "PyTorch profiler"
_STEP = "ProfilerStep#"
"""Steps were operators in 2020, they are annotations now."""


def looks_like_kineto(head: bytes) -> bool:
    """Whether a file that begins with `head` (unpacked, some ten KB) may be a trace in Chrome's format."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text[:1] in (b"{", b"[") and _TRACE.search(text) is not None


def read(file: InputFile, case: Case, *, bounds: Bounds = Bounds(), progress: Progress = silent) -> int:
    """Adds the trace to the case, inside the caller's transaction; returns the id of its source.

    Raises InputError when the file is no JSON, has no list of events, or unpacks to more than `bounds.plain_bytes`.
    A file that is cut short is read up to there, which a note of the source says.
    """
    data = FileBytes(file.data, bounds)
    stream = EventStream(iter(data), Event, key="traceEvents", path=file.path)
    trace = _Trace(file, case)
    for chunk in stream:
        trace.add(chunk)
        progress(Step(f"{file.path.name}: {trace.account.events_read:,} events", data.n_read / max(file.size_bytes, 1)))
    trace.finish(stream.metadata, stream.lost, is_cut=stream.is_cut)
    return trace.source_id


class _Trace:
    """The import of one trace: takes chunks of events, then what stands around them."""

    def __init__(self, file: InputFile, case: Case) -> None:
        self.case = case
        self.source_id = case.add_source(
            kind="kineto", path=str(file.path), sha256=file.sha256, size_bytes=file.size_bytes, tool=_TOOL,
            time_resolution_ns=1000,
        )  # fmt: skip
        self.threads = Threads(case, self.source_id)
        self.ranges = RangeWriter(case, self.source_id)
        self.open_slices = OpenSlices()
        self.account = Account()
        self.whole_microseconds = True
        self.correlated = False
        self.python_has_threads = False
        self.has_flows = False
        self.span_ns: tuple[int, int] | None = None
        self.titles: dict[tuple[str, Key, Key], str] = {}

    # ---- a chunk -----------------------------------------------------------------------------------------------

    def add(self, chunk: Chunk[Event]) -> None:
        self.account.events_read += len(chunk.events)
        self.account.wrong += chunk.wrong
        slices = self._sorted_out(chunk.events)
        for fact in known.FACTS:
            if slices[fact]:
                self._add_slices(fact, slices[fact])

    def _sorted_out(self, events: Sequence[Event]) -> defaultdict[str, list[Event]]:
        """Slices by what they tell; other events are dealt with at once."""
        groups: defaultdict[tuple[str, str], list[Event]] = defaultdict(list)
        for event in events:
            groups[event.ph, event.cat].append(event)
        if any(ph in ("B", "E") for ph, _ in groups):
            for event in self.open_slices.close(event for event in events if event.ph in ("B", "E")):
                groups["X", event.cat].append(event)
        slices: defaultdict[str, list[Event]] = defaultdict(list)
        for (ph, category), group in groups.items():
            fact = known.fact_of(category)
            if ph == "X" and category == "Operator":
                for event in group:
                    slices["annotation" if event.name.startswith(_STEP) else "operator"].append(event)
            elif ph == "X" and fact in known.FACTS:
                slices[fact] += group
            elif ph == "X" and not category:
                self._add_legacy(group, slices)
            elif ph == "M":
                self._note_titles(group)
            elif fact == ALLOCATION and ph in ("i", "I"):
                self._add_allocations(group)
            elif fact == LAUNCH_FLOW and not self.correlated:
                self._add_flows(group)
            elif not (known.is_dropped(fact) or ph in _UNUSED_PHASES):
                self.account.unknown[category or "(none)"] += len(group)
        return slices

    def _add_legacy(self, events: Sequence[Event], slices: defaultdict[str, list[Event]]) -> None:
        for event in events:
            if told := known.legacy(event):
                fact, placed = told
                slices[fact].append(placed)
                self.account.is_legacy = True
            else:
                self.account.unknown["(none)"] += 1

    def _note_titles(self, events: Iterable[Event]) -> None:
        for event in events:
            args = event.args or NO_ARGS
            if title := args.labels or args.name:
                self.titles[event.name, event.pid, event.tid if event.name == "thread_name" else 0] = title

    def _add_slices(self, fact: str, events: Sequence[Event]) -> None:
        slices = self._timed(events)
        if fact not in RANGES:
            finished = slices.end_ns != OPEN_NS
            self.account.unfinished += len(slices.events) - int(finished.sum())
            slices = slices.select(finished)
        if not slices.events:
            return
        self.account.rows[fact] += len(slices.events)
        if fact in RANGES:
            self._add_ranges(fact, slices)
        elif fact in GPU_KINDS:
            self._add_gpu_ops(fact, slices)
        else:
            _ADD[fact](self, slices)

    def _timed(self, events: Sequence[Event]) -> Slices:
        """The events whose times make sense, those without a duration being open."""
        start = nanoseconds([event.ts for event in events])
        duration = nanoseconds([event.dur for event in events])
        is_open = np.zeros(len(events), bool)
        if (duration == NOT_A_TIME).any():
            is_open = np.array([bytes(event.dur) == b"null" for event in events])
        wrong = (start == NOT_A_TIME) | ((duration == NOT_A_TIME) & ~is_open) | (duration > LONGEST_NS)
        negative = ~wrong & ~is_open & (duration < 0)
        self.account.wrong += int(wrong.sum())
        self.account.negative += int(negative.sum())
        good = ~wrong & ~negative
        if self.whole_microseconds:
            self.whole_microseconds = not ((start % 1000)[good].any() or (duration % 1000)[good & ~is_open].any())
        return Slices(events, start, np.where(is_open, OPEN_NS, start + np.where(good, duration, 0))).select(good)

    def _add_ranges(self, fact: str, slices: Slices) -> None:
        if fact == "python":
            # Beside functions of known threads, those of none come from another one, as the stack of a waiting thread.
            self.python_has_threads = self.python_has_threads or any(event.pid != 0 for event in slices.events)
            self.threads.adopt_unplaced(by_main_thread=not self.python_has_threads)
        index: dict[str, int] = {}
        chunk = RangeChunk(
            thread_id=np.array(self._thread_ids(slices.events), np.int64),
            start_ns=slices.start_ns,
            end_ns=slices.end_ns,
            kind=np.full(len(slices.events), KINDS.index(fact), np.int64),
            text_index=np.array([index.setdefault(event.name, len(index)) for event in slices.events], np.int64),
            texts=list(index),
            external_id=None if fact == "python" else [known.external_id_of(a) for a in slices.args()],
            shapes=self._shapes(slices) if fact == "operator" else None,
            dtypes=dtypes(slices) if fact == "operator" else None,
            inputs=inputs(slices) if fact == "operator" else None,
        )
        self.ranges.add(chunk)
        if fact == "operator":
            self._add_collectives(slices, lambda index: host_place(chunk, index))

    def _add_collectives(self, slices: Slices, place_of: Callable[[int], Row]) -> None:
        """What the arguments tell of communication; `place_of` says where in the case an operation is found."""
        rows = []
        for index, operation in enumerate(slices.args()):
            if operation.collective is not ABSENT:
                row, wrong = collectives.of_args(operation)
                self.account.odd_arguments += wrong
                if row is not None:
                    owner: Row = {"source_id": self.source_id, "process_id": self.threads.first_process}
                    rows.append({**owner, "external_id": known.external_id_of(operation), **place_of(index), **row})
        collectives.insert(self.case, rows)

    def _shapes(self, slices: Slices) -> list[str | None]:
        told = shapes(slices)
        self.account.rows["shapes"] += len(told) - told.count(None)
        return told

    def _add_gpu_ops(self, kind: str, slices: Slices) -> None:
        n = len(slices.events)
        first_id = 1 + int(self.case.value("SELECT COALESCE(MAX(id), 0) FROM gpu_op"))
        args, names = slices.args(), slices.names()
        short = {name: short_kernel_name(name) for name in dict.fromkeys(names)} if kind == "kernel" else {}
        ids = self.case.intern([*names, *short.values()])
        short_ids = {name: ids[text] for name, text in short.items()}
        memory = [known.memory_kinds(name) if kind != "kernel" else (None, None) for name in names]
        copy_kinds = [known.copy_kind(name) for name in names] if kind == "copy" else [None] * n
        if kind == "copy":
            self.account.rows["memory_kind"] += sum(source not in (None, "unknown") for source, _ in memory)
        self.case.db.executemany(
            sql.INSERT_GPU_OP,
            zip(
                [self.source_id] * n,
                [self.threads.first_process] * n,
                [known.device_of(event, a) for event, a in zip(slices.events, args, strict=True)],
                [a.context for a in args],
                [known.stream_of(event, a) for event, a in zip(slices.events, args, strict=True)],
                [kind] * n,
                slices.start_ns.tolist(),
                slices.end_ns.tolist(),
                [ids[name] for name in names],
                [short_ids.get(name) for name in names],
                self._correlations(args),
                [known.external_id_of(a) for a in args],
                [a.graph_node or None for a in args],
                [a.graph or None for a in args],
                *axes([a.grid for a in args]),
                *axes([a.block for a in args]),
                [a.registers for a in args],
                [a.shared for a in args],
                [no_negative(a.bytes) if isinstance(a.bytes, int) else None for a in args],
                copy_kinds,
                *zip(*memory, strict=True),
                [known.peer_of(a) for a in args],
                strict=True,
            ),
        )
        self._add_collectives(slices, lambda index: {"gpu_op_id": first_id + index})

    def _add_api_calls(self, slices: Slices) -> None:
        args, names = slices.args(), slices.names()
        ids = self.case.intern(names)
        self.case.db.executemany(
            sql.INSERT_API_CALL,
            zip(
                [self.source_id] * len(names),
                self._thread_ids(slices.events),
                slices.start_ns.tolist(),
                slices.end_ns.tolist(),
                [ids[name] for name in names],
                self._correlations(args),
                [known.external_id_of(a) for a in args],
                strict=True,
            ),
        )

    def _add_syncs(self, slices: Slices) -> None:
        args = slices.args()
        self.case.db.executemany(
            sql.INSERT_SYNC,
            zip(
                [self.source_id] * len(args),
                [self.threads.first_process] * len(args),
                [no_negative(a.device) for a in args],
                [a.context for a in args],
                [no_negative(a.stream) for a in args],
                [known.sync_kind(a.sync_kind or event.name) for a, event in zip(args, slices.events, strict=True)],
                slices.start_ns.tolist(),
                slices.end_ns.tolist(),
                self._correlations(args),
                [no_negative(a.waits_for_event) for a in args],
                [no_negative(a.waits_for_record) or None for a in args],
                [no_negative(a.waits_for_stream) for a in args],
                strict=True,
            ),
        )

    def _add_overheads(self, slices: Slices) -> None:
        names = slices.names()
        ids = self.case.intern(names)
        self.case.db.executemany(
            sql.INSERT_OVERHEAD,
            zip(
                [self.source_id] * len(names),
                # Kineto puts what belongs to no thread of the program on a made-up one.
                [self.threads.get((event.pid, event.tid)) for event in slices.events],
                slices.start_ns.tolist(),
                slices.end_ns.tolist(),
                [known.overhead_kind(name) for name in names],
                [ids[name] for name in names],
                strict=True,
            ),
        )

    def _add_span(self, slices: Slices) -> None:
        """The one slice of category 'Trace' covers what was recorded."""
        start, end = int(slices.start_ns.min()), int(slices.end_ns.max())
        self.span_ns = (min(start, self.span_ns[0]), max(end, self.span_ns[1])) if self.span_ns else (start, end)

    def _add_flows(self, events: Sequence[Event]) -> None:
        """Arrows from a call to what it launched: the link between them in traces whose arguments have none."""
        if not self.has_flows:
            self.case.db.execute(sql.CREATE_FLOW)
            self.has_flows = True
        times = nanoseconds([event.ts for event in events]).tolist()
        self.case.db.executemany(
            sql.INSERT_FLOW,
            [
                (number, event.ph, self.threads.number(event.pid), self.threads.number(known.lane_of(event.tid)), time)
                for event, time in zip(events, times, strict=True)
                if event.ph in ("s", "f") and (number := flow_id(event.id)) is not None
            ],
        )

    def _add_allocations(self, events: Sequence[Event]) -> None:
        """What PyTorch's own allocators handed out and took back; the driver hears of little of it."""
        memory = [event for event in events if event.name == MEMORY_EVENT and event.args]
        rows = list(allocation_rows(memory, self.source_id, self.threads))
        self.account.wrong += len(memory) - len(rows)
        self.account.rows[ALLOCATION] += len(rows)
        self.case.db.executemany(sql.INSERT_ALLOCATION, rows)

    def _thread_ids(self, events: Sequence[Event]) -> list[int]:
        return [self.threads[event.pid, event.tid] for event in events]

    def _correlations(self, args: Sequence[Args]) -> list[int | None]:
        numbers = [a.correlation or None for a in args]
        self.correlated = self.correlated or any(numbers)
        return numbers

    # ---- when all chunks are in --------------------------------------------------------------------------------

    def finish(self, metadata: Mapping[str, Any], lost: str | None, *, is_cut: bool) -> None:
        for event_list in _by_fact(self.open_slices.remaining()).items():
            self._add_slices(*event_list)
        self.ranges.finish()
        whole = WholeTrace(self.case, self.source_id, self.threads, self.titles)
        if self.has_flows:
            whole.use_flows(is_correlated=self.correlated)
        whole.settle_processes()
        whole.add_titles()
        whole.add_devices(metadata)
        whole.describe_source(metadata, self.span_ns, tick_ns=1000 if self.whole_microseconds else 1, is_cut=is_cut)
        notes = [*([lost] if lost else []), *self.account.notes(self.open_slices.stray_ends)]
        self.case.finish_source(self.source_id, self._capabilities(), notes)

    def _capabilities(self) -> dict[str, int | None]:
        facts = self.account.facts()
        if self.account.has_gpu_work:
            facts["collective"] = self.case.value(sql.COUNT_COLLECTIVES, (self.source_id,)) or None
            facts["cuda_event"] = self.case.value(sql.COUNT_CUDA_EVENTS, (self.source_id,)) or None
        return facts


_ADD: Mapping[str, Callable[[_Trace, Slices], None]] = {
    "api": _Trace._add_api_calls,
    "sync": _Trace._add_syncs,
    "overhead": _Trace._add_overheads,
    "span": _Trace._add_span,
}
_UNUSED_PHASES = frozenset("BEstfiIC")


def _by_fact(events: Iterable[Event]) -> dict[str, list[Event]]:
    groups: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        fact = known.fact_of(event.cat)
        if fact in known.FACTS:
            groups[fact].append(event)
    return groups
