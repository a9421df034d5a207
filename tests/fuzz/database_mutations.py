"""Changes to the tables of an SQLite database that stays sound: what no checksum finds, but no tool would write.

A mutation changes the database and says what it did. Columns lose their types on the way, for SQLite lets any column
hold any value, and only STRICT tables would refuse.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

Mutation = Callable[[sqlite3.Connection, random.Random], str]

HUGE = 3_000_000
ODD_VALUES: Sequence[object] = (
    None, -1, 0, 1, 2**31, -(2**31), 2**32, 2**53, 2**62, 2**63 - 1, -(2**63), 1.5, 1e300, float("inf"), -0.0,
    "", "text", "12", "9" * 400, "nan", "\x00", "\x1b[31m", "a\nb", "é漢\U0001f600", b"", b"\xff\xfe\x00", b"x" * 5000,
)  # fmt: skip
ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


def mutate(path: Path, mutations: Sequence[Mutation], chance: random.Random) -> str:
    """Changes the database at `path` with one or several of the mutations, and says how."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = MEMORY")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA legacy_alter_table = ON")  # do not look whether views still work
        return "; ".join(one(db, chance) for one in chance.choices(mutations, k=chance.choice((1, 1, 2, 4))))


# ---- what is there -------------------------------------------------------------------------------------------------


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def tables_of(db: sqlite3.Connection) -> list[str]:
    return [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]


def columns_of(db: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in db.execute(f"PRAGMA table_info({quoted(table)})")]


def _some_table(db: sqlite3.Connection, chance: random.Random) -> str:
    return chance.choice(tables_of(db) or [_remade(db, "empty", "SELECT 1 AS a")])


def _some_column(db: sqlite3.Connection, chance: random.Random) -> tuple[str, str]:
    table = _some_table(db, chance)
    return table, chance.choice(columns_of(db, table))


def _remade(db: sqlite3.Connection, table: str, select: str) -> str:
    """The table with the rows of a query over itself, and without types or keys."""
    db.execute(f"CREATE TABLE remade AS {select}")
    db.execute(f"DROP TABLE IF EXISTS {quoted(table)}")
    db.execute(f"ALTER TABLE remade RENAME TO {quoted(table)}")
    return table


def _loosen(db: sqlite3.Connection, table: str) -> None:
    columns = ", ".join(quoted(column) for column in columns_of(db, table))
    db.execute(f"CREATE TABLE loose ({columns})")
    db.execute(f"INSERT INTO loose SELECT {columns} FROM {quoted(table)}")
    db.execute(f"DROP TABLE {quoted(table)}")
    db.execute(f"ALTER TABLE loose RENAME TO {quoted(table)}")


# ---- tables --------------------------------------------------------------------------------------------------------


def drop_table(db: sqlite3.Connection, chance: random.Random) -> str:
    table = _some_table(db, chance)
    db.execute(f"DROP TABLE {quoted(table)}")
    return f"table {table} dropped"


def rename_table(db: sqlite3.Connection, chance: random.Random) -> str:
    table = _some_table(db, chance)
    name = chance.choice((table.swapcase(), f"{table}_old", 'a"b; DROP TABLE x', "é"))
    if name.lower() not in (known.lower() for known in tables_of(db)):
        db.execute(f"ALTER TABLE {quoted(table)} RENAME TO {quoted(name)}")
    return f"table {table} renamed to {name}"


def swap_tables(db: sqlite3.Connection, chance: random.Random) -> str:
    a, b = _some_table(db, chance), _some_table(db, chance)
    if a != b:
        for old, new in ((a, "swapped"), (b, a), ("swapped", b)):
            db.execute(f"ALTER TABLE {quoted(old)} RENAME TO {quoted(new)}")
    return f"tables {a} and {b} swapped"


