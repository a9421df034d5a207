"""Readers of plug-ins: they are asked of files that diag does not know, and held to what a reader promises."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from diag import plugins
from diag.errors import InputError, PluginError
from diag.ingest.given_case import table_that_does_not_fit
from diag.ingest.input_file import InputFile
from diag.ingest.kinds import NAMES
from diag.ingest.reader import Reader
from diag.store.case import Case

_KIND = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_OWN = frozenset([*NAMES, "case"])


@dataclass(frozen=True)
class PluginReader:
    """A reader of a plug-in. What its code raises is an error that names the plug-in."""

    plugin: plugins.Plugin
    reader: Reader

    def looks_like(self, path: Path, head: bytes) -> bool:
        """Raises PluginError."""
        with plugins.blamed(self.plugin.title):
            return bool(self.reader.looks_like(path, head))

    def read(self, file: InputFile, case: Case) -> None:
        """Raises InputError, also where no source of this file comes of it."""
        before = case.value(_LAST_SOURCE)
        try:
            with plugins.blamed(self.plugin.title, but=(InputError,)):
                self.reader.read(file, case)
                if [tuple(row) for row in case.rows(_SOURCES_SINCE, (before,))] != [(file.kind, str(file.path))]:
                    raise ValueError("it has to add one source, with the kind and path of its file")
        except PluginError as error:
            raise InputError(f"{file.path} cannot be read: {error}. {_WITHOUT}") from error


_LAST_SOURCE = "SELECT coalesce(max(id), 0) FROM source"
_SOURCES_SINCE = "SELECT kind, path FROM source WHERE id > ?"
_WITHOUT = f"Tell its authors, or do without plug-ins: {plugins.SWITCH}=0"


@cache
def found() -> Sequence[PluginReader | PluginError]:
    """For each plug-in its reader, or why it has none."""
    each: list[PluginReader | PluginError] = []
    taken = set(_OWN)
    for plugin in plugins.installed(plugins.READERS):
        try:
            reader = _loaded(plugin, taken)
        except PluginError as error:
            each.append(error)
        else:
            taken.add(reader.kind)
            each.append(PluginReader(plugin, reader))
    return each


def _loaded(plugin: plugins.Plugin, taken: Collection[str]) -> Reader:
    reader = plugin.load()
    with plugins.blamed(plugin.title):
        if not isinstance(reader, Reader):
            raise TypeError(f"{plugin.entry.value} is no diag.ingest.reader.Reader")
        if not _KIND.fullmatch(reader.kind):
            raise ValueError(f"{reader.kind!r} is no kind: it has to be lower-case words with hyphens between them")
        if reader.kind in taken:
            raise ValueError(f"files of the kind {reader.kind} have a reader already")
        return reader


def _readers() -> list[PluginReader]:
    return [each for each in found() if isinstance(each, PluginReader)]


def reader_of(kind: str) -> PluginReader | None:
    """None for kinds that diag reads itself, for which no plug-in is loaded."""
    if kind in _OWN:
        return None
    return next((each for each in _readers() if each.reader.kind == kind), None)


def kind_of(path: Path, head: bytes) -> str | None:
    """By the first reader that says it is of its kind. Raises PluginError where one fails over it and none knows it."""
    failed: list[PluginError] = []
    for each in _readers():
        try:
            if each.looks_like(path, head):
                return each.reader.kind
        except PluginError as error:
            failed.append(error)
    if failed:
        raise failed[0]
    return None


def names() -> Mapping[str, str]:
    """What one file of each kind is called."""
    return {each.reader.kind: each.reader.name for each in _readers()}


def described(kind: str) -> str:
    reader = reader_of(kind)
    return f"a {reader.reader.name}, which the plug-in {reader.plugin.title} reads" if reader else kind


def identity(kind: str) -> Sequence[str]:
    """What a case with such a file depends on besides diag and the file."""
    reader = reader_of(kind)
    return (reader.plugin.digest,) if reader else ()


def said() -> str:
    """Sentences about what plug-ins read, and which of them cannot be loaded."""
    read = ", ".join(f"{each.reader.name} ({each.plugin.title})" for each in _readers())
    lost = "".join(f" {str(each)[:1].upper()}{str(each)[1:]}." for each in found() if isinstance(each, PluginError))
    return (f" Plug-ins read: {read}." if read else "") + lost


def check_rows(case: Case, kinds: Collection[str]) -> None:
    """Raises InputError when what readers of plug-ins have added does not fit, on which all else relies."""
    used = [reader.plugin.title for kind in sorted(kinds) if (reader := reader_of(kind))]
    if used and (table := table_that_does_not_fit(case)) is not None:
        raise InputError(
            f"The table {table} holds rows that do not fit after the plug-in {' or '.join(used)} has read its files. "
            f"{_WITHOUT}"
        )
