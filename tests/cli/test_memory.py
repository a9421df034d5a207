"""Too little memory is one sentence that says what to do, whoever noticed it first."""

from __future__ import annotations

import errno
import json
import resource
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
import pytest

from diag.cli.memory import LEAST_BYTES, as_out_of_memory
from diag.errors import InputError, OutOfMemory
from tests.cli.conftest import Command, snapshot, stuffed_export

MB = 1 << 20


def _limited_to(n_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))


def _because_of(cause: Exception) -> InputError:
    error = InputError("x cannot be read.")
    error.__cause__ = cause
    return error


def _sqlite_error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        np._core._exceptions._ArrayMemoryError((1 << 40,), np.dtype("i8")),  # type: ignore[attr-defined]
        pyarrow.ArrowMemoryError("malloc of size 64 failed"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        ImportError("libarrow.so: failed to map segment from shared object"),
        _sqlite_error(sqlite3.SQLITE_IOERR_NOMEM),
        _because_of(MemoryError()),
    ],
    ids=lambda error: type(error).__name__,
)
def test_want_of_memory_is_known_as_such(error: BaseException) -> None:
    said = as_out_of_memory(error)
    assert isinstance(said, OutOfMemory)
    assert "Not enough memory" in str(said)


@pytest.mark.parametrize(
    "error", [ValueError("memory"), OSError(errno.ENOSPC, "full"), RuntimeError("no"), _sqlite_error(10)], ids=repr
)
def test_other_errors_are_not(error: BaseException) -> None:
    assert as_out_of_memory(error) is None


@pytest.mark.parametrize("limit_mb", [150, 300, 511])
def test_a_limit_that_loading_would_exceed(limit_mb: int, diag: Command, export: Path) -> None:
    ran = diag("report", export, preexec_fn=partial(_limited_to, limit_mb * MB))
    assert f"at least {LEAST_BYTES >> 20} MB" in ran.is_one_sentence(3)
    assert not diag.leftovers()


def _large_export(folder: Path) -> Path:
    return stuffed_export(folder, 600_000)


def _large_trace(folder: Path) -> Path:
    """Few events, but in each of them an argument as long as is still read."""
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 1}
    events = [{**event, "ts": i, "args": {"Input Dims": [[7] * 2_000_000]}} for i in range(40)]
    path = folder / "large.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("make", [_large_export, _large_trace])
def test_a_limit_that_the_input_exceeds(
    make: Callable[[Path], Path], diag: Command, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """From where loading just works to where everything does; in between it may run out anywhere."""
    path, temporary = make(tmp_path), tmp_path_factory.mktemp("temporary")
    before = snapshot(tmp_path)
    for limit_mb in (512, 530, 560, 600, 700, 4000):
        limit = partial(_limited_to, limit_mb * MB)
        ran = diag("report", path, env={"TMPDIR": str(temporary)}, preexec_fn=limit)
        if ran.status != 3:
            assert ran.err == "" or ran.status == 4, limit_mb
            break
        assert "Not enough memory" in ran.is_one_sentence(3), limit_mb
        assert not diag.cases()
        assert not diag.leftovers()
        assert not list(temporary.iterdir())
    assert limit_mb > 512, "this input is not large enough to test anything"
    assert ran.status != 3
    assert snapshot(tmp_path) == before