def turn_table_into_view(db: sqlite3.Connection, chance: random.Random) -> str:
    table = _some_table(db, chance)
    columns = ", ".join(f"i AS {quoted(column)}" for column in columns_of(db, table))
    db.execute(f"ALTER TABLE {quoted(table)} RENAME TO {quoted(f'{table} itself')}")
    is_endless = chance.random() < 0.5
    query = f"{ENDLESS} SELECT {columns} FROM n" if is_endless else f"SELECT * FROM {quoted(f'{table} itself')}"
    db.execute(f"CREATE VIEW {quoted(table)} AS {query}")
    return f"table {table} is {'an endless' if is_endless else 'a'} view"


def generate_column(db: sqlite3.Connection, chance: random.Random) -> str:
    table, column = _some_column(db, chance)
    others = [quoted(name) for name in columns_of(db, table) if name != column]
    if others:
        db.execute(f"ALTER TABLE {quoted(table)} RENAME TO plain")
        how = chance.choice((f"({others[0]} + 1)", "(9223372036854775807)", f"({others[-1]} || 'x') STORED"))
        db.execute(f"CREATE TABLE {quoted(table)} ({', '.join(others)}, {quoted(column)} AS {how})")
        db.execute(f"INSERT INTO {quoted(table)} ({', '.join(others)}) SELECT {', '.join(others)} FROM plain")
        db.execute("DROP TABLE plain")
    return f"column {table}.{column} generated"


# ---- columns -------------------------------------------------------------------------------------------------------


def drop_column(db: sqlite3.Connection, chance: random.Random) -> str:
    table, column = _some_column(db, chance)
    others = [quoted(name) for name in columns_of(db, table) if name != column]
    if others:
        _remade(db, table, f"SELECT {', '.join(others)} FROM {quoted(table)}")
    return f"column {table}.{column} dropped"


def rename_column(db: sqlite3.Connection, chance: random.Random) -> str:
    table, column = _some_column(db, chance)
    name = chance.choice((f"{column}_", column.swapcase(), "rowid", 'x"y'))
    if name.lower() not in (known.lower() for known in columns_of(db, table)):
        named = (f"{quoted(old)} AS {quoted(name if old == column else old)}" for old in columns_of(db, table))
        _remade(db, table, f"SELECT {', '.join(named)} FROM {quoted(table)}")
    return f"column {table}.{column} renamed to {name!r}"


def swap_columns(db: sqlite3.Connection, chance: random.Random) -> str:
    table = _some_table(db, chance)
    _loosen(db, table)
    a, b = (chance.choice(columns_of(db, table)) for _ in range(2))
    db.execute(f"UPDATE {quoted(table)} SET {quoted(a)} = {quoted(b)}, {quoted(b)} = {quoted(a)}" if a != b else "")
    return f"columns {a} and {b} of {table} swapped"


def put_odd_value(db: sqlite3.Connection, chance: random.Random) -> str:
    table, column = _some_column(db, chance)
    value, every = chance.choice(ODD_VALUES), chance.choice((1, 2, 7))
    _loosen(db, table)
    db.execute(
        f"UPDATE {quoted(table)} SET {quoted(column)} = ? WHERE rowid % {every} = {chance.randrange(every)}", (value,)
    )
    return f"{table}.{column} is {str(value)[:40]!r} in every row of {every}"


def put_huge_text(db: sqlite3.Connection, chance: random.Random) -> str:
    table, column = _some_column(db, chance)
    _loosen(db, table)
    text = chance.choice(("x", "<", "(", "1", "\x00", "é")) * HUGE
    db.execute(f"UPDATE {quoted(table)} SET {quoted(column)} = ? WHERE rowid = 1", (text,))
    return f"{table}.{column} is {HUGE} times {text[0]!r} in one row"


def put_text_that_is_no_utf8(db: sqlite3.Connection, chance: random.Random) -> str:
    table, column = _some_column(db, chance)
    _loosen(db, table)
    db.execute(f"UPDATE {quoted(table)} SET {quoted(column)} = CAST(? AS TEXT)", (b"caf\xe9 \xed\xa0\x80 \xff",))
    return f"{table}.{column} is no UTF-8"


