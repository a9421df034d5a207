"""Damage to the bytes of any file: what broken disks, transfers and editors do, and what an attacker would."""

from __future__ import annotations

import random
from collections.abc import Callable

PAGE_BYTES = 4096

Mutation = Callable[[bytes, random.Random], bytes]


def flip_bits(content: bytes, chance: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(chance.choice((1, 1, 4, 64))):
        damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
    return bytes(damaged)


def overwrite(content: bytes, chance: random.Random) -> bytes:
    at, length = chance.randrange(len(content)), chance.choice((1, 8, 100, PAGE_BYTES))
    noise = chance.choice((chance.randbytes(length), bytes(length), b"\xff" * length))
    return (content[:at] + noise + content[at + length :])[: len(content)]


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(1, len(content))]


def cut_between_pages(content: bytes, chance: random.Random) -> bytes:
    return content[: PAGE_BYTES * chance.randrange(1, len(content) // PAGE_BYTES + 2)]


def leave_out(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content))
    return content[:at] + content[at + chance.choice((1, 2, 50, PAGE_BYTES)) :]


def insert(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content))
    return content[:at] + chance.randbytes(chance.choice((1, 2, 50, PAGE_BYTES))) + content[at:]


def repeat(content: bytes, chance: random.Random) -> bytes:
    at, length = chance.randrange(len(content)), chance.choice((10, 1000, PAGE_BYTES))
    return content[: at + length] + content[at:]


def swap_pages(content: bytes, chance: random.Random) -> bytes:
    pages = [content[at : at + PAGE_BYTES] for at in range(0, len(content), PAGE_BYTES)]
    a, b = chance.randrange(len(pages)), chance.randrange(len(pages))
    pages[a], pages[b] = pages[b], pages[a]
    return b"".join(pages)


def append(content: bytes, chance: random.Random) -> bytes:
    return content + chance.choice((b"\0", b"\n", b"]}", chance.randbytes(300), content))


MUTATIONS: tuple[Mutation, ...] = (
    flip_bits,
    overwrite,
    cut,
    cut_between_pages,
    leave_out,
    insert,
    repeat,
    swap_pages,
    append,
)


def damaged(content: bytes, chance: random.Random) -> tuple[bytes, str]:
    """The content after one or several mutations, and their names; never empty, for that is tested apart."""
    names = []
    for mutation in chance.choices(MUTATIONS, k=chance.choice((1, 1, 1, 3))):
        content = mutation(content, chance) or b"\0"
        names.append(mutation.__name__)
    return content, ", ".join(names)
