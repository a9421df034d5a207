"""The JSON report against its contract, `diag.report/1`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import diag
from diag.render import render_json
from diag.rules.finding import CannotTell, Evidence, Subject
from diag.rules.report import ChangedThreshold, Part, Report

Shape = Any
"""A type, a tuple of alternatives (None for null), a list of one shape, or a dict of key to shape."""

MAYBE_TEXT = (str, None)
MAYBE_INT = (int, None)

SUBJECT = {
    "source": int,
    "process": int,
    "device": int,
    "context": int,
    "stream": int,
    "range": str,
    "kernel": str,
    "ranks": [int],
    "window": [int],
}

CONTRACT: Shape = {
    "schema": str,
    "diag_version": str,
    "sources": [
        {
            "id": int,
            "kind": str,
            "path": str,
            "sha256": str,
            "tool": MAYBE_TEXT,
            "tool_version": MAYBE_TEXT,
            "schema_version": MAYBE_TEXT,
            "rank": MAYBE_INT,
            "graph_mode": MAYBE_TEXT,
            "time_resolution_ns": int,
            "capabilities": dict,
        }
    ],
    "verdict": {"title": str, "summary": str, "finding_id": MAYBE_TEXT},
    "devices": [
        {
            "source": int,
            "process": int,
            "device": int,
            "uuid": MAYBE_TEXT,
            "name": MAYBE_TEXT,
            "window": [int],
            "window_ns": int,
            "lead_ns": int,
            "tail_ns": int,
            "busy_ns": int,
            "busy_is_upper_bound": bool,
            "busy_is_lower_bound": bool,
            "idle_ns": int,
            "kernel_ns": int,
            "copy_ns": int,
            "memset_ns": int,
            "graph_ns": int,
            "comm_ns": int,
            "exposed_comm_ns": int,
            "n_kernels": int,
            "n_copies": int,
            "n_memsets": int,
            "n_graphs": int,
            "copies": [{"kind": str, "src": str, "dst": str, "count": int, "bytes": int, "busy_ns": int}],
        }
    ],
    "kernels": [
        {
            "source": int,
            "process": int,
            "device": int,
            "name": str,
            "short_name": str,
            "count": int,
            "total_ns": int,
            "median_ns": int,
            "min_ns": int,
            "max_ns": int,
            "share_of_kernel_time": float,
            "share_of_window": float,
            "occupancy": (dict, None),
            "roofline": (dict, None),
        }
    ],
    "launches": list,
    "ranks": list,
    "groups": list,
    "requests": dict,
    "ceilings": list,
    "findings": [
        {
            "id": str,
            "rule": str,
            "severity": str,
            "title": str,
            "claim": str,
            "confidence": str,
            "counterfactual": str,
            "subject": SUBJECT,
            "share": (float, None),
            "recoverable_ns": MAYBE_INT,
            "overlaps": [str],
            "evidence": [{"label": str, "value": (int, float, str), "unit": str, "formula": str, "sql": MAYBE_TEXT}],
            "refute": str,
            "next": [str],
        }
    ],
    "clear": [{"rule": str, "subject": SUBJECT}],
    "cannot_tell": [{"rule": str, "subject": SUBJECT, "because": str}],
}


def deviations(value: Any, shape: Shape, where: str = "report") -> list[str]:
    """What of the value is not as the shape says. Keys may be added; those of a subject may be absent."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{where}: no object"]
        wanted = {key: each for key, each in shape.items() if shape is not SUBJECT or key in value}
        missing = [f"{where}.{key}: missing" for key in wanted if key not in value]
        return missing + [
            d for key in wanted if key in value for d in deviations(value[key], wanted[key], f"{where}.{key}")
        ]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{where}: no list"]
        return [d for at, item in enumerate(value) for d in deviations(item, shape[0], f"{where}[{at}]")]
    types = shape if isinstance(shape, tuple) else (shape,)
    fits = any(value is None if each is None else type(value) is each for each in types)
    return [] if fits else [f"{where}: {value!r}"]


def test_every_report_keeps_the_contract(any_report: Report) -> None:
    document = json.loads(render_json(any_report))
    assert deviations(document, CONTRACT) == []
    assert document["schema"] == "diag.report/1"
    assert document["diag_version"] == diag.__version__


def test_keys_come_in_the_order_of_the_contract(report: Report) -> None:
    keys = [key for key in json.loads(render_json(report)) if key in CONTRACT]
    assert keys == list(CONTRACT)


def test_the_shape_check_finds_what_is_wrong() -> None:
    assert deviations({"a": 1}, {"a": str, "b": int}) == ["report.b: missing", "report.a: 1"]
    assert deviations(True, int) == ["report: True"]


