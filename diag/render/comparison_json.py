"""A comparison as JSON: the contract `diag.compare/1` of docs/json-contract.md."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import diag
from diag.compare.changes import Change
from diag.compare.comparison import Comparison
from diag.compare.conditions import TITLES, Condition
from diag.compare.findings import FindingChange
from diag.compare.nccl import NcclComparison
from diag.compare.noise import LEVEL
from diag.compare.recording import Recording, Side
from diag.compare.serving import ServingComparison
from diag.compare.tables import ProfiledChange
from diag.render import comparison_phrases
from diag.render.json_report import plain
from diag.rules.baseline import Remembered
from diag.rules.document import SpeedOfLightOf

SCHEMA = "diag.compare/1"


def render_comparison(comparison: Comparison) -> str:
    """The same comparison gives the same bytes, all of them ASCII."""
    return json.dumps(plain(document(comparison)), indent=2, allow_nan=False) + "\n"


def document(comparison: Comparison) -> dict[str, Any]:
    headline = comparison.headline
    return {
        "schema": SCHEMA,
        "diag_version": diag.__version__,
        "verdict": {
            "answer": comparison.answer,
            "title": comparison_phrases.title(comparison),
            "summary": " ".join(comparison_phrases.summary(comparison)),
            "metric": headline.metric,
            "what": headline.what,
            "against": comparison.against,
            **_change(headline.change),
        },
        "per_step": comparison.per_step,
        "before": _side(comparison.before),
        "after": _side(comparison.after),
        "conditions": [_condition(each) for each in comparison.conditions],
        "devices": [_placed(each) for each in comparison.figures],
        "kernels": [_kernel(each) for each in comparison.kernels],
        "launches": [_launch(each) for each in comparison.launches],
        "ranges": [{**_placed(each.change), "time": each.time} for each in comparison.ranges],
        "findings": [_finding(each) for each in comparison.findings],
        "nccl": _nccl(comparison.nccl),
        "serving": _serving(comparison.serving),
    }


def _serving(of: ServingComparison | None) -> dict[str, Any] | None:
    if of is None:
        return None
    return {
        "latencies": [_of_load(each) for each in of.latencies],
        "by_output": [_of_load(each) for each in of.by_output],
        "rates": [{**asdict(each), "ratio": each.ratio} for each in of.rates],
        "settings": [asdict(each) for each in of.settings],
        "unmatched": of.unmatched,
        "other_lengths": of.other_lengths,
    }


def _of_load(change: Change) -> dict[str, Any]:
    return {"load": change.place or None, "name": change.name, "answer": change.answer, **_change(change)}


def _nccl(of: NcclComparison | None) -> dict[str, Any] | None:
    if of is None:
        return None
    return {"sentence": of.sentence, "differences": [asdict(each) for each in of.differences], "same": list(of.same)}


def _change(change: Change) -> dict[str, Any]:
    shift = change.shift
    return {
        "before": asdict(change.before) if change.before else None,
        "after": asdict(change.after) if change.after else None,
        "moved_ns": change.moved_ns,
        "ratio": change.ratio,
        "noise": None
        if shift is None
        else {
            "repeats": change.repeats,
            "n_before": shift.n_before,
            "n_after": shift.n_after,
            "shift_ns": shift.ns,
            "low_ns": shift.low_ns,
            "high_ns": shift.high_ns,
            "level": LEVEL,
            "p": shift.p,
        },
    }


def _placed(change: Change) -> dict[str, Any]:
    return {
        "place": change.place,
        "name": change.name,
        "answer": change.answer,
        "share_of_run": change.share,
        "by_count_ns": change.by_count_ns,
        "by_speed_ns": change.by_speed_ns,
        **_change(change),
    }


def _kernel(change: Change) -> dict[str, Any]:
    return {**_placed(change), "short_name": change.short_name, "configuration": change.configuration or None}


def _launch(each: ProfiledChange) -> dict[str, Any]:
    return {**_kernel(each.change), "sol_before": _sol(each.before_sol), "sol_after": _sol(each.after_sol)}


def _sol(of: SpeedOfLightOf | None) -> dict[str, Any] | None:
    return None if of is None else {"sm_pct": of.sm_pct, "memory_pct": of.memory_pct, "dram_pct": of.dram_pct}


def _side(side: Side) -> dict[str, Any]:
    return {"path": side.path, "runs": [_recording(run) for run in side.runs]}


def _recording(run: Recording) -> dict[str, Any]:
    sources = [
        {name: getattr(source, name) for name in ("kind", "path", "sha256", "tool", "tool_version", "rank")}
        for source in run.report.sources
    ]
    periods = run.steps.periods if run.steps else None
    steps = (
        None
        if run.steps is None or periods is None
        else {"pattern": run.steps.pattern, "timed": periods.count, "median_ns": periods.median_ns}
    )
    return {"path": run.path, "sources": sources, "steps": steps, "lacks": run.lacks}


def _condition(of: Condition) -> dict[str, Any]:
    evidence = [
        {"what": each.what, "answer": each.answer, "said": each.said, "decides": sorted(each.decides)}
        for each in of.evidence
    ]
    return {
        "name": of.name,
        "title": TITLES[of.name],
        "answer": of.answer,
        "is_allowed": of.is_allowed,
        "evidence": evidence,
    }


def _finding(change: FindingChange) -> dict[str, Any]:
    return {
        "standing": change.standing,
        "rule": change.rule,
        "severity": change.severity,
        "title": change.title,
        "device": change.device,
        "name": change.name,
        "share_of": change.share_of,
        "before": _known(change.before),
        "after": _known(change.after),
    }


def _known(of: Remembered | None) -> dict[str, Any] | None:
    if of is None:
        return None
    return {"share": of.share, "recoverable_ns": of.recoverable_ns, "recoverable_share": of.recoverable_share}
