"""What judging a watched workload costs, and recording it: a window of 300 snapshots, CPU time."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from diag.collect.live_record import Recorder
from diag.model.live_run import NS_PER_S
from diag.rules import engine, thresholds
from diag.rules.running import about_live
from tests.builders.live import PID, Watched, device, process, thread, watched


@pytest.mark.parametrize(("gpus", "ranks", "threads"), [(1, 5, 40), (8, 8, 150)])
def test_a_window_is_judged_and_recorded(gpus: int, ranks: int, threads: int, tmp_path: Path) -> None:
    made, limits = _workload(gpus, ranks, threads), thresholds.load()
    engine.rules()
    gc.collect()
    gc.freeze()
    judged = min(_seconds(lambda: about_live(made.run, limits)) for _ in range(5))
    gc.unfreeze()
    recorded = _seconds(lambda: _record(made, tmp_path / "run.diag")) / len(made.snapshots)
    print(
        f"\n{gpus} GPUs, {ranks} processes of {threads} threads: judged in {judged * 1e3:.1f} ms, "
        f"recorded in {recorded * 1e3:.2f} ms a snapshot"
    )
    assert judged < 0.05


def _workload(gpus: int, ranks: int, threads: int) -> Watched:
    return watched(
        lambda _: [device(index=i, uuid=f"GPU-{i}", resident_pct=50.0) for i in range(gpus)],
        lambda at: [
            process(at, PID + i, *(thread(at, PID + i + 100 * t, cores=0.05) for t in range(threads)))
            for i in range(ranks)
        ],
        seconds=299,
    )


def _record(made: Watched, path: Path) -> None:
    with Recorder(path, pid=made.pid, period_ns=NS_PER_S) as recorder:
        for snapshot in made.snapshots:
            recorder.add(snapshot)


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
