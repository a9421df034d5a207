"""What may be asked about an input: about all of it, or a part, by thresholds that nobody would choose."""

from __future__ import annotations

import random
from pathlib import Path

from diag.rules import thresholds
from diag.rules.analysis import AnalysisOptions

RANGES = ("step #", "step", "ProfilerStep##", "forward", "load", "ncclAllReduce", "train.py(3): step", "never closed")
TIMES = ("", "0ns", "1ns", "100ns", "150us", "0.9ms", "2ms", "1s")
VALUES = (0.0, 1e-9, 0.5, 1.0, 7.0, thresholds.LARGEST)


def some_question(chance: random.Random, folder: Path) -> AnalysisOptions:
    """The whole trace by the shipped thresholds every other time; thresholds are written to the folder."""
    if chance.random() < 0.5:
        return AnalysisOptions()
    return AnalysisOptions(
        window=_some_window(chance) if chance.random() < 0.5 else None,
        range_name=chance.choice(RANGES) if chance.random() < 0.4 else None,
        thresholds=_some_thresholds(chance, folder) if chance.random() < 0.5 else None,
    )


def _some_window(chance: random.Random) -> str:
    start, end = sorted(chance.sample(range(len(TIMES)), 2))
    return f"{TIMES[start]}:{TIMES[end]}"


def _some_thresholds(chance: random.Random, folder: Path) -> Path:
    """All at one value, or each at another one."""
    each = chance.choice((VALUES, (chance.choice(VALUES),)))
    tables = (
        f'["{rule}"]\n' + "".join(f"{name} = {chance.choice(each)!r}\n" for name in table)
        for rule, table in thresholds.load().items()
    )
    path = folder / "thresholds.toml"
    path.write_text("".join(tables))
    return path
