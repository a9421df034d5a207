"""Requests by length, and those that stopped before they had put out what was asked for."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from diag.model.serving_metrics import ServedRequest, latency
from diag.serving.buckets import FEWEST_REQUESTS, MOST_BUCKETS, EarlyStops, by_prompt_length, early_stops

MS = 1_000_000


def of_lengths(*lengths: int) -> list[ServedRequest]:
    return [ServedRequest(n, prompt_tokens=length, ttft_ns=length * MS) for n, length in enumerate(lengths)]


def test_buckets_hold_about_equally_many_and_have_latencies_of_their_own() -> None:
    buckets = by_prompt_length(of_lengths(*range(1, 81)))
    assert [(each.least, each.most, len(each.requests)) for each in buckets] == [
        (1, 21, 21),
        (22, 41, 20),
        (42, 61, 20),
        (62, 80, 19),
    ]
    ttft = latency(buckets[0].requests, "ttft")
    assert ttft is not None
    assert ttft.p50 == 11 * MS


def test_requests_of_one_length_share_a_bucket() -> None:
    buckets = by_prompt_length(of_lengths(*[100] * 70, *[900] * 10))
    assert [(each.least, each.most, len(each.requests)) for each in buckets] == [(100, 100, 70), (900, 900, 10)]


def test_alike_or_few_requests_make_no_buckets() -> None:
    assert by_prompt_length(of_lengths(*[100] * 200)) == []
    assert by_prompt_length(of_lengths(*range(39))) == []
    assert by_prompt_length([ServedRequest(0)] * 100) == []


@given(st.lists(st.integers(0, 50), max_size=300))
def test_every_request_is_in_one_bucket(lengths: list[int]) -> None:
    buckets = by_prompt_length(of_lengths(*lengths))
    assert len(buckets) <= MOST_BUCKETS
    if buckets:
        kept = [each.prompt_tokens for bucket in buckets for each in bucket.requests]
        assert kept == sorted(lengths)
        assert all(a.most < b.least for a, b in pairwise(buckets))
    elif len(set(lengths)) > 1:
        # Too few, or nearly all alike.
        assert len(lengths) < 2 * FEWEST_REQUESTS or max(map(lengths.count, set(lengths))) > len(lengths) / MOST_BUCKETS


def test_early_stops_count_completed_requests_whose_limit_is_known() -> None:
    asked = ServedRequest(0, output_tokens=5, max_output_tokens=10)
    done = ServedRequest(1, output_tokens=10, max_output_tokens=10)
    failed = ServedRequest(2, outcome="failed", output_tokens=1, max_output_tokens=10)
    assert early_stops([asked, done, failed, ServedRequest(3, output_tokens=4)]) == EarlyStops(stopped=1, known=2)
    assert early_stops([ServedRequest(3, output_tokens=4)]) is None
