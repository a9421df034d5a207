"""Synthetic evidence for each plot; nothing here was measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from diag.ingest.importer import ImportOptions, open_inputs
from diag.model.stall_reasons import classes
from diag.render.plots.gallery import plots
from diag.rules.analysis import AnalysisOptions
from diag.rules.launch_report import Clocks, LaunchOccupancyRow, LaunchRow, SpeedOfLight, StallRow
from diag.rules.stored import report_of
from diag.timeline.rank_steps import RankSteps, RankTable

MS = 1_000_000


def drawn(paths: Sequence[Path]) -> dict[str, str]:
    """The plots of some inputs, by name."""
    with open_inputs(paths, ImportOptions(use_cache=False)) as case:
        return {plot.name: plot.svg for plot in plots(case, report_of(case, AnalysisOptions()))}


def rank(number: int, durations_ms: Sequence[float], *, idle: float | None = 0.25, label: str = "") -> RankSteps:
    """`idle`: share of each step; None: not known."""
    duration_ns = np.array(durations_ms, float) * MS
    return RankSteps(
        source=number + 1,
        rank=number,
        label=label or f"rank {number}",
        pattern="step #",
        start_ns=np.concatenate(([0], np.cumsum(duration_ns)[:-1])).astype(np.int64),
        duration_ns=duration_ns,
        idle_ns=duration_ns * idle if idle is not None else np.full(len(duration_ns), np.nan),
        communication_ns=duration_ns * 0.1,
    )


def job(ranks: int = 4, steps: int = 40) -> RankTable:
    """Steps of 10 ms; the third rank takes half as long again in every fourth, the second a little longer in all."""
    return RankTable(
        [
            rank(number, [10 + 5 * (number == 2 and step % 4 == 0) + 0.7 * (number == 1) for step in range(steps)])
            for number in range(ranks)
        ]
    )


def launch(name: str = "gemm", duration_ms: float = 2.0, **changes: object) -> LaunchRow:
    fields: dict[str, object] = {
        "id": name,
        "spoken_for_by": name,
        "source": 1,
        "number": 0,
        "kind": "kernel",
        "process": 1,
        "device": 0,
        "device_name": "Synthetic GPU",
        "context": 1,
        "stream": 7,
        "name": name,
        "short_name": name,
        "duration_ns": duration_ms * MS,
        "grid": (108, 1, 1),
        "block": (256, 1, 1),
        "configuration": "<<<108, 256>>>",
        "cluster": None,
        "registers_per_thread": 64,
        "clocks": Clocks(1.4e9, 1.2e9, True),
        "cache_control": None,
        "replay": None,
        "passes": None,
        "ranges": [],
        "sol": SpeedOfLight(62.5, 40.0, 31.0),
        "bound": None,
        "roofline": None,
        "occupancy": LaunchOccupancyRow(50.0, 37.5, {}, ["registers", "shared_memory"], 1.0),
        "stalls": [StallRow(key, key, 0.3 / 2**at, "latency") for at, key in enumerate(classes())],
        "vendor_rules": [],
        "timeline": None,
    }
    return LaunchRow(**{**fields, **changes})  # type: ignore[arg-type]
