"""Which way NCCL took between two ranks, and whether they are on one host."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from diag.ranks.log_events import LogEvent
from diag.store.case import Case

Medium = Literal["P2P", "SHM", "NET", "NVLS", "COLLNET", "other"]

Member = tuple[str | None, int]
"""A rank of a communicator."""


@dataclass(frozen=True)
class Connection:
    """All channels of one communicator from one rank to another that go the same way."""

    communicator: str | None
    rank: int  # in the communicator, the one that data comes from
    peer: int
    host: str | None  # of the rank; None where no line says where it is
    peer_host: str | None
    via: str  # in NCCL's words: 'P2P/CUMEM/read', 'SHM/direct/direct', 'NET/IB/0/GDRDMA'
    channels: int

    @property
    def medium(self) -> Medium:
        return medium_of(self.via)

    @property
    def network(self) -> str | None:
        """'IB', 'Socket' or the name of a plugin."""
        parts = self.via.split("/")
        return parts[1] if self.medium == "NET" and len(parts) > 1 else None

    @property
    def is_direct_rdma(self) -> bool:
        return "GDRDMA" in self.via

    @property
    def is_within_host(self) -> bool | None:
        """Shared memory reaches no further than a host, wherever its ends are."""
        if self.medium == "SHM":
            return True
        if self.host is None or self.peer_host is None:
            return None
        return self.host == self.peer_host


def n_channels(connections: Sequence[Connection]) -> int:
    return sum(each.channels for each in connections)


def medium_of(via: str) -> Medium:
    """
    >>> medium_of("P2P/IPC/read"), medium_of("direct shared memory"), medium_of("NET/Socket/0")
    ('P2P', 'SHM', 'NET')
    """
    if via.startswith(("SHM", "direct shared memory")):
        return "SHM"
    media: tuple[Medium, ...] = ("P2P", "NET", "NVLS", "COLLNET")
    return next((medium for medium in media if via.startswith(medium)), "other")


_CONNECTIONS = """
    SELECT communicator, host, fields ->> 'from' AS rank, fields ->> 'to' AS peer, fields ->> 'direction' AS direction,
           fields ->> 'via' AS via, COUNT(DISTINCT fields ->> 'channel') AS channels
      FROM log_event
     WHERE kind = 'nccl.transport'
     GROUP BY 1, 2, 3, 4, 5, 6
     ORDER BY 1, 3, 4, 6, 2, 5
"""


def load_connections(case: Case, events: Sequence[LogEvent]) -> Sequence[Connection]:
    """Each once, though both its ends print it where it crosses hosts."""
    hosts = hosts_of(events)
    found: dict[tuple[object, ...], Connection] = {}
    for row in case.rows(_CONNECTIONS):
        if not (isinstance(row["rank"], int) and isinstance(row["via"], str)):
            continue
        peer = row["peer"] if isinstance(row["peer"], int) else row["rank"]
        writer = peer if row["direction"] == "receive" else row["rank"]
        host = hosts.get((row["communicator"], row["rank"])) or (row["host"] if writer == row["rank"] else None)
        peer_host = hosts.get((row["communicator"], peer)) or (row["host"] if writer == peer else None)
        via = _without_port(row["via"])
        one = Connection(row["communicator"], row["rank"], peer, host, peer_host, via, row["channels"])
        key = (one.communicator, one.rank, one.peer, via)
        if key not in found or found[key].channels < one.channels:
            found[key] = one
    return list(found.values())


def hosts_of(events: Sequence[LogEvent]) -> Mapping[Member, str]:
    """Where each rank of each communicator runs, as its initialisation says."""
    return {
        (event.communicator, int(event.fields["rank"])): event.host
        for event in events
        if event.kind in ("nccl.init", "nccl.init_done") and event.host and "rank" in event.fields
    }


_PORT = re.compile(r"^(NET/\w+)/\d+(\(\d+\))?")


def _without_port(via: str) -> str:
    """Which of the network devices a channel uses differs by channel, and is no other way.

    >>> _without_port("NET/IB/3/GDRDMA"), _without_port("P2P/IPC")
    ('NET/IB/GDRDMA', 'P2P/IPC')
    """
    return _PORT.sub(r"\1", via.strip())
