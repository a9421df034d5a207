"""Columns of an export's tables as Arrow: what a message lacks is NULL, and texts are taken for what they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from diag.ingest.messages import ABSENT, NO_TEXT

Columns = Mapping[str, Sequence[Any] | NDArray[Any]]
"""Values of equally many rows, by column; a column that is not there is NULL in each of them."""


def arrow_batch(types: Mapping[str, str], columns: Columns) -> pyarrow.RecordBatch:
    """Rows of a table whose columns have these SQL types, without columns of nothing but NULL, if others remain."""
    arrays = {name: _array(types[name], values) for name, values in columns.items()}
    filled = {name: array for name, array in arrays.items() if array.null_count < len(array)}
    return pyarrow.RecordBatch.from_pydict(filled or arrays)


def _array(type_: str, values: Sequence[Any] | NDArray[Any]) -> pyarrow.Array:
    if type_ == "TEXT":
        return _texts(list(values))
    if type_ == "REAL":
        return pyarrow.array(values, pyarrow.float64())  # SQLite makes NULL of NaN
    return _integers(values)


def _integers(values: Sequence[int | None] | NDArray[np.int64]) -> pyarrow.Array:
    array = pyarrow.array(values, pyarrow.int64())
    lacking = pyarrow.compute.equal(array, ABSENT)
    return pyarrow.compute.if_else(lacking, None, array) if pyarrow.compute.any(lacking).as_py() else array


def _texts(values: Sequence[bytes | str | None]) -> pyarrow.Array:
    """Not every one is UTF-8, which SQLite does not ask for."""
    encoded = pyarrow.array(
        [None if text is None or text == NO_TEXT else _encoded(text) for text in values], pyarrow.binary()
    )
    validity, offsets, content = encoded.buffers()
    return pyarrow.StringArray.from_buffers(len(encoded), offsets, content, validity, encoded.null_count)


def _encoded(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text
