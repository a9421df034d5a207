"""Too little memory is one sentence that says what to do, whoever noticed it first."""

from __future__ import annotations

import errno
import resource
import sqlite3
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


@pytest.mark.slow
def test_a_limit_that_the_input_exceeds(
    diag: Command, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """From where loading just works to where everything does; in between it may run out anywhere."""
    path, temporary = stuffed_export(tmp_path, 600_000), tmp_path_factory.mktemp("temporary")
    before = snapshot(tmp_path)
    exceeded = 0
    for limit_mb in (512, 530, 560, 600):
        limit = partial(_limited_to, limit_mb * MB)
        ran = diag("report", path, env={"TMPDIR": str(temporary)}, preexec_fn=limit)
        if ran.status == 0:  # how much is enough depends on the libraries' versions
            break
        exceeded += 1
        assert "Not enough memory" in ran.is_one_sentence(3), limit_mb
        assert not diag.leftovers()
        assert not list(temporary.iterdir())
        assert snapshot(tmp_path) == before
    assert exceeded
    shown = diag("report", path, preexec_fn=partial(_limited_to, 4000 * MB)).is_quiet_success()
    assert diag("report", path, "--no-cache").is_quiet_success() == shown, "what was kept on the way is whole"
