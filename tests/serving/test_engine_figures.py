"""What steps say of the KV cache and of where time goes, and what a server's log says where there are no steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from diag.model.serving_log import EngineConditions, RequestRecord, StepRecord
from diag.serving import engine_figures as engine_figures_of
from diag.serving.engine_figures import EngineFigures, engine_figures
from diag.serving.run import EngineSample, serving_runs
from tests.builders.imported import imported
from tests.builders.serving_log import MS, SECOND, LoggedRun, ServingLog, request, step

PARTS = {"schedule_ns": MS, "model_ns": 6 * MS, "sample_ns": MS, "output_ns": MS}
STEPS = [
    # 10 ms each and 2.5 ms between the first two, then nothing to do for 40 ms.
    step(0, 0, 10 * MS, prefill_tokens=40, n_prefills=2, n_running=2, used_blocks=4, cached_blocks=2, free_blocks=4,
         used_tokens=40, **PARTS),
    step(1, 12_500_000, 22_500_000, decode_tokens=2, n_decodes=2, used_blocks=8, cached_blocks=0, free_blocks=2,
         used_tokens=96, preempted=["r1"], swapped_out_blocks=3, padded_rows=8, n_waiting=0, **PARTS),
    step(2, 62_500_000, 72_500_000, decode_tokens=2, n_decodes=2, n_waiting=5, used_blocks=2, cached_blocks=0,
         free_blocks=8, used_tokens=32, recomputed_tokens=7,
         drafted_tokens=4, accepted_tokens=3, padded_rows=2, **PARTS),
]  # fmt: skip
ENGINE = EngineConditions(block_tokens=16)


def figures_of(
    folder: Path, steps: list[StepRecord], requests: list[RequestRecord], engine: EngineConditions | None = ENGINE
) -> EngineFigures | None:
    with imported(ServingLog([LoggedRun(requests, steps, engine=engine)]), folder) as case:
        return engine_figures(serving_runs(case)[0])


def test_of_the_kv_cache(tmp_path: Path) -> None:
    found = figures_of(tmp_path, STEPS, [])
    assert found is not None
    kv = found.kv
    assert kv.peak_share == 0.8
    # 40 % for 12.5 ms, 80 % for 50 ms, 20 % for the length of the last step.
    whole = 12.5 + 50 + 10
    assert kv.mean_share == pytest.approx((0.4 * 12.5 + 0.8 * 50 + 0.2 * 10) / whole)
    assert kv.cached_share == pytest.approx(0.2 * 12.5 / whole)
    # 40 of 64, 96 of 128 and 32 of 32 tokens.
    assert kv.tail_waste_share == pytest.approx((0.375 * 12.5 + 0.25 * 50) / whole)
    assert (kv.preemptions, kv.recomputed_tokens, kv.swapped_blocks, kv.prefix_hit_share) == (1, 7, 3, None)
    assert found.most_waiting == 5


def test_shares_of_a_step_and_what_lies_between_add_up(tmp_path: Path) -> None:
    found = figures_of(tmp_path, STEPS, [])
    assert found is not None
    steps = found.steps
    assert steps is not None
    assert (steps.count, steps.mean_sequences, steps.median_ns) == (3, 2, 10 * MS)
    assert steps.mean_tokens == pytest.approx(44 / 3)
    # After the second step nothing was left to do: what follows is no time of the engine.
    assert steps.busy_ns == 32_500_000
    assert steps.between_share == pytest.approx(2.5 / 32.5)
    assert steps.model_share == pytest.approx(18 / 32.5)
    assert steps.schedule_share == steps.sample_share == steps.output_share == pytest.approx(3 / 32.5)
    assert steps.padding_share == pytest.approx(1 - 4 / 10)
    assert steps.accepted_share == 0.75


def test_steps_of_the_warm_up_are_left_out(tmp_path: Path) -> None:
    measured = [request(0, SECOND)]
    during = [replace_times(each, SECOND) for each in STEPS]
    found = figures_of(tmp_path, [*STEPS, *during], measured)
    assert found is not None
    assert found.steps is not None
    assert found.steps.count == 3


def replace_times(each: StepRecord, later_ns: int) -> StepRecord:
    return step(each.number + 10, each.start_ns + later_ns, each.end_ns + later_ns)


def test_what_is_not_known_is_none(tmp_path: Path) -> None:
    found = figures_of(tmp_path, [step(0, 0, MS)], [], engine=None)
    assert found is not None
    assert found.kv.peak_share is found.kv.mean_share is found.kv.tail_waste_share is None
    assert found.steps is not None
    assert found.steps.model_share is found.steps.padding_share is found.steps.accepted_share is None
    assert figures_of(tmp_path, [], [request(0, 0)]) is None


def test_the_cache_of_prefixes_is_known_from_requests_alone(tmp_path: Path) -> None:
    found = figures_of(tmp_path, [], [request(0, 0, cached_tokens=64), request(1, SECOND, cached_tokens=0)])
    assert found is not None
    assert found.kv.prefix_hit_share == 0.32
    assert found.steps is None


def test_a_log_of_a_server_tells_a_watermark(tmp_path: Path) -> None:
    with imported(ServingLog([LoggedRun()]), tmp_path) as case:
        run = replace(serving_runs(case)[0])
        run.__dict__["samples"] = [
            EngineSample(0, 3, 0, 0, 0.25, 0.1, 10.0, 10.0),
            EngineSample(MS, 3, 9, 0, 0.75, 0.5, 10.0, 10.0),
        ]
        found = engine_figures(run)
    assert found is not None
    assert (found.kv.peak_share, found.kv.mean_share, found.kv.prefix_hit_share) == (0.75, 0.5, 0.5)
    assert (found.most_waiting, found.steps) == (9, None)


def test_the_bounds_of_a_run_are_sought_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not for each step, of which a log may hold a hundred thousand."""
    sought: list[int] = []

    def counted(of: list[int]) -> int:
        sought.append(min(of))
        return sought[-1]

    monkeypatch.setattr(engine_figures_of, "min", counted, raising=False)
    requests = [request(0, 0, ttft_ns=10 * MS, n=2, itl_ns=62 * MS)]
    assert figures_of(tmp_path, STEPS, requests) is not None
    assert sought == [0]
