"""What the machine code of a kernel (SASS) tells that no counter does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

LocalUse = Literal["spills", "arrays", "either"]
"""What local memory is for; 'either' where nothing tells."""


def local_use(sass: Sequence[str]) -> LocalUse:
    """What these instructions use local memory for, by how they form their addresses.

    A register that spills has its place at a fixed offset from the stack pointer; an element of an array that is
    indexed at run time has an address that was worked out. One such access is enough for 'arrays'.

    >>> local_use(["STL [R1+0x10], R4", "LDL.64 R2, [R1]"]), local_use(["LDL R2, [R7+0x4]"])
    ('spills', 'arrays')
    """
    bases = [found.group(1) for text in sass if (found := _LOCAL.search(text))]
    if not bases:
        return "either"
    return "spills" if all(base == _STACK_POINTER for base in bases) else "arrays"


_LOCAL = re.compile(r"\b(?:LDL|STL)[.\w]* [^[]*\[(\w+)")
_STACK_POINTER = "R1"
"""By the calling convention of CUDA's compilers on every architecture since Kepler."""
