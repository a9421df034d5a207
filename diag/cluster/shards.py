"""Which inputs are read apart from each other, and which belong to the job as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from diag.ingest.inputs import Input
from diag.ingest.rank_names import rank_of_file_name

TRACES = frozenset(["kineto", "nsys-sqlite", "nsys-report", "nsys-stream"])
"""Kinds of inputs with a timeline, which is what takes time to read."""

MANY = 8
"""Traces that still come into one case, where every view can show them side by side with all their events."""


@dataclass(frozen=True)
class Shard:
    """Traces of one rank, of different tools: they share an axis, and have to be read together."""

    paths: Sequence[Path]
    hosts: Sequence[str] | None = None  # of a cluster, that alone see them; None: all do


def shards_of(inputs: Sequence[Input]) -> tuple[list[Shard], list[Input]]:
    """A shard for each trace, or for those whose names tell the same rank, in the order of the inputs; and the rest."""
    together: dict[int | Path, list[Path]] = {}
    for given in inputs:
        if given.kind in TRACES:
            rank = rank_of_file_name(str(given.path))
            together.setdefault(given.path if rank is None else rank, []).append(given.path)
    return [Shard(paths) for paths in together.values()], [given for given in inputs if given.kind not in TRACES]


def traces_among(inputs: Sequence[Input]) -> int:
    return sum(given.kind in TRACES for given in inputs)
