"""`diag` in processes of their own that need not load it: forked from a server that has (Python's forkserver).

A process of a test loads what a verb imports, which takes ten times as long as what the verb then does. Everything else
is as it is for a user: a process, its arguments, environment, folder, streams and exit status.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext
from pathlib import Path

LOADED = (
    "diag.cli.verbs",
    "diag.ingest.importer",
    "diag.rules.stored",
    "diag.rules.running",
    "diag.render",
    "diag.export.perfetto",
    "pandas",
    "tests.warm_rules",
)


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*LOADED])
    return context


def run(words: Sequence[str | bytes], env: Mapping[str, str], cwd: str, out: Path, err: Path, timeout_s: float) -> int:
    """Exit status, or the negative number of the signal that ended it. Raises TimeoutError."""
    process = _server().Process(target=_diag, args=(tuple(words), dict(env), cwd, out, err))
    with _ALONE:
        process.start()
    has_ended = wait([process.sentinel], timeout_s)
    with _ALONE:
        if not has_ended:
            process.kill()
        process.join()
        if not has_ended:
            raise TimeoutError(f"{words} did not end within {timeout_s} s")
        assert process.exitcode is not None
        return process.exitcode


_ALONE = threading.Lock()
"""A process that starts asks all others for their exit status, which can be read but once: threads take turns."""


def _diag(words: Sequence[str | bytes], env: Mapping[str, str], cwd: str, out: Path, err: Path) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    for path, number in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.argv = ["diag", *map(os.fsdecode, words)]
    os._exit(_ended())


def _ended() -> int:
    """As the interpreter ends a program: its threads, its exit functions, its streams."""
    from diag.cli.app import main

    try:
        main()
    except SystemExit as ending:
        status = ending.code if isinstance(ending.code, int) else 0 if ending.code is None else 1
    except BaseException:  # noqa: BLE001 - the last frame of this process
        traceback.print_exc()
        status = 1
    else:
        status = 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status
