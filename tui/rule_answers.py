"""What rules said where they found nothing: in order, or not to be told, put together by rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from diag.model import units
from diag.render import phrases
from diag.rules.engine import rules
from diag.rules.finding import CannotTell, Clear
from diag.rules.report import Report
from diag.tui.widgets.page import Entry, heading, prose

MOST_SUBJECTS = 20


@dataclass(frozen=True)
class RuleAnswers:
    """Answers of one rule, all clear or all untold."""

    rule: str
    answers: tuple[Clear, ...] | tuple[CannotTell, ...]

    @property
    def key(self) -> tuple[str, str]:
        return self.rule, type(self.answers[0]).__name__

    @property
    def line(self) -> str:
        """The rule with its first reason, or with what it asks."""
        first = self.answers[0]
        return f"{self.rule}: {first.because if isinstance(first, CannotTell) else _title(self.rule)}"

    @property
    def reasons(self) -> dict[str, list[Clear | CannotTell]]:
        """Answers by their reason, which is empty for those that are clear."""
        found: dict[str, list[Clear | CannotTell]] = {}
        for answer in self.answers:
            found.setdefault(answer.because if isinstance(answer, CannotTell) else "", []).append(answer)
        return found

    def matches(self, wanted: str) -> bool:
        return wanted in f"{self.rule} {_title(self.rule)} {' '.join(self.reasons)}".casefold()


def by_rule(answers: Iterable[Clear] | Iterable[CannotTell]) -> list[RuleAnswers]:
    """In the order in which the rules answered."""
    found: dict[str, list[Clear | CannotTell]] = {}
    for answer in answers:
        found.setdefault(answer.rule, []).append(answer)
    return [RuleAnswers(rule, tuple(of_rule)) for rule, of_rule in found.items()]  # type: ignore[arg-type]


def answer_entries(report: Report, of: RuleAnswers, width: int) -> Iterator[Entry]:
    """Why, about what, and what the rule asks."""
    is_clear = isinstance(of.answers[0], Clear)
    yield Entry(prose(f"{'Clear' if is_clear else 'Cannot tell'}: {_title(of.rule)}", width, "bold"))
    yield Entry(prose(f"rule {of.rule}", width, "dim", indent="  "))
    for because, answers in of.reasons.items():
        names = [name for answer in answers if (name := phrases.subject(report, answer.subject))]
        said = because or "The rule looked and found nothing to act on"
        yield Entry(prose(f"{said[0].upper()}{said[1:]}.", width, indent="  "))
        for name in names[:MOST_SUBJECTS]:
            yield Entry(prose(name, width, indent="      ", first="    · "))
        if (more := len(names) - MOST_SUBJECTS) > 0:
            yield Entry(prose(f"… and {units.count(more, 'other')}", width, indent="    "))
    if rule := rules().get(of.rule):
        yield heading("What it asks")
        yield Entry(prose(rule.sections["Asks"], width, indent="  "))
        yield heading("How it decides")
        yield Entry(prose(rule.sections["Decides"], width, indent="  "))


def _title(rule_id: str) -> str:
    rule = rules().get(rule_id)
    return rule.title if rule else rule_id
