"""What answers are about is worked out once for a report, however many reasons, devices and inputs it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import pytest

from diag.render import answers
from diag.rules.finding import CannotTell, Clear, Subject
from diag.rules.report import Report

T = TypeVar("T")
PIECES: dict[str, Callable[[Report], object]] = {
    "in full": answers.cannot_tell,
    "in short": answers.cannot_tell_in_short,
    "clear": answers.clear,
}


class Steps:
    """How many elements were gone through, of all lists that count here."""

    def __init__(self) -> None:
        self.taken = 0

    def of(self, elements: Iterable[T]) -> list[T]:
        steps = self

        class Counted(list[T]):
            def __iter__(self) -> Iterator[T]:
                for element in super().__iter__():
                    steps.taken += 1
                    yield element

        return Counted(elements)


def wide(report: Report, number: int) -> tuple[Report, Steps]:
    """As many inputs with a device each, reasons, rules, and things that are clear, as are asked for."""
    steps = Steps()
    return (
        replace(
            report,
            sources=steps.of(replace(report.sources[0], id=at, path=f"rank{at}.sqlite") for at in range(number)),
            devices=steps.of(replace(report.devices[0], source=at) for at in range(number)),
            clear=steps.of(Clear(Subject(at, 9946, 0), f"clear.{at}") for at in range(number)),
            cannot_tell=steps.of(
                CannotTell(Subject(at, 9946, 0), f"reason {at}", f"rule.{at}") for at in range(number)
            ),
        ),
        steps,
    )


@pytest.mark.parametrize("piece", PIECES)
def test_twice_as_much_takes_about_twice_as_many_steps(report: Report, piece: str) -> None:
    def steps_for(number: int) -> int:
        many, steps = wide(report, number)
        assert PIECES[piece](many)
        return steps.taken

    assert steps_for(100) < steps_for(200) < 3 * steps_for(100)
