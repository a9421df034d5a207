"""The mini-engine as what is put under load: its model is made once, an engine with a cold cache for each run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from diag.errors import UsageError
from diag.model import hf_config
from diag.model.hf_config import TransformerShape
from diag.model.serving_log import StepRecord
from diag.probes import machine
from diag.probes.engine.admission import check_config
from diag.probes.engine.engine import Engine
from diag.probes.engine.journal import Sink, engine_conditions
from diag.probes.engine.models import SHAPES, Model, load_model, random_model
from diag.probes.engine.runner import TorchRunner
from diag.probes.engine.sequence import SamplingParams
from diag.probes.serve.client import Clock
from diag.probes.serve.engine_settings import EngineSettings, ModelSettings
from diag.probes.serve.in_process import InProcessClient
from diag.probes.serve.running import Target

DEFAULT_MODEL = "tiny"

_SIZES = ("hidden_size", "n_layers", "n_heads", "n_kv_heads", "head_dim", "intermediate_size", "vocab_size")


def mini_engine(settings: EngineSettings, model_name: str | None) -> Target:
    """`model_name` is of a built-in shape, or a folder of Hugging Face's form: weights where it has some, else random.

    Raises UsageError for settings that cannot be, InputError for a model that the engine cannot run, OutOfMemory.
    """
    check_config(settings.config)
    model = _model(model_name or DEFAULT_MODEL, settings.model)
    longest = min(settings.config.max_context, model.shape.max_position_embeddings)
    config = replace(settings.config, max_context=longest)
    stops = frozenset(model.shape.eos_tokens) if settings.model.stops_at_eos else frozenset[int]()
    chosen = settings.sampling

    def sampling(max_tokens: int) -> SamplingParams:
        return SamplingParams(max_tokens, chosen.temperature, chosen.top_k, chosen.top_p, stop_tokens=stops)

    def client(clock: Clock, steps: Callable[[StepRecord], None]) -> InProcessClient:
        def make(sink: Sink) -> Engine:
            runner = TorchRunner(model, config, compiled=settings.model.compiled)
            return Engine(config, runner, clock=clock, sink=sink, model=model.name, vocabulary=model.shape.vocab_size)

        return InProcessClient(make, steps, sampling)

    conditions = engine_conditions(config)
    on = {"device": model.device, "dtype": str(model.dtype).removeprefix("torch.")}
    return Target(
        client,
        backend="mini-engine",
        model=model.name,
        engine=msgspec.structs.replace(conditions, other={**conditions.other, **on}),
        vocabulary=model.shape.vocab_size,
    )


def _model(name: str, settings: ModelSettings) -> Model:
    device = machine.device_of(settings.device)
    sizes = {each: size for each in _SIZES if (size := getattr(settings, each)) is not None}
    folder = None if name in SHAPES else Path(name)
    if folder is not None and not folder.is_dir():
        raise UsageError(f"There is no model {name}. Name a folder with a config.json, or one of: {', '.join(SHAPES)}.")
    if folder is not None and any(folder.glob("*.safetensors")):
        if sizes:
            raise UsageError(f"{name} holds weights, whose sizes are fixed. Leave out --engine {next(iter(sizes))}.")
        return load_model(folder, dtype=settings.dtype, device=device)
    shape = SHAPES[name] if folder is None else hf_config.read(folder)
    return random_model(
        _resized(shape, sizes),
        name=name if folder is None else folder.name,
        seed=settings.weight_seed,
        dtype=settings.dtype or shape.dtype or "fp32",
        device=device,
    )


def _resized(shape: TransformerShape, sizes: dict[str, Any]) -> TransformerShape:
    """Heads are the hidden size by their number, unless their size is said, too."""
    if wrong := next((name for name, size in sizes.items() if size < 1), None):
        raise UsageError(f"--engine {wrong}={sizes[wrong]} makes no model. Set it to 1 or more.")
    resized = replace(shape, **sizes)
    if "head_dim" not in sizes and {"hidden_size", "n_heads"} & set(sizes):
        resized = replace(resized, head_dim=resized.hidden_size // resized.n_heads)
    if "n_kv_heads" not in sizes and resized.n_heads % resized.n_kv_heads:
        resized = replace(resized, n_kv_heads=resized.n_heads)
    if resized.n_heads % resized.n_kv_heads:
        raise UsageError(f"{resized.n_heads} heads cannot share {resized.n_kv_heads} KV heads evenly. Set n_kv_heads.")
    if resized.head_dim < 2:
        raise UsageError(f"Heads of the size {resized.head_dim} cannot be rotated. Set a larger hidden_size.")
    return resized
