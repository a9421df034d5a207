"""What a step says to other ranks, counted where every call passes: at the operators `c10d::…` of PyTorch.

That sees calls from Python, from autograd and from the reducer of DistributedDataParallel in C++ alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from diag.model.collective import Primitive, Signature
from diag.model.communication import CountedCalls
from diag.probes.probe import Step

Calls = Mapping[tuple[Primitive, int], int]
"""How often each primitive was called with so many bytes, as nccl-tests counts them."""


def _nbytes(given: Any) -> int:
    return sum(each.nbytes for each in given) if isinstance(given, list | tuple) else int(given.nbytes)


def _first(arguments: Sequence[Any]) -> int:
    return _nbytes(arguments[0])


def _second(arguments: Sequence[Any]) -> int:
    return _nbytes(arguments[1])


_OPERATORS: Mapping[str, tuple[Primitive, Callable[[Sequence[Any]], int]]] = {
    "allreduce_": (Primitive.ALL_REDUCE, _first),
    "broadcast_": (Primitive.BROADCAST, _first),
    "reduce_": (Primitive.REDUCE, _first),
    "_allgather_base_": (Primitive.ALL_GATHER, _first),  # output, input
    "_reduce_scatter_base_": (Primitive.REDUCE_SCATTER, _second),  # output, input
    "alltoall_base_": (Primitive.ALL_TO_ALL, _second),  # output, input
    "send": (Primitive.SEND_RECV, _first),
}
_SILENT = frozenset({"barrier", "monitored_barrier_", "recv_", "recv_any_source_"})
"""A barrier has no payload, and a message counts where it is sent."""


class _Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[tuple[Primitive, int]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "c10d":
            name = func._schema.name.partition("::")[2]
            if name in _OPERATORS:
                primitive, size = _OPERATORS[name]
                self.calls[primitive, size(args)] += 1
            elif name not in _SILENT:
                raise LookupError(f"a probe calls c10d::{name}, whose bytes nobody counts")
        return func(*args, **(kwargs or {}))


def counted(step: Step) -> Calls:
    """Of one step."""
    with _Counting() as mode:
        step()
    return dict(mode.calls)


def declared(signatures: Sequence[Signature]) -> Calls:
    calls: Counter[tuple[Primitive, int]] = Counter()
    for each in signatures:
        calls[each.primitive, round(each.size_bytes)] += round(each.calls)
    return {call: n for call, n in calls.items() if n}


def as_rows(calls: Calls) -> Sequence[CountedCalls]:
    return [CountedCalls(primitive, size_bytes, n) for (primitive, size_bytes), n in sorted(calls.items())]


def carried_out_as(step: Step) -> frozenset[str]:
    """What Gloo does for a step, in its own words: its reduce-scatter may be 'all_reduce'. Empty for other backends."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        step()
    names = (str(each.name) for each in profiler.events() or ())
    return frozenset(name.removeprefix("gloo:") for name in names if name.startswith("gloo:"))
