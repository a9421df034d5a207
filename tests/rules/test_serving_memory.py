"""A server that ran out of device memory, by the phase in which it did."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.builders.job_log import Whole
from tests.builders.server_log import (
    OOM,
    SGLANG_START,
    SYNTHETIC,
    VLLM_START,
    sglang_decode,
    sglang_prefill,
    traceback,
)
from tests.rules.asking import Ask, ThreeCases, figures, only_finding

GIB = 1 << 30
TOO_SMALL = (
    "ValueError: 1.00 GiB KV cache is needed, which is larger than the available KV cache memory (0.50 GiB). Try "
    "increasing gpu_memory_utilization or decreasing max_model_len when initializing the engine."
)
FULL = "Decode out of memory. Try to lower your batch size. Try to allocate 16 tokens."
RETRACTED = "[2025-12-02 12:01:40 TP0] Decode out of memory happened. #retracted_reqs: 3, #new_token_ratio: 0.6 -> 0.97"


def server(*lines: str) -> Whole:
    return Whole("".join(f"{line}\n" for line in (SYNTHETIC, *lines)))


CASES = {
    "serving.memory": ThreeCases(
        fires=lambda: server(*VLLM_START[:7], *traceback("capture_model")),
        clear=lambda: server(*VLLM_START),
        untold=lambda: server(*VLLM_START[:4]),
    ),
}


@pytest.mark.parametrize(
    ("lines", "phase", "confidence"),
    [
        ([*VLLM_START[:2], *traceback("load_model")], "while the weights were loaded", "high"),
        ([*VLLM_START[:2], OOM], "while the weights were loaded", "medium"),
        ([*VLLM_START[:3], *traceback("profile_run")], "in the trial run before the cache is made", "high"),
        ([*VLLM_START[:4], TOO_SMALL], "when the KV cache was made", "high"),
        ([*VLLM_START[:7], *traceback("capture_model")], "while graphs were captured", "high"),
        ([*VLLM_START[:8], OOM], "in the first requests that it made itself", "medium"),
        ([*VLLM_START, *traceback("execute_model")], "while it served", "high"),
        ([*SGLANG_START, sglang_decode(1), sglang_prefill(2), OOM], "at the peak of a prefill", "medium"),
        ([*SGLANG_START, sglang_prefill(1), sglang_decode(2), OOM], "in decode", "medium"),
        ([*SGLANG_START, RETRACTED, FULL], "as the KV cache grew", "high"),
    ],
)
def test_the_phase_is_named(ask: Ask, lines: Sequence[str], phase: str, confidence: str) -> None:
    finding = only_finding(ask("serving.memory", server(*lines)))
    assert finding.title == f"The server ran out of device memory {phase}"
    assert (finding.confidence, finding.severity) == (confidence, "critical")


def test_what_the_line_and_the_start_said(ask: Ask) -> None:
    told = figures(only_finding(ask("serving.memory", server(*VLLM_START, *traceback("execute_model")))))
    assert (told["asked for"], told["free"], told["device memory"]) == (2 * GIB, int(1.5 * GIB), 80 * GIB)
    assert (told["weights"], told["KV cache"], told["graphs"]) == (int(14.5 * GIB), int(1.5 * GIB), GIB // 4)


def test_requests_that_were_taken_back_before(ask: Ask) -> None:
    told = figures(only_finding(ask("serving.memory", server(*SGLANG_START, RETRACTED, RETRACTED, FULL))))
    assert told["preempted before"] == 6


def test_the_first_is_told_and_the_others_are_counted(ask: Ask) -> None:
    finding = only_finding(ask("serving.memory", server(*VLLM_START[:2], OOM, OOM, *VLLM_START[2:])))
    assert "loaded" in finding.title
    assert figures(finding)["lines about it"] == 2


def test_a_program_that_is_no_server_is_not_judged(ask: Ask) -> None:
    assert ask("serving.memory", server(*traceback("forward"))) == []
