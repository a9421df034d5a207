"""Captures the faults that this machine can run, each in a process of its own, and judges the reports on them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.nsys_tool import find_nsys
from diag.probes.faults import table
from diag.probes.faults.fault import Capture, Device, Fault
from diag.probes.faults.loop import STEADY_STATE
from diag.rules import thresholds
from diag.rules.analysis import AnalysisOptions, analyse
from diag.rules.report import Report
from tests.ingest.captures import NoCapture, capture_of
from tests.truth.trial import ANYTHING, Trial, accusation

TWINS = 1
"""Of each fault under each capture."""
STEPS = 40
STEPS_OF: dict[str, int] = {"recompilation": 150}
"""A compilation takes as long as many steps, and a small dose has at least one."""
LONGEST_S = 25.0
"""A capture takes some five seconds; nsys now and then never ends."""
NEVER_SILENT = {"host.hot"}
"""Rules that name what is hottest, of a healthy run as well: a twin is accused if they name the fault."""


@dataclass(frozen=True)
class Planned:
    fault: Fault
    capture: Capture
    device: Device
    dose: float
    seed: int


def plan(
    seed: int, doses: Sequence[float], device: Device, captures: Iterable[Capture], twins: int = TWINS
) -> list[Planned]:
    draw = Random(seed)
    return [
        Planned(fault, capture, device, dose, draw.randrange(1 << 31))
        for fault in table.FAULTS.values()
        for capture in captures
        if capture in fault.rules_on(device)
        for dose in (*doses, *[0.0] * twins)
    ]


@dataclass(frozen=True)
class NotCaptured:
    """A run of which the profiler left no file, however often it was tried."""

    planned: Planned

    def __str__(self) -> str:
        lost = self.planned
        return f"{lost.fault.name} (dose {lost.dose:.2f}, seed {lost.seed}): {lost.capture} wrote no file, tried again"


def trials(planned: Sequence[Planned]) -> Iterator[Trial | NotCaptured]:
    """Two at a time, but for those that are about who gets a core: these run alone, at the end."""
    alone = [each for each in planned if each.fault.needs_switches]
    others = [each for each in planned if not each.fault.needs_switches]
    with ThreadPoolExecutor(max_workers=2) as pool:
        for judged in pool.map(_tried, others):
            yield from judged
    for each in alone:
        yield from _tried(each)


def _tried(planned: Planned) -> Sequence[Trial | NotCaptured]:
    try:
        return run(planned)
    except NoCapture:
        return [NotCaptured(planned)]


def run(planned: Planned) -> list[Trial]:
    """One trial for each rule that must find the fault."""
    with tempfile.TemporaryDirectory() as folder:
        path, injected = _captured(planned, Path(folder))
        with open_inputs([path], ImportOptions(use_cache=False)) as case:
            report = analyse(case, AnalysisOptions(range_name=STEADY_STATE))
    rules = planned.fault.rules_on(planned.device)[planned.capture]
    return [_trial(planned, rule, injected, report) for rule in rules]


def _captured(planned: Planned, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The capture, and what the program says that it injected."""
    program = [sys.executable, "-m", "diag.probes.faults", planned.fault.name]
    program += ["--dose", str(planned.dose), "--seed", str(planned.seed), "--device", planned.device]
    program += ["--steps", str(STEPS_OF.get(planned.fault.name, STEPS))]
    if planned.capture == "torch":
        trace = folder / "run.pt.trace.json.gz"
        command = [*program, "--trace", str(trace)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        return trace, _said(done.stdout)
    nsys = find_nsys()
    assert nsys is not None, "plan() asks for nsys where there is one"
    traced = "nvtx,osrt" if planned.device == "cpu" else "cuda,nvtx,osrt"
    switches = "process-tree" if planned.fault.needs_switches else "none"
    options = (f"--trace={traced}", "--sample=none", f"--cpuctxsw={switches}", "--wait=primary")
    path = capture_of(nsys.path, folder / "capture", program, options=options, longest_s=LONGEST_S, attempts=4)
    return path, _said((folder / "capture.log").read_text())


def _said(output: str) -> dict[str, Any]:
    """The last line that is what the program printed: nsys may have had to run it again."""
    lines = [line for line in output.splitlines() if line.startswith('{"fault"')]
    said: dict[str, Any] = json.loads(lines[-1])
    return said


def _trial(planned: Planned, rule: str, injected: dict[str, Any], report: Report) -> Trial:
    fault, is_sick = planned.fault, planned.dose > 0
    tells = fault.tells[rule].format(name=injected["name"]) if is_sick or rule in NEVER_SILENT else ANYTHING
    return Trial(
        fault=fault.name,
        kind=planned.capture,
        rule=rule,
        dose=planned.dose,
        seed=planned.seed,
        is_sick=is_sick,
        injected=injected["share"],
        reported=accusation(report, rule, tells),
        accused=tuple(sorted(_others_accused(planned, report))),
        threshold=thresholds.load()[rule]["share"],
    )


def _others_accused(planned: Planned, report: Report) -> set[str]:
    """Rules that accuse the run of another fault; where one tells by its drawn name only, none can be mistaken."""
    own = planned.fault.rules_on(planned.device)[planned.capture]
    return {
        rule
        for other in table.FAULTS.values()
        for rule in other.rules_on(planned.device).get(planned.capture, ())
        if other is not planned.fault and rule not in own and "{name}" not in other.tells[rule]
        if accusation(report, rule, other.tells[rule]) is not None
    }
