"""Reads a file that holds what ncu printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from diag.errors import InputError
from diag.ingest.launch_records import LaunchRecord, LaunchReport, ReportFacts
from diag.ingest.ncu_output import csv_pages, text_page
from diag.ingest.ncu_output.detect import is_remark, remark_in
from diag.ingest.ncu_output.lines import ends_in_line, lines_of
from diag.ingest.ncu_output.numbers import decimal_mark
from diag.ingest.ncu_output.printed import Printed, Records
from diag.ingest.ncu_output.rows import Header, Losses

SAMPLE_FIGURES = 2000

MOST_REMARKS = 5
LONGEST_NAME = 200
MOST_NAMES = 8

LOOPBACK = "127.0.0.1"


def read_csv(path: Path) -> LaunchReport:
    """Tables of `ncu --csv`. Raises InputError when the file has no launch."""
    remarks, losses = _Remarks(), Losses()
    return _report(path, csv_pages.launches(remarks.without(lines_of(path)), losses), remarks, losses)


def read_text(path: Path) -> LaunchReport:
    """Pages of ncu without --csv. Raises InputError when the file has no launch."""
    remarks, losses = _Remarks(), Losses()
    lines = remarks.without(_whole(lines_of(path), path, losses))
    printed = ((None, launch) for launch in text_page.launches(lines) if launch.figures or launch.rules)
    return _report(path, printed, remarks, losses)


def _whole(lines: Iterator[str], path: Path, losses: Losses) -> Iterator[str]:
    """Without a last line that has no end: a figure there may have lost digits."""
    last: str | None = None
    for line in lines:
        if last is not None:
            yield last
        last = line
    losses.is_cut = ends_in_line(path)
    if last is not None and not losses.is_cut:
        yield last


Launches = Iterator[tuple[Header | None, Printed]]


def _report(path: Path, printed: Launches, remarks: _Remarks, losses: Losses) -> LaunchReport:
    first = _first_launches(printed)
    if not first:
        raise InputError(f"{path} holds no launch that Nsight Compute printed.{remarks.sentence()}")
    header, launch = first[0]
    texts = "\n".join(figure.text for _, launch in first for figure in launch.figures)
    records = Records(decimal_mark(texts, is_of_ncu=header is None or header.is_of_ncu))
    problems: list[str] = []
    facts = ReportFacts(
        host=launch.identity.host if launch.identity.host != LOOPBACK else None,
        lacks=_UNTOLD,
        notes=[_ORIGIN],
    )
    return LaunchReport(facts, _records(chain(first, printed), records, remarks, losses, problems), problems)


def _first_launches(printed: Launches) -> Sequence[tuple[Header | None, Printed]]:
    """Enough of them to tell the locale of their numbers."""
    first = []
    n_figures = 0
    for header, launch in printed:
        first.append((header, launch))
        n_figures += len(launch.figures)
        if n_figures >= SAMPLE_FIGURES:
            break
    return first


def _records(
    printed: Launches, records: Records, remarks: _Remarks, losses: Losses, problems: list[str]
) -> Iterator[LaunchRecord]:
    for _, launch in printed:
        yield records.record(launch)
    problems += [*_notes(records), *remarks.said, *_losses(losses)]


_ORIGIN = (
    "This is what ncu printed, not its report: it has no instructions and no samples of them, and does not say under "
    "which clocks and caches it measured."
)


_UNTOLD = ("launch_stall", "launch_instruction", "launch_rule", "launch_range")
"""Tables of the case that ncu prints nothing for, or not on each page, or only where it was captured."""


# ---- what is told about the file -----------------------------------------------------------------------------------


@dataclass
class _Remarks:
    """What ncu said while it worked, between the lines that are read."""

    said: list[str] = field(default_factory=list)

    def without(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            if not line.startswith("==") or not is_remark(line):
                yield line
            elif not line.startswith("==PROF==") and len(self.said) < MOST_REMARKS:
                self.said.append(f"ncu said: {remark_in(line)}.")

    def sentence(self) -> str:
        return "".join(f" {remark}" for remark in self.said[:1])


def _notes(records: Records) -> Iterator[str]:
    if records.is_scaled:
        yield (
            "Figures were printed in scaled units and rounded, 32,768 byte as 32.77 Kbyte. "
            "ncu --print-units base keeps their digits."
        )
    if records.is_details:
        yield (
            "The details page has few of the metrics that were collected. What rules miss may be on the raw page "
            "(ncu --import REPORT --csv --page raw --print-units base), or in the report."
        )
    if records.is_summary:
        yield (
            "This is a summary (ncu --print-summary): what counts as a launch is the average of all launches of a "
            "kernel. Without the option, ncu prints each."
        )
    if records.is_without_device:
        yield (
            "Its page does not say on which device a kernel ran. ncu up to 2022 says that, and grid and block, on the "
            "raw page alone (ncu --page raw)."
        )
    if records.uncollected:
        yield f"ncu had no value for {_some(records.uncollected)}."
    if records.unknown_labels:
        yield (
            f"Not known by their labels, and kept under them: {_some(records.unknown_labels)}. "
            "ncu --page raw prints the names of metrics."
        )


def _losses(losses: Losses) -> Iterator[str]:
    if losses.unfit:
        yield f"{losses.unfit} rows do not fit the header of their table and were left out."
    if losses.is_cut:
        yield "The file ends in the middle of a line. Print it again."


def _some(names: dict[str, None]) -> str:
    shown = ", ".join(name[:LONGEST_NAME] for name in list(names)[:MOST_NAMES])
    return shown if len(names) <= MOST_NAMES else f"{shown} and {len(names) - MOST_NAMES} more"
