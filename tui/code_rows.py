"""The rows of a launch's code: instructions, or the source lines that they come from, with the samples at each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from diag.model import units
from diag.render.table import NOT_CAPTURED
from diag.tui.launch_facts import CodeLine
from diag.tui.widgets.row_table import Column


@dataclass(frozen=True)
class CodeRow:
    """`share` is of all samples of the launch; `offset` is from its first instruction."""

    line: CodeLine
    share: float | None
    offset: int
    instructions: int

    @property
    def where(self) -> str:
        """
        >>> code = CodeLine(16, 1, None, (), None, None, "/src/a.cu", 7)
        >>> CodeRow(code, 1.0, 0, 1).where
        'a.cu:7'
        """
        if not self.line.file or not self.line.line:
            return ""
        return f"{self.line.file.rsplit('/', 1)[-1]}:{self.line.line}"

    @property
    def reason(self) -> str:
        """In which state warps were found most, and in what part of the samples."""
        if not self.line.reasons or not self.line.samples:
            return NOT_CAPTURED
        state, samples = self.line.reasons[0]
        return f"{state} {100 * samples / self.line.samples:.0f} %"


def by_instruction(code: Sequence[CodeLine]) -> list[CodeRow]:
    samples = sum(each.samples or 0 for each in code)
    first = code[0].address if code else 0
    return [
        CodeRow(each, each.samples / samples if each.samples is not None and samples else None, each.address - first, 1)
        for each in code
    ]


def by_source_line(code: Sequence[CodeLine]) -> list[CodeRow]:
    """Instructions of the same line together; those without a line stay as they are."""
    groups: dict[object, list[CodeRow]] = {}
    for row in by_instruction(code):
        groups.setdefault((row.line.file, row.line.line) if row.where else row.offset, []).append(row)
    return [_together(rows) for rows in groups.values()]


def _together(rows: Sequence[CodeRow]) -> CodeRow:
    if len(rows) == 1:
        return rows[0]
    first, lines = rows[0], [row.line for row in rows]
    reasons: Counter[str] = Counter()
    for line in lines:
        reasons.update(dict(line.reasons))
    known = [line.samples for line in lines if line.samples is not None]
    shares = [row.share for row in rows if row.share is not None]
    executed = [line.executed for line in lines if line.executed is not None]
    return CodeRow(
        line=CodeLine(
            address=first.line.address,
            samples=sum(known) if known else None,
            not_issued=sum(line.not_issued or 0 for line in lines) if known else None,
            reasons=reasons.most_common(),
            executed=sum(executed) if executed else None,
            sass=None,
            file=first.line.file,
            line=first.line.line,
        ),
        share=sum(shares) if shares else None,
        offset=first.offset,
        instructions=len(rows),
    )


def columns(rows: Sequence[CodeRow]) -> list[Column[CodeRow]]:
    """Without those for which no row has anything."""
    made: list[Column[CodeRow]] = []
    if any(row.line.samples is not None for row in rows):
        made += [
            Column("samples", "samples", 9, lambda row: _number(row.line.samples), lambda row: row.line.samples),
            Column("share", "share", 7, _share, lambda row: row.share),
        ]
    made.append(Column("address", "offset", 8, lambda row: f"{row.offset:#x}", lambda row: -row.offset))
    if any(row.line.reasons for row in rows):
        made.append(Column("reason", "most in state", 21, lambda row: row.reason, lambda row: row.reason))
    if any(row.line.executed is not None for row in rows):
        made.append(
            Column("executed", "executed", 13, lambda row: _number(row.line.executed), lambda row: row.line.executed)
        )
    made.append(Column("code", "source line, instruction", None, _text, lambda row: (row.where, row.offset), least=16))
    return made


def _number(value: float | None) -> str:
    return NOT_CAPTURED if value is None else f"{value:,.0f}"


def _share(row: CodeRow) -> str:
    return NOT_CAPTURED if row.share is None else units.share(row.share)


def _text(row: CodeRow) -> str:
    """The line first, as names lose their middle."""
    code = row.line.sass or (units.count(row.instructions, "instruction") if row.instructions > 1 else "")
    return ", ".join(filter(None, (row.where, code))) or NOT_CAPTURED


def told(row: CodeRow) -> str:
    """All that is known of one row."""
    line, parts = row.line, [f"{row.line.address:#x}"]
    if line.file and line.line:
        parts.append(f"{line.file}:{line.line}")
    if line.samples and line.not_issued is not None:
        parts.append(f"{line.not_issued:,} of {line.samples:,} samples while the scheduler issued nothing")
    parts += [f"{reason} {samples:,}" for reason, samples in line.reasons]
    return "; ".join(parts)
