"""Exercises on the mini-engine, on a virtual clock: its scheduler and its memory are real, the time of steps is not."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from diag import __version__
from diag.learn.lesson import Figure, Incident, Lab
from diag.probes.serve.engine_faults import EngineFault, Pair
from diag.probes.serve.logged import LoggedRun, write

LABEL = "on a virtual clock"


def incident(lab: Lab, draw: random.Random, faults: Mapping[str, EngineFault]) -> Incident:
    """One of the faults, in a log that the lab's folder keeps."""
    fault = draw.choice(sorted(faults))
    seed = draw.randrange(1 << 31)
    log = logged(lab.folder, faults[fault].runs(seed, is_sick=True))
    return Incident(
        fault, [("report", str(log))], faults[fault].rule, injected(faults[fault].drawn(random.Random(seed)))
    )


def injected(pair: Pair) -> list[Figure]:
    """Settings of the sick run that are numbers, and other ones in its healthy twin."""
    return [
        Figure("injected", value, "ns" if name.endswith("_ns") else "count", f"{name}; in the healthy twin {twin:g}")
        for sick, healthy in _parts(pair)
        for name, value in _numbers(sick).items()
        if (twin := _numbers(healthy).get(name, 0)) != value
    ]


def _parts(pair: Pair) -> Iterator[tuple[object, object]]:
    for name in ("config", "load", "cost", "host"):
        yield getattr(pair.sick, name), getattr(pair.twin, name)


def _numbers(of: object) -> dict[str, float]:
    return {name: value for name, value in vars(of).items() if isinstance(value, int | float)}


def logged(folder: Path, runs: Sequence[LoggedRun]) -> Path:
    said = [replace(run, label=LABEL, diag_version=__version__) for run in runs]
    return write(folder / "serving.jsonl", said)
