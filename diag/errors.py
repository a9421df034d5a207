"""Every error that `diag` raises on purpose, and the exit status each one ends the program with.

A message is one or two sentences for the person at the terminal: what is wrong, then what to do about it.
"""

from __future__ import annotations


class DiagError(Exception):
    """Base of all expected failures. `exit_status` follows docs/json-contract.md."""

    exit_status = 3


class UsageError(DiagError):
    """The command line asks for something that does not exist or cannot be combined."""

    exit_status = 2


class InputError(DiagError):
    """An input is missing, damaged, too large or of an unknown kind."""


class ToolMissing(DiagError):
    """An external program (for example `nsys`) is needed and absent, or too old for this input."""


class PluginError(DiagError):
    """A package that adds rules or readers to diag is broken. Its message is no sentence but part of one."""


class StorageError(DiagError):
    """The case could not be written: the disk is full, or the folder is read-only."""


class OutOfMemory(DiagError):
    """The process may not have as much memory as its inputs take."""


class WorkersLost(DiagError):
    """Processes that shared the work ended before it was done, again and again."""


class NothingToTell(DiagError):
    """The inputs were read, but no rule could say anything about them."""

    exit_status = 4
