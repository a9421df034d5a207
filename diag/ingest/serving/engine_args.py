"""The settings that vLLM and SGLang print as they start. Only those named here are kept: others may be secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from diag.model.serving_log import EngineConditions

_MARKS = {"LLM engine (v": "vllm", "non-default args": "vllm", "server_args=": "sglang"}

_SHOWN = (
    "model", "model_path", "served_model_name", "dtype", "quantization", "kv_cache_dtype", "tensor_parallel_size",
    "pipeline_parallel_size", "data_parallel_size", "tp_size", "pp_size", "dp_size", "ep_size", "max_model_len",
    "max_seq_len", "context_length", "block_size", "page_size", "max_num_seqs", "max_running_requests",
    "max_num_batched_tokens", "chunked_prefill_size", "max_prefill_tokens", "enable_prefix_caching",
    "disable_radix_cache", "enable_chunked_prefill", "chunked_prefill_enabled", "enforce_eager", "disable_cuda_graph",
    "gpu_memory_utilization", "mem_fraction_static", "swap_space", "cpu_offload_gb", "preemption_mode",
    "schedule_policy", "schedule_conservativeness", "cuda_graph_max_bs", "attention_backend",
)  # fmt: skip

_SETTING = re.compile(
    r"(?<![\w.])['\"]?(?P<name>" + "|".join(_SHOWN) + r")['\"]?(?:=|: )(?P<value>'[^'\n]{0,200}'|[\w.+/-]{1,80})"
)
_VERSION = re.compile(r"LLM engine \(v(?P<version>[\w.+-]{1,60})\)")


@dataclass(frozen=True)
class Settings:
    server: str  # 'vllm' | 'sglang'
    version: str | None
    stated: Mapping[str, str]  # as printed

    @property
    def model(self) -> str | None:
        return self.stated.get("model") or self.stated.get("model_path")

    @property
    def fields(self) -> Mapping[str, str]:
        version = {} if self.version is None else {"version": self.version}
        return {"server": self.server, **version, **self.stated}

    @property
    def text(self) -> str:
        """In place of the line, whose other settings are nobody's business."""
        return f"{self.server}: " + ", ".join(f"{name}={value}" for name, value in self.stated.items())

    @property
    def conditions(self) -> EngineConditions:
        return conditions_of(self.stated)


def conditions_in(line: str) -> Settings | None:
    """The settings in a line that states some; None for other lines.

    >>> conditions_in("server_args=ServerArgs(model_path='m', api_key='x', tp_size=8)").stated
    {'model_path': 'm', 'tp_size': '8'}
    """
    server = next((name for mark, name in _MARKS.items() if mark in line), None)
    if server is None:
        return None
    stated: dict[str, str] = {}
    for match in _SETTING.finditer(line):
        stated.setdefault(match["name"], match["value"].strip("'"))
    version = _VERSION.search(line)
    return Settings(server, version["version"] if version else None, stated) if stated or version else None


def conditions_of(stated: Mapping[str, Any]) -> EngineConditions:
    """Settings by the names of vLLM or SGLang as those that diag compares; whatever else is shown goes to `other`."""
    settings = {name: str(value) for name, value in stated.items() if name in _SHOWN and value is not None}
    radix_off = _flag(settings, "disable_radix_cache")
    prefix = _flag(settings, "enable_prefix_caching")
    chunk = _count(settings, "chunked_prefill_size")
    chunked = _flag(settings, "enable_chunked_prefill", "chunked_prefill_enabled")
    return EngineConditions(
        batching="continuous",
        block_tokens=_count(settings, "block_size", "page_size"),
        max_sequences=_count(settings, "max_num_seqs", "max_running_requests"),
        max_step_tokens=_count(settings, "max_num_batched_tokens", "max_prefill_tokens"),
        chunked_prefill=chunk is not None if chunked is None and "chunked_prefill_size" in settings else chunked,
        prefix_cache=_prefix_cache(prefix, radix_off),
        preemption=settings.get("preemption_mode", "").lower() or None,
        tensor_parallel=_count(settings, "tensor_parallel_size", "tp_size"),
        replicas=_count(settings, "data_parallel_size", "dp_size"),
        other={name: value[:200] for name, value in sorted(settings.items()) if name not in _NAMED},
    )


_NAMED = frozenset(
    {"block_size", "page_size", "max_num_seqs", "max_running_requests", "max_num_batched_tokens", "max_prefill_tokens"}
    | {"enable_prefix_caching", "disable_radix_cache", "preemption_mode", "tensor_parallel_size", "tp_size"}
    | {"data_parallel_size", "dp_size", "enable_chunked_prefill", "chunked_prefill_enabled", "model", "model_path"}
)


def _prefix_cache(hashed: bool | None, radix_off: bool | None) -> str | None:
    if radix_off is not None:
        return "none" if radix_off else "radix"
    return None if hashed is None else "hash" if hashed else "none"


def _flag(settings: Mapping[str, str], *names: str) -> bool | None:
    said = next((settings[name] for name in names if name in settings), None)
    return {"true": True, "false": False}.get((said or "").lower())


def _count(settings: Mapping[str, str], *names: str) -> int | None:
    """SGLang writes -1 for none."""
    said = next((settings[name] for name in names if name in settings), "")
    return int(said) if said.isdecimal() and len(said) < 13 else None
