"""Real exports against figures that were computed apart from the project: they must agree exactly."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.rules.analysis import analyse
from diag.rules.finding import Finding
from diag.rules.report import Report
from diag.rules.timeline_report import DeviceRow
from tests.rules.asking import figures

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")

FOLDER = Path(REPORTS or "no-reports")
NAMES = sorted(path.stem for path in (FOLDER / "truth").glob("*.json")) or ["none"]

MEMORY_OF_NUMBER = {"2": "device"}  # the oldest file has no labels, and the truth shows its numbers
each_report = pytest.mark.parametrize("name", NAMES)


@cache
def report_of(name: str) -> Report:
    with open_inputs([FOLDER / "nsys" / f"{name}.sqlite"], ImportOptions(use_cache=False)) as case:
        return analyse(case)


def truth_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "truth" / f"{name}.json").read_text())
    return found


def account(device: DeviceRow) -> dict[str, float]:
    return {
        "pid": device.process,
        "device": device.device,
        "window_ns": device.window_ns,
        "busy_ns": device.busy_ns,
        "idle_ns": device.idle_ns,
        "idle_pct": round(100 * device.idle_ns / device.window_ns, 3),
        "kernel_ns": device.kernel_ns,
        "copy_ns": device.copy_ns,
        "memset_ns": device.memset_ns,
        "graph_ns": device.graph_ns,
        "n_kernel": device.n_kernels,
        "n_copy": device.n_copies,
        "n_memset": device.n_memsets,
        "n_graph": device.n_graphs,
    }


def memory_kind(label: str) -> str:
    return MEMORY_OF_NUMBER.get(label, label.removeprefix("CUDA_MEMOPR_MEMORY_KIND_").lower())


@each_report
def test_accounts_of_devices(name: str) -> None:
    assert [account(device) for device in report_of(name).devices] == truth_of(name)["devices"]


@each_report
def test_largest_kernels_by_short_name(name: str) -> None:
    totals: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for kernel in report_of(name).kernels:
        totals[kernel.short_name] += kernel.total_ns
        counts[kernel.short_name] += kernel.count
    largest = [{"name": text, "count": counts[text], "total_ns": total} for text, total in totals.most_common(3)]
    assert largest == truth_of(name)["top_kernels"]


@each_report
def test_copies_by_memory_kind(name: str) -> None:
    found: dict[tuple[str, str], list[int]] = {}
    for device in report_of(name).devices:
        for copy in device.copies:
            count, n_bytes = found.get((copy.src, copy.dst), [0, 0])
            found[copy.src, copy.dst] = [count + copy.count, n_bytes + copy.bytes]
    expected: Mapping[str, list[int]] = truth_of(name)["copies"]
    assert found == {
        (memory_kind(src), memory_kind(dst)): counted
        for (src, dst), counted in ((pair.split("->"), counted) for pair, counted in expected.items())
    }


def findings(name: str, rule: str) -> Iterator[Finding]:
    """Of one rule, in the order of the devices."""
    found = [finding for finding in report_of(name).findings if finding.rule == rule]
    yield from sorted(found, key=lambda finding: finding.subject.device or 0)


def milliseconds(ns: float | int | str) -> float:
    return round(float(ns) / 1e6, 1)


# ---- two H100 that wait for their link -------------------------------------------------------------------------------

H100 = "h100x2-offload"


def test_h100_verdict() -> None:
    title = "Transfer-bound: pinned host→device at 27.7 GB/s; not idle, not CPU-bound"
    assert report_of(H100).verdict.title == title


def test_h100_is_not_idle() -> None:
    devices = report_of(H100).devices
    assert [round(100 * device.idle_ns / device.window_ns, 2) for device in devices] == [0.68, 0.67]
    assert [round(device.kernel_ns / 1e6) for device in devices] == [22, 22]
    clear = [answer.subject.device for answer in report_of(H100).clear if answer.rule == "idle.gpu"]
    assert sorted(device for device in clear if device is not None) == [0, 1]


def test_h100_copies() -> None:
    first, second = report_of(H100).devices
    for device in (first, second):
        by_kind: Counter[str] = Counter()
        for copy in device.copies:
            by_kind[copy.kind] += copy.busy_ns
        assert round(by_kind["h2d"] / device.window_ns, 3) == 0.950
        assert milliseconds(by_kind["d2d"]) == pytest.approx(19.6, abs=0.1)
    assert milliseconds(sum(copy.busy_ns for copy in first.copies if copy.kind == "h2d")) == 920.9


def test_h100_could_win_its_kernels_at_most() -> None:
    for finding in findings(H100, "transfer.bound"):
        assert finding.recoverable_ns is not None
        assert round(finding.recoverable_ns / 1e6) == 22
        assert "22." in finding.counterfactual
        assert figures(finding)["rate h2d pinned→device"] == pytest.approx(27.7e9, rel=0.002)


def test_h100_hosts_are_ahead() -> None:
    ahead = list(findings(H100, "launch.back_pressure"))
    assert [figures(finding)["command buffer full"] for finding in ahead] == [99, 99]


def test_h100_has_little_pageable_memory() -> None:
    assert [answer.rule for answer in report_of(H100).clear].count("transfer.pageable") == 2


def test_h100_kernels_without_a_launch_are_admitted() -> None:
    for finding in findings(H100, "capture.coverage"):
        assert figures(finding)["share of kernels"] == pytest.approx(0.53, abs=0.005)


# ---- a T4 that waits for text files ----------------------------------------------------------------------------------

T4 = "t4-power-iteration"


def test_t4_idles() -> None:
    (finding,) = findings(T4, "idle.gpu")
    found = figures(finding)
    assert finding.share == pytest.approx(0.368, abs=0.0005)
    assert milliseconds(found["idle"]) == 658.5
    assert round(float(found["host late"]) / 1e6) == 654
    assert re.search(r"44 gaps of .* make 652\.\d ms, 98\.7 % of it inside 'IO #'", finding.claim)


def test_t4_was_formatting_numbers_and_not_writing() -> None:
    (finding,) = findings(T4, "idle.gpu")
    assert "formatting numbers" in finding.title
    assert "IO #" in finding.title
    assert milliseconds(figures(finding)["in write()"]) == 10.7
    assert report_of(T4).verdict.finding_id == finding.id
