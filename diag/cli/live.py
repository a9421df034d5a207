"""Watches a workload and tells what is seen: on the screen, as text or JSON, to Prometheus and into a recording."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from diag.cli.choices import TextOrJson
from diag.cli.metrics_server import MetricsServer, parse_address
from diag.cli.signals import ENDING
from diag.cli.terminal import braille, color, has_true_color, note, remark, width, write
from diag.collect.live_record import Recorder, check_target
from diag.collect.watching import Ending, MachineClock, Order, Plan, Quit, Readers, Watch
from diag.errors import InputError, NothingToTell
from diag.model.live import Snapshot
from diag.model.live_run import NS_PER_S, LiveRun
from diag.render.live_json import render_live_json
from diag.render.live_marks import ASCII, BLOCKS, COLORED, TRUE_COLORED, UNCOLORED, Marks, Style
from diag.render.live_prometheus import CONTENT_TYPE, render_live_prometheus
from diag.render.live_text import last_words, render_live_text
from diag.render.live_untold import RecordRow
from diag.render.live_view import LiveView, view_of
from diag.rules import thresholds
from diag.rules.finding import Answer

KEPT_NS = 5 * 60 * NS_PER_S
"""Of the past, in memory; `--record` keeps all."""

JUDGED_EVERY_NS = 5 * NS_PER_S
"""Rules go through all that is kept: at each reading they would cost more than the reading."""

MOST_JUDGING = 0.002
"""Of a core: a job of many GPUs and threads is judged less often."""

FEW = 5
"""Snapshots at the start, each of which is judged: there is little to go through, and somebody waits."""


@dataclass(frozen=True)
class Wishes:
    """What the command line asks for."""

    pid: int | None
    period_s: float
    duration_s: float | None
    stacks_s: float | None
    record: Path | None
    is_once: bool
    output_format: TextOrJson
    listen: str | None
    thresholds: Path | None


Judge = Callable[[LiveRun], Sequence[Answer]]


class Output(Protocol):
    """Shows one moment after the other, and passes the time between them."""

    has_terminal: bool
    """All of it, so that a sentence on standard error would tear its picture."""

    def show(self, view: LiveView) -> None: ...

    def wait(self, due_ns: int) -> Order | None: ...


def watch_and_tell(wishes: Wishes) -> None:
    from diag.collect.live_readers import live_readers
    from diag.rules.running import about_live

    limits = thresholds.load(wishes.thresholds)
    with live_readers(wishes.pid) as readers:
        tell_what_is_seen(wishes, readers, lambda run: about_live(run, limits))


def tell_what_is_seen(wishes: Wishes, readers: Readers, judge: Judge) -> None:
    """Raises InputError where there is no such process, NothingToTell where there is nothing to watch."""
    if wishes.record is not None:
        check_target(wishes.record)
    address = None if wishes.listen is None else parse_address(wishes.listen)
    _check(wishes, readers, judge)
    ENDING.kept = "the workload goes on"
    plan, teller = _plan(wishes), _Teller(judge)
    with ExitStack() as opened:
        if wishes.record is not None:
            recorder = Recorder(wishes.record, pid=wishes.pid, period_ns=plan.period_ns)
            teller.recorder = opened.enter_context(recorder)
            ENDING.kept += f", and what was read of it is in {wishes.record} ({_how_to_read(wishes.record)})"
        if address is not None:
            server = MetricsServer(address, CONTENT_TYPE, teller.metrics)
            note(f"metrics are at {opened.enter_context(server).url}")
        opened.callback(teller.say_notes)  # once the terminal is given back, which is opened next
        teller.output = _output(wishes, opened)
        ending = Watch(plan, readers, MachineClock()).until_done(teller.output.wait, teller.tell, teller.keep)
    if wishes.is_once:
        teller.judge(ending.run)
        write(_rendered(teller.view, wishes.output_format))
    if ending.is_over:
        _say_last_words(ending, wishes)
    if wishes.record is not None:
        remark(f"what was read is in {wishes.record}: {_how_to_read(wishes.record)}")


def _how_to_read(record: Path) -> str:
    """
    >>> _how_to_read(Path("my night.diag"))
    "diag report 'my night.diag'"
    """
    return f"diag report {shlex.quote(str(record))}"


def _plan(wishes: Wishes) -> Plan:
    period_ns = int(wishes.period_s * NS_PER_S)
    duration_ns = None if wishes.duration_s is None else int(wishes.duration_s * NS_PER_S)
    return Plan(
        pid=wishes.pid,
        period_ns=period_ns,
        kept_ns=KEPT_NS,
        duration_ns=period_ns if wishes.is_once and duration_ns is None else duration_ns,
        stacks_ns=None if wishes.stacks_s is None else int(wishes.stacks_s * NS_PER_S),
    )


def _check(wishes: Wishes, readers: Readers, judge: Judge) -> None:
    """Whether there is anything to watch. What NVML tells of two of its samples alone gets its first one here."""
    gpus = readers.gpus(time.time_ns())
    processes = readers.processes(gpus)
    why = readers.untold()
    if wishes.pid is not None and all(each.pid != wishes.pid for each in processes):
        raise InputError(why.get("processes", f"There is no process {wishes.pid}. `ps -e` lists those that run."))
    if wishes.pid is None and not gpus:
        teller = _Teller(judge)
        Watch(Plan(None, NS_PER_S, KEPT_NS, duration_ns=0), readers, MachineClock()).until_done(
            lambda _: None, teller.tell
        )
        write(_rendered(teller.view, wishes.output_format))
        said = why.get("gpus", "There is no GPU to watch.")
        raise NothingToTell(f"{said} The host alone can be watched with a process: diag watch PID")


class _Teller:
    """Makes a view of each moment and shows it."""

    def __init__(self, judge: Judge) -> None:
        self.view: LiveView | None = None
        self.output: Output | None = None
        self.recorder: Recorder | None = None
        self._judge = judge
        self._answers: Sequence[Answer] = ()
        self._judged_ns = 0
        self._pause_ns = JUDGED_EVERY_NS
        self._n_dumps = 0
        self._notes: list[str] = []
        self._is_full_said = False

    def keep(self, snapshot: Snapshot) -> None:
        if self.recorder is None:
            return
        self.recorder.add(snapshot)
        if self.recorder.is_full and not self._is_full_said:
            self._is_full_said = True
            self._notes.append(f"the record {self.recorder.path} is full and keeps nothing more; the watch goes on")

    def tell(self, run: LiveRun) -> None:
        is_due = run.snapshots[-1].clock_ns - self._judged_ns >= self._pause_ns
        if is_due or len(run.snapshots) <= FEW or self._n_dumps != _n_dumps(run):
            self._decide(run)
        self.view = view_of(run, self._answers, self._record)
        if self.output is not None:
            self.output.show(self.view)
            if not self.output.has_terminal:
                self.say_notes()

    def judge(self, run: LiveRun) -> None:
        """Now, whether it is due or not."""
        self._decide(run)
        self.view = view_of(run, self._answers, self._record)

    def _decide(self, run: LiveRun) -> None:
        began_ns = time.thread_time_ns()
        self._answers, self._judged_ns = self._judge(run), run.snapshots[-1].clock_ns
        self._pause_ns = max(JUDGED_EVERY_NS, round((time.thread_time_ns() - began_ns) / MOST_JUDGING))
        self._n_dumps = _n_dumps(run)

    def say_notes(self) -> None:
        while self._notes:
            note(self._notes.pop(0))

    @property
    def _record(self) -> RecordRow | None:
        kept = self.recorder
        return None if kept is None else RecordRow(str(kept.path), kept.n_bytes, kept.is_full)

    def metrics(self) -> str | None:
        return None if self.view is None else render_live_prometheus(self.view)


def _n_dumps(run: LiveRun) -> int:
    return sum(len(snapshot.stacks) for snapshot in run.snapshots)


class _Printer:
    """A block of text or a line of JSON for each moment, until its reader has seen enough."""

    has_terminal = False

    def __init__(self, render: Callable[[LiveView], str]) -> None:
        self._render = render
        self._is_read = True

    def show(self, view: LiveView) -> None:
        self._is_read = write(self._render(view))

    def wait(self, due_ns: int) -> Order | None:
        if not self._is_read:
            return Quit()
        MachineClock().sleep_until(due_ns)
        return None


def _output(wishes: Wishes, opened: ExitStack) -> Output:
    if wishes.is_once:
        return _Printer(lambda _: "")
    if wishes.output_format is TextOrJson.JSON:
        return _Printer(lambda view: render_live_json(view, is_one_line=True))
    if not _is_for_pictures():
        return _Printer(lambda view: _rendered(view, TextOrJson.TEXT))
    from diag.tui.watch.screen import Screen
    from diag.tui.watch.terminal import Terminal

    terminal = opened.enter_context(Terminal())
    return Screen(terminal, _marks(), _codes() or UNCOLORED)


def _is_for_pictures() -> bool:
    """Whether somebody sits at a terminal that can move its cursor."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _rendered(view: LiveView | None, output_format: TextOrJson) -> str:
    if view is None:
        return ""
    if output_format is TextOrJson.JSON:
        return render_live_json(view)
    return render_live_text(view, width=width(), marks=_marks(), codes=_codes())


def _marks() -> Marks:
    return BLOCKS if braille() else ASCII


def _codes() -> Mapping[Style, str]:
    if not color():
        return {}
    return TRUE_COLORED if has_true_color() else COLORED


def _say_last_words(ending: Ending, wishes: Wishes) -> None:
    if ending.last is None:
        return
    lasted_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - ending.last.started_ns
    words = last_words(ending.last, lasted_ns, ending.peak_resident_bytes)
    if wishes.output_format is TextOrJson.JSON:
        note(words)
    else:
        write(f"{words}\n")
