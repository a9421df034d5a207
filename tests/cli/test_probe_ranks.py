"""`diag probe run` of probes of several ranks, as their users type it."""

from __future__ import annotations

import gzip
import json
import os
import signal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from diag.ingest import benchmark
from diag.model.collective import Primitive
from tests import interruptible
from tests.cli.conftest import Command

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
TINY = ("--scale", "tiny", "--device", "cpu")


def test_traces_and_figures_of_a_run_with_a_late_rank(diag: Command, tmp_path: Path) -> None:
    kept = tmp_path / "ranks.json"
    late = ("--trace", tmp_path, "--late-rank", "1", "--late-ms", "30")
    ran = diag("probe", "run", "broadcast", "data_parallel", "--variant", "buckets", *TINY, *late, "-o", kept)
    assert ran.status == 2, "broadcast has no buckets"
    ran = diag("probe", "run", "data_parallel", "broadcast", *TINY, *late, "-o", kept)
    assert ran.status == 0, ran.err
    flowing = " ".join(ran.out.split())
    assert "broadcast: T = α + k·M/B" in flowing or "broadcast: no line" in flowing
    assert "data_parallel buckets" in flowing
    assert "counted on every rank" in flowing
    assert max(map(len, ran.out.splitlines())) <= 80

    found = benchmark.load(kept)
    assert {each.op for each in found.collectives} == {Primitive.BROADCAST}
    assert [each.variant for each in found.measurements] == ["after_backward", "buckets"]
    again = json.loads(diag("report", kept, "--format", "json").is_quiet_success())
    assert {each["rule"] for each in again["clear"]} >= {"comm.wrong", "probe.wrong"}
    rows = diag("query", kept, "SELECT op, n_ranks, n_wrong, p5_ns <= time_ns FROM comm_measurement").is_quiet_success()
    assert rows.count("broadcast") == len(found.collectives)

    declared = [json.loads(line.partition("traced: ")[2]) for line in ran.err.splitlines()]
    assert [each["variant"] for each in declared] == ["after_backward", "buckets", "call"]
    for said in declared:
        folder = tmp_path / f"{said['probe']}-{said['variant']}"
        _is_a_late_rank(said, [_trace(folder / f"rank{rank}.pt.trace.json.gz") for rank in (0, 1)])


def _trace(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return found


def _is_a_late_rank(said: dict[str, Any], traces: list[dict[str, Any]]) -> None:
    assert (said["n_ranks"], said["late_rank"], said["late_ms"]) == (2, 1, 30)
    assert [each["distributedInfo"]["rank"] for each in traces] == [0, 1]
    assert all(each["diag_probe"] == said for each in traces)
    steps = [[e for e in each["traceEvents"] if str(e.get("name", "")).startswith("ProfilerStep#")] for each in traces]
    assert [len(each) for each in steps] == [said["n_steps"]] * 2
    delays = [[e["dur"] for e in each["traceEvents"] if e.get("name") == "injected delay"] for each in traces]
    assert delays[0] == []
    assert len(delays[1]) == said["n_steps"]
    assert min(delays[1]) >= 30e3


def test_a_dead_rank_ends_all_and_nothing_is_kept(diag: Command, tmp_path: Path) -> None:
    process = diag.start("probe", "run", "pipeline", "--ranks", "2", "--device", "cpu", "-o", tmp_path / "kept.json")
    ranks: list[int] = []

    def both_run() -> bool:
        ranks[:] = _children(process.pid)
        return len(ranks) == 2

    interruptible.wait_until(both_run, process)
    os.kill(ranks[1], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (3, b"")
    assert err == b"diag: Rank 1 of 2 was ended by SIGKILL. Run it once more.\n"
    assert all(interruptible.ended(pid) for pid in ranks)
    assert list(tmp_path.iterdir()) == []


def test_whoever_interrupts_it_leaves_no_rank_behind(diag: Command, tmp_path: Path) -> None:
    process = diag.start("probe", "run", "pipeline", "--ranks", "2", "--device", "cpu", "-o", tmp_path / "kept.json")
    ranks: list[int] = []

    def both_run() -> bool:
        ranks[:] = _children(process.pid)
        return len(ranks) == 2

    interruptible.wait_until(both_run, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode not in (0, 3)
    assert b"nothing is kept" in err
    assert b"Traceback" not in err
    assert all(interruptible.ended(pid) for pid in ranks)


def _children(pid: int) -> list[int]:
    file = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in file.read_text().split()]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["all_reduce", "--ranks", "1"], "2 to 64 ranks"),
        (["all_reduce", "gemm"], "No probe of several ranks is called 'gemm'"),
        (["gemm", "--ranks", "2"], "No probe of several ranks is called 'gemm'"),
        (["all_reduce", "--dtype", "bf16"], "no --dtype"),
        (["all_reduce", "--report"], "no --report"),
        (["all_reduce", "--late-rank", "1", "--late-ms", "5"], "--trace FOLDER"),
        (["all_reduse"], "Did you mean all_reduce"),
    ],
)
def test_wrong_usage_is_told_before_anything_starts(diag: Command, words: list[str], said: str) -> None:
    assert said in diag("probe", "run", *words, "--device", "cpu").is_one_sentence(2)
