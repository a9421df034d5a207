"""Ceilings as a table: the best of each kind in a report, all of them after a calibration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diag.model import units
from diag.render.table import NOT_CAPTURED, Table
from diag.rules.ceiling_rows import CeilingRow
from diag.rules.report import Report


def ceilings(report: Report, top: int) -> Table:
    """What came with the evidence: of each machine the best of each kind, however many there are."""
    del top
    return ceiling_table(best(report.ceilings))


def best(rows: Sequence[CeilingRow]) -> list[CeilingRow]:
    """The highest of each machine and name, in the order in which they come first."""
    highest: dict[tuple[str, str | None, str], CeilingRow] = {}
    for row in rows:
        key = (row.machine, row.uuid, row.name)
        if key not in highest or row.per_s > highest[key].per_s:
            highest[key] = row
    return list(highest.values())


def ceiling_table(rows: Sequence[CeilingRow]) -> Table:
    machines = list(dict.fromkeys((row.machine, row.n_units, row.kind) for row in rows))
    return Table(
        f"Ceilings measured on {', '.join(_machine(*each) for each in machines)}",
        ("at most", "error", "working set", "by", "of"),
        [_row(row, is_alone=len(machines) == 1) for row in rows],
        name_column=4,
        notes=[*_disturbed(rows), *(_ridge_points(rows) if len(machines) == 1 else ())],
    )


def _machine(name: str, n_units: int, kind: str) -> str:
    return f"{name}, {units.count(n_units, 'core' if kind == 'cpu' else 'SM')}"


def _row(row: CeilingRow, *, is_alone: bool) -> list[str]:
    return [
        units.quantity(row.per_s, row.unit) + ("~" if row.is_disturbed else ""),
        NOT_CAPTURED if row.error_share is None else f"± {units.share(row.error_share)}",
        NOT_CAPTURED if row.working_set_bytes is None else units.size(row.working_set_bytes),
        row.access or _code(row.formula),
        row.name if is_alone else f"{row.name} of {row.machine}",
    ]


def _disturbed(rows: Sequence[CeilingRow]) -> Iterator[str]:
    if any(row.is_disturbed for row in rows):
        yield "~ other programs had cores of this machine all the time, which can do more."


def _code(formula: str) -> str:
    """What reached a rate of arithmetic: formulas of it begin with its name.

    >>> _code("batched products: 2 x 2 x 256³ / 312.9 µs"), _code("1e9 / 1 ms")
    ('batched products', '-')
    """
    name, _, rest = formula.partition(":")
    return name if rest else NOT_CAPTURED


def _ridge_points(rows: Sequence[CeilingRow]) -> Iterator[str]:
    """Where the slope of memory meets each flat roof: with fewer FLOP for each byte, memory is the limit."""
    highest = {row.name: row for row in best(rows)}
    if (dram := highest.get("DRAM")) is None:
        return
    points = [
        f"{row.name} {units.quantity(row.per_s / dram.per_s, row.unit.removesuffix('/s') + '/byte')}"
        for row in highest.values()
        if row.side == "compute"
    ]
    if points:
        yield f"Ridge points over DRAM: {', '.join(points)}."
