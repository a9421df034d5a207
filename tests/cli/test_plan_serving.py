"""`diag plan serving`, `transfer`, `speculative` and `quantisation`: their figures, their verdicts, and wrong usage."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.model.serving_log import EngineConditions, StepRecord
from diag.model.speculative_gain import tokens_per_verification
from tests.builders.memory_snapshot import MemorySnapshot
from tests.builders.serving_log import MS, SECOND, LoggedRun, ServingLog, request
from tests.cli.conftest import Command
from tests.cli.test_plan_memory import answers, figures, is_of_80_columns, planned, table

SERVING = ("--model", "llama-3-70b", "--ttft", "1s", "--tpot", "50ms")


def test_eight_a_second_for_six_seconds_are_48(diag: Command) -> None:
    assert figures(answers(diag, "serving", "--rate", 8, "--stay", "6s"))["in flight"] == 48


def test_layouts_are_compared_to_a_decision(diag: Command) -> None:
    compared, fit, times = answers(diag, "serving", *SERVING, "--gpus", 8, "--rate", 6, "--price", 2.5)
    of = table(compared)
    assert of["layout"] == ["1 x TP 8", "2 x TP 4", "4 x TP 2", "8 x TP 1"]
    assert of["requests/s"][3] == "no room"
    best = max(rate for rate in of["requests/s"] if not isinstance(rate, str))
    layout = of["layout"][of["requests/s"].index(best)]
    assert compared["verdict"].startswith(f"Take {layout}: ")
    assert of["per 1,000"][0] == pytest.approx(1000 * 8 * 2.5 / (of["requests/s"][0] * 0.8 * 3600))
    assert of["KV tokens"][0] > of["KV tokens"][1], "two copies of the weights leave less room"
    assert all(tpot < 50e6 for tpot in of["TPOT"][:2]), "at 6 requests/s"
    assert of["TPOT"][2] == "overloaded"
    found = figures([fit])
    assert found["by P99 it would be"] < found["largest concurrency"] < found["by P50 it would be"]
    assert found["admit at once"] <= 0.8 * found["largest concurrency"]
    found = figures([times])
    assert found["in flight"] == pytest.approx(6 * found["E2E"] / 1e9)
    is_of_80_columns(planned(diag, "serving", *SERVING, "--rate", 6, "--price", 2.5))


def test_the_same_seed_prints_the_same(diag: Command) -> None:
    words = ("serving", "--model", "llama-3-8b", "--gpus", 1, "--seed", 7)
    assert planned(diag, *words).is_quiet_success() == planned(diag, *words).is_quiet_success()


def test_objectives_that_none_keeps_and_models_that_fit_nowhere_are_answers(diag: Command) -> None:
    (compared, *_) = answers(diag, "serving", "--model", "llama-3-70b", "--gpus", 4, "--tpot", "1us")
    assert compared["verdict"].startswith("No layout keeps the objectives")
    (nowhere,) = answers(diag, "serving", "--model", "llama-3-405b", "--gpus", 2)
    assert nowhere["verdict"].startswith("Does not fit")
    (*_, times) = answers(diag, "serving", "--model", "llama-3-8b", "--gpus", 1, "--output", 1)
    assert "prefill : decode" not in figures([times]), "one token has nothing to decode"
    (too_few, *_) = answers(diag, "serving", *SERVING, "--rate", 100)
    assert "times as many cards" in too_few["verdict"]


@pytest.mark.parametrize(
    ("verb", "words", "said"),
    [
        ("serving", ("--stay", "6s"), "needs both --rate and --stay"),
        ("serving", ("--rate", 8), "Of which model?"),
        ("serving", ("--model", "llama-3-8b", "--prompt", "long"), "--prompt 'long' is no length"),
        ("serving", ("--model", "llama-3-8b", "--gpus", 8, "--tp", 3), "does not divide --gpus 8"),
        ("serving", ("--model", "llama-3-8b", "--ttft", "1"), "--ttft: '1' is not a time"),
        ("serving", ("--model", "llama-3-8b", "--gpu", "v100", "--dtype", "nope"), "is none of fp32"),
        ("transfer", ("--latency", "1us"), "What is moved?"),
        ("transfer", ("--size", "1GiB", "--bandwidth", "fast"), "--bandwidth: 'fast' is not a rate"),
        ("speculative", ("--model", "llama-3-8b"), "What drafts?"),
        ("speculative", ("--draft-model", "llama-3.2-1b"), "What verifies?"),
        ("speculative", ("--acceptance", 2), "--acceptance"),
        ("quantisation", ("--to", "int4"), "Of which model?"),
    ],
)
def test_what_is_missing_is_named(diag: Command, verb: str, words: tuple[object, ...], said: str) -> None:
    ran = planned(diag, verb, *words)
    assert (ran.status, ran.out) == (2, "")
    assert said in " ".join(ran.err.split())


# ---- the others ------------------------------------------------------------------------------------------------------


def test_a_gibibyte_at_50_gb_a_second_takes_21_5_ms(diag: Command) -> None:
    found = figures(answers(diag, "transfer", "--size", "1GiB", "--bandwidth", "50GB/s"))
    assert found["at least"] / 1e6 == pytest.approx(21.5, abs=0.05)


def test_a_split_prompt_is_hidden_but_for_its_last_layer(diag: Command) -> None:
    words = ("--model", "llama-3-70b", "--tp", 8, "--prompt", 8000, "--bandwidth", "400Gbit/s")
    split, sources = answers(diag, "transfer", *words)
    found = figures([split])
    assert found["of it exposed"] == pytest.approx(found["a layer: sent"])
    assert found["sent as a whole"] == pytest.approx(80 * found["a layer: sent"])
    assert sources["verdict"].startswith("At 8,000 tokens: swap")
    slow = answers(diag, "transfer", *words[:-1], "10MB/s")[1]
    assert figures([slow])["fetch is faster from"] > 8000
    is_of_80_columns(planned(diag, "transfer", *words))


def test_speculation_pays_until_a_step_is_full(diag: Command) -> None:
    (plain,) = answers(diag, "speculative", "--acceptance", 0.5, "-k", 2, "--draft-cost", 0.1, "--verify-cost", 1.05)
    found = figures([plain])
    assert found["tokens a verification"] == 1.75
    assert found["cost"] == pytest.approx(1.25)
    assert found["speed-up"] == pytest.approx(1.4)
    assert tokens_per_verification(found["pays from acceptance"], 2) == pytest.approx(1.25)
    words = ("--model", "llama-3-70b", "--draft-model", "llama-3.2-1b", "--tp", 8)
    _, by_batch = answers(diag, "speculative", *words)
    gains = table(by_batch)["speed-up"]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > 1.5 > 1 > gains[-1]
    is_of_80_columns(planned(diag, "speculative", *words))


def test_4_bits_are_not_4_times_as_fast(diag: Command) -> None:
    words = ("--model", "llama-3-70b", "--tp", 4)
    compared, why, _ = answers(diag, "quantisation", *words)
    of = table(compared)
    by_type = dict(zip(of["type"], zip(of["decode"], of["prefill"], strict=True), strict=True))
    assert by_type["int4: unpacked to 16 bits"][1] == pytest.approx(1)
    assert by_type["fp8: FP8 tensor"][1] > 1.5
    found = figures([why])
    assert found["by bits alone"] == 4
    assert found["with scales"] == pytest.approx(16 / 4.15625)
    assert 1 < found["with arithmetic and sums"] < found["with the KV cache"] < found["weights as read"] < 4
    is_of_80_columns(planned(diag, "quantisation", *words))


# ---- against a run ---------------------------------------------------------------------------------------------------


def serving_log(folder: Path) -> Path:
    """Ten requests a second for two seconds; the engine drafts four tokens a sequence and keeps three."""
    steps = [
        StepRecord(
            number=n, start_ns=n * 100 * MS, end_ns=n * 100 * MS + 20 * MS, decode_tokens=4, n_decodes=1,
            used_blocks=50 + n, free_blocks=900, drafted_tokens=4, accepted_tokens=3,
        )
        for n in range(20)
    ]  # fmt: skip
    run = LoggedRun(
        requests=[request(n, n * SECOND // 10, ttft_ns=60 * MS, n=20, itl_ns=25 * MS) for n in range(20)],
        steps=steps, engine=EngineConditions(n_blocks=1000), label="measured",
    )  # fmt: skip
    return ServingLog([run]).write(folder / "run.jsonl")


def test_a_serving_run_is_compared_line_by_line(diag: Command, tmp_path: Path) -> None:
    log = serving_log(tmp_path)
    words = ("--model", "llama-3-8b", "--gpus", 1, "--lengths", log, "--against", log)
    against = {a["title"]: a for a in answers(diag, "serving", *words) if a["title"].startswith("Against measured")}
    times = table(against["Against measured: times"])
    by_line = dict(zip(times["what"], times["measured"], strict=True))
    assert by_line["TTFT, mean"] == 60 * MS
    assert by_line["TPOT, mean"] == pytest.approx(25 * MS)
    assert all(
        isinstance(value, float) for what, value in zip(times["what"], times["planned"], strict=True) if "mean" in what
    )
    numbers = table(against["Against measured: numbers"])
    assert dict(zip(numbers["what"], numbers["measured"], strict=True))["blocks used at most"] == 69
    is_of_80_columns(planned(diag, "serving", *words))


def test_what_a_run_did_not_measure_is_not_told(diag: Command, tmp_path: Path) -> None:
    log = ServingLog([LoggedRun(requests=[request(0, 0)], label="bare")]).write(tmp_path / "bare.jsonl")
    found = answers(diag, "serving", "--model", "llama-3-8b", "--gpus", 1, "--against", log)
    numbers = next(a for a in found if a["title"] == "Against bare: numbers")
    assert "cannot tell" in table(numbers)["measured"]
    assert any("no engine steps" in said for said in numbers["cannot_tell"])


def test_memory_is_compared_phase_by_phase(diag: Command, tmp_path: Path) -> None:
    snapshot = MemorySnapshot()
    snapshot.alloc("load", 17_000_000_000)
    snapshot.alloc("kv cache", 50_000_000_000)
    file = snapshot.write(tmp_path / "snapshot.pickle")
    found = answers(diag, "memory", "--model", "llama-3-8b", "--against", file, "--against", serving_log(tmp_path))
    memory = next(a for a in found if a["title"].endswith(": memory"))
    of = table(memory)
    measured = dict(zip(of["what"], of["measured"], strict=True))
    assert measured["held at most"] == 67_000_000_000
    assert (measured["peak, load"], measured["peak, prefill"]) == (17_000_000_000, "cannot tell")
    numbers = next(a for a in found if a["title"].endswith(": numbers"))
    assert table(numbers)["measured"] == [1000, 69]


def test_training_is_compared_at_its_own_phases(diag: Command, tmp_path: Path) -> None:
    snapshot = MemorySnapshot()
    for phase, n_bytes in (("forward", 40_000_000_000), ("backward", 20_000_000_000), ("optimizer", 5_000_000_000)):
        snapshot.alloc(phase, n_bytes)
    file = snapshot.write(tmp_path / "snapshot.json")
    words = ("--model", "llama-3-8b", "--training", "--seq", 4096, "--dp", 8, "--zero", 3, "--against", file)
    of = table(answers(diag, "memory", *words)[-1])
    assert of["what"] == ["held at most", "peak, forward", "peak, backward", "peak, optimizer"]
    assert of["measured"] == [65_000_000_000, 40_000_000_000, 60_000_000_000, 65_000_000_000]


def test_acceptance_is_measured(diag: Command, tmp_path: Path) -> None:
    found = answers(diag, "speculative", "--acceptance", 0.9, "-k", 4, "--against", serving_log(tmp_path))
    shares = next(a for a in found if a["title"].endswith(": shares"))
    assert table(shares)["measured"][0] == 0.75
    assert tokens_per_verification(table(shares)["measured"][1], 4) == pytest.approx(4)


def test_a_file_without_a_run_is_told(diag: Command, tmp_path: Path) -> None:
    file = MemorySnapshot().write(tmp_path / "snapshot.json")
    ran = planned(diag, "serving", "--model", "llama-3-8b", "--gpus", 1, "--against", file)
    assert ran.status == 3
    assert "holds no serving run" in ran.err
