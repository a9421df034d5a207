"""Everything that `diag doctor` looks at, in the order in which it is told."""

from __future__ import annotations

import os
from collections.abc import Iterator

from diag.collect.ncu_tool import find_ncu
from diag.doctor import extras, formats, machine, nvml, permissions, plugins, profilers
from diag.doctor.check import Check
from diag.ingest.ncu_official import package as ncu_report
from diag.ingest.nsys_tool import Nsys, find_nsys


def examine(stream: object, *, is_terminal: bool, width: int, color: bool, is_quick: bool = False) -> Iterator[Check]:
    """All checks of this machine; the arguments say what standard output is like.

    `is_quick`: without the one that runs a program under nsys.
    """
    nsys = find_nsys()
    yield formats.exports()
    yield formats.reports()
    yield formats.streams(nsys, os.environ)
    yield formats.profiles()
    yield formats.ncu_report_package(ncu_report.version(), is_offered=ncu_report.is_offered_here())
    yield formats.kineto()
    yield formats.recorder_dumps()
    yield formats.cases()
    yield machine.python()
    yield machine.packages()
    yield from extras.checks()
    yield from plugins.checks()
    yield from machine.storage()
    yield from machine.output(stream, width=width, color=color, is_terminal=is_terminal)
    yield from machine.gpu()
    yield from nvml.checks()
    yield from _recording(nsys, is_quick=is_quick)


def _recording(nsys: Nsys | None, *, is_quick: bool) -> Iterator[Check]:
    found = profilers.packages()
    yield profilers.nsys_check(nsys)
    yield profilers.ncu_check(find_ncu())
    yield profilers.packages_check(found)
    if not is_quick:
        yield profilers.nvtx_check(nsys, found)
    held = permissions.capabilities()
    yield permissions.counters(held)
    yield permissions.cpu_samples(held)
    yield permissions.other_processes(held)
