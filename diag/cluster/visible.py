"""Which hosts of a cluster see which of the named inputs: each is read where it lies.

A file is the same on two hosts if its path, kind, size and time of change are. What all hosts see is read by any
worker, what some see by theirs. Hosts are told by their addresses without a port: a worker that starts again has
another port.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from diag.cluster.shards import TRACES, Shard, shards_of
from diag.errors import InputError
from diag.ingest.input_file import Progress
from diag.ingest.inputs import Input, NothingToRead, find_inputs
from diag.model.units import count

if TYPE_CHECKING:
    from distributed import Client


class Stamp(NamedTuple):
    path: str
    kind: str
    in_folder: bool
    size_bytes: int
    mtime_ns: int


Found = Mapping[str, Sequence[Stamp]]
"""What is behind each name; nothing behind those that a machine does not have."""


def found_here(named: Sequence[str]) -> Found:
    """Raises InputError for a damaged input."""
    return {name: _behind(Path(name)) for name in named}


def _behind(name: Path) -> list[Stamp]:
    if not name.exists():
        return []
    try:
        inputs = find_inputs([name])
    except NothingToRead:
        return []
    except InputError as error:  # others of its kind cannot travel
        raise InputError(str(error)) from None
    stats = [given.path.stat() for given in inputs]
    return [
        Stamp(str(given.path), given.kind, given.in_folder, stat.st_size, stat.st_mtime_ns)
        for given, stat in zip(inputs, stats, strict=True)
    ]


def shards_seen(client: Client, named: Sequence[Path], note: Progress) -> tuple[list[Shard], list[Input]]:
    """Shards with the hosts that see them, and the inputs of other kinds that this machine has.

    Raises InputError where a name stands for nothing anywhere, or a trace is seen by no worker.
    """
    names = [os.path.abspath(name) for name in named]  # a worker has a working directory of its own
    one_of_host = {about["host"]: address for address, about in _workers(client).items()}
    answers = client.run(found_here, names, workers=list(one_of_host.values()))
    hosts = {host: answers[address] for host, address in sorted(one_of_host.items())}
    return spread(found_here(names), hosts, note)


def _workers(client: Client) -> Mapping[str, Mapping[str, str]]:
    found: Mapping[str, Mapping[str, str]] = client.scheduler_info(n_workers=-1)["workers"]
    return found


def spread(own: Found, hosts: Mapping[str, Found], note: Progress) -> tuple[list[Shard], list[Input]]:
    """As `shards_seen`, of what this machine found and what each host did."""
    for name, stamps in own.items():
        if not stamps and not any(found[name] for found in hosts.values()):
            raise InputError(f"{name}: neither this machine nor a worker of the cluster has anything to read there.")
    seen_by: dict[Stamp, list[str]] = {stamp: [] for stamps in own.values() for stamp in stamps}
    for host, found in hosts.items():
        for stamp in dict.fromkeys(stamp for stamps in found.values() for stamp in stamps):
            seen_by.setdefault(stamp, []).append(host)
    together: dict[tuple[str, ...], list[Input]] = {}
    for stamp, by in seen_by.items():
        if stamp.kind in TRACES:
            if not by:
                raise InputError(
                    f"No worker sees {stamp.path}. Start workers where it lies, or put it where they see it."
                )
            together.setdefault(tuple(by), []).append(_input(stamp))
    shards = [
        Shard(shard.paths, None if len(by) == len(hosts) else by)
        for by, inputs in together.items()
        for shard in shards_of(inputs)[0]
    ]
    mine = {stamp for stamps in own.values() for stamp in stamps}
    others = [stamp for stamp in seen_by if stamp.kind not in TRACES]
    if away := [stamp for stamp in others if stamp not in mine]:
        what = count(len(away), "input")
        there = f"{away[0].path} on {seen_by[away[0]][0]}"
        note(f"Left out: {what} without events in time that only workers see, as {there}. Copy them here.")
    return shards, [_input(stamp) for stamp in others if stamp in mine]


def _input(stamp: Stamp) -> Input:
    return Input(Path(stamp.path), stamp.kind, stamp.in_folder)
