"""Serving faults made by the engine itself on a virtual clock, and what reports say of each and of its healthy twin.

These faults have no share of a window to be held against: a finding has to name the fault, and a twin to have none.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Protocol

from diag.probes.serve import engine_faults
from diag.rules.analysis import analyse
from tests.builders.imported import imported
from tests.builders.serving_log import LoggedRun, ServingLog

DRAWS = 5
"""Of each fault: its dose and its load are drawn."""


class ServingFault(Protocol):
    @property
    def rule(self) -> str: ...

    @property
    def tells(self) -> str:
        """What a finding of the rule says if it is about this fault."""
        ...

    @property
    def entails(self) -> Sequence[str]:
        """Rules that are right to find something, too."""
        ...

    def runs(self, seed: int, *, is_sick: bool) -> Sequence[LoggedRun]:
        """Sick and twin of the same seed have the same load."""
        ...


FAULTS: Mapping[str, ServingFault] = {**engine_faults.FAULTS}


@dataclass(frozen=True)
class ServingTrial:
    fault: str
    rule: str
    seed: int
    is_sick: bool
    told: str | None
    """The title of the finding that names the fault; of twins of any finding of the rule."""
    accused: tuple[str, ...]
    """Rules of other faults that find something in the same run."""

    @property
    def miss(self) -> str | None:
        """What went wrong, in words."""
        what = f"{self.fault} (engine, seed {self.seed})"
        if self.is_sick and self.told is None:
            return f"{what}: {self.rule} did not find it"
        if not self.is_sick and self.told is not None:
            return f"{what}: {self.rule} accuses the healthy twin ({self.told})"
        if self.accused:
            return f"{what}: {'sick' if self.is_sick else 'twin'} also accused by {', '.join(self.accused)}"
        return None


def trials(seed: int, draws: int = DRAWS) -> Iterator[ServingTrial]:
    """Each fault, sick and healthy from the same draw."""
    draw = Random(seed)
    for name in FAULTS:
        for _ in range(draws):
            of_run = draw.randrange(1 << 31)
            yield from (trial(name, of_run, is_sick=is_sick) for is_sick in (True, False))


def trial(name: str, seed: int, *, is_sick: bool) -> ServingTrial:
    fault = FAULTS[name]
    log = ServingLog(fault.runs(seed, is_sick=is_sick))
    with tempfile.TemporaryDirectory() as folder, imported(log, Path(folder)) as case:
        findings = analyse(case).findings
    tells = fault.tells if is_sick else ""
    told = [each.title for each in findings if each.rule == fault.rule and re.search(tells, each.title)]
    others = {each.rule for each in FAULTS.values()} - {fault.rule, *(fault.entails if is_sick else ())}
    accused = sorted(others & {each.rule for each in findings})
    return ServingTrial(name, fault.rule, seed, is_sick, told[0] if told else None, tuple(accused))


HEAD = """
The mini-engine serves the same load twice on a virtual clock, whose steps take what a cost model says
(`diag/probes/serve/simulated.py`): with one thing set wrongly, by a dose that is drawn, and set right
(`diag/probes/serve/engine_faults.py`). A rule has found a fault if its finding names it, and no rule of another fault
may find anything, but for those that the fault entails: who has too few blocks also has them all in use.

| rule | fault | found | silent on twins | accused by others | told of the first |
|---|---|---|---|---|---|
"""


def table(of: Sequence[ServingTrial]) -> str:
    return HEAD + "".join(f"{row}\n" for row in _rows(of))


def _rows(of: Sequence[ServingTrial]) -> Iterator[str]:
    for name in dict.fromkeys(each.fault for each in of):
        sick, twins = ([each for each in of if (each.fault, each.is_sick) == (name, which)] for which in (True, False))
        found, silent = sum(each.told is not None for each in sick), sum(each.told is None for each in twins)
        accused = sorted({rule for each in (*sick, *twins) for rule in each.accused})
        yield (
            f"| {sick[0].rule} | {name} | {found} of {len(sick)} | {silent} of {len(twins)} "
            f"| {', '.join(accused) or 'by none'} | {sick[0].told or '-'} |"
        )
