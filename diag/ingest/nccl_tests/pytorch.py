"""What all-reduce benchmarks in PyTorch print, as they go around (all_reduce_bench.py of BigScience and successors).

Either each rank its duration and bandwidths, trial after trial, or a table of payloads with the average of all trials.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from diag.ingest.nccl_tests.timed import MOST_RANKS, MOST_ROWS, PROGRAMS, Found, Timed
from diag.model import written
from diag.model.collective import Primitive, volume_bytes

TRIAL = re.compile(r"^ ?algo throughput: [\d.]+ bps, [\d.]+ Gbps$")
TABLE = re.compile(r"^\| payload \|\s+busbw\s+\|\s+algbw\s+\|")

_SIZE = re.compile(r"^(\S{1,200}) data size: (\d+(?:\.\d+)?) GB$")
_RANK = re.compile(r"^(\S{1,200}):$")
_BUS = re.compile(r"^ ?busbw: (\d+(?:\.\d+)?) +Gbps$")
_TITLE = re.compile(r"^The average bandwidth.{0,40}? of (\w+) over (\d{1,7}) ranks \((?:\d+ warmups / (\d+) trials)?")
_ROW = re.compile(r"^\|\s*(\d+(?:\.\d+)?)([KMG])i?B \|\s*\d+(?:\.\d+)?GBps \|\s*(\d+(?:\.\d+)?)GBps \|")


@dataclass
class _Trials:
    """What ranks printed, by their names: bytes, and bus bandwidths of one trial after the other."""

    sizes: dict[str, float] = field(default_factory=dict)
    bus_per_s: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))


def read_pytorch(lines: Iterable[str]) -> Found:
    trials, rows = _Trials(), list[Timed]()
    speaker, title = "", None
    for raw in lines:
        line = raw.rstrip()
        if match := _SIZE.match(line):
            trials.sizes[match[1]] = float(match[2]) * 1e9
        elif match := _RANK.match(line):
            speaker = match[1]
        elif (match := _BUS.match(line)) and speaker in trials.sizes:
            trials.bus_per_s[speaker].append(float(match[1]) * 1e9 / 8)
        elif match := _TITLE.match(line):
            title = match
        elif title and (match := _ROW.match(line)) and len(rows) < MOST_ROWS:
            rows += _of_table(title, match)
    return _of_trials(trials) if trials.bus_per_s else Found(rows)


def _of_trials(trials: _Trials) -> Found:
    """One row. Of a trial the fastest rank counts, for the others waited; the first trial set up the communicator."""
    n_ranks, size = len(trials.sizes), max(trials.sizes.values())
    by_trial = [max(of_ranks) for of_ranks in zip(*trials.bus_per_s.values(), strict=False)]
    steady = by_trial[1:]
    if not steady or n_ranks > MOST_RANKS:
        return Found([], ["One trial sets up the communicator: measure several."])
    moved = volume_bytes(Primitive.ALL_REDUCE, size, n_ranks)
    time_ns = moved * 1e9 / median(steady) if min(steady) > 0 else 0.0
    row = Timed(Primitive.ALL_REDUCE, n_ranks, round(size), time_ns, True, dtype="float", reduction="sum",
                repeats=len(steady))  # fmt: skip
    said = f"Of {len(by_trial)} trials the first was left out; each time is that of the fastest rank of a trial."
    return Found([row] if row.is_possible else [], [said])


def _of_table(title: re.Match[str], match: re.Match[str]) -> list[Timed]:
    """Prefixes are powers of two, also where they are written KB."""
    op, algorithm_per_s = PROGRAMS.get(title[1]), float(match[3]) * 1e9
    if op is None or algorithm_per_s <= 0:
        return []
    size = written.size_bytes(f"{match[1]}{match[2]}iB")
    repeats = int(title[3]) if title[3] else None
    row = Timed(op, int(title[2]), size, size * 1e9 / algorithm_per_s, True, repeats=repeats)
    return [row] if row.is_possible else []
