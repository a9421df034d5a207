"""A worker: decodes the snapshot on its command line and answers on its standard output.

    python -m diag.ingest.memory_snapshot.worker LIMITS PATH >ANSWER

A pickle is read as `recorder/plain_pickle.py` reads one: nothing but plain values, by code that trusts the sizes that
the pickle names. So it runs here, where the kernel bounds memory and time.
"""

from __future__ import annotations

import gc
import os
import sys

import msgspec

from diag.errors import InputError
from diag.ingest.memory_snapshot.history import Answer, RawSnapshot, Refusal, history
from diag.ingest.recorder import plain_pickle
from diag.ingest.recorder.limits import Limits
from diag.ingest.recorder.magic import is_pickle
from diag.model import units

SHORT_OF_MEMORY = 71
"""Exit status (EX_OSERR of sysexits.h)."""


def main(arguments: list[str]) -> None:
    limits = msgspec.json.decode(arguments[0], type=Limits)
    limits.impose()
    limits.allow_time()
    gc.disable()  # it looks for cycles, which no snapshot has
    try:
        answer = _encoded(answer_of(os.fsencode(arguments[1]), limits))
        if len(answer) > limits.answer_bytes:
            answer = _encoded(Refusal(f"there is more in it than {units.size(limits.answer_bytes)}"))
    except MemoryError:
        os._exit(SHORT_OF_MEMORY)
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()


def _encoded(answer: Answer) -> bytes:
    try:
        return msgspec.msgpack.encode(answer)
    except OverflowError:
        return msgspec.msgpack.encode(Refusal("a number in it has more than 64 bits"))


def answer_of(path: bytes, limits: Limits) -> Answer:
    try:
        with open(path, "rb") as file:
            data = file.read(limits.file_bytes + 1)
        if len(data) > limits.file_bytes:
            return Refusal(f"it is larger than a snapshot may be ({units.size(limits.file_bytes)})")
        return history(_raw(data))
    except OSError as error:
        return Refusal(str(error.strerror))
    except InputError as error:
        return Refusal(str(error))
    except (msgspec.MsgspecError, UnicodeError) as error:
        return Refusal(f"it is not as PyTorch writes it ({error})")
    except RecursionError:
        return Refusal("containers in it are nested too deeply")


def _raw(data: bytes) -> RawSnapshot:
    if is_pickle(data):
        return msgspec.convert(plain_pickle.load(data), RawSnapshot, strict=False)
    return msgspec.json.decode(data, type=RawSnapshot, strict=False)


if __name__ == "__main__":
    main(sys.argv[1:])
