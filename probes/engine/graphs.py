"""Steps of decode as CUDA graphs: all kernels of a step start with one launch, which a GPU needs to be busy at small
batches.

A graph repeats the very kernels on the very addresses that were captured, for a fixed number of rows. So there is one
for each of some numbers of rows (buckets); a step is copied into the tensors of the next larger bucket, and the rows
that are left over are padding: work that nobody needs, the price of few graphs. Buckets share one pool of memory, as
only one graph runs at a time (CUDA C++ Programming Guide, "CUDA Graphs"; PyTorch, "CUDA semantics", same heading).

Only a GPU has graphs. Elsewhere the same tensors are filled in the same way, and what the graph would repeat is
computed anew: padding and copying are the same there, launches are not saved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from diag.probes.engine.attention import DecodeRows, decode_rows
from diag.probes.engine.batch import Batch
from diag.probes.engine.decoder import Decoder
from diag.probes.engine.kv_cache import KvCache


@dataclass(frozen=True)
class Bucket:
    """Tensors at fixed addresses, for one number of rows; filled with padding when they are made."""

    tokens: Tensor  # int64 [rows]
    positions: Tensor
    slots: Tensor
    attend: DecodeRows
    logits: Tensor  # [rows, vocabulary], valid until any bucket runs next
    replay: Callable[[], object]

    def run(self, batch: Batch, rows: DecodeRows) -> Tensor:
        """Logits of the rows that are wanted. `batch` has exactly as many rows as the bucket."""
        self.tokens.copy_(batch.tokens)
        self.positions.copy_(batch.positions)
        self.slots.copy_(batch.slots)
        self.attend.lengths.copy_(rows.lengths)
        self.attend.tables[:, : rows.tables.shape[1]].copy_(rows.tables)  # no length reaches what is left of others
        self.replay()
        return self.logits[batch.wanted]


class DecodeGraphs:
    def __init__(self, decoder: Decoder, cache: KvCache, buckets: Sequence[int], most_blocks: int) -> None:
        """`most_blocks`: of a sequence. The largest bucket is first, so that the others fit into its memory."""
        self._decoder, self._cache, self._most_blocks = decoder, cache, most_blocks
        self._pool = torch.cuda.graph_pool_handle() if decoder.device.type == "cuda" else None
        self._buckets = {rows: self._bucket(rows) for rows in sorted(buckets, reverse=True)}

    def takes(self, batch: Batch) -> bool:
        return batch.n_rows in self._buckets and all(len(chunk.blocks) <= self._most_blocks for chunk in batch.chunks)

    def logits(self, batch: Batch) -> Tensor:
        rows = decode_rows(batch.chunks, self._cache.padding_block, batch.tokens.device)
        return self._buckets[batch.n_rows].run(batch, rows)

    @torch.no_grad()
    def _bucket(self, n_rows: int) -> Bucket:
        device, cache = self._decoder.device, self._cache
        tokens, positions = (torch.zeros(n_rows, dtype=torch.int64, device=device) for _ in range(2))
        slots = torch.full_like(tokens, cache.padding_block * cache.block_tokens)
        tables = torch.full((n_rows, self._most_blocks), cache.padding_block, dtype=torch.int32, device=device)
        attend = DecodeRows(tables, torch.ones(n_rows, dtype=torch.int32, device=device))

        def compute() -> Tensor:
            return self._decoder.logits(self._decoder.hidden(tokens, positions, slots, cache, attend))

        logits, replay = captured(compute, self._pool) if device.type == "cuda" else repeated(compute)
        return Bucket(tokens, positions, slots, attend, logits, replay)


def captured(compute: Callable[[], Tensor], pool: Any) -> tuple[Tensor, Callable[[], object]]:
    """What `compute` gives, and what makes a GPU compute it anew into the same tensor. Needs a GPU."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # compilers run and libraries allocate now, which they may not while it is captured
        compute()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        logits = compute()
    return logits, graph.replay


def repeated(compute: Callable[[], Tensor]) -> tuple[Tensor, Callable[[], object]]:
    """The same where there are no graphs."""
    logits = compute()
    return logits, lambda: logits.copy_(compute())
