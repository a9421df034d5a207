"""What was told of kernels without a GPU, as text and as JSON (`diag.inspection/1` of docs/json-contract.md)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from typing import Any

import diag
from diag.model import units
from diag.model.inspection import (
    REFERENCE_PRODUCTS,
    Excess,
    InspectedKernel,
    Inspection,
    StaticRoofline,
    VariantInspection,
    reference_product,
)
from diag.render.escape import one_line, unicode_only
from diag.render.layout import columns, wrap
from diag.render.table import NOT_CAPTURED, Table

SCHEMA = "diag.inspection/1"
MOST_INSTRUCTIONS = 8

STATIC = (
    "Static: what the compiler wrote and what follows from it. No GPU ran, nothing here is measured; "
    "the least times hold printed peaks, at boost clock, against the operator's definition."
)


def render_inspection(inspection: Inspection, *, width: int = 80, color: bool = False) -> str:
    """One section for each target: a table of the kernels, what is to say of each, the roofline."""
    lines = [_bold(line, color) for line in wrap(one_line(_title(inspection)), width)]
    lines += wrap(STATIC, width)
    by_target = sorted(inspection.variants, key=lambda each: list(REFERENCE_PRODUCTS).index(each.target))
    for target, group in groupby(by_target, key=attrgetter("target")):
        variants = list(group)
        on = reference_product(target)
        heading = f"{target}, as on {on.name} ({units.count(on.sm_count or 0, 'SM')})"
        lines += ["", _bold(heading, color), *_section(variants, width)]
    if inspection.left_out:
        lines += ["", *wrap(f"Other variants: {', '.join(inspection.left_out)} (--variant NAME, or all).", width)]
    return "\n".join(lines) + "\n"


def _title(inspection: Inspection) -> str:
    shape = ", ".join(f"{name} = {size:,}" for name, size in inspection.shape.items())
    return f"{inspection.operator} in {inspection.dtype}: {shape}; {inspection.formula}"


def _bold(text: str, color: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if color else text


def _section(variants: Sequence[VariantInspection], width: int) -> Iterator[str]:
    named = [
        (f"{variant.variant}: {each.compiled.name}", variant, each) for variant in variants for each in variant.kernels
    ]
    if named:
        rows = [[*_figures(each), name] for name, _, each in named]
        yield from columns(Table("", _HEADER, rows, len(_HEADER) - 1, wraps_names=True), width, "  ")
    for name, variant, each in named:
        yield from wrap(one_line(f"{name}: {_said(each, variant)}"), width, "    ", "  ")
    for variant in variants:
        for refused in variant.not_compiled:
            said = f"{variant.variant}: {refused.name} is not compiled. {refused.because}"
            yield from wrap(one_line(said), width, "    ", "  ")
    for roofline, names in _rooflines(variants).items():
        whose = "" if len(names) == len(variants) else f" ({', '.join(names)})"
        yield from wrap(one_line(f"Roofline{whose}: {_roofline(roofline)}"), width, "    ", "  ")


_HEADER = ("occupancy", "regs", "stack", "LDL+STL", "shared", "threads", "waves", "kernel")


def _figures(of: InspectedKernel) -> Sequence[str]:
    code = of.compiled
    return (
        NOT_CAPTURED if of.occupancy is None else units.quantity(of.occupancy.theoretical_pct, "%"),
        str(code.registers_per_thread),
        str(code.stack_bytes),
        f"{code.local_loads}+{code.local_stores}" if code.local_loads or code.local_stores else "0",
        units.size(code.shared_bytes),
        str(code.threads),
        NOT_CAPTURED if of.waves is None else f"{of.waves:,.1f}",
    )


def _said(of: InspectedKernel, variant: VariantInspection) -> str:
    code = of.compiled
    said = [f"does not fit: {_excess(excess)}." for excess in of.excesses]
    if code.spills:
        purpose = ", on purpose" if variant.spills_on_purpose else ""
        said.append(f"registers spill{purpose}: {units.count(code.stack_bytes, 'byte')} of each thread on its stack.")
    if of.occupancy is not None:
        limiters = " and ".join(of.occupancy.limiters).replace("_", " ")
        said.append(f"{units.count(of.occupancy.blocks_per_sm, 'block')} per SM, by {limiters}.")
    return " ".join([*said, f"Code: {_mix(code.instructions)}."])


def _excess(of: Excess) -> str:
    return f"{of.resource} {units.quantity(of.used, of.unit)}, an SM has {units.quantity(of.limit, of.unit)}"


def _mix(instructions: Mapping[str, int]) -> str:
    """Memory, tensor cores, floating point and shuffles by their full names; the rest is bookkeeping.

    >>> _mix({"FADD": 8, "IMAD.WIDE": 5, "LDG.E.128": 2, "STG.E.128": 1, "EXIT": 1})
    '8 FADD, 2 LDG.E.128, 1 STG.E.128 and 6 others'
    """
    telling = {mnemonic: n for mnemonic, n in instructions.items() if _TELLING.match(mnemonic)}
    shown = Counter(telling).most_common(MOST_INSTRUCTIONS)
    others = sum(instructions.values()) - sum(n for _, n in shown)
    return ", ".join(f"{n} {mnemonic}" for mnemonic, n in shown) + f" and {units.count(others, 'other')}"


_TELLING = re.compile(
    r"(LDG|STG|LDS|STS|LDSM|STSM|LDL|STL|LDGSTS|UTMALDG|UTMASTG|UBLKCP|ATOM|ATOMG|ATOMS|RED|REDG|REDUX|SHFL"
    r"|[FDH](ADD|MUL|FMA)2?|MUFU|F2F|\w*MMA)(\.|$)"
)


def _rooflines(variants: Sequence[VariantInspection]) -> Mapping[StaticRoofline, Sequence[str]]:
    """Each roofline with the variants that stand under it: most share one."""
    names: dict[StaticRoofline, list[str]] = {}
    for variant in variants:
        if variant.roofline is not None:
            names.setdefault(variant.roofline, []).append(variant.variant)
    return names


def _roofline(of: StaticRoofline) -> str:
    return (
        f"{units.quantity(of.flops, 'FLOP')} ({of.work.name}, {units.quantity(of.work.per_s, of.work.unit)}), "
        f"{units.size(of.n_bytes)} ({of.traffic.name}, {units.quantity(of.traffic.per_s, 'bytes/s')}): "
        f"{units.quantity(of.intensity, 'FLOP/byte')}, ridge point {units.quantity(of.ridge_point, 'FLOP/byte')}, "
        f"{of.side} side. At least {units.time(of.least_time_ns)}."
    )


def render_inspection_as_json(inspection: Inspection) -> str:
    document = {
        "schema": SCHEMA,
        "diag_version": diag.__version__,
        "operator": inspection.operator,
        "dtype": inspection.dtype,
        "shape": dict(inspection.shape),
        "formula": inspection.formula,
        "variants": [_variant(variant) for variant in inspection.variants],
        "left_out": list(inspection.left_out),
    }
    return json.dumps(document, indent=2) + "\n"


def _variant(of: VariantInspection) -> Mapping[str, Any]:
    return {
        "variant": of.variant,
        "target": of.target,
        "product": reference_product(of.target).name,
        "spills_on_purpose": of.spills_on_purpose,
        "kernels": [_kernel(kernel) for kernel in of.kernels],
        "not_compiled": [{"name": each.name, "because": unicode_only(each.because)} for each in of.not_compiled],
        "roofline": None if of.roofline is None else _roofline_facts(of.roofline),
    }


def _kernel(of: InspectedKernel) -> Mapping[str, Any]:
    code, occupancy = of.compiled, of.occupancy
    facts = asdict(code)
    del facts["target"]
    return {
        **facts,
        "local_loads": code.local_loads,
        "local_stores": code.local_stores,
        "spills": code.spills,
        "fits": of.fits,
        "excesses": [asdict(excess) for excess in of.excesses],
        "blocks_per_sm": None if occupancy is None else occupancy.blocks_per_sm,
        "theoretical_occupancy_pct": None if occupancy is None else occupancy.theoretical_pct,
        "limiters": [] if occupancy is None else list(occupancy.limiters),
        "waves": of.waves,
    }


def _roofline_facts(of: StaticRoofline) -> Mapping[str, Any]:
    return {
        "flops": of.flops,
        "bytes": of.n_bytes,
        "intensity": of.intensity,
        "ridge_point": of.ridge_point,
        "side": of.side,
        "least_time_ns": of.least_time_ns,
        "ceilings": [
            {"name": each.name, "per_s": each.per_s, "unit": each.unit, "origin": each.origin, "source": each.source}
            for each in (of.work, of.traffic)
        ],
    }
