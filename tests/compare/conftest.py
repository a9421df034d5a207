"""Fixtures that compare synthetic runs, taken the way that every input takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from diag.compare.comparison import Comparison, compare
from diag.compare.of_case import recording_of
from diag.compare.recording import Recording, Side, side_of
from diag.rules.analysis import AnalysisOptions
from tests.builders.imported import Recorded, imported

Runs = Recorded | Sequence[Recorded]
"""A side of one run, or of several."""

Compare = Callable[..., Comparison]


def recorded(run: Recorded, folder: Path, **part: Any) -> Recording:
    with imported(run, folder) as case:
        return recording_of(case, AnalysisOptions(**part), case.sources[0].path)


def side(runs: Runs, folder: Path, name: str, **part: Any) -> Side:
    every = list(runs) if isinstance(runs, Sequence) else [runs]
    return side_of(name, [recorded(run, folder, **part) for run in every], lambda said: None)


@pytest.fixture
def compared(tmp_path: Path) -> Compare:
    """The comparison of two runs, or of two sequences of them."""

    def comparison(before: Runs, after: Runs, **options: Any) -> Comparison:
        part = {name: options.pop(name) for name in ("window", "range_name") if name in options}
        sides = [side(runs, tmp_path, name, **part) for runs, name in ((before, "before"), (after, "after"))]
        return compare(*sides, **options)

    return comparison
