"""Stretches of a sequence that occur again."""

from __future__ import annotations

import numpy as np
import pytest

from diag.timeline.repeats import in_repeated_stretch, one_number


def repeated(text: str, *, length: int = 3, fewest: int = 2, groups: str = "") -> str:
    """The events of `text`, one a letter, with a dot in place of each that is in no repeated stretch."""
    what = one_number(np.frombuffer(text.encode(), np.int8))
    group = np.frombuffer((groups or "-" * len(text)).encode(), np.int8).astype(np.int64)
    found = in_repeated_stretch(what, group, length=length, fewest=fewest)
    return "".join(letter if yes else "." for letter, yes in zip(text, found.tolist(), strict=True))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("abcxabcy", "abc.abc."),
        ("abcdabcd", "abcdabcd"),
        ("abababa", "abababa"),  # a loop over something shorter
        ("abcdefgh", "........"),
        ("ab", ".."),
        ("", ""),
    ],
)
def test_stretches_that_occur_twice(text: str, found: str) -> None:
    assert repeated(text) == found


def test_a_stretch_must_occur_often_enough() -> None:
    assert repeated("abcxabcy", fewest=3) == "........"
    assert repeated("abcxabcyabcz", fewest=3) == "abc.abc.abc."


def test_no_stretch_reaches_over_a_group() -> None:
    assert repeated("abcabc", groups="112222") == "......"
    assert repeated("abcabc", groups="111222") == "abcabc"


def test_equal_rows_have_the_same_number() -> None:
    numbers = one_number(np.array([1, 1, 1, 2]), np.array([-1, -1, 5, -1], np.int8))
    assert numbers[0] == numbers[1]
    assert len(set(numbers.tolist())) == 3
