"""What `diag explain` prints of rules: their list, one of them, or all thresholds."""

from __future__ import annotations

from collections.abc import Sequence

from diag.render.layout import wrap
from diag.rules import thresholds as limits
from diag.rules.engine import SECTIONS, Rule
from diag.rules.facts import FACTS

INDENT = "  "


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
            lines += wrap(f"{FACTS[need].name} ({FACTS[need].how})", width, INDENT)
    return "\n".join(lines)


def thresholds(*, width: int = 80) -> str:
    """All thresholds with their sources, as a TOML file that a person may edit and hand back."""
    lines = wrap("Change values and delete the rest, then: diag report INPUT --thresholds FILE", width, "# ", "# ")
    for rule_id, values in limits.load().items():
        lines += ["", f'["{rule_id}"]']
        for name, value in values.items():
            lines += wrap(limits.source_of(rule_id, name), width, "# ", "# ")
            lines.append(f"{name} = {value:g}")
    return "\n".join(lines)
