"""How an experiment log puts things into words, whatever the format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from diag.compare.comparison import Comparison
from diag.model import units
from diag.render.comparison_phrases import signed_share
from diag.store.experiments import Experiment, Log

LABELS = ("Model", "Evidence", "Change", "Gain", "Cost")
"""In the order of the loop; the goal is the title."""


def entries(log: Log) -> list[dict[str, Any]]:
    """As a JSON document has them."""
    return [{"number": number, **asdict(entry), "miss": entry.miss} for number, entry in log.items()]


def latest(log: Log, most: int) -> tuple[list[str], str]:
    """The last entries in a sentence each, in their order, and what is to be said of those before them."""
    said = [_in_short(number, entry) for number, entry in log.items()]
    earlier = len(said) - most
    return said[-most:], f"{units.count(earlier, 'earlier entry')}: diag log." if earlier > 0 else ""


def _in_short(number: int, entry: Experiment) -> str:
    told = (
        entry.goal,
        entry.change,
        f"gain {said}" if (said := gain(entry)) else None,
        f"cost {said}" if (said := cost(entry)) else None,
    )
    return f"{number}, {entry.outcome}: {'; '.join(filter(None, told))}"


def moment(entry: Experiment) -> str:
    """
    >>> moment(Experiment("less", 1_700_000_000_000_000_000))
    '2023-11-14 22:13 UTC'
    """
    return datetime.fromtimestamp(entry.time_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M UTC")


def parts(entry: Experiment) -> Iterator[tuple[str, str]]:
    """Label and words of what is told, in the order of the loop."""
    for label, said in zip(
        LABELS, (model(entry), evidence(entry), entry.change, gain(entry), cost(entry)), strict=True
    ):
        if said:
            yield label, said


def model(entry: Experiment) -> str:
    return _joined(
        entry.model, f"expected {figure(entry.expected_value, entry.expected_unit)}" if _expects(entry) else ""
    )


def evidence(entry: Experiment) -> str:
    finding = f"finding {entry.finding_id}" if entry.finding_id else ""
    return _joined(entry.evidence, finding, entry.recording)


def gain(entry: Experiment) -> str:
    figures = filter(None, (_change(entry.gain_before, entry.gain_after, entry.gain_unit), _miss(entry)))
    return _measured(entry.gain, ", ".join(figures))


def cost(entry: Experiment) -> str:
    return _measured(entry.cost, _change(entry.cost_before, entry.cost_after, entry.cost_unit))


def _measured(what: str | None, figures: str) -> str:
    return ": ".join(filter(None, (what, figures)))


def figure(value: float | None, unit: str | None) -> str:
    """In the unit of its writer; what diag has measured itself is in units that no people would choose.

    >>> figure(9.25, "ms"), figure(None, None), figure(327_680, "bytes"), figure(0.5625, "share")
    ('9.25 ms', '', '327.7 kB', '56.2 %')
    """
    if value is None:
        return ""
    return units.quantity(value, unit) if unit in _OF_DIAG else f"{value:.6g} {unit or ''}".rstrip()


_OF_DIAG = units.SCALED | {"ns", "bytes", "bytes/s", "share"}


def _change(before: float | None, after: float | None, unit: str | None) -> str:
    """
    >>> _change(12.4, 9.3, "ms"), _change(0, 1.5, "GB"), _change(None, 3, "launches"), _change(4e6, 2e9, "ns")
    ('12.4 → 9.3 ms (−25.0 %)', '0 → 1.5 GB', '3 launches', '4.0 ms → 2.0 s (+49,900 %)')
    """
    if before is None or after is None:
        return figure(after if before is None else before, unit)
    share = f" ({signed_share(after / before - 1)})" if before > 0 else ""
    first = figure(before, unit) if unit in _OF_DIAG else f"{before:.6g}"
    return f"{first} → {figure(after, unit)}{share}"


def _miss(entry: Experiment) -> str:
    if entry.miss is None:
        return ""
    return f"{signed_share(entry.miss)} against the {figure(entry.expected_value, entry.expected_unit)} of the model"


def _expects(entry: Experiment) -> bool:
    return entry.expected_value is not None


def _joined(*said: str | None) -> str:
    return "; ".join(filter(None, said))


def gain_of(comparison: Comparison) -> dict[str, Any] | None:
    """What a comparison says of its headline, in the names of `Experiment`; None where that is not comparable."""
    change, headline = comparison.headline.change, comparison.headline
    if change.before is None or change.after is None or change.answer == "not comparable":
        return None
    factor, unit = next(((f, u) for f, u in _TIMES_NS if change.before.total_ns >= f), _TIMES_NS[-1])
    return {
        "gain": f"{headline.what}: {change.answer}",
        "gain_before": change.before.total_ns / factor,
        "gain_after": change.after.total_ns / factor,
        "gain_unit": unit,
    }


_TIMES_NS = ((10**9, "s"), (10**6, "ms"), (10**3, "µs"), (1, "ns"))
