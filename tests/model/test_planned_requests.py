"""Requests that a run completed, as a plan takes them."""

from __future__ import annotations

from diag.model.planned_requests import Requests


def test_a_request_counts_from_its_first_output_token_on() -> None:
    found = Requests.measured([(100, 1), (200, 0), (300, 7)], "measured")
    assert (found.prompt_tokens.tolist(), found.output_tokens.tolist()) == ([100, 300], [1, 7])
