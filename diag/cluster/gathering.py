"""Many traces as one case: shards are read by workers, and what they give is put beside the inputs of the whole job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from diag.cluster.reading import KEEP, Reading
from diag.cluster.shards import Shard
from diag.cluster.workers import Task, Workers
from diag.errors import UsageError
from diag.ingest.importer import ImportOptions, new_case
from diag.ingest.input_file import Progress, Step
from diag.ingest.inputs import Input
from diag.ingest.rank_clocks import align_ranks
from diag.ranks.summary import RankCalls
from diag.rules.shard_result import ShardResult, SourceRow, decoded, encoded, renumbered
from diag.store.case import Case


@contextmanager
def gathered(
    shards: Sequence[Shard],
    others: Sequence[Input],
    imports: ImportOptions,
    reading: Reading,
    workers: Workers,
    progress: Progress,
) -> Iterator[Case]:
    """A case with the inputs that are no traces, and of each trace what a report takes of it.

    Raises InputError when an input cannot be read, WorkersLost, and UsageError where no trace has anything of the
    part that was asked for.
    """
    bodies = _read(shards, reading, workers, progress)
    with new_case(others, imports, progress, add=partial(_add_all, bodies, reading, imports.note)) as case:
        yield case


def _read(shards: Sequence[Shard], reading: Reading, workers: Workers, progress: Progress) -> list[bytes]:
    """In the order of the shards."""
    bodies: dict[int, bytes] = {}
    progress(Step(f"reading {len(shards)} traces", 0.0))
    hosts = {at: shard.hosts for at, shard in enumerate(shards) if shard.hosts is not None}
    for at, body in workers.results(Task(reading, shards, hosts)):
        bodies[at] = body
        progress(Step(f"reading {len(shards)} traces: {len(bodies)} read", len(bodies) / len(shards)))
    return [bodies[at] for at in range(len(shards))]


SeenPaths = dict[int | float | str | None, int | float | str | None]
"""By their contents."""


def _add_all(bodies: Sequence[bytes], reading: Reading, note: Progress, case: Case) -> None:
    seen: SeenPaths = {}
    calls: list[RankCalls] = []
    is_part_found = reading.window is None and reading.range_name is None
    for body in bodies:
        result = decoded(body)
        paths = {source["sha256"]: source["path"] for source in result.sources}
        if paths.keys() <= seen.keys():  # of traces read together, one that is not seen yet brings all of them
            twin = min(paths, key=str)
            note(f"{paths[twin]} has the same content as {seen[twin]}; it is read once.")
            continue
        seen |= paths
        calls += _add(case, result, reading)
        is_part_found |= result.part is not None
    if not is_part_found:
        raise UsageError("Nothing in these traces lies in the part that was asked for. Leave out --window or --range.")
    case.forget_sources()
    align_ranks(case, calls)


def _add(case: Case, result: ShardResult, reading: Reading) -> Sequence[RankCalls]:
    """Adds the sources of a shard, and what was said of them, under numbers of this case."""
    number = {_id(row["id"]): case.insert_returning_id("source", _without_ids(row)) for row in result.sources}
    joined = {_id(row["id"]): _id(row["joined_to"]) for row in result.sources if row["joined_to"] is not None}
    case.db.executemany(_JOIN, [(number[leader], number[guest]) for guest, leader in joined.items()])
    known = renumbered(result, number)
    for source_id, notes in known.notes.items():
        case.insert("source_note", [{"source_id": source_id, "text": text} for text in notes])
    first = min(number.values())
    case.db.execute(KEEP, (first, reading.asked, reading.fingerprint, encoded(known)))
    return known.summaries


def _without_ids(row: SourceRow) -> SourceRow:
    return {name: value for name, value in row.items() if name not in ("id", "joined_to")}


def _id(value: int | float | str | None) -> int:
    return int(value or 0)


_JOIN = "UPDATE source SET joined_to = ? WHERE id = ?"
