"""What a rule needs, in words."""

from __future__ import annotations

from diag.model.quantities import quantities
from diag.rules.engine import JobRule, KernelRule, LiveRule, Rule
from diag.rules.facts import FACTS, JOB_FACTS


def what_it_needs(rule: Rule, need: str) -> str:
    """One of `rule.needs`, and how it is captured."""
    if isinstance(rule, KernelRule):
        quantity = quantities()[need]
        return f"{quantity.means}: {quantity.formulas[0].text} (ncu --section {quantity.section})"
    if isinstance(rule, JobRule):
        return JOB_FACTS.get(need, need)  # a plug-in's reader has capabilities of its own
    if isinstance(rule, LiveRule):
        return f"{need} (diag watch, where the driver tells it)"
    return f"{FACTS[need].name} ({FACTS[need].how})"
