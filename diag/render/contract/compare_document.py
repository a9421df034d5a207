"""The document `diag.compare/1`, as `diag.render.comparison_json` writes it."""

from __future__ import annotations

from typing import Literal

from diag.compare.changes import Amount, Answer, Change
from diag.compare.comparison import Comparison
from diag.compare.conditions import Condition
from diag.compare.findings import FindingChange
from diag.compare.headline import Headline
from diag.compare.nccl import NcclComparison, NcclDifference
from diag.compare.noise import Shift
from diag.compare.questions import Evidence
from diag.compare.recording import Steps
from diag.compare.serving import RateChange, ServingComparison, SettingChange
from diag.render.contract.record import fields_of, many, record
from diag.render.contract.report_document import SOURCE_LABEL, SPEED_OF_LIGHT
from diag.rules.baseline import Remembered

NOISE = record(
    "Noise",
    fields_of(Shift, "n_before", "n_after", "low_ns", "high_ns"),
    repeats=str,
    shift_ns=float,
    level=float,
    p=float,
)

CHANGE = {
    "before": Amount | None,
    "after": Amount | None,
    "moved_ns": float | None,
    "ratio": float | None,
    "noise": NOISE | None,
}

PLACED = {
    **fields_of(Change, "place", "name", "answer"),
    "share_of_run": float | None,
    "by_count_ns": float | None,
    "by_speed_ns": float | None,
    **CHANGE,
}
KERNEL = {**PLACED, "short_name": str, "configuration": str | None}

OF_LOAD = record("LoadChange", CHANGE, fields_of(Change, "name", "answer"), load=str | None)

RUN = record(
    "Run",
    path=str,
    sources=many(SOURCE_LABEL),
    steps=record("RunSteps", fields_of(Steps, "pattern"), timed=float | None, median_ns=float | None) | None,
    lacks=many(str),
)
SIDE = record("Side", path=str, runs=many(RUN))

CONDITION = record(
    "Condition",
    fields_of(Condition, "name", "is_allowed"),
    title=str,
    answer=Literal["same", "differs", "unknown"],
    evidence=many(
        record(
            "ConditionEvidence",
            fields_of(Evidence, "what", "answer", "said"),
            decides=many(Literal["run", "device", "profile"]),
        )
    ),
)

KNOWN = record("FindingThen", fields_of(Remembered, "share", "recoverable_ns"), recoverable_share=float)

SERVING = record(
    "ServingChanges",
    fields_of(ServingComparison, "unmatched", "other_lengths"),
    latencies=many(OF_LOAD),
    by_output=many(OF_LOAD),
    rates=many(record("RateChange", fields_of(RateChange), ratio=float | None)),
    settings=many(SettingChange),
)

COMPARE = record(
    "Comparison",
    {
        "schema": Literal["diag.compare/1"],
        "diag_version": str,
        "verdict": record(
            "ComparisonVerdict",
            fields_of(Headline, "metric", "what"),
            CHANGE,
            answer=Answer,
            title=str,
            summary=str,
            against=many(str),
        ),
        **fields_of(Comparison, "per_step"),
        "before": SIDE,
        "after": SIDE,
        "conditions": many(CONDITION),
        "devices": many(record("PlacedChange", PLACED)),
        "kernels": many(record("KernelChange", KERNEL)),
        "launches": many(
            record("LaunchChange", KERNEL, sol_before=SPEED_OF_LIGHT | None, sol_after=SPEED_OF_LIGHT | None)
        ),
        "ranges": many(record("RangeChange", PLACED, time=Literal["host", "GPU"])),
        "findings": many(
            record(
                "FindingChange",
                fields_of(FindingChange, without=("before", "after")),
                before=KNOWN | None,
                after=KNOWN | None,
            )
        ),
        "nccl": record(
            "NcclChanges",
            fields_of(NcclComparison, "same"),
            sentence=str,
            differences=many(NcclDifference),
        )
        | None,
        "serving": SERVING | None,
    },
)
