"""What rules say of the traces of probes, in short: the whole of each is a report of its own."""

from __future__ import annotations

from collections.abc import Mapping

from diag.render import phrases
from diag.render.escape import one_line
from diag.render.layout import wrap
from diag.rules.report import Report

MOST_FINDINGS = 3
INDENT = "  "


def render_traces(reports: Mapping[str, Report], width: int) -> str:
    """By the name of each run: its verdict and its first findings."""
    blocks = []
    for name, report in reports.items():
        lines = wrap(one_line(f"{name}: {report.verdict.title}"), width)
        lines += wrap(one_line(report.verdict.summary), width, INDENT)
        for finding in phrases.others(report)[:MOST_FINDINGS]:
            lines += wrap(one_line(f"{finding.severity}: {finding.title} ({finding.rule})"), width, INDENT * 2, INDENT)
        blocks.append("\n".join(lines))
    return "Under torch.profiler\n\n" + "\n\n".join(blocks) + "\n"
