"""Probes are healthy workloads: the rules that find the faults must not find one in them."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from diag.errors import DiagError
from diag.ingest.importer import ImportOptions, open_inputs
from diag.probes import machine
from diag.probes.catalogue import PROBES
from diag.probes.faults import table
from diag.probes.faults.fault import Device
from diag.probes.runs import Run, Wish, runs_of
from diag.probes.traced import record
from diag.rules.analysis import analyse
from diag.rules.report import Report
from tests.truth.trial import accusation

REASONS: Mapping[tuple[str, str], str] = {
    ("data_pipeline", "host.data_loader"): (
        "It is true of the probe: its loop waits for two workers that decode, and on few cores they take turns with "
        "the model that they feed."
    ),
}
"""Why a rule is right about a probe: by probe and rule."""


@dataclass(frozen=True)
class Judged:
    """What a report on the trace of a probe says."""

    probe: str
    verdict: str
    accused: tuple[str, ...] = ()
    """Rules that find one of the faults in it."""
    not_run: str | None = None
    """Why there is no trace."""

    @property
    def miss(self) -> str | None:
        return f"{self.probe} (a healthy probe): accused by {', '.join(self.accused)}" if self.accused else None

    @property
    def reason(self) -> str | None:
        """Why all accusations are right; None where one is not explained."""
        reasons = [REASONS.get((self.probe.partition(" ")[0], rule)) for rule in self.accused]
        return " ".join(filter(None, reasons)) if reasons and None not in reasons else None


def judged(device: Device) -> Iterator[Judged]:
    """Each probe in its good variant, by torch.profiler."""
    runs = runs_of(list(PROBES.values()), Wish(device), machine.cache_bytes(device), _told)
    for run in {run.probe.name: run for run in runs}.values():
        try:
            report = report_on(run)
        except DiagError as error:
            yield Judged(run.name, "", not_run=str(error))
        else:
            yield Judged(run.name, report.verdict.title, tuple(sorted(accusers(report, device))))


def _told(text: str) -> None:
    print(text, file=sys.stderr)


def report_on(run: Run) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "probe.pt.trace.json.gz"
        record(run, trace)
        with open_inputs([trace], ImportOptions(use_cache=False)) as case:
            return analyse(case)


def accusers(report: Report, device: Device) -> set[str]:
    """Where a rule tells a fault by its drawn name alone, it can accuse no probe of it."""
    return {
        rule
        for fault in table.FAULTS.values()
        for rule in fault.rules_on(device).get("torch", ())
        if "{name}" not in fault.tells[rule]
        if accusation(report, rule, fault.tells[rule]) is not None
    }
