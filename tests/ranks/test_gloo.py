"""Three real ranks on Gloo, of which one sleeps before each all-reduce: a straggler of known size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ranks.job import Job
from diag.rules import engine, running, thresholds
from diag.rules.finding import Finding
from diag.timeline.joined import traces_of
from tests.rules.asking import figures, only_finding

SLEEP_NS = 30_000_000
N_STEPS = 15

PROGRAM = f"""
import sys, time
import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, record_function
from diag.probes.collective.world import leave

folder, rank = sys.argv[1], int(sys.argv[2])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{{folder}}/rendezvous", rank=rank, world_size=3)
values = torch.ones(1 << 14)
dist.all_reduce(values)
with profile(activities=[ProfilerActivity.CPU]) as profiler:
    for step in range({N_STEPS}):
        with record_function(f"step {{step}}"):
            if rank == 1:
                with record_function("read a file"):
                    time.sleep({SLEEP_NS} / 1e9)
            dist.all_reduce(values)
profiler.export_chrome_trace(f"{{folder}}/rank{{rank}}.json")
dist.destroy_process_group()
leave(0)
"""


def traces(folder: Path) -> list[Path]:
    (folder / "program.py").write_text(PROGRAM)
    ranks = [
        subprocess.Popen([sys.executable, folder / "program.py", folder, str(rank)], stderr=subprocess.DEVNULL)
        for rank in range(3)
    ]
    try:
        assert [rank.wait(timeout=120) for rank in ranks] == [0, 0, 0]
    finally:
        for rank in ranks:
            rank.kill()
    return [folder / f"rank{rank}.json" for rank in range(3)]


def test_the_rank_that_sleeps_is_named_with_how_long(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="real ranks need torch")
    with open_inputs(traces(tmp_path), ImportOptions(use_cache=False)) as case:
        rule = engine.rules()["ranks.straggler"]
        assert isinstance(rule, engine.JobRule)
        job = Job(case, traces_of(case))
        finding = only_finding(list(running.run_on_job(rule, job, thresholds.load()["ranks.straggler"])))
    assert isinstance(finding, Finding)
    found = figures(finding)
    assert finding.subject.ranks == (1,)
    # All ranks run on one machine: their clocks are one, and so is the truth. Cores may be busy, ranks only get later.
    error_ns = float(found["clock error"])
    assert found["late by"] == pytest.approx(SLEEP_NS, abs=2 * error_ns + SLEEP_NS / 4)
    assert found["came last"] >= 0.8 * N_STEPS  # type: ignore[operator]
    assert "('read a file') covers" in finding.claim
