"""Whether draws fit a distribution: Pearson's chi-square test, at one false alarm in ten thousand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import NormalDist

LEVEL = 1e-4
FEWEST = 5.0  # expected draws of a cell; rarer values share one


def fits(draws: Sequence[int], shares: Sequence[float]) -> bool:
    """`shares` of the values 0, 1, …; a value without any must not have been drawn."""
    counts = Counter(draws)
    if any(share == 0 and counts[value] for value, share in enumerate(shares)):
        return False
    expected = [share * len(draws) for share in shares]
    cells = [(counts[value], of) for value, of in enumerate(expected) if of >= FEWEST]
    rare = [(counts[value], of) for value, of in enumerate(expected) if of < FEWEST]
    cells.append((sum(n for n, _ in rare), sum(of for _, of in rare)))
    statistic = sum((n - of) ** 2 / of for n, of in cells if of >= 1)
    return statistic < _quantile(len([of for _, of in cells if of >= 1]) - 1)


def _quantile(freedom: int) -> float:
    """Wilson, Hilferty 1931: the cube root of chi-square over its freedom is nearly normal."""
    variance = 2 / (9 * freedom)
    return float(freedom * (1 - variance + NormalDist().inv_cdf(1 - LEVEL) * variance**0.5) ** 3)
