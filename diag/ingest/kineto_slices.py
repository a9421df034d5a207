"""Slices of a PyTorch trace, their times in parallel, and the columns of the case that follow from their arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from diag.ingest.collectives import Row
from diag.ingest.kineto_events import NO_ARGS, Args, Event
from diag.ingest.kineto_threads import Key
from diag.ingest.ranges import RangeChunk
from diag.model.operators import MODELLED
from diag.timeline.ranges import OPEN_NS

Times = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Slices:
    """Events of one kind with their times in parallel."""

    events: Sequence[Event]
    start_ns: Times
    end_ns: Times  # OPEN_NS where there is no duration

    def args(self) -> list[Args]:
        return [event.args or NO_ARGS for event in self.events]

    def names(self) -> list[str]:
        return [event.name for event in self.events]

    def select(self, chosen: NDArray[np.bool_]) -> Slices:
        if chosen.all():
            return self
        kept = [event for event, keep in zip(self.events, chosen.tolist(), strict=True) if keep]
        return Slices(kept, self.start_ns[chosen], self.end_ns[chosen])


_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[A-Za-z]")
_DIGIT_OR_LETTER = re.compile(r"[0-9A-Za-z]")


def shapes(slices: Slices) -> list[str | None]:
    return [_json_text(args.shapes, _DIGIT) or _json_text(args.shapes_2020, _DIGIT) for args in slices.args()]


def dtypes(slices: Slices) -> list[str | None]:
    return [_json_text(args.dtypes, _LETTER) for args in slices.args()]


def inputs(slices: Slices) -> list[str | None]:
    """Of the operators whose work they tell: they are long, and of no use with the others."""
    return [
        _json_text(args.inputs, _DIGIT_OR_LETTER) if event.name in MODELLED else None
        for event, args in zip(slices.events, slices.args(), strict=True)
    ]


def _json_text(raw: msgspec.Raw, telling: re.Pattern[str]) -> str | None:
    """The text of an argument, or None when it says nothing: not told to record, old profilers write empty lists."""
    text = str(raw, "utf-8", "replace")
    return text if telling.search(text) and text != "null" else None


def host_place(chunk: RangeChunk, index: int) -> Row:
    end_ns = int(chunk.end_ns[index])
    return {
        "thread_id": int(chunk.thread_id[index]),
        "start_ns": int(chunk.start_ns[index]),
        "end_ns": None if end_ns == OPEN_NS else end_ns,
    }


def no_negative(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


def axes(triples: Sequence[tuple[int, int, int] | None]) -> list[tuple[int | None, ...]]:
    nothing = (None, None, None)
    return list(zip(*[triple or nothing for triple in triples], strict=True))


@lru_cache(maxsize=1 << 12)
def flow_id(identity: Key) -> int | None:
    try:
        number = identity if isinstance(identity, int) else int(identity, 0)
    except ValueError:
        return None
    return number if 0 < number < 2**63 else None
