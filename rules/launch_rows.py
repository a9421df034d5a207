"""The launches of a report: what Nsight Compute measured, a row for each, and where its kernel is in a timeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from diag.launches.kernel import Place, ProfiledKernel, Untold
from diag.launches.occupancy import occupancy_of
from diag.launches.stalls import stalls_of
from diag.model.roofline import Ladder
from diag.rules import profiled
from diag.rules.launch_report import InTimeline, LaunchOccupancyRow, LaunchRow, SpeedOfLight, StallRow, VendorRule
from diag.rules.rooflines import roofline_row
from diag.store.case import Case


def launch_rows(case: Case, kernels: Sequence[ProfiledKernel], ladder: Ladder) -> list[LaunchRow]:
    """All launches of these kernels, in the order of their files."""
    ranges, rules = _by_launch(case, _RANGES), _by_launch(case, _RULES)
    rows = [
        _row(alone, kernel, ladder, ranges[alone.launch.id], rules[alone.launch.id])
        for kernel in kernels
        for alone in kernel.one_by_one()
    ]
    return sorted(rows, key=lambda row: (row.source, row.number))


_RANGES = """
    SELECT r.launch_id, n.text AS name
      FROM launch_range r JOIN name n ON n.id = r.name_id
     ORDER BY r.launch_id, r.kind, r.domain_id, r.depth
"""
_RULES = """
    SELECT launch_id, rule, section, name, type, title, message, speedup_pct, speedup_kind FROM launch_rule ORDER BY id
"""


def _by_launch(case: Case, sql: str) -> Mapping[int, list[dict[str, Any]]]:
    rows: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in case.rows(sql):
        facts = dict(row)
        rows[facts.pop("launch_id")].append(facts)
    return rows


def _row(
    alone: ProfiledKernel,
    kernel: ProfiledKernel,
    ladder: Ladder,
    ranges: Sequence[Mapping[str, Any]],
    rules: Sequence[Mapping[str, Any]],
) -> LaunchRow:
    launch, roofline = alone.launch, roofline_row(alone, ladder)
    return LaunchRow(
        id=launch.label,
        spoken_for_by=kernel.launch.label,
        source=launch.source_id,
        number=launch.number,
        kind=launch.kind,
        process=launch.pid,
        device=launch.device,
        device_name=launch.gpu.name,
        context=launch.context,
        stream=launch.stream,
        name=launch.name,
        short_name=launch.short_name,
        duration_ns=launch.duration_ns,
        grid=launch.grid,
        block=launch.block,
        configuration=alone.configuration,
        cluster=launch.cluster,
        registers_per_thread=launch.registers_per_thread,
        clocks=profiled.clocks(alone),
        cache_control=launch.cache_control,
        replay=launch.replay,
        passes=launch.passes,
        ranges=[each["name"] for each in ranges],
        sol=SpeedOfLight(*(alone.known(name) for name in _SPEEDS_OF_LIGHT)),
        bound=roofline.bound if roofline else None,
        roofline=roofline,
        occupancy=_occupancy(alone),
        stalls=[StallRow(s.stall_class.key, s.reason, s.share, s.share_of) for s in stalls_of(alone)],
        vendor_rules=[VendorRule(**rule) for rule in rules],
        timeline=None if kernel.place is None else _in_timeline(kernel.place),
    )


_SPEEDS_OF_LIGHT = ("sm_throughput", "memory_throughput", "dram_throughput")
"""In the order of `SpeedOfLight`."""


def _occupancy(kernel: ProfiledKernel) -> LaunchOccupancyRow | None:
    told = occupancy_of(kernel)
    if isinstance(told, Untold):
        return None
    return LaunchOccupancyRow(
        theoretical_pct=told.theoretical.theoretical_pct,
        achieved_pct=kernel.known("achieved_occupancy"),
        limits=asdict(told.theoretical.limits),
        limiters=told.theoretical.limiters,
        waves=told.waves,
    )


def _in_timeline(place: Place) -> InTimeline:
    return InTimeline(
        source=place.device.source_id,
        process=place.device.pid,
        device=place.device.device,
        count=place.count,
        total_ns=place.total_ns,
        confidence=place.confidence,
        how=place.how,
    )
