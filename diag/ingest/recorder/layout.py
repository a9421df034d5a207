"""The dump as PyTorch writes it, versions 1.0 to 2.10, pickled or as JSON: types that its values must be of.

Source: torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (dump, dump_json), and TraceUtils.h before torch 2.6.
What a version does not write is None here. JSON writes the numbers of `pg_status` as texts, and a time that is not
known as 0.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

# No text has a bound of its length here: msgspec 0.23 reads wild memory where a bounded one stands beside a list.
Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Rank = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Sizes = list[list[Integer]]


class GroupConfig(msgspec.Struct):
    name: str | None = None
    desc: str | None = None
    ranks: str | list[Rank] | None = None
    """In the job: '[0, 1, 2]', a text also in pickles."""


class GroupStatus(msgspec.Struct):
    """Sequence numbers; -1 where there was none yet."""

    last_enqueued_collective: Integer | None = None
    last_started_collective: Integer | None = None
    last_completed_collective: Integer | None = None


class Frame(msgspec.Struct):
    name: str = ""
    filename: str = ""
    line: Integer | None = None


class Entry(msgspec.Struct):
    profiling_name: str
    record_id: Integer | None = None
    pg_id: Integer | None = None
    process_group: tuple[str, str] | str | None = None
    """Name and description."""
    collective_seq_id: Integer | None = None
    p2p_seq_id: Integer | None = None
    seq_id: Integer | None = None
    """Of both kinds, in versions 1.x."""
    op_id: Integer | None = None
    is_p2p: bool | None = None
    time_created_ns: Integer | None = None
    time_discovered_started_ns: Integer | None = None
    time_discovered_completed_ns: Integer | None = None
    duration_ms: float | None = None
    input_sizes: Sizes | None = None
    input_dtypes: list[str] | None = None
    output_sizes: Sizes | None = None
    output_dtypes: list[str] | None = None
    state: str | None = None
    retired: bool | None = None
    timeout_ms: Integer | None = None
    thread_name: str | None = None
    frames: Any = None
    """Of `Frame`, the leaf first. Entries share the dictionaries, which tells equal stacks without looking inside."""


class RawDump(msgspec.Struct):
    version: str | None = None
    nccl_version: str | None = None
    comm_lib_version: str | None = None
    pg_config: dict[str | Integer, GroupConfig | list[Rank]] | None = None
    """By name; in versions 1.x by number, and of each the ranks alone."""
    pg_status: dict[str, GroupStatus] | None = None
    """By number."""
    entries: list[Entry] | None = None
