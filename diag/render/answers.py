"""What rules found in order or could not tell, put together: each reason once, with its rules and their subjects."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from diag.model import units
from diag.render import phrases, source_phrases
from diag.rules.finding import Answer, CannotTell, Clear, Subject
from diag.rules.report import Report

BEYOND_FORMAT = "no trace of this format tells; Nsight Systems records what they need"

MOST_RULES = 8
"""In a terminal, more rules than this are counted where their names are not the point."""

MOST_METRICS = 2
"""In a terminal, of a reason that names more."""

MOST_REASONS = 16
"""In a terminal, of reasons that name metrics: where there are more, each section of ncu is named once."""

MOST_SUBJECTS = 2
"""More devices or inputs than this are counted."""


_CAPTURE = re.compile(r".* \((?P<tool>nsys profile|torch\.profiler)(?: with)? (?P<options>.+)\)")
"""A reason that ends with the capture that would tell."""


@dataclass(frozen=True)
class Alike:
    """Rules that answered the same about the same subjects."""

    rules: Sequence[str]
    where: str  # empty where it holds for everything that these rules looked at

    @property
    def names(self) -> str:
        return ", ".join(self.rules)

    @property
    def names_or_number(self) -> str:
        return f"{len(self.rules)} rules" if len(self.rules) > MOST_RULES else self.names

    def in_full(self) -> str:
        """
        >>> Alike(["idle.gpu", "sync.drain"], "GPU 0").in_full()
        'idle.gpu, sync.drain (GPU 0)'
        """
        return self._on(self.names)

    def in_short(self) -> str:
        """
        >>> Alike(["idle.gpu"] * 9, "GPU 0").in_short()
        '9 rules (GPU 0)'
        """
        return self._on(self.names_or_number)

    def _on(self, rules: str) -> str:
        return f"{rules} ({self.where})" if self.where else rules


@dataclass(frozen=True)
class _Scope:
    """What a report speaks of, counted once: a report may have thousands of reasons on thousands of inputs."""

    report: Report
    looked_at: Mapping[str, int]  # by rule, how many things it looked at
    devices: Mapping[int, int]  # by source, how many

    @classmethod
    def of(cls, report: Report) -> _Scope:
        every: list[Answer] = [*report.findings, *report.clear, *report.cannot_tell]
        looked_at = {(answer.rule, phrases.subject(report, answer.subject)) for answer in every}
        devices = Counter(row.source for row in report.devices)
        return cls(report, Counter(rule for rule, _ in looked_at), devices)

    def where(self, answers: Sequence[Clear | CannotTell]) -> str:
        """On what these answers of one rule are, unless it is so on everything that the rule looked at."""
        report, looked_at = self.report, self.looked_at[answers[0].rule]
        here = {phrases.subject(report, answer.subject): answer.subject for answer in answers}
        if len(here) == looked_at:
            return ""
        sources = {about.source for about in here.values()}
        if len(sources) == 1 < len(report.sources) and len(here) == sum(self.devices.get(each, 0) for each in sources):
            return source_phrases.short_name(report, *sources)
        if all(about.launch is not None for about in here.values()) and len(here) > MOST_SUBJECTS:
            return f"{len(here)} of {units.count(looked_at, 'kernel')}"
        if all(about.load is not None for about in here.values()) and len(here) > MOST_SUBJECTS:
            return f"{len(here)} of {units.count(looked_at, 'load')}"
        names = [name for name in here if name]
        if len(names) <= MOST_SUBJECTS:
            return "; ".join(names)
        if all(phrases.device_of(report, about) for about in here.values()):
            return f"{len(here)} of {units.count(len(report.devices), 'device')}"
        return f"{len(sources)} of {units.count(len(report.sources), 'input')}"


def cannot_tell(report: Report) -> list[str]:
    """Each reason once, after the rules that it kept from answering, in the order in which they came."""
    scope = _Scope.of(report)
    return [f"{_in_full(scope, answers)}: {because}" for because, answers in _reasons(report).items()]


def cannot_tell_in_short(report: Report) -> list[str]:
    """First, for each tool, the captures that would tell more; then the other reasons. Long lists are counted."""
    scope = _Scope.of(report)
    captures: dict[str, dict[str, list[CannotTell]]] = {}
    others: dict[str, list[CannotTell]] = {}
    for because, answers in _reasons(report).items():
        if capture := _CAPTURE.fullmatch(because):
            captures.setdefault(capture["tool"], {}).setdefault(capture["options"], []).extend(answers)
        else:
            others[because] = answers
    if sum(bool(_MISSED.search(because)) for because in others) > MOST_REASONS:
        others = _without_metrics(others)
    return [
        *(_captures(scope, tool, by_options) for tool, by_options in captures.items()),
        *(f"{_in_short(scope, answers)}: {_with_few_metrics(because)}" for because, answers in others.items()),
    ]


def _without_metrics(reasons: Mapping[str, Sequence[CannotTell]]) -> dict[str, list[CannotTell]]:
    """What is the same but for the metrics, put together."""
    alike: dict[str, list[CannotTell]] = {}
    for because, answers in reasons.items():
        alike.setdefault(_MISSED.sub("metrics were", because), []).extend(answers)
    return alike


_MISSED = re.compile(r"[\w.:]*_[\w.:]*(?:, [\w.:]+)*(?: and \d+ more)? (?:was|were)(?= not (?:collected|measured))")
"""Metrics of ncu, which a reason names, with the verb after them."""


_METRICS = re.compile(r"(?P<names>[\w.:]+(?:, [\w.:]+)+)(?= were not )")
"""Several metrics of ncu, which a reason names."""


def _with_few_metrics(because: str) -> str:
    """
    >>> _with_few_metrics("a.sum, b.sum, c.sum, d.sum were not collected (ncu --section SpeedOfLight)")
    'a.sum, b.sum and 2 more were not collected (ncu --section SpeedOfLight)'
    """

    def few(match: re.Match[str]) -> str:
        names = match["names"].split(", ")
        rest = len(names) - MOST_METRICS
        return ", ".join(names) if rest < 1 else f"{', '.join(names[:MOST_METRICS])} and {rest} more"

    return _METRICS.sub(few, because)


def _captures(scope: _Scope, tool: str, by_options: Mapping[str, Sequence[CannotTell]]) -> str:
    wanted = (f"{options} for {_in_short(scope, answers)}" for options, answers in by_options.items())
    return f"Capture with {tool}: {'; '.join(wanted)}"


def _reasons(report: Report) -> dict[str, list[CannotTell]]:
    """What a rule could tell in part stands under what is clear. Last comes what a file of this format never tells."""
    is_clear = set(map(_about, report.clear))
    reasons: dict[str, list[CannotTell]] = {}
    for answer in sorted(report.cannot_tell, key=lambda answer: answer.beyond_format):
        if _about(answer) not in is_clear:
            reasons.setdefault(BEYOND_FORMAT if answer.beyond_format else answer.because, []).append(answer)
    return reasons


def _in_full(scope: _Scope, answers: Sequence[CannotTell]) -> str:
    return ", ".join(alike.in_full() for alike in _alike(scope, [(answer.rule, answer) for answer in answers]))


def _in_short(scope: _Scope, answers: Sequence[CannotTell]) -> str:
    return ", ".join(alike.in_short() for alike in _alike(scope, [(answer.rule, answer) for answer in answers]))


def clear(report: Report) -> list[Alike]:
    """What holds everywhere first."""
    is_untold = set(map(_about, report.cannot_tell))
    named = [
        (f"{answer.rule} (in part)" if _about(answer) in is_untold else answer.rule, answer) for answer in report.clear
    ]
    return sorted(
        _alike(_Scope.of(report), named), key=lambda alike: _NUMBER.sub(lambda match: match[0].zfill(9), alike.where)
    )


_NUMBER = re.compile(r"^\d+")
"""How many of something, which is sorted as a number."""


def _about(answer: Clear | CannotTell) -> tuple[str, Subject]:
    about = answer.subject
    device = Subject(about.source, about.process, about.device)
    return answer.rule, replace(device, launch=about.launch, load=about.load)


def _alike(scope: _Scope, named: Iterable[tuple[str, Clear | CannotTell]]) -> list[Alike]:
    """Answers with the rules' names, by what they are about."""
    answers: dict[str, list[Clear | CannotTell]] = {}
    for name, answer in named:
        answers.setdefault(name, []).append(answer)
    rules: dict[str, list[str]] = {}
    for name, of_rule in answers.items():
        rules.setdefault(scope.where(of_rule), []).append(name)
    return [Alike(names, where) for where, names in rules.items()]