def test_numbers_are_those_of_the_report(report: Report) -> None:
    (device,) = json.loads(render_json(report))["devices"]
    assert device["window"] == [10_000_000, 106_000_000]
    assert device["window_ns"] == device["busy_ns"] + device["idle_ns"] == 96_000_000
    assert (device["kernel_ns"], device["copy_ns"], device["lead_ns"], device["tail_ns"]) == (
        50_000_000,
        10_000_000,
        10_000_000,
        2_000_000,
    )
    assert device["copies"] == [
        {"kind": "h2d", "src": "pageable", "dst": "device", "count": 10, "bytes": 10_000_000, "busy_ns": 10_000_000}
    ]
    assert not device["busy_is_upper_bound"]


def test_occupancy_is_an_object_or_null(occupied: Report) -> None:
    first, second = json.loads(render_json(occupied))["kernels"]
    assert first["occupancy"] == {
        "theoretical_pct": 75.0,
        "limits": {"blocks": 16, "registers": 6, "shared_memory": None, "warps": 8},
        "limiters": ["registers"],
        "configurations": 1,
    }
    assert second["occupancy"] is None


def test_graphs_make_busy_an_upper_bound(two_devices: Report) -> None:
    first, second = json.loads(render_json(two_devices))["devices"]
    assert (first["busy_is_upper_bound"], second["busy_is_upper_bound"]) == (False, True)
    assert (second["comm_ns"], second["exposed_comm_ns"]) == (50_000_000, 20_000_000)


def test_subjects_hold_only_what_applies(report: Report) -> None:
    document = json.loads(render_json(report))
    assert document["cannot_tell"][0]["subject"] == {"source": 1}
    assert document["findings"][0]["subject"].keys() == {"source", "process", "device", "window"}


def test_a_part_and_changed_thresholds_are_told(report: Report) -> None:
    whole = json.loads(render_json(report))
    assert (whole["part"], whole["changed_thresholds"]) == (None, [])
    part, changed = Part((5, 9), None, 4, 20), ChangedThreshold("idle.gpu", "share", 0.02, 0.5)
    document = json.loads(render_json(replace(report, part=part, changed_thresholds=[changed])))
    assert document["part"] == {"window": [5, 9], "range_name": None, "measure_ns": 4, "trace_ns": 20}
    assert document["changed_thresholds"] == [{"rule": "idle.gpu", "name": "share", "shipped": 0.02, "value": 0.5}]


def test_what_a_format_never_tells_is_marked(report: Report) -> None:
    untold = [CannotTell(Subject(source=1), "was not captured", "host.samples", beyond) for beyond in (True, False)]
    document = json.loads(render_json(replace(report, cannot_tell=untold)))
    assert [answer["beyond_format"] for answer in document["cannot_tell"]] == [True, False]


def test_the_same_report_gives_the_same_bytes(any_report: Report) -> None:
    shuffled = [
        replace(source, capabilities=dict(sorted(source.capabilities.items(), reverse=True)))
        for source in any_report.sources
    ]
    assert render_json(any_report) == render_json(replace(any_report, sources=shuffled))


def test_what_json_cannot_hold_becomes_what_it_can(report: Report) -> None:
    odd = [
        Evidence("a", float("nan"), "share", ""),
        Evidence("b", np.int64(3), "count", ""),  # type: ignore[arg-type]
        Evidence("c", np.float64(0.5), "share", ""),
    ]
    finding = replace(report.findings[0], evidence=odd, share=float("inf"), recoverable_ns=np.int64(7))  # type: ignore[arg-type]
    (told, *_) = json.loads(render_json(replace(report, findings=[finding])))["findings"]
    assert [each["value"] for each in told["evidence"]] == [None, 3, 0.5]
    assert (told["share"], told["recoverable_ns"]) == (None, 7)


def test_an_object_is_no_part_of_a_report(report: Report) -> None:
    wrong = replace(report, notes={1: [object()]})  # type: ignore[list-item]
    with pytest.raises(TypeError, match="object has no place in a report"):
        render_json(wrong)


@pytest.mark.parametrize("name", ["\x1b[2J\x07\u202e", "caf\udce9.sqlite", "行列積", "x" * 2_000, "\x00"])
def test_names_arrive_whole_and_act_on_no_terminal(hostile: Callable[[str], Report], name: str) -> None:
    text = render_json(hostile(name))
    assert text.isascii()
    assert all(c == "\n" or c.isprintable() for c in text)
    path = json.loads(text)["sources"][0]["path"]
    assert path == name.replace("\udce9", r"\udce9")
