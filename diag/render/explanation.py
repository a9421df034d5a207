"""What `diag explain` prints of rules: their list, one of them, or all thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from diag.render import phrases
from diag.render.layout import wrap
from diag.render.needs import what_it_needs
from diag.render.text import INDENT, Page
from diag.rules import thresholds as limits
from diag.rules.engine import SECTIONS, Rule
from diag.rules.report import Report


def list_of_rules(rules: Sequence[Rule], *, width: int = 80) -> str:
    room = max(len(rule.id) for rule in rules) + 2
    lines = [line for rule in rules for line in wrap(rule.title, width, " " * room, rule.id.ljust(room))]
    return "\n".join([*lines, "", *wrap("Open one with: diag explain RULE", width)])


def rule(of: Rule, *, width: int = 80) -> str:
    """The rule's documentation, with its thresholds and what must be captured for it."""
    lines = [f"{of.id}: {of.title}"]
    for key, heading in SECTIONS.items():
        lines += ["", heading, *wrap(of.sections[key], width, INDENT)]
    values = limits.load().get(of.id, {})
    if values:
        lines += ["", "Thresholds"]
        for name, value in values.items():
            lines += wrap(f"{name} = {value:g}: {limits.source_of(of.id, name)}", width, INDENT)
    if of.needs:
        lines += ["", "Needs"]
        for need in of.needs:
            lines += wrap(what_it_needs(of, need), width, INDENT)
    return "\n".join(lines)


def answers(of: Rule, report: Report, *, width: int = 80) -> str:
    """What the rule says of some inputs: its findings, else what it found in order or could not tell."""
    page = Page(width, color=False)
    said = [
        f"{finding.severity}: {_on(finding.title, phrases.about(report, finding))} [{finding.id}]. {finding.claim}"
        for finding in report.findings
        if finding.rule == of.id
    ]
    said += [
        _on("in order", phrases.subject(report, answer.subject)) for answer in report.clear if answer.rule == of.id
    ]
    said += [
        f"{_on('cannot tell', phrases.subject(report, answer.subject))}: {answer.because}"
        for answer in report.cannot_tell
        if answer.rule == of.id
    ]
    lines = [line for text in said or ["there was nothing to look at"] for line in page.prose(text, INDENT * 2, INDENT)]
    return "\n".join(["In these inputs", *lines])


def _on(said: str, about: str) -> str:
    return f"{said}, {about}" if about else said


def thresholds(*, width: int = 80) -> str:
    """All thresholds with their sources, as a TOML file that a person may edit and hand back."""
    lines = wrap("Change values and delete the rest, then: diag report INPUT --thresholds FILE", width, "# ", "# ")
    for rule_id, values in limits.load().items():
        lines += ["", f'["{rule_id}"]']
        for name, value in values.items():
            lines += wrap(limits.source_of(rule_id, name), width, "# ", "# ")
            lines.append(f"{name} = {value:g}")
    return "\n".join(lines)
