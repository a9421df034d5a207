"""Queues that a server tells of in its log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.engine_steps import log, steps
from tests.builders.server_log import VLLM_START, ServerLog, vllm_stats
from tests.rules.asking import Ask, ThreeCases, figures, only_finding


def waiting(of: Callable[[int], int], n: int = 40) -> ServerLog:
    """A line a second of a server that runs eight."""
    return ServerLog([*VLLM_START, *(vllm_stats(k, waiting=of(k), kv=98.0) for k in range(n))])


CASES = {
    "serving.queue": ThreeCases(
        fires=lambda: waiting(lambda k: 3 * k),
        clear=lambda: waiting(lambda k: k % 3),
        untold=lambda: waiting(lambda k: 3 * k, n=10),
    ),
}


def test_it_says_from_where_to_where(ask: Ask) -> None:
    finding = only_finding(ask("serving.queue", waiting(lambda k: 3 * k)))
    assert figures(finding)["waiting at first"] == pytest.approx(13.5)
    assert figures(finding)["waiting at last"] == pytest.approx(103.5)
    assert finding.claim.endswith("while 8 run and 98.0 % of the KV cache is in use.")


@pytest.mark.parametrize(
    "shape",
    [
        lambda k: max(0, 60 - 3 * k),  # it comes down
        lambda k: 60 - abs(k - 20) * 3,  # a burst that is over
        lambda k: int(k > 38),  # one, at the end
        lambda _: 50,  # a closed loop that keeps as many waiting
    ],
)
def test_what_is_no_growth(ask: Ask, shape: Callable[[int], int]) -> None:
    (answer,) = ask("serving.queue", waiting(shape))
    assert isinstance(answer, Clear)


def test_a_few_that_wait_are_no_queue(ask: Ask) -> None:
    log = ServerLog([*VLLM_START, *(vllm_stats(k, running=200, waiting=k // 4) for k in range(40))])
    (answer,) = ask("serving.queue", log)
    assert isinstance(answer, Clear)


def test_without_lines_of_its_own_it_cannot_tell(ask: Ask) -> None:
    (answer,) = ask("serving.queue", waiting(lambda _: 0, n=2))
    assert isinstance(answer, CannotTell)
    assert "too few lines" in answer.because


def test_an_engine_that_keeps_its_steps_is_not_asked_for_a_servers_log(ask: Ask) -> None:
    assert list(ask("serving.queue", log(steps(20)))) == []
