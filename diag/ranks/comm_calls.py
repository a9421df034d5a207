"""The collectives of a job's traces by kind, with their sizes counted as nccl-tests counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from diag.model.collective import Primitive, volume_bytes
from diag.store.case import Case


@dataclass(frozen=True)
class CommCalls:
    """Calls that are alike."""

    op: Primitive
    n_ranks: int  # of the group
    size_bytes: int
    count: int

    @property
    def moved_bytes(self) -> float:
        return volume_bytes(self.op, self.size_bytes, self.n_ranks)


_OPS = {
    "allreduce": Primitive.ALL_REDUCE,
    "reducescatter": Primitive.REDUCE_SCATTER,
    "allgather": Primitive.ALL_GATHER,
    "alltoall": Primitive.ALL_TO_ALL,
    "broadcast": Primitive.BROADCAST,
    "reduce": Primitive.REDUCE,
    "send": Primitive.SEND_RECV,
}
"""Sources write ncclAllReduce, allreduce, _reduce_scatter_base, all_gather_into_tensor_coalesced …"""


def primitive_of(op: str) -> Primitive | None:
    """A receive is the other end of a send, and not counted again.

    >>> primitive_of("ncclAllReduce").value, primitive_of("_all_gather_base").value, primitive_of("barrier")
    ('all_reduce', 'all_gather', None)
    """
    plain = op.lower().replace("_", "")
    return next((primitive for name, primitive in _OPS.items() if name in plain), None)


def comm_calls(case: Case) -> list[CommCalls]:
    """Of calls whose group and size are told."""
    rows = case.rows(_CALLS)
    found = [(primitive_of(row["op"]), row) for row in rows]
    return together(
        CommCalls(
            op, row["group_size"], _size(op, row["group_size"], row["input_bytes"], row["output_bytes"]), row["n"]
        )
        for op, row in found
        if op is not None
    )


def together(calls: Iterable[CommCalls]) -> list[CommCalls]:
    """Those that are alike as one."""
    counts: Counter[tuple[Primitive, int, int]] = Counter()
    for each in calls:
        counts[each.op, each.n_ranks, each.size_bytes] += each.count
    return [CommCalls(*kind, count) for kind, count in sorted(counts.items())]


_CALLS = """
    SELECT op, group_size, input_bytes, output_bytes, count(*) AS n
      FROM collective
     WHERE op IS NOT NULL AND group_size > 1 AND coalesce(input_bytes, output_bytes) > 0
     GROUP BY op, group_size, input_bytes, output_bytes
     ORDER BY op, group_size, input_bytes, output_bytes
"""


def _size(op: Primitive, n_ranks: int, input_bytes: int | None, output_bytes: int | None) -> int:
    """The whole buffer; NCCL's own ranges tell that of one rank alone, which of an all-gather is a part."""
    if op is Primitive.ALL_GATHER:
        return output_bytes or (input_bytes or 0) * n_ranks
    return input_bytes or output_bytes or 0


def total(calls: Sequence[CommCalls]) -> int:
    return sum(each.count for each in calls)
