"""A server that ran out of device memory: in which phase, and what takes the memory there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from diag.ranks.job import Job
from diag.ranks.log_events import LogEvent
from diag.rules.engine import job_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.thresholds import Limits

KINDS = ("server_args", "server_phase", "cuda_oom", "kv_oom", "preemption")

SIZES = {
    "weights_bytes": "weights",
    "kv_bytes": "KV cache",
    "k_bytes": "KV cache, keys",
    "v_bytes": "KV cache, values",
    "graphs_bytes": "graphs",
}
"""What a server says that it took."""


@dataclass(frozen=True)
class Phase:
    name: str
    takes: str
    do: str


PHASES: Mapping[str, Phase] = {
    "load": Phase(
        "while the weights were loaded",
        "The weights alone do not fit, or another process holds the device's memory.",
        "Take more cards (tensor parallel), a quantised checkpoint, or a smaller model; see nvidia-smi for who else is "
        "there.",
    ),
    "profile": Phase(
        "in the trial run before the cache is made",
        "The peak of the largest prefill that the settings allow does not fit beside the weights.",
        "Lower the tokens of a step (max_num_batched_tokens, chunked_prefill_size) or the longest context.",
    ),
    "kv_cache": Phase(
        "when the KV cache was made",
        "What is left beside weights and peak is too little for the cache that was asked for.",
        "Give the server a larger share of the device where others leave it, a shorter context, or an FP8 KV cache.",
    ),
    "capture": Phase(
        "while graphs were captured",
        "The cache took what graphs need: their memory is beyond its share.",
        "Lower the cache's share (gpu_memory_utilization, mem-fraction-static), or capture fewer and smaller sizes.",
    ),
    "warmup": Phase(
        "in the first requests that it made itself",
        "What steps need at their peak was not left.",
        "Lower the cache's share (gpu_memory_utilization, mem-fraction-static), or the tokens of a step.",
    ),
    "prefill": Phase(
        "at the peak of a prefill",
        "Activations of a prompt, and its logits, come on top of weights and cache.",
        "Lower the tokens of a step (max_num_batched_tokens, chunked_prefill_size), then the cache's share.",
    ),
    "decode": Phase(
        "in decode",
        "Weights and cache are there already: buffers of a larger batch came on top, or free memory is in pieces.",
        "Lower the sequences at once, then the cache's share; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
    ),
    "kv_growth": Phase(
        "as the KV cache grew",
        "Sequences that run need more blocks than the cache has, and taking some back was not enough.",
        "Admit fewer sequences at once, shorten the context, or give the cache more memory.",
    ),
    "serve": Phase(
        "while it served",
        "What steps need at their peak was not left beside weights and cache.",
        "Lower the tokens of a step and the cache's share; the log does not say which kind of step it was.",
    ),
}


@job_rule("serving.memory", needs=("log_event",))
def out_of_memory(job: Job, limits: Limits) -> Iterator[Answer]:
    """A server ran out of device memory.

    Asks      In which phase did device memory run out: load, trial run, cache, capture, prefill, or as the cache grew?
    Decides   Of the log of each server (vLLM, SGLang): fires on the first line that says that device memory, or the
              memory of the KV cache, ran out or does not suffice. The phase is that of the function in its traceback,
              else of the last line about the start before it; in service SGLang's last batch says whether it was a
              prefill. Clear: the log shows that the server was ready, and no such line.
    Matters   Each phase has another remedy: less cache helps capture and prefill, and makes growth worse.
    Do        What stands with the phase, one at a time; `diag plan memory` shows all that must fit at once.
    Refute    Another process took the memory at that moment: it is in the line itself, or in nvidia-smi.
    """
    for source in job.sources:
        said = [each for each in job.events if each.source == source.id and each.kind in KINDS and _is_of_server(each)]
        if first := next((each for each in said if _has_failed(each)), None):
            yield _finding(Subject(source.id), first, said)
        elif any(each.fields.get("phase") == "ready" for each in said):
            yield Clear(Subject(source.id))
        elif said:
            yield CannotTell(Subject(source.id), "the log ends, or was cut, before the server was ready")


def _is_of_server(event: LogEvent) -> bool:
    """Any program may run out of memory; of a server's the log says how far it was."""
    return event.kind != "cuda_oom" or "server" in event.fields or "phase" in event.fields


def _has_failed(event: LogEvent) -> bool:
    return event.kind in ("cuda_oom", "kv_oom") or event.fields.get("state") == "failed"


def _phase(event: LogEvent) -> Phase:
    """Raises KeyError for none that a reader writes."""
    if event.kind == "kv_oom":
        return PHASES["kv_growth"]
    phase = str(event.fields.get("phase", "serve"))
    return PHASES[str(event.fields.get("after_batch", "serve")) if phase == "serve" else phase]


def _finding(subject: Subject, event: LogEvent, said: Sequence[LogEvent]) -> Finding:
    phase, fields = _phase(event), event.fields
    before = [each for each in said if each.line < event.line]
    is_sure = fields.get("phase_from") == "traceback" or event.kind == "kv_oom" or event.kind == "server_phase"
    rows = _lines(event.source)
    return Finding(
        title=f"The server ran out of device memory {phase.name}",
        claim=f"Line {event.line:,}: {event.text} {phase.takes}"
        + ("" if is_sure else " The phase is that of the last line before it that tells one."),
        subject=subject,
        level="critical",
        confidence="high" if is_sure else "medium",
        counterfactual="The server would have gone on.",
        evidence=[
            Evidence(
                "lines about it", sum(each.times for each in said if _has_failed(each)), "count", "in this log", rows
            ),
            *(
                Evidence(name, size, "bytes", "as the line says", rows)
                for key, name in _OF_LINE.items()
                if isinstance(size := fields.get(key), int)
            ),
            *_taken(before, rows),
            Evidence("preempted before", _preempted(before), "count", "requests, as lines before it say", rows),
        ],
        refute="Another process took the memory at that moment.",
        next=[phase.do, "diag plan memory shows weights, cache, peak and reserve for these settings."],
    )


_OF_LINE = {
    "tried_bytes": "asked for",
    "free_bytes": "free",
    "total_bytes": "device memory",
    "allocated_bytes": "allocated by PyTorch",
    "reserved_bytes": "reserved by PyTorch",
    "needed_bytes": "needed",
    "available_bytes": "available",
}


def _taken(before: Sequence[LogEvent], rows: str) -> Iterator[Evidence]:
    """The last that the server said of each."""
    for key, name in SIZES.items():
        sizes = [each.fields[key] for each in before if isinstance(each.fields.get(key), int)]
        if sizes:
            yield Evidence(name, sizes[-1], "bytes", "as the server said at its start", rows)


def _preempted(before: Sequence[LogEvent]) -> int:
    return sum(each.times * int(each.fields.get("requests", 1)) for each in before if each.kind == "preemption")


def _lines(source: int) -> str:
    kinds = ", ".join(f"'{kind}'" for kind in KINDS)
    table = "SELECT line, kind, fields, text FROM log_event"
    return f"{table} WHERE source_id = {source:d} AND kind IN ({kinds}) ORDER BY line"
