"""The experiment log of a case: goal, model, evidence, one change, gain and cost, an entry each.

Whoever holds a case open to write calls `append` and `complete`; a file that lies somewhere is written by
`diag.ingest.own_case.changed`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

from diag.errors import InputError, UsageError
from diag.store.case import Case
from diag.store.columns import sqlite_uri

Outcome = Literal["open", "kept", "reverted", "refuted", "undecided"]
"""open: not measured yet; refuted: the measurement contradicts the model; undecided: measured, and it tells neither."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True)
class Experiment:
    """One entry. Figures are in the unit that stands beside them, which is whatever its writer calls it."""

    goal: str
    time_ns: int  # since 1970: when the entry was begun
    model: str | None = None  # what was expected, and by which formula
    expected_value: float | None = None  # of what the gain is about, after the change
    expected_unit: str | None = None
    evidence: str | None = None
    finding_id: str | None = None
    recording: str | None = None  # path of the file that shows it
    change: str | None = None  # the one thing that was changed
    gain: str | None = None  # what was measured of it
    gain_before: float | None = None
    gain_after: float | None = None
    gain_unit: str | None = None
    cost: str | None = None  # what it was paid with
    cost_before: float | None = None
    cost_after: float | None = None
    cost_unit: str | None = None
    outcome: Outcome = "open"

    @property
    def miss(self) -> float | None:
        """How far the measurement lies from the model: (gain_after - expected_value) / |expected_value|.

        None where one of them is not told, where they have different units, and of an expected zero.
        """
        if self.expected_value is None or self.gain_after is None or self.expected_unit != self.gain_unit:
            return None
        return (self.gain_after - self.expected_value) / abs(self.expected_value) if self.expected_value else None


Log = Mapping[int, Experiment]
"""Entries by number, in the order of the numbers."""

NO_LOG: Log = {}


def log_of(case: Case) -> Log:
    return _log(case.rows(_ENTRIES))


def append(case: Case, experiment: Experiment) -> int:
    """Adds an entry at the end; returns its number. Raises UsageError for one without a goal, or of another outcome."""
    _check(experiment)
    return case.insert_returning_id("experiment", asdict(experiment))


def complete(case: Case, number: int, **told: Any) -> Experiment:
    """Adds to entry `number` what was not told yet, in the names of `Experiment`; None is nothing.

    Raises UsageError where there is no such entry, where something was told already, for what was expected and what
    was measured is not changed afterwards, and for a model that comes after the measurement. An outcome is told once it
    is neither 'open' nor 'undecided'.
    """
    log = log_of(case)
    if number not in log:
        numbers = f"It has the numbers {min(log)} to {max(log)}" if log else "It has none"
        raise UsageError(f"The log has no entry {number}. {numbers}.")
    new = {name: value for name, value in told.items() if value is not None}
    if again := sorted(name for name in new if _is_told(log[number], name)):
        raise UsageError(
            f"Entry {number} has its {', '.join(again)} already, and a log is not rewritten. Begin another entry."
        )
    if log[number].gain_after is not None and {"model", "expected_value"} & set(new):
        raise UsageError(f"Entry {number} was measured already: a model that comes afterwards expects nothing.")
    completed = replace(log[number], **new)
    _check(completed)
    assignments = ", ".join(f"{name} = :{name}" for name in asdict(completed))
    case.db.execute(f"UPDATE experiment SET {assignments} WHERE id = :id", {**asdict(completed), "id": number})
    return completed


def carry_over(kept: Log, case: Case) -> None:
    """Before the entries of the case come those of another, with the numbers that they have there, each only once."""
    added = [entry for entry in log_of(case).values() if entry not in kept.values()]
    log = {**kept, **dict(enumerate(added, max(kept, default=0) + 1))}
    with case.transaction():
        case.db.execute("DELETE FROM experiment")
        case.insert("experiment", [{"id": number, **asdict(entry)} for number, entry in log.items()])


def log_in(path: Path) -> Log:
    """The log of the case that lies at `path`, of whatever schema; empty where there is no case or no log in it.

    Raises InputError where it has one that cannot be read.
    """
    if not path.exists():
        return NO_LOG
    try:
        with closing(sqlite3.connect(sqlite_uri(path, "ro"), uri=True)) as db:
            db.row_factory = sqlite3.Row
            if not db.execute(_HAS_LOG).fetchone():
                return NO_LOG
            return _log(db.execute(_ENTRIES))
    except sqlite3.Error as error:
        raise InputError(f"{path} may hold an experiment log that cannot be read: {error}.") from error


_HAS_LOG = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'experiment'"
_ENTRIES = "SELECT * FROM experiment ORDER BY id"


def _log(rows: Iterable[sqlite3.Row]) -> Log:
    """Of rows of whatever schema, in the columns that an entry has."""
    names = {field.name for field in fields(Experiment)}
    return {row["id"]: Experiment(**{name: row[name] for name in names & {*row.keys()}}) for row in rows}


def _is_told(entry: Experiment, name: str) -> bool:
    if name == "outcome":
        return entry.outcome not in ("open", "undecided")
    return getattr(entry, name) is not None


def _check(entry: Experiment) -> None:
    if not entry.goal.strip():
        raise UsageError("An entry of the log begins with its goal: what should become how much better?")
    if entry.outcome not in OUTCOMES:
        raise UsageError(f"There is no outcome {entry.outcome!r}. Choose one of: {', '.join(OUTCOMES)}.")
