"""Reads pickles that hold nothing but plain values: containers, numbers, texts, True, False and None."""

from __future__ import annotations

import io
import pickle
from typing import Any, NoReturn

from diag.errors import InputError
from diag.model.units import count


class NotPlain(InputError):
    """The pickle wants something loaded, which can run code."""


class _PlainUnpickler(pickle.Unpickler):
    """Of all opcodes that lead out of plain values, each comes to one of these two."""

    def find_class(self, module: str, name: str, /) -> NoReturn:
        raise NotPlain(f"it wants to load {module}.{name}")

    def persistent_load(self, _pid: Any, /) -> NoReturn:
        raise NotPlain("it refers to an object outside of it")


def load(data: bytes) -> object:
    """The value in a pickle. Raises InputError with what is wrong about it."""
    file = io.BytesIO(data)
    try:
        value = _PlainUnpickler(file).load()
    except InputError:
        raise
    except EOFError as error:
        raise InputError("it ends too early") from error
    except Exception as error:  # damage may come to any: ValueError, KeyError, IndexError, AttributeError, TypeError
        raise InputError(f"it is damaged ({type(error).__name__})") from error
    if behind := len(data) - file.tell():
        raise InputError(f"{count(behind, 'byte')} follow its end")
    return value
