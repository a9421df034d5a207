"""Activities of a host thread: what sampled stacks and range names say in plain words."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import PurePosixPath

import numpy as np

from diag.store.case import Case
from diag.timeline.host import HostThread
from diag.timeline.intervals import Integers, Intervals, Times


@dataclass(frozen=True)
class Activity:
    label: str
    do: str
    in_symbols: re.Pattern[str]
    in_ranges: re.Pattern[str] | None


@dataclass(frozen=True)
class SampleShare:
    """An activity's part of the samples of a thread within a set of time."""

    activity: Activity
    count: int
    of: int
    symbols: Sequence[str]  # the functions that told, most frequent first

    @property
    def share(self) -> float:
        return self.count / self.of if self.of else 0.0


@cache
def activities() -> Sequence[Activity]:
    tables = tomllib.loads(resources.files("diag.rules").joinpath("activities.toml").read_text("utf-8"))
    return [
        Activity(
            label=entry["label"],
            do=entry["do"],
            in_symbols=re.compile("|".join(entry["symbols"])),
            in_ranges=re.compile("|".join(entry["ranges"])) if entry["ranges"] else None,
        )
        for entry in tables.values()
    ]


def data_loader() -> Activity:
    return activities()[0]


def activity_of_range(name: str) -> Activity | None:
    return next((a for a in activities() if a.in_ranges is not None and a.in_ranges.search(name)), None)


def activity_of_stack(frames: Iterable[str]) -> tuple[Activity, str] | None:
    """The activity of a stack (frames leaf first) and the frame that tells it; unresolved addresses tell nothing."""
    for frame in frames:
        for activity in activities():
            if activity.in_symbols.search(frame):
                return activity, frame
    return None


def sampled_activities(case: Case, thread: HostThread, when: Intervals) -> list[SampleShare]:
    """Activities of the samples that a thread took inside a set of time, most frequent first."""
    stack_ids = thread.samples.stack_id[when.contains(thread.samples.time_ns)].tolist()
    frames = _frames(case, set(stack_ids))
    counts: Counter[Activity] = Counter()
    symbols: dict[Activity, Counter[str]] = {}
    for stack_id in stack_ids:
        if told := activity_of_stack(frames.get(stack_id, ())):
            activity, symbol = told
            counts[activity] += 1
            symbols.setdefault(activity, Counter())[symbol] += 1
    return [
        SampleShare(activity, count, len(stack_ids), [symbol for symbol, _ in symbols[activity].most_common(3)])
        for activity, count in counts.most_common()
    ]


def _frames(case: Case, stack_ids: set[int]) -> Mapping[int, list[str]]:
    """Symbols of each stack, leaf first."""
    frames: dict[int, list[str]] = {}
    for stack_id in stack_ids:
        rows = case.db.execute(_STACK, (stack_id,))
        frames[stack_id] = [case.names[symbol_id] for (symbol_id,) in rows]
    return frames


def most_sampled_function(case: Case, thread: HostThread, when: Intervals) -> tuple[str, float] | None:
    """The function that most samples of a thread inside a set of time have as their leaf, and its share of them.

    An unresolved leaf counts for its library; None without samples.
    """
    stack_ids = thread.samples.stack_id[when.contains(thread.samples.time_ns)].tolist()
    leaves = Counter(leaf_of(case, stack_id) for stack_id in stack_ids)
    ((leaf, count),) = leaves.most_common(1) or [(None, 0)]
    return None if leaf is None else (leaf, count / len(stack_ids))


def leaf_of(case: Case, stack_id: int) -> str | None:
    """Function at the leaf of a stack; its library in brackets where the symbol is unresolved; None without a stack."""
    row = case.db.execute(_LEAF, (stack_id,)).fetchone()
    symbol, module = row or (None, None)
    if symbol is not None and not symbol.startswith("0x"):
        return str(symbol)
    return f"[{PurePosixPath(module).name}]" if module else None


def longest_os_calls(case: Case, thread: HostThread, when: Intervals, *, most: int = 3) -> list[tuple[str, int]]:
    """Names of the OS calls that took most of a set of time, with that time in ns."""
    return _longest(case, thread.os_calls.name_id, thread.os_calls.start_ns, thread.os_calls.end_ns, when, most)


def longest_cuda_calls(case: Case, thread: HostThread, when: Intervals, *, most: int = 3) -> list[tuple[str, int]]:
    """Names of the CUDA calls that took most of a set of time, with that time in ns."""
    return _longest(case, thread.calls.name_id, thread.calls.start_ns, thread.calls.end_ns, when, most)


def _longest(
    case: Case, name_ids: Integers, starts_ns: Times, ends_ns: Times, when: Intervals, most: int
) -> list[tuple[str, int]]:
    inside_ns = when.measure_within(starts_ns, ends_ns)
    names, index = np.unique(name_ids, return_inverse=True)
    totals = np.bincount(index, inside_ns, len(names)).astype(np.int64)
    ranked = sorted(zip(names.tolist(), totals.tolist(), strict=True), key=lambda pair: -pair[1])
    return [(case.names[name_id], total_ns) for name_id, total_ns in ranked[:most] if total_ns > 0]


_LEAF = """
    SELECT s.text, m.text
      FROM stack k
      LEFT JOIN name s ON s.id = k.symbol_id
      LEFT JOIN name m ON m.id = k.module_id
     WHERE k.id = ? AND k.depth = 0
"""
_STACK = "SELECT symbol_id FROM stack WHERE id = ? AND symbol_id IS NOT NULL ORDER BY depth"
