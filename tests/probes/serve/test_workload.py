"""When requests come, how long they are and what they share: all by the seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diag.errors import InputError, UsageError
from diag.model import token_lengths
from diag.model.planned_requests import lengths as plan_lengths
from diag.model.token_lengths import Constant, Uniform
from diag.probes.serve.arrivals import ClosedLoop, OpenLoop
from diag.probes.serve.asked import Asked, planned
from diag.probes.serve.load import Limits
from diag.probes.serve.prompt_text import WORDS, text
from diag.probes.serve.trace import read_trace
from diag.probes.serve.workload import Workload

N = 200_000
LOAD = Workload(
    loop=OpenLoop("poisson", 10.0), n_requests=20, prompt_lengths=Uniform(10, 30), output_lengths=Constant(4)
)

# ---- arrivals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loop", "variation"),
    [
        (OpenLoop("constant", 50.0), 0.0),
        (OpenLoop("poisson", 50.0), 1.0),
        (OpenLoop("gamma", 50.0, 1.0), 1.0),
        (OpenLoop("gamma", 50.0, 3.0), 3.0),
        (OpenLoop("gamma", 50.0, 0.5), 0.5),
        (OpenLoop("gamma", 50.0, 0.0), 0.0),
    ],
)
def test_gaps_have_the_mean_and_the_variation_that_were_asked_for(loop: OpenLoop, variation: float) -> None:
    gaps = np.diff(loop.offsets_ns(N, np.random.default_rng(1))).astype(float)
    assert gaps.min() >= 0
    assert gaps.mean() == pytest.approx(20_000_000, rel=0.03)
    assert gaps.std() / gaps.mean() == pytest.approx(variation, rel=0.03, abs=1e-6)


def test_poisson_arrivals_in_a_time_vary_as_much_as_they_are_many() -> None:
    offsets = OpenLoop("poisson", 100.0).offsets_ns(N, np.random.default_rng(2))
    counts = np.bincount((offsets // 1_000_000_000).astype(int))[:-1]
    assert counts.var() / counts.mean() == pytest.approx(1, rel=0.1)


def test_at_once_and_constant_are_exact() -> None:
    rng = np.random.default_rng(0)
    assert OpenLoop("at_once").offsets_ns(3, rng).tolist() == [0, 0, 0]
    assert OpenLoop("constant", 3.0).offsets_ns(3, rng).tolist() == [333_333_333, 666_666_667, 1_000_000_000]


def test_the_burstiness_of_vllm_is_the_shape_of_the_same_distribution() -> None:
    """Its `benchmark_serving` draws gamma(shape=b, scale=1/(rate·b)): equal to ours at b = 1 / burstiness²."""
    theirs = np.random.default_rng(5).gamma(0.25, 1 / (10 * 0.25), 100)
    ours = OpenLoop("gamma", 10.0, 2.0).offsets_ns(100, np.random.default_rng(5))
    assert np.diff(ours / 1e9) == pytest.approx(theirs[1:], abs=2e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ClosedLoop(0),
        lambda: OpenLoop("poisson"),
        lambda: OpenLoop("at_once", 3.0),
        lambda: OpenLoop("poisson", 0.0),
        lambda: OpenLoop("poisson", float("nan")),
        lambda: OpenLoop("gamma", 1.0, -1.0),
        lambda: replace(LOAD, n_requests=0),
        lambda: replace(LOAD, shared_prefix_share=1.5),
        lambda: replace(LOAD, warms_cache=True),
        lambda: replace(LOAD, n_warmup=-1),
        lambda: replace(LOAD, seed=-1),
        lambda: replace(LOAD, vocabulary=1),
    ],
)
def test_what_cannot_be_sent_is_wrong_usage(make: object) -> None:
    with pytest.raises(UsageError):
        make()  # type: ignore[operator]


# ---- lengths ---------------------------------------------------------------------------------------------------------


def test_lengths_are_spread_as_they_say() -> None:
    rng = np.random.default_rng(3)
    assert set(token_lengths.parse("7").draw(5, rng)) == {7}
    uniform = token_lengths.parse("uniform:10-12").draw(N, rng)
    assert np.bincount(uniform)[10:] / N == pytest.approx([1 / 3] * 3, abs=0.01)
    drawn = token_lengths.parse("lognormal:200,0.8,4000").draw(N, rng)
    assert np.median(drawn) == pytest.approx(200, rel=0.02)
    assert np.log(drawn).std() == pytest.approx(0.8, rel=0.03)
    assert (drawn.min() >= 1, drawn.max()) == (True, 4000)


@pytest.mark.parametrize("written", ["100-200", "uniform:100-200", "lognormal:200,0.8", "lognormal:200:0.8", "128"])
def test_a_load_and_its_plan_read_the_same_words(written: str) -> None:
    drawn = token_lengths.parse(written).draw(N, np.random.default_rng(3))
    planned_for = plan_lengths("--prompt", written).draw(N, np.random.default_rng(4))
    assert np.median(drawn) == pytest.approx(np.median(planned_for), rel=0.02)


@pytest.mark.parametrize(
    "written",
    ["", "0", "-1", "1.5", "uniform:5", "uniform:9-3", "uniform:0-3", "normal:3,4", "lognormal:200", "9" * 30,
     "lognormal:200,99", "lognormal:0,1", "٣"],
)  # fmt: skip
def test_what_is_no_length_is_wrong_usage(written: str) -> None:
    with pytest.raises(UsageError, match=r"length|begins|spread"):
        token_lengths.parse(written)


# ---- requests --------------------------------------------------------------------------------------------------------


def test_the_seed_decides_everything() -> None:
    assert list(LOAD.measured()) == list(LOAD.measured())
    assert list(LOAD.measured()) != list(replace(LOAD, seed=1).measured())


def test_a_change_of_one_thing_leaves_the_others() -> None:
    """So that a sweep sends the same prompts at each rate."""
    faster = list(replace(LOAD, loop=OpenLoop("poisson", 20.0)).measured())
    longer = list(replace(LOAD, output_lengths=Constant(9)).measured())
    closed = list(replace(LOAD, loop=ClosedLoop(2)).measured())
    for at, request in enumerate(LOAD.measured()):
        assert faster[at].prompt == longer[at].prompt == closed[at].prompt == request.prompt
        assert faster[at].offset_ns == pytest.approx((request.offset_ns or 0) / 2, abs=1)
        assert longer[at].offset_ns == request.offset_ns
        assert closed[at].offset_ns is None


def test_prompts_share_their_first_tokens_and_no_more() -> None:
    requests = list(replace(LOAD, shared_prefix_share=0.5, prompt_lengths=Uniform(100, 9000)).measured())
    longest = max((request.prompt for request in requests), key=len)
    for request in requests:
        shared = len(request.prompt) // 2
        assert request.prompt[:shared] == longest[:shared]
        assert request.prompt is longest or request.prompt[shared : shared + 20] != longest[shared : shared + 20]


def test_without_a_share_prompts_differ_from_the_start() -> None:
    assert len({request.prompt[:3] for request in LOAD.measured()}) == 20


def test_warming_up_the_engine_leaves_the_cache_cold_and_that_of_the_cache_does_not() -> None:
    load = replace(LOAD, shared_prefix_share=1.0, n_warmup=30, warms_cache=True)
    measured = list(load.measured())
    warmups = list(load.engine_warmup())
    assert [len(each.prompt) for each in warmups[:20]] == [len(each.prompt) for each in measured]
    assert {each.prompt[:8] for each in warmups}.isdisjoint({each.prompt[:8] for each in measured})
    (cached,) = load.cache_warmup()
    assert all(cached.prompt[: len(each.prompt)] == each.prompt for each in measured)
    assert cached.max_output_tokens == 1
    assert {each.phase for each in warmups} == {"engine_warmup"}
    assert len({each.id for each in (*warmups, cached, *measured)}) == 51


def test_conditions_say_what_was_asked() -> None:
    said = replace(LOAD, loop=OpenLoop("gamma", 4.0, 2.0), shared_prefix_share=0.25, seed=3).conditions
    assert (said.arrival, said.rate_per_s, said.burstiness, said.concurrency) == ("gamma", 4.0, 2.0, None)
    assert (said.prompt_lengths, said.output_lengths, said.n_requests) == ("uniform 10-30", "constant 4", 20)
    closed = replace(LOAD, loop=ClosedLoop(8)).conditions
    assert (closed.arrival, closed.rate_per_s, closed.concurrency) == ("closed", None, 8)
    assert LOAD.conditions.burstiness is None


def test_a_prompt_as_text_has_a_word_for_each_token() -> None:
    assert len(set(WORDS)) == len(WORDS) > 100
    assert text(range(300)).split()[:100] == list(WORDS[:100])
    assert len(text(range(300)).split()) == 300


# ---- traces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    [
        '{"arrival_s": 10.5, "prompt_tokens": 9, "output_tokens": 2}\n\n'
        '{"arrival_s": 12, "prompt_tokens": 7, "output_tokens": 3}\n',
        "arrival_s,prompt_tokens,output_tokens\n10.5,9,2\n12,7,3\n",
        '{"timestamp": 12000, "input_length": 7, "output_length": 3, "hash_ids": [1]}\n'
        '{"timestamp": 10500, "input_length": 9, "output_length": 2, "hash_ids": [1]}\n',
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,ChatGPT,9,2,11,Conversation log\n5.2,GPT-4,8,0,8,API log\n6.5,GPT-4,7,3,10,API log\n",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 23:59:59.0000000,9,2\n2023-11-17 00:00:00.5000000,7,3\n",
    ],
)  # fmt: skip
def test_traces_of_all_forms_say_the_same(written: str, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    file.write_text(written)
    trace = read_trace(file, 100)
    assert trace.arrivals_ns == (0, 1_500_000_000)
    assert (trace.prompt_tokens, trace.output_tokens) == ((9, 7), (2, 3))
    assert read_trace(file, 1).arrivals_ns == (0,)


def test_a_trace_may_have_times_alone(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("arrival_s\n1\n3\n")
    assert read_trace(file, 100).prompt_tokens is None
    (plan,) = planned(Asked(trace=file, prompt_tokens="5"))
    assert [(each.offset_ns, len(each.prompt), each.max_output_tokens) for each in plan.workload.measured()] == [
        (0, 5, 64),
        (2_000_000_000, 5, 64),
    ]


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (b"", "holds no request"),
        (b"arrival_s\n", "holds no request"),
        (b"when,who\n1,2\n", "no arrival times"),
        (b"arrival_s\nsoon\n", "Line 2 .* holds no request"),
        (b"arrival_s\nnan\n", "Line 2 .* holds no request"),
        (b"arrival_s,prompt_tokens\n1,-3\n", "Line 2 .*prompt_tokens is -3"),
        (b"arrival_s,prompt_tokens\n1,99999999\n", "Line 2 .*99,999,999"),
        (b'{"arrival_s": 1}\n{"arrival_s"\n', "Line 2 .* is not JSON"),
        (b'{"arrival_s": 1}\n{"when": 1}\n', "Line 2 .* holds no request"),
        (b'{"arrival_s": 1}\n[1]\n', "Line 2 .* is no JSON object"),
        (b"arrival_s\n0\n1e12\n", "longer than a year"),
        (b"arrival_s\n" + b"1" * 2_000_000, "longer than 1,048,576"),
        (b"\xff\xfe\x00", "it is no text"),
        (b'{"arrival_s": ' + b"[" * 99_999, "Line 1 .* is not JSON"),
        (b"arrival_s,prompt_tokens\n1," + b"9" * 200_000, "Line 2 .* is not CSV"),
    ],
)
def test_a_damaged_trace_is_an_error_that_says_where(written: bytes, why: str, tmp_path: Path) -> None:
    file = tmp_path / "trace"
    file.write_bytes(written)
    with pytest.raises(InputError, match=why):
        read_trace(file, 100)


def test_a_trace_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_trace(tmp_path / "none", 100)


# ---- what the command line asks for ----------------------------------------------------------------------------------


def test_what_is_said_decides_how_requests_come() -> None:
    def loops(asked: Asked) -> list[object]:
        return [each.workload.loop for each in planned(asked)]

    assert loops(Asked(rates_per_s=[1, 2])) == [OpenLoop("poisson", 1), OpenLoop("poisson", 2)]
    assert loops(Asked(rates_per_s=[1], burstiness=2)) == [OpenLoop("gamma", 1, 2)]
    assert loops(Asked(concurrencies=[3])) == [ClosedLoop(3)]
    assert loops(Asked(arrival="at_once")) == [OpenLoop("at_once")]


def test_a_time_without_a_number_sends_as_many_as_come() -> None:
    (plan,) = planned(Asked(rates_per_s=[1], limits=Limits(seconds=5)))
    assert (plan.workload.n_requests, plan.is_counted) == (1_000_000, False)
    (plan,) = planned(Asked(rates_per_s=[1]))
    assert (plan.workload.n_requests, plan.is_counted) == (100, True)


def test_a_label_says_which_run_of_a_sweep() -> None:
    first, second = planned(Asked(rates_per_s=[1, 2.5], label="mine"))
    assert (first.label, second.label) == ("mine, 1 requests/s", "mine, 2.5 requests/s")
    assert second.title == "mine, 2.5 requests/s (Open loop, 2.5 requests/s (poisson))"


def test_a_trace_may_give_lengths_alone(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("arrival_s,prompt_tokens,output_tokens\n1,5,6\n3,7,8\n")
    (plan,) = planned(Asked(trace=file, concurrencies=[1], n_requests=3))
    asked = [(len(each.prompt), each.max_output_tokens) for each in plan.workload.measured()]
    assert asked == [(5, 6), (7, 8), (5, 6)]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (Asked(), "--rate 4 .*--concurrency 8"),
        (Asked(rates_per_s=[1], concurrencies=[1]), "no --concurrency"),
        (Asked(arrival="closed", rates_per_s=[1]), "no --rate"),
        (Asked(arrival="closed"), "--concurrency 8"),
        (Asked(arrival="constant"), "needs a --rate"),
        (Asked(arrival="trace"), "--trace FILE"),
        (Asked(arrival="sometimes"), "There is: closed, poisson"),
        (Asked(arrival="poisson", rates_per_s=[1], burstiness=2), "--arrival gamma"),
        (Asked(arrival="at_once", rates_per_s=[1]), "has no --rate"),
    ],
)
def test_what_does_not_go_together_is_wrong_usage(asked: Asked, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        planned(asked)
