"""Lines of vLLM and SGLang: what a server did when its memory ran out."""

from __future__ import annotations

import pytest

from tests.builders.server_log import (
    OOM,
    SGLANG_START,
    VLLM_START,
    sglang_decode,
    sglang_prefill,
    traceback,
    vllm_stats,
)
from tests.ingest.job_log.reading import events, only, said

GIB = 1 << 30


def phases(*lines: str) -> list[tuple[object, object]]:
    return [(event.fields["phase"], event.fields["state"]) for event in events(*lines) if event.kind == "server_phase"]


def oom(*lines: str) -> dict[str, object]:
    (event,) = (event for event in events(*lines) if event.kind == "cuda_oom")
    return dict(event.fields)


def test_the_start_of_vllm() -> None:
    assert phases(*VLLM_START) == [
        ("load", "begins"), ("load", "ended"), ("profile", "ended"), ("kv_cache", "ended"), ("kv_cache", "ended"),
        ("capture", "begins"), ("capture", "ended"), ("ready", "ended"),
    ]  # fmt: skip
    by_phase = [event.fields for event in events(*VLLM_START)]
    assert by_phase[2]["weights_bytes"] == int(14.5 * GIB)
    assert by_phase[3]["kv_bytes"] == int(1.5 * GIB)
    assert by_phase[4]["kv_tokens"] == 49_152
    assert (by_phase[5]["request_tokens"], by_phase[5]["concurrency"]) == (8192, 6.0)
    assert (by_phase[7]["seconds"], by_phase[7]["graphs_bytes"]) == (8, GIB // 4)
    assert events(VLLM_START[1])[0].place.pid == 212


def test_the_start_of_sglang() -> None:
    assert phases(*SGLANG_START) == [
        ("load", "begins"), ("load", "ended"), ("kv_cache", "ended"), ("kv_cache", "ended"), ("capture", "begins"),
        ("capture", "ended"), ("ready", "ended"),
    ]  # fmt: skip
    loaded, allocated = events(*SGLANG_START)[2:4]
    assert (loaded.fields["free_bytes"], loaded.fields["weights_bytes"]) == (int(63.5 * GIB), 15 * GIB)
    assert (allocated.fields["kv_tokens"], allocated.fields["k_bytes"]) == (442_562, 27 * GIB)
    assert loaded.fields["worker"] == "TP0"


def test_settings_are_kept_by_name_and_no_secret_is() -> None:
    event = only(SGLANG_START[0])
    assert event.kind == "server_args"
    assert event.fields["tp_size"] == "8"
    assert "sk-hidden" not in event.text
    assert "random_seed" not in event.text


@pytest.mark.parametrize(
    ("before", "phase"),
    [
        (VLLM_START[:2], "load"),
        (VLLM_START[:3], "profile"),
        (VLLM_START[:4], "kv_cache"),
        (VLLM_START[:7], "capture"),
        (VLLM_START[:8], "warmup"),
        (VLLM_START, "serve"),
        (SGLANG_START[:2], "load"),
        (SGLANG_START[:3], "kv_cache"),
        (SGLANG_START[:6], "capture"),
        (SGLANG_START, "serve"),
    ],
)
def test_memory_ran_out_in_the_phase_that_the_lines_before_tell(before: tuple[str, ...], phase: str) -> None:
    fields = oom(*before, OOM)
    assert (fields["phase"], fields["phase_from"]) == (phase, "log")


@pytest.mark.parametrize(
    ("function", "phase"),
    [
        ("load_model", "load"),
        ("profile_run", "profile"),
        ("determine_available_memory", "profile"),
        ("initialize_kv_cache", "kv_cache"),
        ("capture_model", "capture"),
        ("init_device_graphs", "capture"),
        ("forward_extend", "serve"),
        ("execute_model", "serve"),
    ],
)
def test_a_traceback_names_the_phase(function: str, phase: str) -> None:
    fields = oom(*traceback(function))
    assert (fields["phase"], fields["phase_from"]) == (phase, "traceback")


def test_a_traceback_is_also_an_exception() -> None:
    assert [kind for kind, _ in said(*traceback("load_model"))] == ["cuda_oom", "python.exception"]


def test_an_earlier_traceback_says_nothing_of_a_later_one() -> None:
    fields = oom(*traceback("load_model", last="ValueError: x"), *traceback("forward"))
    assert "phase" not in fields


def test_the_figures_of_the_allocator() -> None:
    fields = oom(OOM)
    assert fields == {
        "runtime": "CUDA", "tried_bytes": 2 * GIB, "device": 1, "total_bytes": 80 * GIB, "free_bytes": int(1.5 * GIB),
        "allocated_bytes": 76 * GIB, "reserved_bytes": GIB,
    }  # fmt: skip
    old = oom(
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 40.00 GiB total capacity; 37.50 GiB "
        "already allocated; 19.00 MiB free; 38.00 GiB reserved in total by PyTorch)"
    )
    assert (old["device"], old["total_bytes"], old["free_bytes"]) == (0, 40 * GIB, 19 << 20)


def test_what_sglang_was_doing() -> None:
    fields = oom(*SGLANG_START, sglang_decode(1), sglang_prefill(2, new=8192), OOM)
    assert (fields["after_batch"], fields["after_new_tokens"]) == ("prefill", 8192)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (
            "WARNING 12-01 10:00:00 scheduler.py:1057] Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode "
            "because there is not enough KV cache space. total_num_cumulative_preemption=51",
            {"request": 7, "mode": "RECOMPUTE", "total": 51, "server": "vllm", "moment": "12-01T10:00:00"},
        ),
        (
            "[2025-12-02 12:01:19] KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_tokens_gained: "
            "646, #new_token_ratio: 0.0980 -> 0.3487",
            {"requests": 3, "freed_tokens": 646, "mode": "RECOMPUTE", "server": "sglang"},
        ),
        (
            "Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.6 -> 0.97",
            {"requests": 1, "mode": "RECOMPUTE", "server": "sglang"},
        ),
        (
            vllm_stats(5, more="Preemptions: 4, "),
            {"requests": 4, "server": "vllm", "worker": "APIServer", "moment": "10-06T12:01:05"},
        ),
    ],
)
def test_preemption(line: str, fields: dict[str, object]) -> None:
    event = only(line)
    assert (event.kind, event.fields) == ("preemption", fields)


def test_a_pool_that_is_too_small() -> None:
    event = only(
        "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is "
        "needed, which is larger than the available KV cache memory (7.50 GiB)."
    )
    assert (event.fields["phase"], event.fields["state"]) == ("kv_cache", "failed")
    assert (event.fields["needed_bytes"], event.fields["available_bytes"]) == (16 * GIB, int(7.5 * GIB))
    assert phases("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.") == [
        ("kv_cache", "failed")
    ]


def test_the_pool_of_sglang_ran_out() -> None:
    kind, fields = said(
        "[2025-12-02 12:01:19] Prefill out of memory. Try to lower your batch size.Try to allocate 8192 tokens."
    )[0]
    assert (kind, fields["batch"], fields["tried_tokens"]) == ("kv_oom", "Prefill", 8192)


def test_another_web_server_is_none_of_ours() -> None:
    assert events("INFO:     Application startup complete.") == []
