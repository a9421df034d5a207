"""What each way of spreading a transformer over ranks makes them communicate in a training step: its signatures.

A step works through `micro_batches` on every data-parallel replica. Activations are b·s·h elements: micro-batch,
tokens of it on this rank, hidden size. Sources:

tensor parallel     Shoeybi et al. 2019 (Megatron-LM, arXiv:1909.08053): two all-reduces forward, two backward a layer
sequence parallel   Korthikanti et al. 2022 (arXiv:2205.05198): each becomes a reduce-scatter and an all-gather
data parallel       Li et al. 2020 (PyTorch DDP, arXiv:2006.15704): buckets of gradients, sent while others are made
ZeRO, FSDP          Rajbhandari et al. 2020 (arXiv:1910.02054), Zhao et al. 2023 (FSDP, arXiv:2304.11277)
pipeline            Narayanan et al. 2021 (arXiv:2104.04473)
context parallel    Liu et al. 2023 (arXiv:2310.01889): keys and values forward, with their gradients backward
experts             Lepikhin et al. 2021 (arXiv:2006.16668): dispatch and combine, forward and backward
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from diag.model.collective import Primitive, Signature
from diag.model.pipeline import sends_per_step
from diag.model.placement import Layout

DDP_BUCKET_BYTES = 25 << 20
"""`bucket_cap_mb` of DistributedDataParallel, as it comes."""

ZeroStage = Literal[0, 1, 2, 3]


@dataclass(frozen=True)
class Transformer:
    """The model, and what of it is in one micro-batch."""

    hidden: int
    layers: int
    sequence: int  # tokens
    params: float  # without those of experts, whose gradients are summed over fewer ranks
    element_bytes: int = 2  # of parameters, activations and gradients
    micro_batch: int = 1  # sequences
    kv_share: float = 1.0  # key and value heads over query heads
    top_k: int = 1  # experts of a token
    moe_layers: int = 0


@dataclass(frozen=True)
class Step:
    """How one step is carried out."""

    micro_batches: int = 1  # of a replica
    chunks: int = 1  # of the model on each pipeline stage
    zero: ZeroStage = 0  # 0: DDP; 3: FSDP
    is_sequence_parallel: bool = False
    bucket_bytes: int = DDP_BUCKET_BYTES


def signatures(model: Transformer, layout: Layout, step: Step) -> tuple[Signature, ...]:
    """Of one rank of an inner pipeline stage, which has its equal part of the layers. Groups of one have none."""
    return (
        *(_tensor(model, layout, step) if layout.tp > 1 else ()),
        *(_context(model, layout, step) if layout.cp > 1 else ()),
        *(_experts(model, layout, step) if layout.ep > 1 and model.moe_layers else ()),
        *(_data(model, layout, step) if layout.size("dp") > 1 else ()),
        *(_pipeline(model, layout, step) if layout.pp > 1 else ()),
    )


def activation_bytes(model: Transformer, layout: Layout) -> float:
    """b·s·h·e of the tokens on one rank, before tensor-parallel ranks share them out."""
    return model.micro_batch * model.sequence / layout.cp * model.hidden * model.element_bytes


def _tensor(model: Transformer, layout: Layout, step: Step) -> Iterator[Signature]:
    """A column linear followed by a row linear needs one sum forward (row) and one backward (column)."""
    size = activation_bytes(model, layout)
    calls = 2 * model.layers / layout.pp * step.micro_batches
    how = "M = b·s·h·e, 2 calls a layer (attention, MLP) and micro-batch"
    for linear, direction in (("row", "forward"), ("column", "backward")):
        if step.is_sequence_parallel:
            name, payload = f"tokens gathered, {direction}", "parts of a sequence"
            yield Signature(name, "tp", layout.tp, Primitive.ALL_GATHER, payload, size, calls, True, how)
            name, payload = f"sums scattered, {direction}", "partial sums"
            yield Signature(name, "tp", layout.tp, Primitive.REDUCE_SCATTER, payload, size, calls, True, how)
        else:
            name = f"{linear} linear, {direction}"
            yield Signature(name, "tp", layout.tp, Primitive.ALL_REDUCE, "partial sums", size, calls, True, how)


def _context(model: Transformer, layout: Layout, step: Step) -> Iterator[Signature]:
    forward = 2 * activation_bytes(model, layout) * model.kv_share / layout.tp
    calls = (layout.cp - 1) * model.layers / layout.pp * step.micro_batches
    how = "M = 2·b·s/cp·h·kv/tp·e, cp - 1 calls a layer and micro-batch"
    ways = (
        ("ring attention, forward", "keys, values", forward, how),
        ("ring attention, backward", "keys, values, their gradients", 2 * forward, f"twice forward: {how}"),
    )
    for name, payload, size, formula in ways:
        yield Signature(name, "cp", layout.cp, Primitive.SEND_RECV, payload, size, calls, False, formula)


def _experts(model: Transformer, layout: Layout, step: Step) -> Iterator[Signature]:
    size = activation_bytes(model, layout) * model.top_k
    if step.is_sequence_parallel:
        size /= layout.tp
    calls = 2 * model.moe_layers / layout.pp * step.micro_batches
    how = "M = b·s·h·k·e of the tokens of a rank, dispatch and combine, each MoE layer and micro-batch"
    for name in ("experts, forward", "experts, backward"):
        yield Signature(name, "ep", layout.ep, Primitive.ALL_TO_ALL, "tokens", size, calls, True, how)


def _data(model: Transformer, layout: Layout, step: Step) -> Iterator[Signature]:
    """Buckets (DDP), or units of FSDP and ZeRO, which are taken to be the layers of a stage."""
    own_bytes = model.params / (layout.tp * layout.pp) * model.element_bytes
    n_units = max(1, math.ceil(model.layers / layout.pp))
    n_ranks = layout.size("dp")
    match step.zero:
        case 0:
            buckets = _Parts(n_ranks, own_bytes, math.ceil(own_bytes / step.bucket_bytes), "P/(tp·pp)·e in buckets")
            yield from buckets.all_but_one(Primitive.ALL_REDUCE, "gradient buckets", "last gradient bucket")
        case 1 | 2:
            units = _Parts(n_ranks, own_bytes, n_units, "P/(tp·pp)·e in units, once a step")
            yield from units.all_but_one(Primitive.REDUCE_SCATTER, "gradients", "last gradients")
            yield units.all_of(Primitive.ALL_GATHER, "parameters after the optimizer", is_critical=True)
        case 3:
            how = "P/(tp·pp)·e in units, each micro-batch"
            units = _Parts(n_ranks, own_bytes * step.micro_batches, n_units * step.micro_batches, how)
            yield from units.all_but_one(Primitive.ALL_GATHER, "parameters before forward", "first parameters")
            yield units.all_of(Primitive.ALL_GATHER, "parameters before backward", is_critical=False)
            yield from units.all_but_one(Primitive.REDUCE_SCATTER, "gradients", "last gradients")


@dataclass(frozen=True)
class _Parts:
    """Parameters or gradients that data-parallel ranks send in equal calls."""

    n_ranks: int
    total_bytes: float  # in a step
    calls: int
    formula: str

    def all_of(self, primitive: Primitive, name: str, *, is_critical: bool) -> Signature:
        return self._signature(primitive, name, self.calls, is_critical)

    def all_but_one(self, primitive: Primitive, name: str, critical: str) -> Iterator[Signature]:
        """Calls that others can hide, and the one, first or last, beside which nothing is left to do."""
        if self.calls > 1:
            yield self._signature(primitive, name, self.calls - 1, False)
        yield self._signature(primitive, critical, 1, True)

    def _signature(self, primitive: Primitive, name: str, calls: int, is_critical: bool) -> Signature:
        size = self.total_bytes / self.calls
        payload = "parameters" if primitive is Primitive.ALL_GATHER else "gradients"
        return Signature(name, "dp", self.n_ranks, primitive, payload, size, calls, is_critical, self.formula)


def _pipeline(model: Transformer, layout: Layout, step: Step) -> Iterator[Signature]:
    size = activation_bytes(model, layout) / (layout.tp if step.is_sequence_parallel else 1)
    calls = sends_per_step(layout.pp, step.micro_batches, step.chunks)
    how = "M = b·s·h·e, forward and backward for each micro-batch and chunk"
    payload = "activations, gradients"
    yield Signature("between stages", "pp", layout.pp, Primitive.SEND_RECV, payload, size, calls, True, how)
