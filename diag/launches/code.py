"""How an instruction of a launch is called, by whatever is known of it."""

from __future__ import annotations


def place_of(address: int, sass: str | None, file: str | None, line: int | None) -> str:
    """Source line and machine code where they are known, and the address.

    >>> place_of(0x15354AFFB6B0, "LDG.E.64 R4, [R2]", "join.cu", 120)
    'join.cu:120, LDG.E.64 R4, [R2], 0x15354affb6b0'
    >>> place_of(0x80, None, None, None)
    '0x80'
    """
    source = f"{file}:{line}" if file and line is not None else None
    return ", ".join(each for each in (source, sass, f"{address:#x}") if each)
