"""A device that waits for its data loader."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from diag.model.live import GpuProcess, ProcessReading, StackDump
from diag.rules.finding import CannotTell, Clear
from tests.builders.live import GIB, PID, Watched, device, dumped, process, stack, thread, watched
from tests.rules.asking import Ask, Query, ThreeCases, figures, only_finding

LOADER = "/env/lib/python3.12/site-packages/torch/utils/data/dataloader.py"
WAITING = (
    ("select", "/usr/lib/python3.12/selectors.py", 415),
    ("_try_get_data", LOADER, 1263),
    ("__next__", LOADER, 708),
)
TRAINING = ("train", "/app/train.py", 12)


def loading(
    worker_cores: float | None = 0.97,
    *,
    ready: float = 0.0,
    frames: Sequence[tuple[str, str, int]] = WAITING,
    is_dumped: bool = True,
) -> Watched:
    """A device that idles while the main thread waits for two workers, which keep some of a core busy each."""

    def processes(at: int) -> Sequence[ProcessReading]:
        workers = (
            [process(at, pid, thread(at, pid, cores=worker_cores, ready=ready), parent_pid=PID) for pid in (201, 202)]
            if worker_cores is not None
            else []
        )
        return [process(at, PID, thread(at, cores=0.05)), *workers]

    def stacks(at: int) -> Sequence[StackDump]:
        return dumped(at, stack(*frames, TRAINING)) if is_dumped else []

    return watched(lambda _: device(resident_pct=30.0), processes, stacks)


CASES = {
    "live.data_loader": ThreeCases(
        fires=loading,
        clear=lambda: loading(frames=[("backward", "/env/torch/autograd/graph.py", 5)]),
        untold=lambda: loading(is_dumped=False),
    ),
}


@pytest.mark.parametrize(
    ("cores", "story"),
    [
        (0.97, "its 2 workers keep up to a core busy each"),
        (0.1, "its 2 workers wait as well"),
        (None, "the main thread waits for it, without workers"),
    ],
)
def test_it_says_who_is_slow(ask: Ask, cores: float | None, story: str) -> None:
    finding = only_finding(ask("live.data_loader", loading(cores)))
    assert finding.title == f"GPU 0 waits for the data loader: {story}"
    assert "which train (train.py:12) asked for a batch" in finding.claim
    assert figures(finding)["inside a loader"] == 5


def test_workers_that_share_too_few_cores_are_busy(ask: Ask) -> None:
    finding = only_finding(ask("live.data_loader", loading(0.4, ready=0.5)))
    assert "keep up to a core busy each" in finding.title


def test_it_shows_the_stacks(query: Query, ask: Ask) -> None:
    finding = only_finding(ask("live.data_loader", loading()))
    (evidence,) = (each for each in finding.evidence if each.label == "inside a loader")
    rows = query(loading(), evidence)
    assert [row[2] for row in rows[:4]] == ["select", "_try_get_data", "__next__", "train"]


def test_without_stacks_it_says_how_to_get_them(ask: Ask) -> None:
    (answer,) = ask("live.data_loader", loading(is_dumped=False))
    assert isinstance(answer, CannotTell)
    assert "press s in diag watch" in answer.because


def test_who_was_not_watched_may_wait_for_a_loader(ask: Ask) -> None:
    stranger = device(resident_pct=30.0, processes=[GpuProcess(4711, GIB, "compute")])
    (answer,) = ask("live.data_loader", watched(lambda _: stranger))
    assert isinstance(answer, CannotTell)
    assert "pid 4711" in answer.because
    (answer,) = ask("live.data_loader", watched(lambda _: device(resident_pct=30.0, processes=[])))
    assert isinstance(answer, Clear)


def test_a_busy_device_has_no_slow_loader(ask: Ask) -> None:
    (answer,) = ask("live.data_loader", watched(stacks=lambda at: dumped(at, stack(*WAITING, TRAINING))))
    assert isinstance(answer, Clear)
