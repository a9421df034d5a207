"""The user's cache of imported cases: keyed by the content of the inputs, bounded in size, oldest evicted."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from diag import __version__
from diag.errors import InputError
from diag.store.case import SCHEMA_VERSION

DEFAULT_LIMIT_BYTES = 8 << 30
HASH_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Cache:
    """A folder of cases. Set DIAG_CACHE to move it, DIAG_CACHE_BYTES to change its bound."""

    folder: Path
    limit_bytes: int

    @classmethod
    def of_user(cls) -> Cache | None:
        """The user's cache, or None when its folder cannot be written (a read-only home)."""
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(os.environ.get("DIAG_CACHE") or Path(base) / "diag")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            return None
        if not os.access(folder, os.W_OK):
            return None
        return cls(folder, int(os.environ.get("DIAG_CACHE_BYTES") or DEFAULT_LIMIT_BYTES))

    def path_of(self, digests: Iterable[str]) -> Path:
        """Where the case of inputs with these SHA-256 digests lies, or will lie."""
        key = hashlib.sha256("\n".join((__version__, str(SCHEMA_VERSION), *digests)).encode()).hexdigest()
        return self.folder / f"{key[:32]}.diag"

    def touch(self, path: Path) -> None:
        """Marks a case as used, so that others are evicted first."""
        with suppress(OSError):
            os.utime(path)

    def evict(self, *, keep: Path) -> None:
        """Deletes the cases used longest ago until the rest fits; never the one at `keep`."""
        cases = sorted((stat.st_mtime, stat.st_size, path) for path, stat in self._files())
        excess = sum(size for _, size, _ in cases) - self.limit_bytes
        for _, size, path in cases:
            if excess <= 0:
                return
            if path != keep:
                path.unlink(missing_ok=True)
                excess -= size

    def newest_first(self) -> list[Path]:
        """The cases, most recently used first."""
        return [path for path, _ in sorted(self._files(), key=lambda item: -item[1].st_mtime_ns)]

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.folder.glob("*.diag"):
            with suppress(OSError):
                yield path, path.stat()

    def digest(self, path: Path) -> str:
        """SHA-256 of a file's content, remembered for as long as its inode, size and times stay the same."""
        stat = path.stat()
        identity = (path.resolve(), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        memo = self.folder / "digests" / hashlib.sha256(repr(identity).encode()).hexdigest()[:32]
        with suppress(OSError):
            if len(known := memo.read_text()) == 64:
                return known
        digest = file_digest(path)
        with suppress(OSError):
            memo.parent.mkdir(exist_ok=True)
            memo.write_text(digest)
        return digest


def file_digest(path: Path) -> str:
    """SHA-256 of a file. Raises InputError when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(HASH_BLOCK_BYTES):
                digest.update(block)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    return digest.hexdigest()


@contextmanager
def work_folder(cache: Cache | None) -> Iterator[Path]:
    """A private folder for a case in the making and converted inputs; gone afterwards, whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix=".making-", dir=cache.folder if cache else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
