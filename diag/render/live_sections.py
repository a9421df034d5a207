"""The live view in sections of lines: the machine, its GPUs, what was found, stacks, what is not known.

A section is as long as what there is to say; who shows it makes it fit (`live_frame`), or shows all (`live_text`).
"""

from __future__ import annotations

from collections.abc import Iterator

from diag.model import units
from diag.model.live import StackDump, ThreadStack
from diag.render import phrases
from diag.render.layout import wrap
from diag.render.live_gpu import gpu_lines
from diag.render.live_marks import Line, Look, Section, Span, bar, fitted, name, span
from diag.render.live_view import LiveView, Untold
from diag.render.table import NOT_CAPTURED

INDENT = "  "
LONGEST_NAME = 60
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
    lines = [line for row in shown for line in gpu_lines(row, look, is_brief=is_brief)]
    if hidden := len(view.gpus) - len(shown):
        said = f"{units.count(hidden, 'GPU')} left out: no process of this workload holds memory there."
        lines.append(fitted([span(said, "dim")], look.width))
    return Section("", lines)


def findings(view: LiveView, look: Look) -> Section:
    """Each in force with its title and one line of evidence."""
    lines: list[Line] = []
    for finding in view.findings:
        lines.append(fitted([span(f"{finding.severity}: {finding.title}", finding.severity)], look.width))
        told = [f"{INDENT}{evidence.label}: {phrases.value(evidence)}" for evidence in finding.evidence[:1]]
        lines += [fitted([span(line)], look.width) for line in told]
    return Section("Findings", lines)


def stacks(view: LiveView, look: Look, most_frames: int | None = None) -> Section:
    """The newest of each process: its threads, the one with the GIL first, each with its leaf on top."""
    lines = [fitted(line, look.width) for dump in view.stacks for line in _dump(dump, view, most_frames)]
    return Section("Python stacks", lines)


def _dump(dump: StackDump, view: LiveView, most_frames: int | None) -> Iterator[Line]:
    ago = units.time(max(0, view.time_ns - dump.time_ns))
    yield [span(f"pid {dump.pid}, {ago} ago; asking took {units.time(dump.took_ns)}", "title")]
    if dump.untold is not None:
        yield [span(f"{INDENT}{dump.untold[:LONGEST_SENTENCE]}")]
    for thread in sorted(dump.threads, key=lambda each: (not each.holds_gil, not each.is_running)):
        yield [span(INDENT + _thread(thread))]
        for frame in thread.frames[:most_frames]:
            where = f"{frame.file[-LONGEST_NAME:]}:{frame.line}"
            yield [span(f"{INDENT * 2}{name(frame.function, LONGEST_NAME)}  "), span(where, "dim")]
        if most_frames is not None and (hidden := len(thread.frames) - most_frames) > 0:
            yield [span(f"{INDENT * 2}… {units.count(hidden, 'more frame')}", "dim")]


def _thread(thread: ThreadStack) -> str:
    who = name(thread.name or "thread", LONGEST_NAME) + ("" if thread.tid is None else f" ({thread.tid})")
    what = ("running" if thread.is_running else "waiting", "holds the GIL" if thread.holds_gil else "")
    return f"{who}: {', '.join(filter(None, what))}"


def untold(view: LiveView, look: Look) -> Section:
    """What rules could not decide and what could not be read, by the reason, which says what can be done."""
    by_reason: dict[str, list[str]] = {}
    for answer in view.cannot_tell:
        by_reason.setdefault(answer.because, []).append(answer.rule)
    for each in view.untold:
        by_reason.setdefault(each.because, []).append(_untold(each))
    sentences = [f"{', '.join(dict.fromkeys(what))}: {because}" for because, what in by_reason.items()]
    shown = [span(sentence[:LONGEST_SENTENCE]).text for sentence in sentences]
    lines = [[Span(line)] for sentence in shown for line in wrap(sentence, look.width, INDENT, "")]
    return Section("Cannot tell", lines)


def _untold(each: Untold) -> str:
    what = phrases.some(field.replace("_", " ") for field in each.what)
    return f"{what} of {each.where}" if each.where else what
