"""Packages that others write: what is installed beside diag, known by its entry points, and what befalls them.

A plug-in runs with all rights of who runs diag. `DIAG_PLUGINS=0` in the environment leaves all of them alone.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from diag.errors import DiagError, PluginError, StorageError
from diag.store.sqlite_errors import is_about_input

RULES, READERS = "diag.rules", "diag.readers"
"""Groups of entry points."""

SWITCH = "DIAG_PLUGINS"

LONGEST_REASON = 300
"""Characters of what a plug-in says that are repeated."""


@dataclass(frozen=True)
class Plugin:
    """One entry point: what a package adds to diag under a name."""

    entry: EntryPoint

    @property
    def package(self) -> str:
        return self.entry.dist.name if self.entry.dist else "unknown"

    @property
    def version(self) -> str:
        return self.entry.dist.version if self.entry.dist else "unknown"

    @property
    def title(self) -> str:
        return f"{self.entry.name} ({self.package} {self.version})"

    @property
    def module(self) -> str:
        return self.entry.value.partition(":")[0].strip()

    def load(self) -> object:
        """What the entry point names. Raises PluginError, whatever its import raises."""
        with blamed(self.title):
            return self.entry.load()

    def text_beside(self, name: str) -> str | None:
        """A file in the folder of its module, None where there is none. Raises PluginError."""
        with blamed(self.title):
            module = find_spec(self.module)
            file = Path(module.origin).with_name(name) if module and module.origin else None
            return file.read_text("utf-8") if file and file.is_file() else None

    @cached_property
    def digest(self) -> str:
        """Of its name, its version and the code of its package: what it said before it changed is not what it says."""
        digest = hashlib.sha256(repr((self.entry.value, self.title)).encode())
        for file in self._files():
            with suppress(OSError):
                digest.update(repr(str(file)).encode() + file.read_bytes())
        return digest.hexdigest()

    def _files(self) -> Iterator[Path]:
        for place in _places(_spec_of_package(self.module)):
            files = [place] if place.is_file() else place.rglob("*")
            yield from sorted(file for file in files if file.suffix in (".py", ".toml"))


def _spec_of_package(module: str) -> ModuleSpec | None:
    try:
        return find_spec(module.partition(".")[0])
    except ValueError:  # it is no name of a module
        return None


def _places(package: ModuleSpec | None) -> list[Path]:
    if package is None:
        return []
    if package.submodule_search_locations is not None:
        return [Path(each) for each in package.submodule_search_locations]
    return [Path(package.origin)] if package.origin else []


@cache
def installed(group: str) -> tuple[Plugin, ...]:
    """By package and name; none where they are switched off."""
    if are_off():
        return ()
    return tuple(sorted(map(Plugin, entry_points(group=group)), key=lambda plugin: (plugin.package, plugin.entry.name)))


def are_off() -> bool:
    return os.environ.get(SWITCH) == "0"


def owner(module: str) -> str:
    """The title of the plug-in whose rules a module holds; the module itself where nobody installed it as one."""
    package = module.partition(".")[0]
    titles = (plugin.title for plugin in installed(RULES) if plugin.module.partition(".")[0] == package)
    return next(titles, module)


@contextmanager
def blamed(title: str, *, but: tuple[type[DiagError], ...] = ()) -> Iterator[None]:
    """Whatever code of a plug-in raises meanwhile is a PluginError with its title; a full disk, want of memory and an
    interrupt are not its fault, and stay what they are, as does what it may raise on purpose (`but`).
    """
    try:
        yield
    except (MemoryError, StorageError, PluginError):
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, but) or (isinstance(error, sqlite3.Error) and not is_about_input(error)):
            raise
        raise PluginError(f"the plug-in {title} failed: {_said(error)}") from error


def _said(error: BaseException) -> str:
    """
    >>> _said(ZeroDivisionError("division by zero")), _said(KeyError())
    ('ZeroDivisionError: division by zero', 'KeyError')
    """
    text = " ".join(str(error).split())
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return said if len(said) <= LONGEST_REASON else f"{said[:LONGEST_REASON]}…"
