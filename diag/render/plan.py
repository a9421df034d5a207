"""Answers of `diag plan` as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from diag.model import units
from diag.model.plan import Answer, Column, Figure
from diag.render.escape import one_line
from diag.render.layout import GUTTER, cells, columns, columns_left_out, pad, wrap
from diag.render.table import Table

SCHEMA = "diag.plan/1"
INDENT = "  "


def render_json(answers: Sequence[Answer]) -> str:
    return (
        json.dumps({"schema": SCHEMA, "answers": [asdict(each) for each in answers]}, indent=1, ensure_ascii=False)
        + "\n"
    )


def render_text(answers: Sequence[Answer], *, width: int) -> str:
    return "\n".join("\n".join(_answer(each, width)) + "\n" for each in answers)


def _answer(answer: Answer, width: int) -> Iterator[str]:
    yield from wrap(one_line(answer.title), width)
    if answer.verdict is not None:
        yield from wrap(one_line(answer.verdict), width, INDENT, INDENT)
    if answer.figures:
        yield from _figures(answer.figures, width)
    if answer.table:
        table = _table(answer.table)
        yield ""
        yield from columns(table, width, INDENT)
        if left := columns_left_out(table, width, INDENT):
            yield from wrap(
                f"A wider terminal, or --format json, also shows: {', '.join(left)}.", width, INDENT, INDENT
            )
    for untold in answer.cannot_tell:
        yield from wrap(one_line(f"Cannot tell {untold}"), width, INDENT * 2, INDENT)
    for assumption in answer.assumptions:
        yield from wrap(one_line(f"Assumed: {assumption}"), width, INDENT * 2, INDENT)


def _figures(figures: Sequence[Figure], width: int) -> Iterator[str]:
    """Label, value with its error, and the formula, which goes on below where there is no room for it."""
    values = [_value(figure) for figure in figures]
    labels_room = max(cells(figure.label) for figure in figures)
    values_room = max(map(cells, values))
    for figure, value in zip(figures, values, strict=True):
        first = f"{INDENT}{pad(figure.label, labels_room)}{GUTTER}{pad(value, values_room, right=True)}{GUTTER}"
        yield from wrap(one_line(figure.formula), width, " " * cells(first), first)


def _value(figure: Figure) -> str:
    shown = units.quantity(figure.value, figure.unit)
    return shown if figure.error is None else f"{shown} ± {units.quantity(figure.error, figure.unit)}"


def _table(table: Sequence[Column]) -> Table:
    rows = zip(*(_cells(column) for column in table), strict=True)
    return Table("", [column.header for column in table], list(rows), name_column=len(table) - 1, wraps_names=True)


def _cells(column: Column) -> list[str]:
    return [one_line(each) if isinstance(each, str) else units.quantity(each, column.unit) for each in column.values]
