"""Real programs with one known fault each, watched with what reads this machine, recorded and judged: found by line."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from diag.collect import py_spy
from diag.collect.live_readers import live_readers
from diag.collect.live_record import Recorder
from diag.collect.stacks import dump
from diag.collect.watching import MachineClock, Order, Plan, Quit, Readers, Watch
from diag.model.live import GpuProcess
from diag.model.live_run import NS_PER_S, LiveRun
from diag.rules import thresholds
from diag.rules.finding import Finding
from diag.rules.running import about_live
from tests.builders.live import device
from tests.cli.conftest import Command
from tests.collect.watched import line_of, running, tell

PATIENCE_S = 60.0
PERIOD_NS = NS_PER_S // 5
STACKS_NS = NS_PER_S // 2
FEWEST_DUMPS = 3


@pytest.fixture(scope="module", autouse=True)
def _stacks_can_be_read() -> None:
    if py_spy.find_py_spy() is None:
        pytest.skip("py-spy is not installed")
    with running("hot_line.py") as process:
        why = dump(process.pid).untold or ""
    if "CAP_SYS_PTRACE" in why:
        pytest.skip(why)


@dataclass
class Watching:
    """Watches until a rule has a finding that rests on some dumps of stacks, and fails if it never has."""

    rule: str
    found: Sequence[Finding] = ()

    def of(self, pid: int, record: Path, change: Callable[[Readers], Readers] = lambda readers: readers) -> None:
        plan = Plan(pid, PERIOD_NS, 300 * NS_PER_S, duration_ns=round(PATIENCE_S * NS_PER_S), stacks_ns=STACKS_NS)
        with live_readers(pid) as readers, Recorder(record, pid=pid, period_ns=PERIOD_NS) as recorder:
            Watch(plan, change(readers), MachineClock()).until_done(self.wait, self.judge, recorder.add)
        assert [each.rule for each in self.found if each.rule == self.rule], [each.title for each in self.found]

    def judge(self, run: LiveRun) -> None:
        if len(list(run.stacks)) >= FEWEST_DUMPS:
            self.found = [each for each in about_live(run, thresholds.load()) if isinstance(each, Finding)]

    def wait(self, due_ns: int) -> Order | None:
        if any(each.rule == self.rule for each in self.found):
            return Quit()
        MachineClock().sleep_until(due_ns)
        return None

    @property
    def finding(self) -> Finding:
        (found,) = (each for each in self.found if each.rule == self.rule)
        return found


def reported(diag: Command, record: Path) -> dict[str, str]:
    """Titles of the findings of a record by their rules."""
    report = json.loads(diag("report", record, "--format", "json").is_quiet_success())
    return {finding["rule"]: finding["title"] for finding in report["findings"]}


@pytest.mark.parametrize(
    ("program", "place"),
    [
        ("hot_line.py", f"hot (hot_line.py:{line_of('hot_line.py', '# the hot line')})"),
        ("busy_loop.py", "<module> (busy_loop.py:"),
    ],
)
def test_a_loop_is_found_with_its_line(program: str, place: str, diag: Command, tmp_path: Path) -> None:
    watching = Watching("live.hot_line")
    with running(program) as process:
        watching.of(process.pid, tmp_path / "run.diag")
    assert f" spends a core in {place}" in watching.finding.title
    assert [each.rule for each in watching.found] == ["live.hot_line"]
    assert reported(diag, tmp_path / "run.diag")["live.hot_line"] == watching.finding.title


def test_a_lock_is_found_with_the_frame_that_waits(diag: Command, tmp_path: Path) -> None:
    watching, place = (
        Watching("live.blocked"),
        f"blocked (blocked_lock.py:{line_of('blocked_lock.py', '# the blocked')})",
    )
    with running("blocked_lock.py") as process:
        watching.of(process.pid, tmp_path / "run.diag")
    waits, *_, holds = watching.finding.evidence
    assert "wait" in watching.finding.title
    assert watching.finding.title.endswith(place)
    assert waits.label.startswith("waiter (")
    assert waits.value == place
    assert (holds.label, holds.value) == (
        f"MainThread ({process.pid}) is in",
        f"<module> (blocked_lock.py:{line_of('blocked_lock.py', 'sys.stdin.read()')})",
    )
    assert reported(diag, tmp_path / "run.diag")["live.blocked"] == watching.finding.title


def test_the_one_thread_of_many_that_works_is_found(tmp_path: Path) -> None:
    watching = Watching("live.hot_line")
    with running("threads.py", "20") as process:
        tell(process)
        watching.of(process.pid, tmp_path / "run.diag")
    assert "work (threads.py:" in watching.finding.title
    assert [each.rule for each in watching.found] == ["live.hot_line"], "nineteen threads wait for an event, not a lock"


def test_what_a_gpu_waits_for_is_a_line_of_its_process(tmp_path: Path) -> None:
    watching = Watching("live.waits_for_host")
    with running("hot_line.py") as process:
        idle = device(resident_pct=5.0, processes=[GpuProcess(process.pid, 10**9, "compute")])
        watching.of(process.pid, tmp_path / "run.diag", lambda readers: replace(readers, gpus=lambda _: [idle]))
    line = line_of("hot_line.py", "# the hot line")
    assert watching.finding.title.startswith("GPU 0 waits for the host: thread ")
    assert watching.finding.title.endswith(f"keeps a core busy in hot (hot_line.py:{line})")
    assert watching.finding.subject.process == process.pid


def test_the_command_finds_the_line(diag: Command) -> None:
    """With its own shortest time between two dumps."""
    started_s = time.monotonic()
    with running("hot_line.py") as process:
        out = diag("watch", str(process.pid), "--stacks", "10s", "--for", "11s", "--once", "-f", "json")
    (finding,) = json.loads(out.is_quiet_success())["findings"]
    line = line_of("hot_line.py", "# the hot line")
    assert finding["title"].endswith(f" spends a core in hot (hot_line.py:{line})")
    assert time.monotonic() - started_s > 10
