"""Lists of ranks in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MOST_RUNS = 12


def ranks(numbers: Iterable[int]) -> str:
    """
    >>> ranks([3]), ranks([0, 1, 2, 3, 9]), ranks([])
    ('rank 3', 'ranks 0–3, 9', 'no rank')
    """
    every = sorted(set(numbers))
    return "no rank" if not every else f"rank{'' if len(every) == 1 else 's'} {numbers_only(every)}"


def numbers_only(numbers: Iterable[int]) -> str:
    """
    >>> numbers_only([0, 1, 2, 3, 9, 11]), numbers_only([4, 5]), numbers_only(range(0, 40, 2))
    ('0–3, 9, 11', '4, 5', '0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and 8 more')
    """
    runs = list(_runs(sorted(set(numbers))))
    shown = [_run(first, last) for first, last in runs[:MOST_RUNS]]
    hidden = sum(last - first + 1 for first, last in runs[MOST_RUNS:])
    return ", ".join(shown) + (f" and {hidden} more" if hidden else "")


def _run(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first}, {last}" if last == first + 1 else f"{first}–{last}"


def _runs(every: list[int]) -> Iterator[tuple[int, int]]:
    first = None
    for at, number in enumerate(every):
        first = number if first is None else first
        if at + 1 == len(every) or every[at + 1] != number + 1:
            yield first, number
            first = None