def shift_numbers(db: sqlite3.Connection, chance: random.Random) -> str:
    """Far away or the wrong way round, but still numbers that fit each other."""
    table, column = _some_column(db, chance)
    how = chance.choice(
        (
            "-{c}",
            "{c} * 1000000007",
            "{c} + 4611686018427387000",
            "{c} + 1000000000000000000",
            "{c} - 9000000000000000000",
            "{c} / 2.0",
            "{c} % 2",
        )
    )
    _loosen(db, table)
    value = how.format(c=quoted(column))
    db.execute(f"UPDATE {quoted(table)} SET {quoted(column)} = {value} WHERE typeof({quoted(column)}) = 'integer'")
    return f"{table}.{column} is {value}"


def make_all_equal(db: sqlite3.Connection, chance: random.Random) -> str:
    """Ids that no longer tell rows apart: all stacks, correlations, threads or strings are one."""
    table, column = _some_column(db, chance)
    _loosen(db, table)
    first = f"(SELECT {quoted(column)} FROM {quoted(table)} LIMIT 1)"
    db.execute(f"UPDATE {quoted(table)} SET {quoted(column)} = {first}")
    return f"{table}.{column} is the same in all rows"


def shuffle_column(db: sqlite3.Connection, chance: random.Random) -> str:
    """Labels of an enumeration, ends of ranges or ids change places."""
    table, column = _some_column(db, chance)
    _loosen(db, table)
    db.execute(f"CREATE TEMP TABLE before AS SELECT {quoted(column)} AS value FROM {quoted(table)}")
    numbers = [number for (number,) in db.execute("SELECT rowid FROM before")]
    db.executemany(
        f"UPDATE {quoted(table)} SET {quoted(column)} = (SELECT value FROM before WHERE rowid = ?) WHERE rowid = ?",
        zip(chance.sample(numbers, len(numbers)), numbers, strict=True),
    )
    db.execute("DROP TABLE temp.before")
    return f"values of {table}.{column} shuffled"


# ---- rows ----------------------------------------------------------------------------------------------------------


def delete_rows(db: sqlite3.Connection, chance: random.Random) -> str:
    table, every = _some_table(db, chance), chance.choice((1, 2, 5))
    _loosen(db, table)
    db.execute(f"DELETE FROM {quoted(table)} WHERE rowid % {every} = 0")
    return f"one row in {every} of {table} deleted"


def repeat_rows(db: sqlite3.Connection, chance: random.Random) -> str:
    table, times = _some_table(db, chance), chance.choice((1, 1, 20))
    _loosen(db, table)
    for _ in range(times):
        db.execute(f"INSERT INTO {quoted(table)} SELECT * FROM {quoted(table)} WHERE rowid < 500")
    return f"rows of {table} repeated {times} times"


def put_cycle(db: sqlite3.Connection, chance: random.Random) -> str:
    """Ids that refer to each other in a circle, as far as columns of the table refer to its own rows."""
    table = _some_table(db, chance)
    _loosen(db, table)
    a, b = (chance.choice(columns_of(db, table)) for _ in range(2))
    db.execute(f"UPDATE {quoted(table)} SET {quoted(a)} = (rowid % 3) + 1, {quoted(b)} = ((rowid + 1) % 3) + 1")
    return f"{table}.{a} and .{b} form circles of three"


ROW_MUTATIONS: tuple[Mutation, ...] = (
    put_odd_value,
    put_odd_value,
    put_odd_value,
    put_huge_text,
    put_text_that_is_no_utf8,
    shift_numbers,
    shift_numbers,
    make_all_equal,
    shuffle_column,
    delete_rows,
    repeat_rows,
    put_cycle,
)
MUTATIONS: tuple[Mutation, ...] = (
    *ROW_MUTATIONS,
    swap_columns,
    drop_table,
    rename_table,
    swap_tables,
    turn_table_into_view,
    generate_column,
    drop_column,
    rename_column,
)
