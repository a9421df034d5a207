"""What a dump says, made uniform over the versions: the same whether it was a pickle or JSON."""

from __future__ import annotations

import msgspec


class ProcessGroup(msgspec.Struct, frozen=True):
    """A row of `process_group`."""

    local_id: int | None
    name: str | None
    description: str | None = None
    ranks: list[int] | None = None
    last_enqueued: int | None = None
    last_started: int | None = None
    last_completed: int | None = None


class Frame(msgspec.Struct, frozen=True):
    symbol: str
    file: str
    line: int | None


class Columns(msgspec.Struct, frozen=True):
    """Of `recorder_entry`. `group`, `signature` and `stack` are places in the lists of the dump."""

    group: list[int]
    signature: list[int]
    stack: list[int | None]
    record_id: list[int | None]
    sequence: list[int | None]
    p2p_sequence: list[int | None]
    op_sequence: list[int | None]
    is_p2p: list[bool | None]
    created_ns: list[int | None]
    started_ns: list[int | None]
    completed_ns: list[int | None]
    duration_ns: list[int | None]
    state: list[str | None]
    is_retired: list[bool | None]
    timeout_ns: list[int | None]
    thread_name: list[str | None]


class CallSignature(msgspec.Struct, frozen=True):
    """A row of `call_signature`; the last four are JSON."""

    op: str
    input_sizes: str
    input_dtypes: str
    output_sizes: str
    output_dtypes: str


class Dump(msgspec.Struct, frozen=True, tag=True):
    version: str | None
    library: str | None
    """Communication library with its version, e.g. 'NCCL 2.27.3'."""
    groups: list[ProcessGroup]
    signatures: list[CallSignature]
    stacks: list[list[Frame]]
    entries: Columns | None
    """None: the dump was made without them."""
    has_status: bool


class Refusal(msgspec.Struct, frozen=True, tag=True):
    """In place of a dump that cannot be read."""

    because: str
    """The end of a sentence."""


Answer = Dump | Refusal
"""Of a worker."""
