"""Reader of the dumps of PyTorch's flight recorder, many at a time."""

from __future__ import annotations

from collections.abc import Sequence

from diag.errors import InputError
from diag.ingest.input_file import InputFile, Progress, Step, silent
from diag.ingest.recorder.decoding import decode
from diag.ingest.recorder.rank import rank_of
from diag.ingest.recorder.store import DumpStore
from diag.model.units import count
from diag.store.case import Case


def read_all(files: Sequence[InputFile], case: Case, progress: Progress = silent) -> None:
    """Adds dumps to the case, inside the caller's transaction. Raises InputError when one cannot be read."""
    store = DumpStore(case)
    for n_read, file in enumerate(files):
        progress(Step(f"reading {count(len(files), 'flight-recorder dump')}", n_read / len(files)))
        try:
            dump = decode(file.data.read_bytes())
        except InputError as error:
            raise InputError(f"{file.path} cannot be read as a flight-recorder dump: {error}.") from error
        store.add(file, dump, rank_of(dump.groups, file.path))
