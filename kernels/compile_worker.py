"""A worker: compiles what it is told to on its standard input, and writes what came of it to its standard output.

    python -m diag.kernels.compile_worker <JOBS >ANSWER

Both are JSON: a list of `Job`, and an `Answer`.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from importlib import import_module
from typing import Any

import msgspec

from diag.errors import DiagError
from diag.kernels.compilation import Answer, Done, Job
from diag.model.inspection import CompiledKernel, NotCompiled


def main() -> None:
    told = sys.stdin.buffer.read()
    if not told:
        return  # whoever started this was interrupted
    jobs = msgspec.json.decode(told, type=list[Job])
    # Out of the way of the compiler: what that prints goes where its errors go.
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with answer:
        answer.write(msgspec.json.encode(asdict(_answer(jobs))))
        answer.flush()
    os._exit(0)  # all is said: at its end Triton's library complains about what it leaks


def _answer(jobs: list[Job]) -> Answer:
    try:
        return Answer([_done(job) for job in jobs])
    except DiagError as error:
        return Answer([], failed=str(error))


def _done(job: Job) -> Done:
    from diag.kernels.compiled import compiled

    function: Any = getattr(import_module(job.source.module), job.source.function)
    results = [compiled(build, job.target) for build in function(**job.source.arguments)]
    return Done(
        kernels=[each for each in results if isinstance(each, CompiledKernel)],
        not_compiled=[each for each in results if isinstance(each, NotCompiled)],
    )


if __name__ == "__main__":
    main()
