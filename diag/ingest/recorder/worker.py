"""A worker: decodes the dumps whose paths are on its standard input, and answers on its standard output.

    python -m diag.ingest.recorder.worker LIMITS <PATHS >ANSWERS

Each answer is its length in 8 bytes and a `Dump` or a `Refusal`, in the order of the paths. With a dump for which it
has too little memory it ends: what is left of that memory is not trusted to be enough for the next.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import BinaryIO

import msgspec

from diag.errors import InputError
from diag.ingest.recorder.decoding import decode
from diag.ingest.recorder.dump import Answer, Refusal
from diag.ingest.recorder.limits import Limits
from diag.model import units

LENGTH_BYTES = 8

SHORT_OF_MEMORY = 71
"""Exit status (EX_OSERR of sysexits.h)."""


def main(arguments: list[str]) -> None:
    limits = msgspec.json.decode(arguments[0], type=Limits)
    paths = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=list[bytes])
    limits.impose()
    gc.disable()  # it looks for cycles, which no dump has, and takes a sixth of the time
    try:
        for path in paths:
            limits.allow_time()
            _write(sys.stdout.buffer, _encoded(path, limits))
    except MemoryError:
        os._exit(SHORT_OF_MEMORY)


def _encoded(path: bytes, limits: Limits) -> bytes:
    encode = msgspec.msgpack.encode
    try:
        answer = encode(_answer(path, limits))
    except UnicodeError:  # a pickle may hold half of a surrogate pair
        answer = encode(Refusal("a text in it is no Unicode"))
    if len(answer) > limits.answer_bytes:
        return encode(Refusal(f"there is more in it than {units.size(limits.answer_bytes)}"))
    return answer


def _answer(path: bytes, limits: Limits) -> Answer:
    try:
        with open(path, "rb") as file:
            data = file.read(limits.file_bytes + 1)
        if len(data) > limits.file_bytes:
            return Refusal(f"it is larger than a dump can be ({units.size(limits.file_bytes)})")
        return decode(data)
    except OSError as error:
        return Refusal(str(error.strerror))
    except InputError as error:
        gc.collect()  # what is refused may hold cycles
        return Refusal(str(error))


def _write(file: BinaryIO, answer: bytes) -> None:
    file.write(len(answer).to_bytes(LENGTH_BYTES, "little"))
    file.write(answer)
    file.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
