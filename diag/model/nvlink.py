"""What NVLink between GPUs carries, as printed: of each link in each direction, before the overhead of packets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from diag.model.hardware import ComputeCapability
from diag.model.tables import table

_BONDED = re.compile(r"NV(\d{1,3})")


@dataclass(frozen=True)
class NvLink:
    """Of one GPU."""

    links: int  # most that it has
    bytes_per_s: float  # of one, in one direction
    source: str


def nvlink(capability: ComputeCapability) -> NvLink | None:
    """
    >>> nvlink((9, 0)).links, nvlink((12, 0))
    (18, None)
    """
    entry = table("nvlink.toml").get(".".join(map(str, capability)))
    return NvLink(**entry) if entry else None


def bonded_links(kind: str) -> int:
    """Links between two GPUs by the word of `nvidia-smi topo -m`; 0 where they have none.

    >>> bonded_links("NV18"), bonded_links("NODE")
    (18, 0)
    """
    match = _BONDED.fullmatch(kind)
    return int(match[1]) if match else 0


def out_of_gpu_bytes_per_s(kinds: Sequence[str], capability: ComputeCapability) -> float | None:
    """What a GPU can send to all others at once, `kinds` being its connections to each; None where it is not known.

    Behind a switch each pair is said to have all links of a GPU: they are counted once.

    >>> out_of_gpu_bytes_per_s(["NV18"] * 7, (9, 0)), out_of_gpu_bytes_per_s(["NV1", "NV2", "SYS"], (7, 0))
    (450000000000.0, 75000000000.0)
    """
    known = nvlink(capability)
    return None if known is None else float(min(sum(map(bonded_links, kinds)), known.links) * known.bytes_per_s)
