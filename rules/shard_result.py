"""What a report takes of the traces of one shard, as it travels from where they were read and is kept in the case.

Sources are numbered as in the shard until `renumbered`. Findings lose the times that they speak of, which may be
millions of intervals: what is told by comparing them, `overlaps` and `explained`, is told before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgspec
import numpy as np

from diag.errors import InputError, UsageError
from diag.ranks.summary import RankSummary
from diag.rules.finding import CannotTell, Clear, Finding
from diag.rules.report import Part
from diag.rules.timeline_report import DeviceRow, HardwareRow, KernelRow, OperatorRow, RangeRow
from diag.rules.trace_result import TraceResult
from diag.rules.verdict import Explained
from diag.store.case import Case
from diag.timeline.intervals import Intervals

SourceRow = dict[str, int | float | str | None]
"""Of the table `source`."""


@dataclass(frozen=True)
class ShardResult:
    sources: Sequence[SourceRow]
    notes: Mapping[int, Sequence[str]]  # by source
    results: Sequence[TraceResult]
    overlaps: Mapping[str, Sequence[str]]  # as in a report
    explained: Mapping[str, Explained]  # as `verdict` takes it
    summaries: Sequence[RankSummary]
    part: Part | None


def encoded(result: ShardResult) -> bytes:
    results = [
        replace(each, findings=[_without_extent(finding) for finding in each.findings]) for each in result.results
    ]
    return msgspec.msgpack.encode(replace(result, results=results), enc_hook=_encode)


def decoded(body: bytes) -> ShardResult:
    """Raises msgspec.DecodeError for what another release has encoded."""
    return msgspec.msgpack.decode(body, type=ShardResult, dec_hook=_decode)


def shard_results(case: Case, asked: str) -> list[ShardResult]:
    """Those that the case keeps, with its numbers of sources.

    Raises UsageError where they answer to another part or to other thresholds, InputError for those of another release.
    """
    rows = case.rows(_BODIES)
    if any(row["asked"] != asked for row in rows):
        raise UsageError(
            f"{case.path} keeps of its traces only what was told of one part, with some thresholds. Ask for the same, "
            f"or read the traces again: {_READ_AGAIN}"
        )
    try:
        return [decoded(row["body"]) for row in rows]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        sentence = f"{case.path} keeps results of another release. Read its traces again: {_READ_AGAIN}"
        raise InputError(sentence) from error


_READ_AGAIN = "diag report FOLDER -o FILE"
_BODIES = "SELECT asked, body FROM shard_result ORDER BY source_id"


def _without_extent(finding: Finding) -> Finding:
    return replace(finding, extent=Intervals.empty())


def _encode(value: object) -> Any:
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.tobytes()]
    raise TypeError(f"{type(value)} cannot be kept in a result")


def _decode(kind: type, value: Any) -> object:
    if getattr(kind, "__origin__", kind) is np.ndarray:
        dtype, data = value
        return np.frombuffer(data, dtype)
    raise RuntimeError(f"{kind} is not kept in a result")


# ---- numbers of sources --------------------------------------------------------------------------------------------

Numbers = Mapping[int, int]


def renumbered(result: ShardResult, number: Numbers) -> ShardResult:
    """The same with the numbers that the sources have elsewhere, and ids of findings, which follow from them; but for
    the rows of the sources."""
    results = [_renumbered(each, number) for each in result.results]
    before, after = ([finding.id for each in of for finding in each.findings] for of in (result.results, results))
    ids = dict(zip(before, after, strict=True))
    return replace(
        result,
        notes={number[source]: notes for source, notes in result.notes.items()},
        results=results,
        overlaps={ids[finding]: [ids[other] for other in others] for finding, others in result.overlaps.items()},
        explained={ids[finding]: _cause(each, ids) for finding, each in result.explained.items()},
        summaries=_rows(result.summaries, number),
    )


def _cause(explained: Explained, ids: Mapping[str, str]) -> Explained:
    return replace(explained, cause=None if explained.cause is None else ids[explained.cause])


def _renumbered(result: TraceResult, number: Numbers) -> TraceResult:
    return TraceResult(
        findings=_answers(result.findings, number),
        clear=_answers(result.clear, number),
        cannot_tell=_answers(result.cannot_tell, number),
        devices=_rows(result.devices, number),
        hardware=_rows(result.hardware, number),
        kernels=_rows(result.kernels, number),
        operators=_rows(result.operators, number),
        ranges=_rows(result.ranges, number),
    )


AnyAnswer = TypeVar("AnyAnswer", Finding, Clear, CannotTell)
Row = TypeVar("Row", DeviceRow, HardwareRow, KernelRow, OperatorRow, RangeRow, RankSummary)


def _answers(answers: Sequence[AnyAnswer], number: Numbers) -> list[AnyAnswer]:
    return [replace(each, subject=replace(each.subject, source=number[each.subject.source])) for each in answers]


def _rows(rows: Sequence[Row], number: Numbers) -> list[Row]:
    return [replace(row, source=number[row.source]) for row in rows]
