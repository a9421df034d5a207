"""Loads on servers, before and after: matched by how they were offered, latencies with the noise of their requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from diag.compare import noise
from diag.compare.changes import Answer, Change, Repeats, judged
from diag.compare.loads import COMPARED, RATES, Lengths, Load
from diag.compare.recording import Recording
from diag.compare.series import Series
from diag.compare.sides import Pick, Sides
from diag.model.serving_metrics import LATENCY_NAMES, Latency
from diag.serving.buckets import FEWEST_REQUESTS, MOST_BUCKETS, bounds

TAIL = 0.99

SAME_LENGTH = 0.05
"""Mean numbers of output tokens within this share are the same: end-to-end time follows them. Own choice."""


@dataclass(frozen=True)
class RateChange:
    """More is better. Without several runs of a side its noise is not known."""

    load: str
    name: str
    before: float
    after: float
    answer: Answer

    @property
    def ratio(self) -> float | None:
        return self.after / self.before - 1 if self.before else None


@dataclass(frozen=True)
class SettingChange:
    name: str
    before: str
    after: str


@dataclass(frozen=True, eq=False)
class ServingComparison:
    """`place` of a change is the load, where there are several."""

    latencies: Sequence[Change]
    by_output: Sequence[Change]  # median E2E of requests with about equally many actual output tokens
    rates: Sequence[RateChange]
    settings: Sequence[SettingChange]
    unmatched: Sequence[str]  # loads that one side alone has
    other_lengths: Sequence[str]  # loads whose outputs are longer or shorter after: their E2E and rates do not compare


def compare_serving(sides: Sides) -> ServingComparison | None:
    """None where one side has no load on a server."""
    if not all(run.loads for run in sides.runs):
        return None
    keys = matched(sides)
    other = [key for key in keys if outputs_differ(sides, key)]
    latencies = [change for key in keys for change in _latencies(sides, key)]
    by_output = [change for key in keys for change in _by_output(sides, key)]
    return ServingComparison(
        latencies=[_unless_longer(each, other) for each in judged(latencies, sides.resolution_ns)],
        by_output=judged(by_output, sides.resolution_ns),
        rates=[change for key in keys for change in _rates(sides, key, key in other)],
        settings=_settings(sides, keys),
        unmatched=sorted({load.key for run in sides.runs for load in run.loads} - set(keys))
        if not _alone(sides)
        else [],
        other_lengths=other,
    )


# ---- which loads ---------------------------------------------------------------------------------------------------


def matched(sides: Sides) -> list[str]:
    """Keys of the loads that every run has, the heaviest last.

    One load each is matched however it was offered: then it is for the conditions to tell whether both compare.
    """
    if _alone(sides):
        return [sides.runs[0].loads[0].key]
    loads = [load for load in sides.runs[0].loads if all(load_of(run, load.key) for run in sides.runs)]
    return [load.key for load in sorted(loads, key=lambda load: load.offered)]


def at_load(sides: Sides, keys: Sequence[str]) -> str:
    """Which load a headline is about, where there are several."""
    return f" at {keys[-1]}" if keys and not _alone(sides) else ""


def _alone(sides: Sides) -> bool:
    return all(len(run.loads) == 1 for run in sides.runs)


def load_of(run: Recording, key: str) -> Load | None:
    if len(run.loads) == 1:
        return run.loads[0]
    return next((load for load in run.loads if load.key == key), None)


def outputs_differ(sides: Sides, key: str) -> bool:
    """Whether requests put out more or fewer tokens after, be it that a model stopped early."""
    means = [_mean_output(side.runs, key) for side in (sides.before, sides.after)]
    if means[0] is None or means[1] is None:
        return False
    return abs(means[1] - means[0]) > SAME_LENGTH * max(means[0], means[1])


def _mean_output(runs: Sequence[Recording], key: str) -> float | None:
    found = [load.mean_output_tokens for run in runs if (load := load_of(run, key))]
    known = [mean for mean in found if mean is not None]
    return sum(known) / len(known) if known else None


# ---- latencies -----------------------------------------------------------------------------------------------------


def median_change(sides: Sides, which: Latency, key: str) -> Change:
    """Of one latency at one load."""
    return sides.typical(_pick(which, key, "p50"), name=f"{LATENCY_NAMES[which]} P50", repeats=_repeats(which))


def tail_change(sides: Sides, which: Latency, key: str) -> Change:
    return sides.tail(_pick(which, key, "p99"), TAIL, name=f"{LATENCY_NAMES[which]} P99", repeats=_repeats(which))


def _latencies(sides: Sides, key: str) -> list[Change]:
    place = "" if _alone(sides) else key
    of = [made(sides, which, key) for which in COMPARED for made in (median_change, tail_change)]
    return [replace(each, place=place) for each in of if each.before is not None or each.after is not None]


def _pick(which: Latency, key: str, percentile: Literal["p50", "p99"]) -> Pick:
    def pick(run: Recording) -> Series | None:
        load = load_of(run, key)
        of = load.latencies.get(which) if load else None
        value = None if of is None else (of.p50_ns if percentile == "p50" else of.p99_ns)
        return None if of is None or value is None else Series(None, value, value, of.each_ns)

    return pick


def _repeats(which: Latency) -> Repeats:
    return "outputs" if which == "itl" else "requests"


def _unless_longer(change: Change, other: Sequence[str]) -> Change:
    """End-to-end time, and nothing else, hangs on how many tokens came."""
    is_longer = change.name.startswith(LATENCY_NAMES["e2e"]) and bool(other) and change.place in (*other, "")
    return replace(change, answer="not comparable") if is_longer else change


def _by_output(sides: Sides, key: str) -> list[Change]:
    """E2E in buckets of actual output tokens, which hold for both sides."""
    loads = [load_of(run, key) for run in sides.runs]
    every = [load.requests for load in loads if load is not None and load.requests is not None]
    if len(every) < len(sides.runs):
        return []
    place = "" if _alone(sides) else key
    return [
        replace(_of_bucket(sides, key, low, high), place=place)
        for low, high in bounds(np.concatenate([of.output_tokens for of in every]), MOST_BUCKETS)
        if _is_comparable([of.output_tokens[_in_bucket(of, low, high)] for of in every])
    ]


def _is_comparable(tokens: Sequence[NDArray[np.int64]]) -> bool:
    """Whether every run has requests enough in a bucket, and equally long ones."""
    if min(map(len, tokens)) < FEWEST_REQUESTS:
        return False
    means = [float(each.mean()) for each in tokens]
    return max(means) - min(means) <= SAME_LENGTH * max(means)


def _in_bucket(of: Lengths, low: int, high: int) -> NDArray[np.bool_]:
    return (of.output_tokens >= low) & (of.output_tokens <= high)


def _of_bucket(sides: Sides, key: str, low: int, high: int) -> Change:
    def pick(run: Recording) -> Series | None:
        load = load_of(run, key)
        if load is None or load.requests is None:
            return None
        return Series.of(load.requests.e2e_ns[_in_bucket(load.requests, low, high)])

    tokens = f"{low:,}" if low == high else f"{low:,}-{high:,}"
    return sides.typical(pick, name=f"E2E P50, {tokens} output tokens", repeats="requests")


# ---- rates and settings --------------------------------------------------------------------------------------------


def _rates(sides: Sides, key: str, is_longer: bool) -> list[RateChange]:
    made = []
    for name in RATES.values():
        before, after = (
            [load.rates[name] for run in side.runs if (load := load_of(run, key)) and name in load.rates]
            for side in (sides.before, sides.after)
        )
        if before and after:
            answer = "not comparable" if is_longer else _rate_answer(before, after)
            place = "" if _alone(sides) else key
            made.append(RateChange(place, name, float(np.mean(before)), float(np.mean(after)), answer))
    return made


def _rate_answer(before: Sequence[float], after: Sequence[float]) -> Answer:
    shift = noise.of_runs(before, after, 0.0)
    if shift is None:
        is_near = abs(after[0] - before[0]) <= noise.RUN_TO_RUN * before[0]
        return "within noise" if is_near else "cannot tell"
    if shift.p > noise.ERROR:
        return "within noise"
    return "improved" if shift.ns > 0 else "regressed"


def _settings(sides: Sides, keys: Sequence[str]) -> list[SettingChange]:
    """What the engine was set to otherwise; nothing of what one side does not tell."""
    before, after = (_told(side.runs[0], keys) for side in (sides.before, sides.after))
    if not before or not after:
        return []
    return [
        SettingChange(name, before.get(name, "not set"), after.get(name, "not set"))
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def _told(run: Recording, keys: Sequence[str]) -> Mapping[str, str]:
    """Of the first load, as an engine keeps its settings for a sweep."""
    load = load_of(run, keys[0]) if keys else None
    return load.settings if load else {}
