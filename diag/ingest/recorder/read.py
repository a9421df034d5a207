"""Reader of the dumps of PyTorch's flight recorder, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from diag.ingest.input_file import InputFile, Progress, Step, silent
from diag.ingest.recorder.dump import Refusal
from diag.ingest.recorder.limits import Limits
from diag.ingest.recorder.rank import rank_of
from diag.ingest.recorder.store import DumpStore
from diag.ingest.recorder.workers import answers
from diag.ingest.unread import add_unread
from diag.model.units import count
from diag.store.case import Case

_COPY_AGAIN = "Copy it again from where it was made, or have the job dump once more."


def read_all(
    files: Sequence[InputFile], case: Case, progress: Progress = silent, *, limits: Limits | None = None
) -> None:
    """Adds dumps to the case, inside the caller's transaction.

    Of many dumps some are cut short by the very fault that is looked for: such a one becomes an unread source.
    """
    store = DumpStore(case)
    with closing(answers([file.data for file in files], limits or Limits())) as decoded:
        for n_read, (file, answer) in enumerate(zip(files, decoded, strict=True)):
            progress(Step(f"reading {count(len(files), 'flight-recorder dump')}", n_read / len(files)))
            if isinstance(answer, Refusal):
                why = f"{file.path} cannot be read as a flight-recorder dump: {answer.because}."
                add_unread(file, case, f"{why} {_COPY_AGAIN}")
            else:
                store.add(file, answer, rank_of(answer.groups, file.path))
