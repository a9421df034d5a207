"""What scaled dot-product attention is: its shapes, its FLOPs and bytes, and a reference in FP64.

For each query head h and query i, with n visible keys j:

    s_ij = qᵢ·kⱼ / √D        p_ij = exp(s_ij) / Σⱼ exp(s_ij)        oᵢ = Σⱼ p_ij vⱼ        lseᵢ = ln Σⱼ exp(s_ij)

Grouped-query attention (GQA): q_heads / kv_heads query heads in a row share a head of keys and values.

Causal masks are aligned to the end: the last query sees all keys, query i sees keys j ≤ i + (kv_len − q_len), so that
queries may continue a sequence whose keys are already there. (PyTorch's `is_causal` aligns to the beginning.) With
fewer keys than queries the first queries see nothing: their output is 0 and their lse −inf.

A multiply-add counts as two FLOPs, exponentials and scaling as none, as it is usual (Dao 2023, arXiv:2307.08691,
section 4.1): forward two products of 2·D FLOPs for each visible pair, backward five.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from diag.errors import UsageError
from diag.kernels.operator import ELEMENT_BYTES, Count, DType

LSE_BYTES = 4  # FP32 whatever the inputs are

HEAD_DIMS = (16, 256)  # the smallest and the largest that there are kernels for


@dataclass(frozen=True)
class AttentionShape:
    """Of q and o [batch, q_heads, q_len, head_dim], k and v [batch, kv_heads, kv_len, head_dim], lse as q without D."""

    batch: int
    q_heads: int
    kv_heads: int
    q_len: int
    kv_len: int
    head_dim: int

    @property
    def group(self) -> int:
        """Query heads that share a head of keys and values."""
        return self.q_heads // self.kv_heads

    @property
    def scale(self) -> float:
        return float(self.head_dim**-0.5)

    def pairs(self, causal: bool) -> int:
        """Visible pairs of a query and a key, over all query heads.

        >>> AttentionShape(1, 1, 1, 3, 5, 64).pairs(causal=True), AttentionShape(1, 1, 1, 5, 3, 64).pairs(causal=True)
        (12, 6)
        """
        rows = min(self.q_len, self.kv_len)  # of a causal mask, those that see anything
        of_a_head = rows * self.kv_len - rows * (rows - 1) // 2 if causal else self.q_len * self.kv_len
        return self.batch * self.q_heads * of_a_head

    @property
    def query_elements(self) -> int:
        return self.batch * self.q_heads * self.q_len * self.head_dim

    @property
    def key_elements(self) -> int:
        return self.batch * self.kv_heads * self.kv_len * self.head_dim

    @property
    def lse_bytes(self) -> int:
        return self.batch * self.q_heads * self.q_len * LSE_BYTES


def shape_of(q: Any, k: Any, v: Any, *, largest_head_dim: int = HEAD_DIMS[1]) -> AttentionShape:
    """Of contiguous tensors of one type. Raises UsageError for those that the kernels cannot take."""
    if q.dim() != 4 or k.dim() != 4 or k.shape != v.shape:
        raise UsageError("q, k and v are to be [batch, heads, length, head_dim], k and v of one shape")
    batch, q_heads, q_len, head_dim = q.shape
    _, kv_heads, kv_len, _ = k.shape
    if (k.shape[0], k.shape[3]) != (batch, head_dim):
        raise UsageError(f"q {tuple(q.shape)} and k {tuple(k.shape)} differ in batch or head size")
    if not kv_heads or q_heads % kv_heads:
        raise UsageError(f"{q_heads} query heads cannot share {kv_heads} key heads evenly")
    if not HEAD_DIMS[0] <= head_dim <= largest_head_dim:
        raise UsageError(f"a head size of {head_dim} is not within {HEAD_DIMS[0]} to {largest_head_dim}")
    if not q.dtype == k.dtype == v.dtype:
        raise UsageError(f"q, k and v are of the types {q.dtype}, {k.dtype} and {v.dtype}; make them one")
    if not (q.is_contiguous() and k.is_contiguous() and v.is_contiguous()):
        raise UsageError("q, k and v are to be contiguous: a copy made here would hide in the time of the kernel")
    return AttentionShape(batch, q_heads, kv_heads, q_len, kv_len, head_dim)


def count(*, dtype: DType, causal: bool = False, **sizes: int) -> Count:
    """Of the forward pass: Q, K and V read once, O and the lse written once; no score leaves the chip.

    `sizes`: those of AttentionShape.
    """
    shape = AttentionShape(**sizes)
    size = ELEMENT_BYTES[dtype]
    return Count(
        flops=4 * shape.pairs(causal) * shape.head_dim,
        read_bytes=(shape.query_elements + 2 * shape.key_elements) * size,
        written_bytes=shape.query_elements * size + shape.lse_bytes,
        formula="4 pairs D FLOP; Q, K, V, O once, 4 bytes of lse a query",
    )


def count_backward(*, dtype: DType, causal: bool = False, **sizes: int) -> Count:
    """Of the backward pass: five products a pair, S, dP, dV, dK and dQ; nothing between them leaves the chip."""
    shape = AttentionShape(**sizes)
    size = ELEMENT_BYTES[dtype]
    return Count(
        flops=10 * shape.pairs(causal) * shape.head_dim,
        read_bytes=(3 * shape.query_elements + 2 * shape.key_elements) * size + shape.lse_bytes,
        written_bytes=(shape.query_elements + 2 * shape.key_elements) * size,
        formula="10 pairs D FLOP; Q, K, V, O, dO, dQ, dK, dV once, 4 bytes of lse a query",
    )


def visible(q_len: int, kv_len: int, causal: bool, device: Any = None) -> Any:
    """The mask, [q_len, kv_len], True where a query sees a key."""
    last_key = torch.arange(q_len, device=device)[:, None] + (kv_len - q_len if causal else kv_len)
    return torch.arange(kv_len, device=device)[None, :] <= last_key


def reference(q: Any, k: Any, v: Any, *, causal: bool = False) -> tuple[Any, Any]:
    """(o, lse) in FP64, differentiable. Takes what the kernels take."""
    shape = shape_of(q, k, v)
    q, k, v = q.double(), *(each.double().repeat_interleave(shape.group, dim=1) for each in (k, v))
    if not shape.kv_len:
        return torch.zeros_like(q), torch.full(q.shape[:3], -torch.inf, dtype=torch.float64, device=q.device)
    mask = visible(shape.q_len, shape.kv_len, causal, q.device)
    scores = torch.where(mask, q @ k.mT * shape.scale, -torch.inf)
    largest = scores.detach().amax(dim=-1, keepdim=True)
    shift = torch.where(largest == -torch.inf, 0.0, largest)
    weights = (scores - shift).exp()
    total = weights.sum(dim=-1, keepdim=True)
    output = weights @ v / torch.where(total == 0.0, 1.0, total)
    return output, (shift + total.log()).squeeze(-1)
