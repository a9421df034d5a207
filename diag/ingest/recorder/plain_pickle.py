"""Reads pickles that hold nothing but plain values: containers, numbers, texts, True, False and None.

The opcodes are read by Python's own C code: two million entries have four hundred million of them, for which an
interpreter in Python would take minutes (0.3 µs each) where this takes seconds. That code trusts the sizes and places
that a pickle names, so that a few bytes of a crafted one ask for gigabytes. Therefore it runs only in a worker, whose
memory and time the kernel bounds (`worker.py`).
"""

from __future__ import annotations

import io
import pickle
from typing import Any, NoReturn

from diag.errors import InputError
from diag.model.units import count

LONGEST_NAME = 100


class _PlainUnpickler(pickle.Unpickler):
    """Whatever leads out of plain values comes to one of these two: nothing on the stack can then be called."""

    def find_class(self, module: str, name: str, /) -> NoReturn:
        raise InputError(f"it wants to load {_shown(f'{module}.{name}')}, and loading can run code: it is no dump")

    def persistent_load(self, _pid: Any, /) -> NoReturn:
        raise InputError("it refers to an object outside of it: it is no dump")


def load(data: bytes) -> object:
    """The value in a pickle. Raises InputError with what is wrong about it, and MemoryError."""
    file = io.BytesIO(data)
    try:
        value = _PlainUnpickler(file).load()
    except (InputError, MemoryError):
        raise
    except EOFError as error:
        raise InputError("it ends too early") from error
    except Exception as error:  # damage comes to any: ValueError, KeyError, IndexError, AttributeError, TypeError
        said = "ends too early" if "truncated" in str(error) else f"is damaged ({type(error).__name__})"
        raise InputError(f"it {said}") from error
    if behind := len(data) - file.tell():
        raise InputError(f"{count(behind, 'byte')} follow its end")
    return value


def _shown(name: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in name[:LONGEST_NAME])
