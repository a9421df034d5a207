"""Reads a report: its launches one after the other, with what of them cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from google.protobuf.message import DecodeError

from diag.ingest.launch_records import LaunchRecord, LaunchReport
from diag.ingest.ncu_rep.container import RESULTS, Block, Container, Kind, opened
from diag.ingest.ncu_rep.facts import facts_of
from diag.ingest.ncu_rep.messages import ProfileResult, RangeResult, SourceData
from diag.ingest.ncu_rep.records import device_of, kernel_record, range_record
from diag.ingest.ncu_rep.sources import Sources
from diag.ingest.ncu_rep.values import metrics_of, text
from diag.model.units import count

BY_INSTRUCTION = frozenset(["inst_executed", "smsp__sass_inst_executed", "smsp__pcsamp_sample_count"])
"""Metrics that have a value for each instruction, where a launch was measured so closely."""


def read(path: Path) -> LaunchReport:
    """Raises InputError when the file is no report, or when it is cut before its first block."""
    reader = _Reader(opened(path))
    facts = facts_of(reader.container, reader.sources.files)
    launches = reader.launches()
    if not facts.devices:  # it is cut before its list of devices: the first launch tells of its own
        first = next(launches, None)
        described = device_of(first) if first else None
        facts = replace(facts, devices=[described] if described else [])
        launches = chain([first] if first else [], launches)
    return LaunchReport(facts, launches, reader.problems)


class _Reader:
    def __init__(self, container: Container) -> None:
        self.container = container
        self.strings = [text(each) for block in container.blocks for each in block.header.strings.strings]
        self.sources = Sources()
        self.problems: list[str] = []
        self.seen: Counter[str] = Counter()

    def launches(self) -> Iterator[LaunchRecord]:
        for kind, block, message in self.container.messages():
            self.seen[kind] += 1
            try:
                if kind == "source":
                    self.sources.add(SourceData.FromString(message))
                elif kind != "unknown" and (launch := self._launch(kind, block, message)):
                    yield launch
            except DecodeError:
                self.seen["damaged source" if kind == "source" else "damaged"] += 1
        self.problems += [*self._problems(), *self.sources.problems]

    def _launch(self, kind: Kind, block: Block, message: bytes) -> LaunchRecord | None:
        """None for a message that says nothing."""
        result = (ProfileResult if kind == "kernel" else RangeResult).FromString(message)
        metrics = metrics_of(result.metrics, self.strings)
        self.seen["nameless metric"] += len(result.metrics) - len(metrics)
        self.seen["unsupported"] += bool(result.is_unsupported)
        if not metrics and not (kind == "kernel" and result.function):
            self.seen["damaged"] += 1
            return None
        self.seen["launch"] += 1
        self.seen["by instruction"] += any(each.instances and each.name in BY_INSTRUCTION for each in metrics)
        if kind == "kernel":
            return kernel_record(result, metrics, block, self.sources)
        return range_record(result, metrics, block, kind)

    def _problems(self) -> Iterator[str]:
        seen = self.seen
        if not seen["launch"]:
            yield "It holds no launch: ncu met no kernel that it was to measure, or was stopped before the first one."
        if missing := self._promised() - sum(seen[kind] for kind in RESULTS):
            yield f"{_launches(missing)} that the report promises {_are(missing)} missing."
        if n := seen["damaged"]:
            yield f"{_launches(n)} {_are(n)} damaged and left out."
        if n := seen["unknown"]:
            yield f"{count(n, 'result')} {_are(n)} of a kind that diag does not know, and left out."
        if n := seen["nameless metric"]:
            yield f"{count(n, 'metric')} {_are(n)} left out: the report does not hold their names."
        if n := seen["unsupported"]:
            yield f"{_launches(n)} ran on a device that this ncu did not fully support: metrics may be missing."
        if seen["by instruction"]:
            yield "Instructions are known by address and line: their text (SASS) takes --with-ncu-report."
        if n := seen["damaged source"]:
            yield f"{count(n, 'piece')} of machine code or source code {_are(n)} damaged."

    def _promised(self) -> int:
        headers = [block.header for block in self.container.blocks]
        return sum(each.n_results + each.n_ranges + each.n_command_lists + each.n_graphs for each in headers)


def _launches(n: int) -> str:
    return count(n, "launch")


def _are(n: int) -> str:
    return "is" if n == 1 else "are"
