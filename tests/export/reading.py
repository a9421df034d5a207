"""Reads an exported trace the way a strict viewer does, and says what is wrong with it."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

Event = dict[str, Any]


@dataclass(frozen=True)
class Trace:
    document: dict[str, Any]

    @property
    def events(self) -> list[Event]:
        events: list[Event] = self.document["traceEvents"]
        return events

    def of(self, phase: str, category: str | None = None) -> list[Event]:
        return [e for e in self.events if e["ph"] == phase and category in (None, e.get("cat"))]

    def named(self, name: str) -> list[Event]:
        return [event for event in self.of("X") if event["name"] == name]

    @property
    def tracks(self) -> dict[tuple[int, int], str]:
        return {(e["pid"], e["tid"]): e["args"]["name"] for e in self.of("M") if e["name"] == "thread_name"}

    @property
    def groups(self) -> dict[int, str]:
        return {e["pid"]: e["args"]["name"] for e in self.of("M") if e["name"] == "process_name"}

    def track(self, event: Event) -> str:
        return self.tracks[event["pid"], event["tid"]]


def read(path: Path) -> Trace:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return parse(data.decode("ascii"))


def parse(text: str) -> Trace:
    return Trace(json.loads(text, parse_float=Decimal, parse_constant=_no_constant))


def _no_constant(name: str) -> object:
    raise AssertionError(f"{name} is no JSON")


def time_ns(value: Decimal) -> int:
    """Nanoseconds of a time in microseconds, which must be exact."""
    ns = value * 1000
    assert ns == int(ns), f"{value} is between two nanoseconds"
    return int(ns)


def faults(trace: Trace) -> list[str]:
    """What Perfetto would drop or draw wrongly."""
    return [*_unnamed(trace), *_crossing(trace), *_loose_arrows(trace)]


def _unnamed(trace: Trace) -> list[str]:
    tracks, groups = trace.tracks, trace.groups
    numbers = [number for _, number in tracks]
    wrong = [f"row {number} is in two groups" for number in set(numbers) if numbers.count(number) > 1]
    for event in trace.events:
        if event["ph"] == "M":
            continue
        if event["pid"] not in groups:
            wrong.append(f"no name for the group of {event}")
        if event["ph"] != "C" and (event["pid"], event["tid"]) not in tracks:
            wrong.append(f"no name for the row of {event}")
        if event["ts"] < 0 or event.get("dur", 0) < 0:
            wrong.append(f"negative time: {event}")
    return wrong


def _crossing(trace: Trace) -> list[str]:
    """Slices of one row that overlap without nesting, found with a stack."""
    wrong = []
    for track, slices in _by_track(trace).items():
        # Stable: of equal starts and ends the order of the file decides who is the parent.
        slices.sort(key=lambda s: (s[0], -s[1]))
        around: list[int] = []
        for start, end in slices:
            while around and around[-1] <= start:
                around.pop()
            if around and end > around[-1]:
                wrong.append(f"row {track}: [{start}, {end}) outlives the slice around it, which ends at {around[-1]}")
            around.append(end)
            if len(around) > 255:
                wrong.append(f"row {track} is deeper than 255 at {start}")
    return wrong


def _by_track(trace: Trace) -> dict[tuple[int, int], list[tuple[int, int]]]:
    by_track: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in trace.of("X"):
        start = time_ns(event["ts"])
        by_track[event["pid"], event["tid"]].append((start, start + time_ns(event["dur"])))
    return by_track


def overlapping(trace: Trace, category: str) -> list[str]:
    """Slices of a category that share a row and a nanosecond."""
    wrong = []
    by_track: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in trace.of("X", category):
        start = time_ns(event["ts"])
        by_track[event["pid"], event["tid"]].append((start, start + time_ns(event["dur"])))
    for track, slices in by_track.items():
        slices.sort()
        wrong += [f"row {track}: {a} and {b}" for a, b in pairwise(slices) if b[0] < a[1]]
    return wrong


def _loose_arrows(trace: Trace) -> list[str]:
    """Ends of arrows without a slice around them that stands earlier in the file, and ends without a beginning."""
    begun: dict[tuple[int, int], set[int]] = defaultdict(set)
    open_arrows: set[int] = set()
    wrong = []
    for event in trace.events:
        if event["ph"] == "X":
            begun[event["pid"], event["tid"]].add(time_ns(event["ts"]))
        if event["ph"] in "sf" and time_ns(event["ts"]) not in begun[event["pid"], event["tid"]]:
            wrong.append(f"no slice begins where {event} points")
        if event["ph"] == "s":
            if event["id"] in open_arrows:
                wrong.append(f"two arrows are called {event['id']}")
            open_arrows.add(event["id"])
        if event["ph"] == "f" and event["id"] not in open_arrows:
            wrong.append(f"{event} ends what did not begin")
    return wrong
