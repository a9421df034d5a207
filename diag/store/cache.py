"""The user's cache of imported cases: keyed by the content of the inputs, bounded in size, oldest evicted."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from diag import __version__
from diag.errors import InputError
from diag.store.case import SCHEMA_VERSION, Case
from diag.store.lock import held
from diag.store.sizes import parse_size

DEFAULT_LIMIT_BYTES = 8 << 30
HASH_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class KeptCase:
    """A case of the cache, with the inputs that it holds as the user named them."""

    path: Path
    inputs: Sequence[str]
    size_bytes: int


@dataclass(frozen=True)
class Cache:
    """A folder of cases. Set DIAG_CACHE to move it, DIAG_CACHE_BYTES to change its bound."""

    folder: Path
    limit_bytes: int

    @classmethod
    def of_user(cls) -> Cache | None:
        """The user's cache, or None when its folder cannot be written (a read-only home). Raises UsageError."""
        wanted = os.environ.get("DIAG_CACHE_BYTES")
        limit_bytes = parse_size(wanted, of="DIAG_CACHE_BYTES") if wanted else DEFAULT_LIMIT_BYTES
        try:
            folder = _folder_of_user()
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        except (OSError, RuntimeError):  # RuntimeError: the user has no home
            return None
        return cls(folder, limit_bytes) if os.access(folder, os.W_OK | os.X_OK) else None

    def path_of(self, inputs: Iterable[tuple[Path, Sequence[str]]]) -> Path:
        """Where the case of these inputs, named so by the user and with these SHA-256 digests, lies or will lie.

        A case names its inputs: the same bytes under another name are another case.
        """
        parts = repr([(os.fsencode(path), *digests) for path, digests in inputs])
        key = hashlib.sha256("\n".join((__version__, str(SCHEMA_VERSION), parts)).encode()).hexdigest()
        return self.folder / f"{key[:32]}.diag"

    @contextmanager
    def kept(self, path: Path, make: Callable[[], Path]) -> Iterator[Path]:
        """The case at `path`, there as long as this lasts; it is made first if there is none, or a damaged one.

        `make` returns where it made the case, on the same file system.
        """
        with ExitStack() as stack:
            if not _is_there(path, stack):
                new = make()
                # One after the other: what another process put there meanwhile is in use, and so is its journal.
                with held(self.folder, exclusive=True):
                    if not _is_there(path, stack):
                        stack.enter_context(held(new))
                        self.discard(path)
                        os.replace(new, path)
            with suppress(OSError):
                os.utime(path)  # used just now: others are evicted first
            self.evict(keep=path)
            yield path

    def discard(self, path: Path) -> None:
        # The journal first: left behind by a killed process, it would be played into the next case of this name.
        path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
        path.unlink(missing_ok=True)

    def evict(self, *, keep: Path) -> None:
        """Deletes the cases used longest ago until the rest fits; never `keep` or one that is open somewhere."""
        cases = sorted((stat.st_mtime_ns, stat.st_size, path) for path, stat in self._files())
        excess = sum(size for _, size, _ in cases) - self.limit_bytes
        for _, size, path in cases:
            if excess <= 0:
                return
            if path == keep:
                continue
            with held(path, exclusive=True, wait=False) as unused:
                if unused:
                    self.discard(path)
                    excess -= size

    def newest_first(self) -> list[Path]:
        """The cases, most recently used first."""
        return [path for path, _ in sorted(self._files(), key=lambda item: -item[1].st_mtime_ns)]

    def kept_cases(self, most: int) -> list[KeptCase]:
        """The cases used last, the newest first; those of another schema are passed over."""
        found = []
        for path in self.newest_first()[:most]:
            with suppress(InputError, OSError, sqlite3.Error), Case.open(path) as case:
                found.append(KeptCase(path, [source.path for source in case.sources], path.stat().st_size))
        return found

    @property
    def size_bytes(self) -> int:
        """What the cases take together."""
        return sum(stat.st_size for _, stat in self._files())

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.folder.glob("*.diag"):
            with suppress(OSError):
                yield path, path.stat()

    def digest(self, path: Path) -> str:
        """SHA-256 of a file's content, remembered for as long as its inode, size and times stay the same."""
        memo = self.folder / "digests" / hashlib.sha256(repr(identity(path)).encode()).hexdigest()[:32]
        with suppress(OSError):
            if len(known := memo.read_text()) == 64:
                return known
        digest = file_digest(path)
        with suppress(OSError):
            memo.parent.mkdir(exist_ok=True)
            memo.write_text(digest)
        return digest


def identity(path: Path) -> tuple[int, ...]:
    """What changes whenever a file's content does. Raises InputError when it cannot be read."""
    try:
        stat = path.stat()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Raises InputError when a file's content was changed while the block ran."""
    before = identity(path)
    yield
    if identity(path) != before:
        raise InputError(f"{path} changed while it was read. Wait until it is written, then try again.")


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


def _folder_of_user() -> Path:
    if chosen := os.environ.get("DIAG_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "diag"


def _is_there(path: Path, stack: ExitStack) -> bool:
    """Whether a whole case lies there, which is then held as long as the stack."""
    return stack.enter_context(held(path)) and _is_whole(path)


def _is_whole(path: Path) -> bool:
    try:
        Case.open(path).close()
    except InputError:
        return False
    return True
