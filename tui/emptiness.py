"""Which screens have nothing to show for a case."""

from __future__ import annotations

from diag.rules.report import Report
from diag.store.case import Case
from diag.tui.navigation import ViewName
from diag.tui.roofline_points import all_charts


def empty_views(case: Case, report: Report) -> frozenset[ViewName]:
    """Told before any of them is opened, so it only asks what is known at once."""
    runs = [source for source in case.sources if source.has_timeline and source.joined_to is None]
    has: dict[ViewName, bool] = {
        "timeline": _has_track(case, ""),
        "kernels": bool(report.kernels),
        "roofline": bool(all_charts(report)),
        "launch": bool(report.launches),
        "tree": _has_track(case, "WHERE kind = 'ranges'"),
        "ranks": len(runs) > 1,
    }
    return frozenset(name for name, is_there in has.items() if not is_there)


def _has_track(case: Case, where: str) -> bool:
    return bool(case.value(f"SELECT EXISTS (SELECT 1 FROM track {where})"))
