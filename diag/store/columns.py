"""Columns of an SQLite query as Arrow batches and NumPy arrays.

Python's sqlite3 makes an object of every value; ADBC fills Arrow buffers in C and lets other threads run meanwhile.
`tests/bench/bench_columns.py` measures both.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from diag.errors import InputError

if TYPE_CHECKING:
    import pyarrow

BATCH_ROWS = 1 << 16

_WAIT_FOR_WRITERS = "PRAGMA busy_timeout = 60000"
"""As long as another process stores its report in the case, nobody can read it; SQLite itself would not wait."""

OUT_OF_MEMORY = re.compile(r"out of memory|malloc|cannot allocate memory|failed to (re)?allocate", re.IGNORECASE)
"""As SQLite, Arrow and nanoarrow say it; ADBC passes on nothing but their words."""

Arrays = dict[str, NDArray[Any]]


def sqlite_uri(path: Path, mode: str) -> str:
    """URI of a database file; mode 'ro', 'rw', 'rwc' (create), or 'immutable': no lock and no side file."""
    options = "mode=ro&immutable=1" if mode == "immutable" else f"mode={mode}"
    return f"file:{quote(os.fsencode(path.absolute()))}?{options}"


@contextmanager
def open_query(path: Path, sql: str, *, mode: str = "ro") -> Iterator[pyarrow.RecordBatchReader]:
    """A reader of a query's record batches.

    A column's type is that of its first values, so the query must CAST what may vary.
    Raises InputError when SQLite cannot run the query, for example because a page of the file is damaged.
    """
    import pyarrow
    from adbc_driver_manager import AdbcConnection, AdbcStatement, Error
    from adbc_driver_sqlite import connect

    try:
        with (
            connect(sqlite_uri(path, mode)) as database,
            AdbcConnection(database) as connection,
            AdbcStatement(connection) as statement,
        ):
            statement.set_sql_query(_WAIT_FOR_WRITERS)
            statement.execute_update()
            statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
            statement.set_sql_query(sql)
            stream, _ = statement.execute_query()
            with pyarrow.RecordBatchReader._import_from_c(stream.address) as reader:
                yield reader
    except pyarrow.ArrowMemoryError:
        raise
    except (Error, pyarrow.ArrowException) as error:
        if OUT_OF_MEMORY.search(str(error)):
            raise MemoryError(str(error)) from error
        raise InputError(f"{path} cannot be read: {str(error).splitlines()[0]}") from error


def numbers_of(column: pyarrow.Array) -> NDArray[Any]:
    """An Arrow column of numbers without NULLs as NumPy array, not copied."""
    # Not to_numpy(): it imports pandas, which takes a tenth of a second.
    return np.from_dlpack(column)


def prefetched(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """The batches, each read by a second thread while the one before it is in use.

    SQLite and Arrow leave the interpreter alone while they work: 5 M ranges take 2.7 s instead of 4.0 s on two cores.
    """
    iterator = iter(batches)
    with ThreadPoolExecutor(max_workers=1) as reader:
        following = reader.submit(next, iterator, None)
        while (batch := following.result()) is not None:
            following = reader.submit(next, iterator, None)
            yield batch


def arrays(path: Path, sql: str, dtypes: Mapping[str, str], *, mode: str = "ro") -> Arrays:
    """Columns of a query whose every value is a number and not NULL, as arrays of the given NumPy types.

    Narrow types halve the memory of a large trace; each batch is narrowed as it arrives.
    """
    parts: dict[str, list[NDArray[Any]]] = {name: [np.empty(0, dtype)] for name, dtype in dtypes.items()}
    with open_query(path, sql, mode=mode) as reader:
        for batch in reader:
            for name, dtype in dtypes.items():
                parts[name].append(numbers_of(batch.column(name)).astype(dtype))
    return {name: np.concatenate(parts.pop(name)) for name in dtypes}
