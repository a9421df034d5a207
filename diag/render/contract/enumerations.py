"""Texts that are one of a few although their type does not say so: what a value may be, by (record, field)."""

from __future__ import annotations

import typing
from collections.abc import Collection, Mapping

from diag.model.ceilings import Origin
from diag.model.serving_log import Arrival
from diag.model.serving_metrics import LATENCY_NAMES
from diag.model.units import EVIDENCE
from diag.ranks.checklist import Answer
from diag.ranks.hang import Cause
from diag.ranks.heartbeats import Condition

RANK_ORIGINS = ("distributedInfo", "environment", "payload", "content", "groups", "file name")
LEVELS = ("DRAM", "L2", "L1")

ENUMERATIONS: Mapping[tuple[str, str], Collection[str]] = {
    ("CeilingRow", "origin"): typing.get_args(Origin),
    ("Evidence", "unit"): EVIDENCE,
    ("Figure", "unit"): EVIDENCE,
    ("HangFault", "cause"): [cause.name.lower() for cause in Cause],
    ("HangFault", "cause_in_words"): [str(cause) for cause in Cause],
    ("HangHeartbeat", "condition"): typing.get_args(Condition),
    ("HangQuestion", "answer"): typing.get_args(Answer),
    ("LatencyRow", "name"): LATENCY_NAMES,
    ("Noise", "repeats"): ("runs", "steps", "launches", "instances", "requests", "outputs"),
    ("Operator", "kind"): ("gemm", "convolution", "attention", "norm", "elementwise", "reduction"),
    ("RooflineCeiling", "origin"): typing.get_args(Origin),
    ("RooflinePoint", "level"): LEVELS,
    ("RooflineRow", "level"): LEVELS,
    ("RooflineRow", "work_unit"): ("FLOP", "OP", "inst"),
}

USUAL: Mapping[tuple[str, str], Collection[str]] = {
    ("Launch", "cache_control"): ("all", "none"),
    ("Launch", "kind"): ("kernel", "range", "graph"),
    ("Launch", "replay"): ("kernel", "application", "range", "app-range"),
    ("ServingRunRow", "arrival"): typing.get_args(Arrival),
    ("Source", "graph_mode"): ("graph", "node"),
    ("Source", "rank_origin"): RANK_ORIGINS,
    ("RankOfTraces", "rank_origin"): RANK_ORIGINS,
}
"""What a reader writes there. A case that somebody edited may say anything, so these are examples and no bound."""
