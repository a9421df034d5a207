"""Dumps as rows of the case: `process_group`, `call_signature`, `recorder_entry` and `stack`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from diag.ingest.input_file import InputFile
from diag.ingest.recorder.dump import CallSignature, Columns, Dump, Frame, ProcessGroup
from diag.ingest.recorder.rank import Rank
from diag.store.bulk import insert_columns
from diag.store.case import Case

KIND = "flight-recorder"


class DumpStore:
    """Adds dumps to a case, inside the caller's transaction. Calls and stacks are kept once for all of them."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._next_group = _next_id(case, "process_group")
        self._next_stack = _next_id(case, "stack")
        self._next_signature = _next_id(case, "call_signature")
        self._signatures: dict[CallSignature, int] = {}
        self._stacks: dict[tuple[Frame, ...], int] = {}
        self._names: dict[str, int] = {}

    def add(self, file: InputFile, dump: Dump, of: Rank) -> int:
        """Returns the source's id."""
        source_id = self._source(file, of, tool_version=dump.library, schema_version=dump.version)
        first_group = self._add_groups(source_id, dump.groups)
        signatures = [self._signature(each) for each in dump.signatures]
        stacks = [self._stack(tuple(each)) for each in dump.stacks]
        if dump.entries is not None:
            self._add_entries(source_id, dump.entries, first_group, signatures, stacks)
        n_with_status = sum(group.last_enqueued is not None for group in dump.groups)
        captured = {
            "process_group": len(dump.groups),
            "process_group_status": n_with_status if dump.has_status else None,
            "recorder_entry": None if dump.entries is None else len(dump.entries.group),
            "recorder_stack": len(stacks) or None,
        }
        self._case.finish_source(source_id, captured, [of.note] if of.note else [])
        return source_id

    def _source(self, file: InputFile, of: Rank, **columns: object) -> int:
        return self._case.add_source(
            kind=KIND,
            path=str(file.path),
            sha256=file.sha256,
            size_bytes=file.size_bytes,
            tool="PyTorch",
            rank=of.rank,
            rank_origin=of.origin,
            world_size=of.world_size,
            time_resolution_ns=1,
            **columns,
        )

    def _add_groups(self, source_id: int, groups: Sequence[ProcessGroup]) -> int:
        """Returns the id of the first of them."""
        first = self._next_group
        self._case.insert(
            "process_group",
            [
                {"id": number, "source_id": source_id, **msgspec.structs.asdict(group), "ranks": _json(group.ranks)}
                for number, group in enumerate(groups, first)
            ],
        )
        self._next_group += len(groups)
        return first

    def _add_entries(
        self, source_id: int, entries: Columns, first_group: int, signatures: Sequence[int], stacks: Sequence[int]
    ) -> None:
        plain = msgspec.structs.asdict(entries)
        group, signature, stack = (plain.pop(name) for name in ("group", "signature", "stack"))
        ids = {
            "source_id": [source_id] * len(group),
            "group_id": [first_group + at for at in group],
            "signature_id": [signatures[at] for at in signature],
            "stack_id": [None if at is None else stacks[at] for at in stack],
        }
        insert_columns(self._case.db, "recorder_entry", {**ids, **plain})

    def _signature(self, signature: CallSignature) -> int:
        known = self._signatures.get(signature)
        if known is None:
            known = self._signatures[signature] = self._next_signature
            self._next_signature += 1
            self._case.insert("call_signature", [{"id": known, **msgspec.structs.asdict(signature)}])
        return known

    def _stack(self, frames: tuple[Frame, ...]) -> int:
        known = self._stacks.get(frames)
        if known is None:
            known = self._stacks[frames] = self._next_stack
            self._next_stack += 1
            self._case.insert(
                "stack",
                [
                    {
                        "id": known,
                        "depth": depth,
                        "symbol_id": self._name(frame.symbol),
                        "module_id": self._name(frame.file),
                        "line": frame.line,
                    }
                    for depth, frame in enumerate(frames)
                ],
            )
        return known

    def _name(self, text: str) -> int | None:
        if not text:
            return None
        known = self._names.get(text)
        if known is None:
            known = self._names[text] = self._case.intern([text])[text]
        return known


def _next_id(case: Case, table: str) -> int:
    return int(case.value(_NEXT_ID[table]))


_NEXT_ID = {
    "process_group": "SELECT COALESCE(MAX(id), 0) + 1 FROM process_group",
    "call_signature": "SELECT COALESCE(MAX(id), 0) + 1 FROM call_signature",
    "stack": "SELECT COALESCE(MAX(id), 0) + 1 FROM stack",
}


def _json(ranks: Sequence[int] | None) -> str | None:
    return None if ranks is None else msgspec.json.encode(ranks).decode()
