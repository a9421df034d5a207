"""Activities of a host thread: what sampled stacks and range names say in plain words."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import PurePosixPath

import numpy as np

from diag.rules.compilers import compilers
from diag.store.case import Case
from diag.timeline.host import HostThread, OsCalls
from diag.timeline.intervals import Integers, Intervals, Times


@dataclass(frozen=True)
class Activity:
    label: str
    do: str
    in_symbols: re.Pattern[str] | None
    in_ranges: re.Pattern[str] | None
    in_calls: re.Pattern[str] | None


@dataclass(frozen=True)
class SampledFunction:
    """A function's part of the samples of a thread, as their leaf."""

    name: str
    count: int
    of: int

    @property
    def share(self) -> float:
        return self.count / self.of if self.of else 0.0


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
def activities() -> Mapping[str, Activity]:
    """By the keys of activities.toml, in its order."""
    tables = tomllib.loads(resources.files("diag.rules").joinpath("activities.toml").read_text("utf-8"))
    return {
        key: Activity(
            label=entry["label"],
            do=entry["do"],
            in_symbols=_any_of(entry["symbols"]),
            in_ranges=_any_of(entry["ranges"]),
            in_calls=_any_of(entry.get("calls", [])),
        )
        for key, entry in tables.items()
    }


def _any_of(patterns: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(patterns)) if patterns else None


def data_loader() -> Activity:
    return activities()["data_loader"]


def is_waiting(name: str) -> bool:
    """Whether a range is one in which its thread waits for another."""
    return activity_of_range(name) is activities()["wait"]


def activity_of_range(name: str) -> Activity | None:
    """Of those in activities.toml, else of the compilers in compilers.toml."""
    known = (*activities().values(), *_compiling())
    return next((a for a in known if a.in_ranges is not None and a.in_ranges.search(name)), None)


@cache
def _compiling() -> Sequence[Activity]:
    return [Activity(f"compiling with {each.label}", each.do, None, each.ranges, None) for each in compilers()]


def activity_of_stack(frames: Iterable[str]) -> tuple[Activity, str] | None:
    """The activity of a stack (frames leaf first) and the frame that tells it; unresolved addresses tell nothing."""
    for frame in frames:
        for activity in activities().values():
            if activity.in_symbols is not None and activity.in_symbols.search(frame):
                return activity, frame
    return None


def sampled_activities(case: Case, thread: HostThread, when: Intervals) -> list[SampleShare]:
    """Activities of the samples that a thread took inside a set of time, most frequent first."""
    stacks = _stacks_within(thread, when)
    frames = _frames(case, stacks)
    counts: Counter[Activity] = Counter()
    symbols: dict[Activity, Counter[str]] = {}
    for stack_id, n_samples in stacks.items():
        if told := activity_of_stack(frames.get(stack_id, ())):
            activity, symbol = told
            counts[activity] += n_samples
            symbols.setdefault(activity, Counter())[symbol] += n_samples
    return [
        SampleShare(activity, count, stacks.total(), [symbol for symbol, _ in symbols[activity].most_common(3)])
        for activity, count in counts.most_common()
    ]


def frames_that_tell(case: Case, stack_ids: Iterable[int], activity: Activity) -> Mapping[int, str]:
    """For each stack with a frame of the activity, the one nearest to its leaf."""
    frames = _frames(case, stack_ids)
    found = ((stack_id, _first_match(activity, symbols)) for stack_id, symbols in frames.items())
    return {stack_id: symbol for stack_id, symbol in found if symbol is not None}


def _first_match(activity: Activity, symbols: Iterable[str]) -> str | None:
    pattern = activity.in_symbols
    return next((symbol for symbol in symbols if pattern and pattern.search(symbol)), None)


def time_in_ranges(thread: HostThread, activity: Activity) -> Intervals:
    """Time inside the ranges of a thread whose name tells the activity."""
    pattern = activity.in_ranges
    labels = [i for i, text in enumerate(thread.range_patterns) if pattern and pattern.search(text)]
    of = np.isin(thread.range_labels, labels)
    return Intervals.union_of(thread.ranges.start_ns[of], thread.ranges.end_ns[of])


def calls_of(thread: HostThread, activity: Activity) -> OsCalls:
    """The OS calls of a thread whose name tells the activity."""
    pattern = activity.in_calls
    names = np.unique(thread.os_calls.name_id).tolist()
    wanted = [name_id for name_id in names if pattern and pattern.search(thread.names[name_id])]
    return thread.os_calls.select(np.isin(thread.os_calls.name_id, wanted))


def _stacks_within(thread: HostThread, when: Intervals) -> Counter[int]:
    """How many samples of a thread inside a set of time have each stack."""
    ids, counts = np.unique(thread.samples.stack_id[when.contains(thread.samples.time_ns)], return_counts=True)
    return Counter(dict(zip(ids.tolist(), counts.tolist(), strict=True)))


def _frames(case: Case, stack_ids: Iterable[int]) -> Mapping[int, list[str]]:
    """Symbols of each stack, leaf first."""
    frames: dict[int, list[str]] = {}
    for stack_id, symbol_id in case.db.execute(_STACKS, (json.dumps(list(stack_ids)),)):
        frames.setdefault(stack_id, []).append(case.names[symbol_id])
    return frames


def most_sampled_function(case: Case, thread: HostThread, when: Intervals) -> SampledFunction | None:
    """The function that most samples of a thread inside a set of time have as their leaf.

    None without samples, and where most of them have no stack.
    """
    leaves = leaves_within(case, thread, when)
    ((leaf, count),) = leaves.most_common(1) or [(None, 0)]
    return None if leaf is None else SampledFunction(leaf, count, leaves.total())


def leaves_within(case: Case, thread: HostThread, when: Intervals) -> Counter[str | None]:
    """How many samples of a thread inside a set of time have each function at their leaf.

    An unresolved function counts for its library, in brackets; None stands for samples without a stack.
    """
    stacks = _stacks_within(thread, when)
    rows = case.db.execute(_LEAVES, (json.dumps(list(stacks)),))
    names = {stack_id: _leaf_name(symbol, module) for stack_id, symbol, module in rows}
    leaves: Counter[str | None] = Counter()
    for stack_id, n_samples in stacks.items():
        leaves[names.get(stack_id)] += n_samples
    return leaves


def _leaf_name(symbol: str | None, module: str | None) -> str | None:
    if symbol is not None and not symbol.startswith("0x"):
        return symbol
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


_LEAVES = """
    SELECT k.id, s.text, m.text
      FROM stack k
      LEFT JOIN name s ON s.id = k.symbol_id
      LEFT JOIN name m ON m.id = k.module_id
     WHERE k.id IN (SELECT value FROM json_each(?)) AND k.depth = 0
"""
_STACKS = """
    SELECT id, symbol_id
      FROM stack
     WHERE id IN (SELECT value FROM json_each(?)) AND symbol_id IS NOT NULL
     ORDER BY id, depth
"""
