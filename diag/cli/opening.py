"""Opening the inputs of a verb, so that who interrupts it later hears that they need not be read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from diag.cli.signals import ENDING
from diag.cli.terminal import StatusLine

if TYPE_CHECKING:
    from diag.ingest.importer import ImportOptions
    from diag.store.case import Case


@contextmanager
def opened(inputs: Sequence[Path], options: ImportOptions, status: StatusLine) -> Iterator[Case]:
    """The case of `inputs`, as `open_inputs` gives it."""
    from diag.ingest.importer import open_inputs
    from diag.store.cache import Cache

    ENDING.is_case_kept = False
    with open_inputs(inputs, options, status) as case:
        cache = Cache.of_user() if options.use_cache else None
        ENDING.is_case_kept = cache is not None and case.path.parent == cache.folder
        yield case
