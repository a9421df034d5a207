"""What the warps of profiled kernels waited for, by class of reasons."""

from __future__ import annotations

from collections import defaultdict

from diag.model import units
from diag.model.stall_reasons import classes
from diag.render.plots.axes import share_axis
from diag.render.plots.bars import Bar, Group, Part, chart, used
from diag.render.plots.launches import chosen
from diag.render.plots.looks import LOOKS
from diag.rules.launch_report import LaunchRow
from diag.rules.report import Report

_SHARES_OF = {"latency": "of the time between two instructions of a warp", "samples": "of the samples of its warps"}
"""The first one that a launch has is drawn."""


def stalls(report: Report) -> str:
    """Empty where no launch has any."""
    launches = chosen(report, lambda row: bool(row.stalls))
    if not launches.rows:
        return ""
    groups = [Group([_bar(row)], launches.heading(row)) for row in launches.rows]
    looks = used(groups)
    return chart(
        "What warps of profiled kernels waited for",
        "Classes of stall reasons; the rest of each bar are warps that could issue, and what was not measured.",
        groups,
        share_axis("of a warp's time"),
        legend=[look for look in LOOKS if look in looks],
        notes=launches.notes,
    )


def _bar(row: LaunchRow) -> Bar:
    kind = next(each for each in _SHARES_OF if any(stall.share_of == each for stall in row.stalls))
    shares: defaultdict[str, float] = defaultdict(float)
    for stall in row.stalls:
        if stall.share_of == kind:
            shares[stall.stall_class] += stall.share
    ordered = sorted(shares.items(), key=lambda each: -each[1])
    title = classes()
    parts = [
        Part(
            value=share,
            look=f"stall-{key}",
            hint=f"{title[key].title}: {units.share(share)} {_SHARES_OF[kind]}",
            said=units.share(share),
        )
        for key, share in ordered
    ]
    return Bar("", parts, f"most: {title[ordered[0][0]].title}")
