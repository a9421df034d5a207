"""The smaller documents that verbs write, and the files that one verb writes and another reads."""

from __future__ import annotations

from typing import Literal

from diag.doctor.check import Check
from diag.model.ceilings import Ceiling
from diag.model.inspection import CompiledKernel, Excess, InspectedKernel, Inspection, VariantInspection
from diag.model.plan import Answer
from diag.render.contract.record import fields_of, many, record
from diag.render.contract.report_document import EXPERIMENT

DOCTOR = record("Doctor", schema=Literal["diag.doctor/1"], diag_version=str, checks=many(Check))

LOG = record("Log", schema=Literal["diag.log/1"], diag_version=str, experiments=many(EXPERIMENT))

PLAN = record("Plan", schema=Literal["diag.plan/1"], answers=many(Answer))

KERNEL = record(
    "InspectedKernel",
    fields_of(CompiledKernel, without=("target",)),
    fields_of(InspectedKernel, "waves"),
    local_loads=int,
    local_stores=int,
    spills=bool,
    fits=bool,
    excesses=many(Excess),
    blocks_per_sm=int | None,
    theoretical_occupancy_pct=float | None,
    limiters=many(str),
)

ROOFLINE = record(
    "StaticRoofline",
    flops=int,
    bytes=int,
    intensity=float,
    ridge_point=float,
    side=Literal["memory", "compute"],
    least_time_ns=float,
    ceilings=many(record("PrintedCeiling", fields_of(Ceiling, "per_s", "unit", "origin", "source"), name=str)),
)

INSPECTION = record(
    "Inspection",
    {"schema": Literal["diag.inspection/1"], "diag_version": str},
    fields_of(Inspection, without=("variants",)),
    variants=many(
        record(
            "Variant",
            fields_of(VariantInspection, "variant", "target", "spills_on_purpose"),
            product=str,
            kernels=many(KERNEL),
            not_compiled=many(record("NotCompiled", name=str, because=str)),
            roofline=ROOFLINE | None,
        )
    ),
)
