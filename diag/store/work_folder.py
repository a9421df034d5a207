"""Private folders for cases in the making."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from diag.errors import StorageError
from diag.store.lock import held

_PREFIX = ".making-"


@contextmanager
def work_folder(parent: Path | None) -> Iterator[Path]:
    """A private folder in `parent`, or among the temporary files; gone afterwards, whatever happens.

    Those in `parent` whose owners were killed are removed on the way. Raises StorageError when it cannot be made.
    """
    with ExitStack() as stack:
        try:
            folder = _claimed(parent, stack) if parent else Path(tempfile.mkdtemp(prefix="diag-"))
        except OSError as error:
            where = parent or "the folder for temporary files"
            raise StorageError(
                f"Cannot make a folder in {where}: {error.strerror or error}. Free some space, or set DIAG_CACHE."
            ) from error
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder


def _claimed(parent: Path, stack: ExitStack) -> Path:
    """A new folder whose lock is held; nobody takes it for abandoned before that, for `parent` is locked meanwhile."""
    with held(parent, exclusive=True):
        for abandoned in parent.glob(f"{_PREFIX}*"):
            with held(abandoned, exclusive=True, wait=False) as free:
                if free:
                    shutil.rmtree(abandoned, ignore_errors=True)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        stack.enter_context(held(folder))
    return folder
