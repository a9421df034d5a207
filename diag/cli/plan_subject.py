"""From the options of `diag plan` to its subject: a model, the use of a card, and its rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from diag.cli.plan_questions import parsed
from diag.errors import UsageError
from diag.model import hf_config, units, written
from diag.model.card_use import CardUse
from diag.model.hf_config import TransformerShape
from diag.model.kv_cache import KvShape
from diag.model.model_catalogue import known_model
from diag.model.planned_card import Card, card, multiplier
from diag.model.planned_model import PlannedModel, of_count, of_shape
from diag.model.precision import Precision, precision
from diag.model.serving_roofline import CardRates

LARGEST = 1 << 24
"""Of a number of layers, heads or elements: products of three stay below what a float tells apart from infinity."""

FIELDS: Mapping[str, str] = {
    "n_layers": "--layers",
    "hidden_size": "--hidden",
    "n_heads": "--heads",
    "n_kv_heads": "--kv-heads",
    "head_dim": "--head-dim",
    "intermediate_size": "--intermediate",
    "vocab_size": "--vocab",
}
"""Of `TransformerShape`, those that an option names."""


@dataclass(frozen=True)
class ModelWords:
    """What was said of the model; `numbers` by the fields of `TransformerShape`. None: not said."""

    model: str | None
    config: Path | None
    params: str | None
    numbers: Mapping[str, int | None]
    tied: bool | None = None


def planned_model(of: ModelWords) -> PlannedModel:
    """Raises UsageError for nothing, too much or nonsense, InputError for a file that is no config.json."""
    named = [
        option for option, value in (("--model", of.model), ("--config", of.config), ("--params", of.params)) if value
    ]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} both name a model: leave one out.")
    said = {field: value for field, value in of.numbers.items() if value is not None}
    for field, value in said.items():
        if value > LARGEST:
            raise UsageError(f"{FIELDS[field]} is {value}; {LARGEST:,} is the most that can be.")
    if of.params is not None:
        return _of_params(of.params, said)
    if of.model is not None:
        known = known_model(of.model)
        return _changed(known.name, known.shape, f"Of the model: {known.source}.", said, of.tied)
    if of.config is not None:
        return _changed(of.config.stem, hf_config.read(of.config), f"Of the model: {of.config}.", said, of.tied)
    return _of_numbers(said, of.tied)


def _of_params(params: str, said: Mapping[str, int]) -> PlannedModel:
    count = parsed("--params", params, written.count)
    assert count is not None
    cache = [said.get(field) for field in ("n_layers", "n_kv_heads", "head_dim")]
    layers, kv_heads, head_dim = cache
    if layers is None or kv_heads is None or head_dim is None:
        if said:
            raise UsageError("With --params, keys and values also need --layers, --kv-heads and --head-dim.")
        return of_count(count, None)
    return of_count(count, KvShape(layers, kv_heads, head_dim))


def _changed(
    name: str, shape: TransformerShape, origin: str, said: Mapping[str, int], tied: bool | None
) -> PlannedModel:
    fields: dict[str, Any] = {**said, **({} if tied is None else {"tie_word_embeddings": tied})}
    changed = replace(shape, **fields)
    if changed == shape:
        return of_shape(name, shape, origin)
    words = ", ".join([*(f"{FIELDS[field]} {value}" for field, value in said.items()), *_tied_words(tied)])
    return of_shape(f"{name}, changed", _checked(changed), f"{origin} Changed: {words}.")


def _tied_words(tied: bool | None) -> list[str]:
    return [] if tied is None else ["--tied" if tied else "--untied"]


def _of_numbers(said: Mapping[str, int], tied: bool | None) -> PlannedModel:
    if not said:
        raise UsageError("Of which model? Name --model llama-3-70b, --config config.json or --params 70B.")
    missing = [FIELDS[field] for field in FIELDS if field not in said and field not in ("n_kv_heads", "head_dim")]
    if missing:
        raise UsageError(f"A model by numbers also needs {', '.join(missing)}; or name --params.")
    heads, hidden = said["n_heads"], said["hidden_size"]
    if "head_dim" not in said and hidden % heads:
        raise UsageError(f"--hidden {hidden} is no multiple of --heads {heads}: name --head-dim.")
    shape = TransformerShape(
        hidden_size=hidden,
        n_layers=said["n_layers"],
        n_heads=heads,
        n_kv_heads=said.get("n_kv_heads", heads),
        head_dim=said.get("head_dim", hidden // heads),
        intermediate_size=said["intermediate_size"],
        vocab_size=said["vocab_size"],
        max_position_embeddings=LARGEST,
        tie_word_embeddings=bool(tied),
    )
    return of_shape("A model", _checked(shape), "Of the model: the numbers that were named.")


def _checked(shape: TransformerShape) -> TransformerShape:
    if shape.n_heads % shape.n_kv_heads:
        raise UsageError(f"{shape.n_heads} heads cannot share {shape.n_kv_heads} heads of keys and values evenly.")
    return shape


# ---- the card and its use --------------------------------------------------------------------------------------------


def planned_card(gpu: str, memory: str | None) -> Card:
    known = card(gpu)
    size = parsed("--memory", memory, written.size_bytes)
    return known if size is None else replace(known, memory_bytes=size)


def weights_of(dtype: str | None, model: PlannedModel) -> Precision:
    return model.stored if dtype is None else precision(dtype)


@dataclass(frozen=True)
class UseWords:
    """What was said of the use of a card."""

    gpu: str
    memory: str | None
    reserve: float
    dtype: str | None
    other_dtype: str
    kv_dtype: str
    block: int
    graphs: str
    workspace: str | None
    step_tokens: int
    max_sequences: int


def card_use(of: UseWords, model: PlannedModel, tp: int) -> CardUse:
    check_tp(model, tp)
    graphs = 0 if of.graphs.strip() == "0" else parsed("--graphs", of.graphs, written.size_bytes) or 0
    return CardUse(
        card=planned_card(of.gpu, of.memory),
        weights=weights_of(of.dtype, model),
        other=precision(of.other_dtype),
        kv=precision(of.kv_dtype),
        tp=tp,
        block_tokens=of.block,
        reserve_share=of.reserve,
        graphs_bytes=graphs,
        workspace_bytes=parsed("--workspace", of.workspace, written.size_bytes),
        step_tokens=of.step_tokens,
        max_sequences=of.max_sequences,
    )


def check_sequences(model: PlannedModel, sequences: int | None, context: int | None) -> None:
    """Raises UsageError for sequences of which nobody knows how long they are, or what a token of them takes."""
    if sequences is not None and context is None:
        raise UsageError("--sequences also needs --context: how many tokens has each?")
    if context is not None and model.kv is None:
        raise UsageError("What keys and values take also needs --layers, --kv-heads and --head-dim.")


def check_tp(model: PlannedModel, tp: int) -> None:
    """Raises UsageError for a group over which heads do not divide: no engine takes it."""
    if model.shape is not None and model.shape.n_heads % tp:
        raise UsageError(f"--tp {tp}: {model.shape.n_heads} heads do not divide by it, and engines refuse that.")


# ---- rates -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RateWords:
    """What was said of how fast a card is. None: a share of what is printed."""

    mfu: float
    mbu: float
    flops: str | None
    memory_rate: str | None
    bandwidth: str | None
    latency: str


def card_rates(of: RateWords, on: Card, weights: Precision, tp: int) -> CardRates:
    """Raises UsageError, naming the option, for a rate that nobody says and nothing is printed of."""
    flops = parsed("--flops", of.flops, written.flops_per_s)
    if flops is None:
        by = multiplier(on, weights)
        if by is None:
            raise UsageError(f"How fast {on.name} multiplies is not printed: name --flops 100TFLOP/s.")
        flops = by.ceiling.per_s * of.mfu
    memory = parsed("--memory-rate", of.memory_rate, written.bytes_per_s)
    if memory is None:
        if on.memory_bytes_per_s is None:
            raise UsageError(f"How fast the memory of {on.name} is, is not printed: name --memory-rate 900GB/s.")
        memory = on.memory_bytes_per_s * of.mbu
    latency_ns = parsed("--latency", of.latency, written.time_ns) or 0.0
    return CardRates(flops, memory, _bus(of, on, tp), latency_ns)


def _bus(of: RateWords, on: Card, tp: int) -> float:
    bus = parsed("--bandwidth", of.bandwidth, written.bytes_per_s)
    if bus is not None:
        return bus
    link = on.nvlink_bytes_per_s or on.host_bytes_per_s
    if link is None and tp > 1:
        raise UsageError(f"What joins cards of {on.name} is not printed: name --bandwidth 350GB/s.")
    return (link or 1.0) * of.mbu


def type_assumption(weights: Precision, kv_dtype: str) -> str:
    return (
        f"Layers in {weights.name}, keys and values in {kv_dtype} (--dtype, --kv-dtype); embedding, head, norms and "
        "routers in bf16."
    )


def rate_assumptions(of: RateWords, on: Card, weights: Precision, tp: int) -> list[str]:
    """Where the rates come from, a sentence each."""
    rates = card_rates(of, on, weights, tp)
    by = multiplier(on, weights)
    unpacked = f", {weights.name} unpacked" if by and by.is_unpacked else ""
    flops = (
        f"{units.quantity(rates.flops_per_s, 'FLOP/s')}, as given (--flops)"
        if of.flops is not None or by is None
        else f"{units.share(of.mfu)} of {units.quantity(by.ceiling.per_s, 'FLOP/s')} "
        f"({by.ceiling.name}{unpacked}; --mfu)"
    )
    memory = (
        f"{units.quantity(rates.memory_bytes_per_s, 'bytes/s')} of memory, as given (--memory-rate)"
        if of.memory_rate is not None or on.memory_bytes_per_s is None
        else f"{units.share(of.mbu)} of {units.quantity(on.memory_bytes_per_s, 'bytes/s')} of memory (--mbu)"
    )
    said = [f"{flops}; {memory}."]
    if tp > 1:
        link = (
            "as given"
            if of.bandwidth
            else f"{units.share(of.mbu)} of "
            + ("NVLink" if on.nvlink_bytes_per_s else f"PCIe, as {on.name} has no NVLink")
        )
        said.append(
            f"An all-reduce takes {units.time(rates.call_ns)} and its bytes at "
            f"{units.quantity(rates.bus_bytes_per_s, 'bytes/s')} ({link}; --latency, --bandwidth)."
        )
    return said
