"""Faults whose code does not tell by its file's name what they are: stacks and traces show that name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType

FILE = "train.py"
"""As all of them are called. Lines stay those of the real files."""


@contextmanager
def disguised(*modules: ModuleType) -> Iterator[None]:
    """Frames of their functions say FILE for as long as this lasts."""
    own = {function: function.__code__ for module in modules for function in _functions(module, module.__name__)}
    for function, code in own.items():
        function.__code__ = _renamed(code)
    try:
        yield
    finally:
        for function, code in own.items():
            function.__code__ = code


def _functions(of: ModuleType | type, module: str) -> Iterator[FunctionType]:
    """Those that a module defines, and those of its classes."""
    for value in vars(of).values():
        if isinstance(value, FunctionType) and value.__module__ == module:
            yield value
        elif isinstance(value, type) and value.__module__ == module:
            yield from _functions(value, module)


def _renamed(code: CodeType) -> CodeType:
    """With all code inside: comprehensions, lambdas."""
    inner = tuple(_renamed(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_filename=FILE, co_consts=inner)
