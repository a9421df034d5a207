"""Lines in which servers speak of themselves become samples of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.ingest.serving import engine_log
from diag.serving.run import EngineSample, ServingRun, serving_runs
from tests.builders.server_log import (
    OOM,
    SGLANG_START,
    VLLM_START,
    ServerLog,
    sglang_decode,
    sglang_prefill,
    vllm_stats,
)

SECOND = 1_000_000_000


def runs(tmp_path: Path, *lines: str) -> list[ServingRun]:
    with open_inputs([ServerLog(lines).write(tmp_path / "server.log")], ImportOptions(use_cache=False)) as case:
        found = list(serving_runs(case))
        for run in found:
            assert run.samples or run.samples == []  # loaded while the case is open
        return found


def test_samples_of_vllm(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, *VLLM_START, vllm_stats(10), vllm_stats(20, running=12, waiting=5, kv=99.5))
    assert (run.backend, run.model, run.label) == ("vllm", "acme/m", "engine 000")
    assert run.samples == [
        EngineSample(0, 8, 0, None, 0.4, 0.25, 100.5, 50.0),
        EngineSample(10 * SECOND, 12, 5, None, 0.995, 0.25, 100.5, 50.0),
    ]
    assert run.engine is not None
    assert (run.engine.tensor_parallel, run.engine.prefix_cache, run.engine.chunked_prefill) == (2, "hash", True)
    assert run.engine.other["kv_tokens"] == "49152"


def test_samples_of_old_vllm(tmp_path: Path) -> None:
    head = "INFO 11-09 14:10:25 metrics.py:345] "
    (run,) = runs(
        tmp_path,
        "INFO 11-09 14:09:00 gpu_executor.py:122] # GPU blocks: 9806, # CPU blocks: 2048",
        f"{head}Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 10.2 tokens/s, Running: 3 reqs, "
        "Swapped: 1 reqs, Pending: 4 reqs, GPU KV cache usage: 93.5%, CPU KV cache usage: 0.0%.",
        f"{head}Prefix cache hit rate: GPU: 12.50%, CPU: 0.00%",
    )
    first, second = run.samples
    assert (first.n_running, first.n_swapped, first.n_waiting, first.kv_share) == (3, 1, 4, 0.935)
    assert second == EngineSample(0, None, None, None, None, 0.125, None, None)
    assert run.engine is not None
    assert run.engine.n_blocks == 9806


def test_samples_of_sglang(tmp_path: Path) -> None:
    (run,) = runs(tmp_path, *SGLANG_START, sglang_prefill(1), sglang_decode(4, queued=9, usage=0.97))
    prefill, decode = run.samples
    assert (prefill.n_running, prefill.n_waiting, prefill.prefix_hit_share) == (7, 2, 0.75)
    assert (decode.time_ns, decode.kv_share, decode.output_tokens_per_s) == (3 * SECOND, 0.97, 320.1)
    assert decode.n_waiting == 9
    assert run.engine is not None
    assert (run.engine.prefix_cache, run.engine.tensor_parallel) == ("radix", 8)
    assert run.engine.other["mem_fraction_static"] == "0.85"


def test_each_engine_has_its_run(tmp_path: Path) -> None:
    other = vllm_stats(11).replace("Engine 000", "Engine 001")
    assert [run.label for run in runs(tmp_path, vllm_stats(10), other)] == ["engine 000", "engine 001"]
    ranks = [sglang_decode(1).replace("TP0", f"DP{rank} TP{rank}") for rank in (0, 1)]
    assert [run.label for run in runs(tmp_path, *ranks)] == ["DP0", "DP1"]


def test_after_december_comes_january(tmp_path: Path) -> None:
    december = vllm_stats(59).replace("10-06 12:01", "12-31 23:59")
    january = vllm_stats(9).replace("10-06 12:01", "01-01 00:00")
    (run,) = runs(tmp_path, december, january)
    assert [sample.time_ns for sample in run.samples] == [0, 10 * SECOND]


def test_one_log_holds_samples_and_what_ran_out(tmp_path: Path) -> None:
    path = ServerLog([*VLLM_START, vllm_stats(10), OOM]).write(tmp_path / "server.log")
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        (source,) = case.sources
        assert source.captured("engine_sample")
        assert source.captured("log_event")
        assert not source.captured("request")
        assert case.value("SELECT fields ->> 'phase' FROM log_event WHERE kind = 'cuda_oom'") == "serve"


def test_only_so_many_samples_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_log, "MOST_SAMPLES", 3)
    (run,) = runs(tmp_path, *(vllm_stats(second) for second in range(10)))
    assert len(run.samples) == 3
