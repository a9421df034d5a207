"""From the bytes of a dump to what it says."""

from __future__ import annotations

import msgspec

from diag.errors import InputError
from diag.ingest.recorder import entries, layout, plain_pickle
from diag.ingest.recorder.dump import Dump
from diag.ingest.recorder.groups import groups_of
from diag.ingest.recorder.magic import is_pickle


def decode(data: bytes) -> Dump:
    """Raises InputError with what is wrong about it, as the end of a sentence, and MemoryError."""
    try:
        if is_pickle(data):
            raw = msgspec.convert(plain_pickle.load(data), layout.RawDump, strict=False)
        else:
            raw = msgspec.json.decode(data, type=layout.RawDump, strict=False)
        return _uniform(raw)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise InputError(f"it is not as PyTorch writes it ({error})") from error
    except RecursionError as error:
        raise InputError("containers in it are nested too deeply") from error


def _uniform(raw: layout.RawDump) -> Dump:
    if raw.pg_config is None and raw.pg_status is None and raw.entries is None:
        raise InputError("it has neither entries nor process groups")
    keys = entries.keys_of(raw.entries or ())
    groups = groups_of(raw, entries.described(raw.entries or (), keys))
    filled, signatures, stacks = (None, [], []) if raw.entries is None else entries.columns(raw.entries, keys, groups)
    return Dump(
        version=raw.version,
        library=_library(raw),
        groups=groups,
        signatures=signatures,
        stacks=stacks,
        entries=filled,
        has_status=raw.pg_status is not None,
    )


def _library(raw: layout.RawDump) -> str | None:
    if raw.nccl_version:
        return f"NCCL {raw.nccl_version}"
    return f"communication library {raw.comm_lib_version}" if raw.comm_lib_version else None
