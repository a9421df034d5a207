"""Decode attention over a paged cache: any block order, any split, any lengths give what plain attention gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

from diag.errors import UsageError
from diag.kernels import attention, paged_attention
from diag.kernels.correctness import error_of, tolerance
from diag.kernels.paged_attention import single_pass, split, splits_for
from diag.kernels.paged_definition import PagedShape, count, count_of_lengths, reference

VARIANTS = {variant.name: variant for variant in paged_attention.OPERATOR.variants}
TORCH = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}

LENGTHS = [0, 1, 8, 29, 70]

each_variant = pytest.mark.parametrize("name", VARIANTS)
each_dtype = pytest.mark.parametrize("dtype", ["fp32", "fp16"])


@dataclass(frozen=True)
class Cache:
    """Sequences in a paged cache, as the kernels take them."""

    q: Any
    k: Any
    v: Any
    table: Any
    lengths: Any

    @property
    def tensors(self) -> tuple[Any, ...]:
        return self.q, self.k, self.v, self.table, self.lengths


def cache_of(
    lengths: list[int],
    generator: torch.Generator,
    *,
    q_heads: int = 4,
    kv_heads: int = 2,
    head_dim: int = 16,
    block_size: int = 8,
    dtype: str = "fp32",
) -> Cache:
    """Blocks lie in random order, with some between them that belong to nobody and hold NaN."""
    device = generator.device
    n_blocks = [-(-length // block_size) for length in lengths]
    order = torch.randperm(sum(n_blocks) + 3, generator=generator, device=device).int()
    table = torch.full((len(lengths), max([1, *n_blocks])), int(order[-1]), dtype=torch.int32, device=device)
    at = 0
    for row, n in enumerate(n_blocks):
        table[row, :n] = order[at : at + n]
        at += n
    drawn = [
        torch.randn(len(order), block_size, kv_heads, head_dim, generator=generator, device=device) for _ in range(2)
    ]
    for each in drawn:
        each[order[at:].long()] = torch.nan
    q = torch.randn(len(lengths), q_heads, head_dim, generator=generator, device=device)
    k, v = (each.to(TORCH[dtype]) for each in drawn)
    return Cache(q.to(TORCH[dtype]), k, v, table, torch.tensor(lengths, dtype=torch.int32, device=device))


def check(name: str, cache: Cache, dtype: str = "fp32", **options: Any) -> Any:
    """The outputs of a variant, after holding them against FP64."""
    output = VARIANTS[name].run(*cache.tensors, **options)
    terms = int(cache.lengths.max()) + cache.q.shape[2]
    values = cache.v[cache.v.isfinite()].abs()
    error = error_of(output, reference(*cache.tensors), scale=float(values.max()))
    assert output.dtype == cache.q.dtype
    assert error.same_specials
    assert error.relative <= tolerance(dtype, terms), error
    return output


@each_variant
@each_dtype
@pytest.mark.parametrize(("q_heads", "kv_heads"), [(1, 1), (6, 2), (20, 1)])
@pytest.mark.parametrize(("head_dim", "block_size"), [(16, 8), (24, 1), (128, 16)])
def test_it_equals_fp64_within_rounding(
    name: str, dtype: str, q_heads: int, kv_heads: int, head_dim: int, block_size: int, generator: torch.Generator
) -> None:
    cache = cache_of(
        LENGTHS,
        generator,
        q_heads=q_heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        block_size=block_size,
        dtype=dtype,
    )
    check(name, cache, dtype)


@each_variant
@pytest.mark.slow
@pytest.mark.parametrize("head_dim", [64, 80, 256])
def test_it_equals_fp64_over_many_tiles(name: str, head_dim: int, generator: torch.Generator) -> None:
    check(name, cache_of([1000, 0, 333, 1, 2047], generator, head_dim=head_dim, block_size=16, dtype="fp16"), "fp16")


@each_variant
@pytest.mark.skipif(not torch.cuda.is_available(), reason="Triton's interpreter gives garbage for BF16")
def test_bf16(name: str, generator: torch.Generator) -> None:
    check(name, cache_of(LENGTHS, generator, dtype="bf16"), "bf16")


@each_variant
def test_bf16_values_upcast_on_load(name: str, generator: torch.Generator) -> None:
    """What BF16 holds is exact in FP32: the sums are those that a kernel with BF16 inputs keeps."""
    cache = cache_of(LENGTHS, generator, dtype="bf16")
    check(name, Cache(cache.q.float(), cache.k.float(), cache.v.float(), cache.table, cache.lengths))


@each_variant
def test_the_order_of_blocks_makes_no_difference(name: str, generator: torch.Generator) -> None:
    cache = cache_of(LENGTHS, generator)
    place = torch.randperm(len(cache.k), generator=generator, device=generator.device)
    k, v = torch.empty_like(cache.k), torch.empty_like(cache.v)
    k[place], v[place] = cache.k, cache.v
    moved = Cache(cache.q, k, v, place[cache.table.long()].int(), cache.lengths)
    assert not torch.equal(moved.table, cache.table)
    run = VARIANTS[name].run
    assert torch.equal(run(*moved.tensors), run(*cache.tensors))


@each_variant
def test_a_sequence_alone_is_plain_attention(name: str, generator: torch.Generator) -> None:
    """The last query of a causal mask sees all keys."""
    cache = cache_of([50], generator)
    used = cache.table[0].long()
    k, v = (each[used].flatten(0, 1)[:50].transpose(0, 1)[None].contiguous() for each in (cache.k, cache.v))
    wanted, _ = attention.flash(cache.q[:, :, None].contiguous(), k, v, causal=True)
    torch.testing.assert_close(VARIANTS[name].run(*cache.tensors), wanted[:, :, 0])


@each_dtype
def test_the_number_of_splits_makes_no_difference(dtype: str, generator: torch.Generator) -> None:
    cache = cache_of([0, 1, 65, 150], generator, dtype=dtype)
    whole = check("single_pass", cache, dtype)
    for n_splits in (1, 2, 7):
        parted = check("split", cache, dtype, n_splits=n_splits)
        # weights are rounded to the type of the values as shares of the largest of their own part
        torch.testing.assert_close(parted, whole, rtol=0.0, atol=tolerance(dtype, 150))


def test_the_splits_fill_the_device_and_are_worth_it() -> None:
    wide = PagedShape(1, 32, 8, 128, 16, table_blocks=4096)
    assert splits_for(wide, sm_count=132) * wide.kv_heads >= 132
    assert splits_for(PagedShape(1, 32, 8, 128, 16, table_blocks=16), sm_count=132) == 1
    assert splits_for(PagedShape(0, 32, 8, 128, 16, table_blocks=0), sm_count=132) == 1


# ---- values --------------------------------------------------------------------------------------------------------


@each_variant
def test_an_empty_sequence_gives_zero_and_one_token_its_value(name: str, generator: torch.Generator) -> None:
    cache = cache_of([0, 1], generator)
    output = check(name, cache)
    assert (output[0] == 0).all()
    first = cache.v[cache.table[1, 0].long(), 0]
    assert torch.equal(output[1], first.repeat_interleave(2, dim=0))


@each_variant
def test_without_sequences_there_is_nothing_to_do(name: str, device: str) -> None:
    k = torch.zeros(1, 8, 2, 16, device=device)
    empty = torch.zeros(0, dtype=torch.int32, device=device)
    output = VARIANTS[name].run(torch.zeros(0, 4, 16, device=device), k, k, empty.reshape(0, 1), empty)
    assert output.shape == (0, 4, 16)


@each_variant
@each_dtype
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_very_large_scores_do_not_overflow(name: str, dtype: str, sign: float, generator: torch.Generator) -> None:
    """Scores of up to 160,000, which FP16 does not hold: one token, the last or the first, has all the weight."""
    cache = cache_of([40], generator, dtype=dtype)
    cache.q[:] = 200.0
    blocks = cache.table[0].long()
    cache.k[blocks] = sign * 5.0 * torch.arange(40, device=cache.k.device, dtype=cache.k.dtype).reshape(5, 8, 1, 1)
    output = check(name, cache, dtype)
    chosen = cache.v[blocks[-1 if sign > 0 else 0], -1 if sign > 0 else 0]
    assert torch.equal(output[0], chosen.repeat_interleave(2, dim=0))


@each_variant
def test_equal_scores_give_the_mean(name: str, generator: torch.Generator) -> None:
    cache = cache_of([70], generator)
    cache.q[:] = 0.0
    mean = cache.v[cache.table[0].long()].flatten(0, 1)[:70].mean(dim=0)
    torch.testing.assert_close(check(name, cache)[0], mean.repeat_interleave(2, dim=0))


@each_variant
@pytest.mark.parametrize("special", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("where", ["k", "v"])
def test_what_is_not_finite_reaches_its_heads_alone(
    name: str, special: float, where: str, generator: torch.Generator
) -> None:
    cache = cache_of([29, 70], generator)
    getattr(cache, where)[cache.table[1, 2].long(), 3, 1, 5] = special
    output = check(name, cache)
    assert output[0].isfinite().all()
    assert output[1, :2].isfinite().all()
    if where == "v":
        assert not output[1, 2:, 5].isfinite().any()


# ---- counts and refusals -------------------------------------------------------------------------------------------


def test_counts_are_those_of_the_tensors(generator: torch.Generator) -> None:
    cache = cache_of([16, 16], generator, dtype="fp16")
    work = count(sequences=2, length=16, q_heads=4, kv_heads=2, head_dim=16, block_size=8, dtype="fp16")
    used = 2 * sum(cache.k[cache.table[row].long()].nbytes for row in range(2))
    assert work.read_bytes == cache.q.nbytes + used + cache.table.nbytes + cache.lengths.nbytes
    assert work.written_bytes == single_pass(*cache.tensors).nbytes
    assert work.flops == 2 * (2 * 2 * 4 * 16 * 16)


def test_the_intensity_of_decode_is_that_of_its_group() -> None:
    shape = {"kv_heads": 4, "head_dim": 128, "block_size": 16}
    multi_head = count_of_lengths([4000, 8000], q_heads=4, **shape, dtype="fp16")
    grouped = count_of_lengths([4000, 8000], q_heads=32, **shape, dtype="fp16")
    assert multi_head.intensity == pytest.approx(1.0, rel=0.01)
    assert grouped.intensity == pytest.approx(8.0, rel=0.01)


def test_the_operator_counts_its_default_shape() -> None:
    work = paged_attention.OPERATOR.count(**paged_attention.OPERATOR.default_shape, dtype="bf16")
    assert work.flops == 4 * 32 * 8192 * 32 * 128


def test_inputs_that_do_not_fit_are_refused(generator: torch.Generator) -> None:
    q, k, v, table, lengths = cache_of([5, 9], generator).tensors
    for wrong, words in [
        ((q[0], k, v, table, lengths), "is to be"),
        ((q, k, v[:1], table, lengths), "is to be"),
        ((q[..., :8], k, v, table, lengths), "head sizes"),
        ((q[:, :3], k, v, table, lengths), "evenly"),
        ((q, k, v, table[:1], lengths), "for each of 2"),
        ((q, k, v, table.long(), lengths), "int32"),
        ((q.half(), k, v, table, lengths), "types"),
        ((q, k, v, table.mT.contiguous().mT, lengths), "contiguous"),
    ]:
        with pytest.raises(UsageError, match=words):
            split(*wrong)
