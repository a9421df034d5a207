"""What a log says of a request, as metrics see it."""

from __future__ import annotations

import pytest

from diag.model.served import served
from diag.model.serving_log import RequestRecord


def test_latencies_are_counted_from_when_it_was_sent() -> None:
    record = RequestRecord(id="a", outcome="completed", intended_ns=5, sent_ns=10, token_ns=(30, 40, 70), ended_ns=80)
    request = served(record, 3)
    assert (request.number, request.name, request.send_delay_ns) == (3, "a", 5)
    assert (request.ttft_ns, request.e2e_ns, request.itl_ns.tolist()) == (20, 60, [10, 30])
    assert request.output_tokens == 3
    assert request.tpot_ns == 20


def test_an_output_may_hold_several_tokens() -> None:
    record = RequestRecord(id="a", outcome="completed", sent_ns=0, token_ns=(10, 20), token_counts=(1, 4))
    request = served(record, 0)
    assert request.output_tokens == 5
    assert request.output_counts is not None
    assert request.output_counts.tolist() == [1, 4]
    assert request.tpot_ns == 2.5


def test_what_the_record_states_of_its_tokens_comes_first() -> None:
    assert (
        served(RequestRecord(id="a", outcome="completed", sent_ns=0, token_ns=(1, 2), output_tokens=9), 0).output_tokens
        == 9
    )


def test_what_was_not_seen_is_none() -> None:
    request = served(RequestRecord(id="a", outcome="rejected", sent_ns=7, ended_ns=9, error="503"), 0)
    assert (request.ttft_ns, request.e2e_ns, request.output_tokens, len(request.itl_ns)) == (None, None, None, 0)
    unsent = served(RequestRecord(id="b", outcome="completed", token_ns=(4, 6)), 0)
    assert (unsent.ttft_ns, unsent.e2e_ns, unsent.itl_ns.tolist()) == (None, None, [2])


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (RequestRecord(id="a", outcome="completed", sent_ns=0, token_ns=(5, 4)), "backwards"),
        (RequestRecord(id="a", outcome="completed", sent_ns=9, token_ns=(5, 6)), "backwards"),
        (RequestRecord(id="a", outcome="completed", token_ns=(5, 6), token_counts=(1,)), "1 outputs and has 2 times"),
        (RequestRecord(id="a", outcome="completed", token_ns=(5, 6), token_counts=(1, -1)), "counts the tokens"),
    ],
)
def test_what_cannot_be_is_refused(record: RequestRecord, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        served(record, 0)
