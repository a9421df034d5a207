"""What `diag explain` prints: the list of rules, one rule, its thresholds, or everything behind one finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.render import phrases
from diag.render.escape import one_line
from diag.render.layout import wrap
from diag.rules import thresholds as limits
from diag.rules.engine import SECTIONS, Rule
from diag.rules.facts import FACTS
from diag.rules.finding import Finding

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
    """All thresholds with their source, as a person would override them."""
    lines = wrap("Change any of these with: diag report INPUT --thresholds FILE, where FILE has for example", width)
    lines += ["", '  ["idle.gpu"]', "  share = 0.05", ""]
    for rule_id, values in limits.load().items():
        lines += [f'["{rule_id}"]']
        for name, value in values.items():
            lines += wrap(f"{name} = {value:g}   # {limits.source_of(rule_id, name)}", width, "    ", "")
    return "\n".join(lines)


def finding(of: Finding, *, width: int = 80) -> str:
    """A finding with every number, formula and SQL behind it."""
    return "\n".join(_finding_lines(of, width))


def _finding_lines(of: Finding, width: int) -> Iterator[str]:
    yield from wrap(f"{one_line(of.title)}", width)
    yield f"{of.id} · rule {of.rule} · {of.severity} · confidence {of.confidence}"
    yield ""
    yield from wrap(one_line(of.claim), width)
    if of.recoverable_ns is not None:
        yield ""
        yield f"Upper bound of what can be won: {units.time(of.recoverable_ns)}"
        yield from wrap(one_line(of.counterfactual), width, INDENT)
    yield ""
    yield "Evidence"
    for evidence in of.evidence:
        yield from wrap(f"{one_line(evidence.label)}: {phrases.value(evidence)}", width, INDENT)
        yield from wrap(f"= {one_line(evidence.formula)}", width, INDENT * 3)
        if evidence.sql:
            yield from wrap(f"SQL: {one_line(evidence.sql)}", width, INDENT * 3)
    yield ""
    yield "What would refute it"
    yield from wrap(one_line(of.refute), width, INDENT)
    yield ""
    yield "What to do next"
    for number, step in enumerate(of.next, 1):
        yield from wrap(one_line(step), width, INDENT * 2 + " ", f"{INDENT}{number}. ")
    yield ""
    yield from wrap(f"The rule behind it: diag explain {of.rule}", width)
