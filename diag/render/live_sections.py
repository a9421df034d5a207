"""The live view in sections of lines: the machine, its GPUs, what was found, what is not known.

A section is as long as what there is to say; who shows it makes it fit (`live_frame`), or shows all (`live_text`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from diag.model import units
from diag.render import phrases
from diag.render.layout import cells, wrap
from diag.render.live_gpu import gpu_lines
from diag.render.live_marks import Line, Look, Section, Span, bar, fitted, span
from diag.render.live_untold import Untold
from diag.render.live_view import LiveView
from diag.render.table import NOT_CAPTURED
from diag.rules.finding import Finding

INDENT = "  "
LONGEST_SENTENCE = 1_000


def host_line(view: LiveView, look: Look) -> Line:
    reading, busy = view.host.reading, view.host.busy_cores
    room = max(8, min(30, look.width // 8))
    share = busy / reading.cores if busy is not None and reading.cores else None
    shown = NOT_CAPTURED if busy is None else f"{busy:.1f}"
    parts = [Span("Host ", "title"), *bar(share, room, look.marks), span(f" {shown} of {reading.cores} cores busy")]
    if reading.memory_available_bytes is not None and reading.memory_total_bytes is not None:
        available, total = units.size(reading.memory_available_bytes), units.size(reading.memory_total_bytes)
        parts.append(span(f", {available} of {total} memory available"))
    return fitted(parts, look.width)


def gpus(view: LiveView, look: Look, *, is_brief: bool = False) -> Section:
    """Those that the workload uses; all, where it is not known which, or no process is watched."""
    used = [row for row in view.gpus if row.is_used]
    shown = used if used and view.pid is not None else view.gpus
    if not view.gpus:
        return Section("", [])
    header, lines = gpu_lines(shown, look, is_brief=is_brief)
    if hidden := len(view.gpus) - len(shown):
        said = f"{units.count(hidden, 'GPU')} left out: no process of this workload holds memory there."
        lines.append(fitted([span(said, "dim")], look.width))
    return Section("", lines, [header], least=1 + len(shown))


def findings(view: LiveView, look: Look, *, is_brief: bool = False) -> Section:
    """Each in force with its title and its first figure; of those by one rule the gravest, and how many more.

    `is_brief`: a line for each, with the figure only where there is room beside it.
    """
    by_rule: dict[str, list[Finding]] = {}
    for finding in view.findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    lines = [line for found in by_rule.values() for line in _finding(found, look, is_brief)]
    return Section("Findings", lines, least=5)


def _finding(found: Sequence[Finding], look: Look, is_brief: bool) -> Iterator[Line]:
    gravest, more = found[0], len(found) - 1
    said = f"{look.marks.signs[gravest.severity]} {gravest.severity}: {gravest.title}"
    said += f" (+{more} more)" if more else ""
    figures = [f"{evidence.label}: {phrases.value(evidence)}" for evidence in gravest.evidence[:1]]
    beside = "".join(f"  ({figure})" for figure in figures)
    if cells(said) + cells(beside) <= look.width:
        yield [span(said, gravest.severity), span(beside)]
        return
    yield fitted([span(said, gravest.severity)], look.width)
    if not is_brief:
        yield from (fitted([span(f"{INDENT}{figure}")], look.width) for figure in figures)


def untold(view: LiveView, look: Look) -> Section:
    """What rules could not decide and what could not be read, by the reason, which says what can be done."""
    by_reason: dict[str, list[str]] = {}
    for answer in view.cannot_tell:
        by_reason.setdefault(answer.because, []).append(answer.rule)
    rules = {because: [phrases.some(dict.fromkeys(found))] for because, found in by_reason.items()}
    for what, because, places in _by_place(view.untold):
        rules.setdefault(because, []).append(f"{what} of {phrases.some(places)}" if places else what)
    sentences = [f"{', '.join(what)}: {because}" for because, what in rules.items()]
    shown = [span(sentence[:LONGEST_SENTENCE]).text for sentence in sentences]
    lines = [[Span(line)] for sentence in shown for line in wrap(sentence, look.width, INDENT, "")]
    return Section("Cannot tell", lines)


def _by_place(untold: Iterable[Untold]) -> Iterator[tuple[str, str, Sequence[str]]]:
    """What has no value, why, and where: places that lack the same for the same reason stand together."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in untold:
        what = phrases.some(field.replace("_", " ") for field in each.what)
        found.setdefault((what, each.because), []).extend([each.where] if each.where else [])
    return ((what, because, places) for (what, because), places in found.items())
