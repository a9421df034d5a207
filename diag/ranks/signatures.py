"""What a communication call is, and what its ranks must agree on.

Names are those of PyTorch's ProcessGroups: 'nccl:_all_gather_base', 'gloo:all_reduce', 'nccl:send 0->3'. Which counts
must be equal on all ranks follows from NCCL's API reference ("Collective Communication Functions").
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from diag.store.json_column import json_list

FAMILIES = (
    ("barrier", "barrier"),
    ("all_to_all", "all_to_all"),
    ("alltoall", "all_to_all"),
    ("reduce_scatter", "reduce_scatter"),
    ("all_gather", "all_gather"),
    ("allgather", "all_gather"),
    ("all_reduce", "all_reduce"),
    ("allreduce", "all_reduce"),
    ("broadcast", "broadcast"),
    ("reduce", "reduce"),
    ("gather", "gather"),
    ("scatter", "scatter"),
)
"""Part of a name → the operation that it is; the first that is found holds. Variants of one operation are alike."""

COMPLETES_ONLY_TOGETHER = frozenset({"barrier", "all_reduce", "all_gather", "reduce_scatter"})
"""No rank completes one of these before every rank has entered it. The root of a broadcast may, and so may whoever
gives nothing to a reduce."""

COUNTED = {
    "all_reduce": "input",
    "broadcast": "input",
    "reduce": "input",
    "reduce_scatter": "input",
    "all_gather": "output",
}
"""Whose number of elements must be equal on all ranks. That of the parts of an all_gather or reduce_scatter may differ,
as may all of an all-to-all, a gather and a scatter."""

_P2P = re.compile(r"(send|recv) (\d{1,9})(?:->|<-)(\d{1,9})")


@dataclass(frozen=True)
class CallSignature:
    """A row of `call_signature`. Sizes and dtypes are JSON, as recorded."""

    id: int
    name: str
    input_sizes: str
    input_dtypes: str
    output_sizes: str
    output_dtypes: str

    @cached_property
    def op(self) -> str:
        """Without the backend: 'nccl:send 0->3' is 'send 0->3'."""
        return self.name.rpartition(":")[2] or self.name

    @cached_property
    def family(self) -> str:
        name = self.op.lower()
        return next((family for part, family in FAMILIES if part in name), name)

    @cached_property
    def peer(self) -> tuple[int, bool] | None:
        """(rank in its group, whether this is the sending side) of a send or receive that says so."""
        match = _P2P.match(self.op)
        return (int(match[3]), match[1] == "send") if match else None

    @cached_property
    def dtypes(self) -> frozenset[str]:
        return frozenset(each for each in json_list(self.input_dtypes) if isinstance(each, str))

    @cached_property
    def counts(self) -> tuple[int | None, int | None]:
        """Elements that go in and come out; None where they are not recorded, as those of a coalesced call."""
        return _elements(self.input_sizes), _elements(self.output_sizes)

    @cached_property
    def completes_only_together(self) -> bool:
        """An all-to-all that gives as much as it gets has no rank that it passes over, as far as can be seen."""
        if self.family == "all_to_all":
            given, got = self.counts
            return given is not None and given == got
        return self.family in COMPLETES_ONLY_TOGETHER

    @cached_property
    def must_agree(self) -> Hashable:
        """What of the tensors must be the same on all ranks: two that are None, or not recorded, fit anything."""
        if self.family in {"barrier", "gather", "scatter", "all_to_all"} or self.family not in COUNTED:
            return None
        count = self.counts[COUNTED[self.family] == "output"]
        return (count, self.dtypes) if count is not None and self.dtypes else None

    @property
    def tensors(self) -> str:
        """
        >>> CallSignature(1, "nccl:all_reduce", "[[4, 2]]", '["Float"]', "[[4, 2]]", '["Float"]').tensors
        '[[4, 2]] Float'
        """
        return " ".join(filter(None, (self.input_sizes, ", ".join(sorted(self.dtypes)))))


@dataclass(frozen=True, eq=False)
class CallSignatures:
    """All signatures of a job. Codes are equal where two calls fit each other; -1 fits any."""

    by_id: Mapping[int, CallSignature]

    @cached_property
    def families(self) -> NDArray[np.int64]:
        """By id."""
        return self._codes({number: each.family for number, each in self.by_id.items()})

    @cached_property
    def tensors(self) -> NDArray[np.int64]:
        return self._codes({number: each.must_agree for number, each in self.by_id.items()})

    def _codes(self, values: Mapping[int, Hashable]) -> NDArray[np.int64]:
        codes = np.full(max(self.by_id, default=0) + 1, -1, dtype=np.int64)
        known: dict[Hashable, int] = {}
        for number, value in values.items():
            if value is not None:
                codes[number] = known.setdefault(value, len(known))
        return codes


def _elements(sizes: str) -> int | None:
    """
    >>> _elements("[[4, 2], [3]]"), _elements("[[]]"), _elements("[]")
    (11, 1, None)
    """
    shapes = json_list(sizes)
    if not shapes or not all(isinstance(shape, list) and all(isinstance(n, int) for n in shape) for shape in shapes):
        return None
    return sum(math.prod(shape) for shape in shapes if isinstance(shape, list))
