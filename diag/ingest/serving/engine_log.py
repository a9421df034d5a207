"""What vLLM and SGLang say of themselves every few seconds in their logs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import msgspec

from diag.ingest.job_log.event import Event
from diag.ingest.job_log.lines import Marks, marked_lines
from diag.ingest.job_log.prefix import date_of
from diag.ingest.serving.engine_args import conditions_of
from diag.ingest.serving.store import FoundRun
from diag.serving.run import EngineSample

MARKS = Marks(
    gates=(b"Avg prompt throughput: ", b"Prefix cache hit rate: GPU", b"Decode batch", b"Prefill batch"),
    marks=(b"Avg prompt throughput: ", b"Prefix cache hit rate: GPU", b"Decode batch", b"Prefill batch"),
)

MOST_SAMPLES = 500_000
"""Of one log: vLLM prints one in ten seconds, SGLang one for each prefill and every 40 steps of decode."""

MOST_ENGINES = 1_000

_NUMBER = r"(\d{1,12}(?:\.\d{1,9})?)"

_VLLM: Mapping[str, re.Pattern[str]] = {
    "prompt_tokens_per_s": re.compile(rf"Avg prompt throughput: {_NUMBER} tokens/s"),
    "output_tokens_per_s": re.compile(rf"Avg generation throughput: {_NUMBER} tokens/s"),
    "n_running": re.compile(rf"Running: {_NUMBER} reqs"),
    "n_waiting": re.compile(rf"(?:Waiting|Pending): {_NUMBER} reqs"),
    "n_swapped": re.compile(rf"Swapped: {_NUMBER} reqs"),
    "kv_share": re.compile(rf"GPU KV cache usage: {_NUMBER}%"),
    "prefix_hit_share": re.compile(rf"Prefix cache hit rate: (?:GPU: )?{_NUMBER}%"),
}

_SGLANG: Mapping[str, re.Pattern[str]] = {
    "prompt_tokens_per_s": re.compile(rf"input throughput \(token/s\): {_NUMBER}"),
    "output_tokens_per_s": re.compile(rf"gen throughput \(token/s\): {_NUMBER}"),
    "n_running": re.compile(rf"#running-req: {_NUMBER}"),
    "n_waiting": re.compile(rf"#queue-req: {_NUMBER}"),
    "kv_share": re.compile(rf"(?<!swa )token usage: {_NUMBER}"),
}
_NEW, _CACHED = re.compile(r"#new-token: (\d{1,12})"), re.compile(r"#cached-token: (\d{1,12})")

_ENGINE = re.compile(r"Engine (\d{1,6}): Avg prompt|\[[\d :.,-]{10,40}[ \w]{0,20}\b(DP\d{1,5})\b")
_AGGREGATED = "Engines Aggregated: "

_NO_YEAR = re.compile(r"\b[A-Z]{4,8} (?P<month>\d\d)-(?P<day>\d\d) (?P<time>\d\d:\d\d:\d\d(?:\.\d{1,9})?) ")

_HALF_A_YEAR_NS = 183 * 86_400 * 1_000_000_000


@dataclass
class _Engine:
    backend: str
    samples: list[EngineSample] = field(default_factory=list)


@dataclass
class _Clock:
    """vLLM writes no year: after a December comes a January."""

    last_ns: int | None = None
    years: int = 0

    def read(self, line: str) -> int | None:
        match = _NO_YEAR.search(line)
        if match is None:
            return date_of(line)
        now = date_of(f"{2000 + self.years}-{match['month']}-{match['day']} {match['time']}")
        if now is not None and self.last_ns is not None and now < self.last_ns - _HALF_A_YEAR_NS:
            self.years += 1
            return self.read(line)
        self.last_ns = now if now is not None else self.last_ns
        return now


def runs_in(stream: BinaryIO, events: Sequence[Event]) -> list[FoundRun]:
    """One run for each engine that says something of itself, with the settings that `events` of the log tell."""
    engines: dict[str | None, _Engine] = {}
    clock, first_ns, kept = _Clock(), None, 0
    for line in marked_lines(stream, [MARKS]):
        backend, said = _said_in(line.text)
        if not said:
            continue
        now = clock.read(line.text)
        first_ns = now if first_ns is None else first_ns
        who = _who(line.text)
        if kept < MOST_SAMPLES and (who in engines or len(engines) < MOST_ENGINES):
            time_ns = None if now is None or first_ns is None else now - first_ns
            engines.setdefault(who, _Engine(backend)).samples.append(_sample(said, time_ns))
            kept += 1
    return [_run(who, engine, events, first_ns) for who, engine in engines.items()]


def says_something(stream: BinaryIO) -> bool:
    return any(_said_in(line.text)[1] for line in marked_lines(stream, [MARKS]))


def _who(line: str) -> str | None:
    if _AGGREGATED in line:
        return "all engines"
    match = _ENGINE.search(line)
    return None if match is None else f"engine {match[1]}" if match[1] else match[2]


def _said_in(line: str) -> tuple[str, Mapping[str, float]]:
    """Which server speaks, and what of a sample it says."""
    if "#running-req: " in line:
        said = _said(line, _SGLANG)
        new, cached = _NEW.search(line), _CACHED.search(line)
        if new and cached and (asked := int(new[1]) + int(cached[1])):
            said["prefix_hit_share"] = int(cached[1]) / asked
        return "sglang", said
    if "throughput: " in line or "Prefix cache hit rate: GPU" in line:
        said = _said(line, _VLLM)
        for name in ("kv_share", "prefix_hit_share"):
            if name in said:
                said[name] /= 100
        return "vllm", said
    return "", {}


def _said(line: str, patterns: Mapping[str, re.Pattern[str]]) -> dict[str, float]:
    return {name: float(match[1]) for name, pattern in patterns.items() if (match := pattern.search(line))}


def _sample(said: Mapping[str, float], time_ns: int | None) -> EngineSample:
    def count(name: str) -> int | None:
        return int(said[name]) if name in said else None

    def share(name: str) -> float | None:
        return said[name] if name in said and said[name] <= 1 else None

    return EngineSample(
        time_ns=time_ns,
        n_running=count("n_running"),
        n_waiting=count("n_waiting"),
        n_swapped=count("n_swapped"),
        kv_share=share("kv_share"),
        prefix_hit_share=share("prefix_hit_share"),
        prompt_tokens_per_s=said.get("prompt_tokens_per_s"),
        output_tokens_per_s=said.get("output_tokens_per_s"),
    )


def _run(who: str | None, engine: _Engine, events: Sequence[Event], first_ns: int | None) -> FoundRun:
    settings = next((event.fields for event in events if event.kind == "server_args"), {})
    conditions = conditions_of(settings) if settings else None
    found = {name: each for event in _phases(events) for name, each in event.fields.items()}
    if "blocks" in found or "kv_tokens" in found:
        conditions = conditions if conditions is not None else conditions_of({})
        other = {**conditions.other, **({"kv_tokens": str(found["kv_tokens"])} if "kv_tokens" in found else {})}
        conditions = msgspec.structs.replace(conditions, n_blocks=found.get("blocks"), other=other)
    return FoundRun(
        label=who,
        backend=engine.backend,
        model=settings.get("model") or settings.get("model_path"),
        started_unix_ns=first_ns if engine.backend == "sglang" else None,
        engine=conditions,
        samples=engine.samples,
    )


def _phases(events: Sequence[Event]) -> Iterator[Event]:
    return (event for event in events if event.kind == "server_phase" and event.fields.get("phase") == "kv_cache")
