"""Results of serving benchmarks and pages of servers, made up in the form of each tool and era; each says so."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

SYNTHETIC = "synthetic: made by tests/builders/serving_results.py"

STARTED_NS = 1_760_000_000_000_000_000


@dataclass(frozen=True)
class Written:
    """A text as a file."""

    text: str

    def write(self, path: Path) -> Path:
        path.write_text(self.text, encoding="utf-8")
        return path

    @property
    def content(self) -> bytes:
        return self.text.encode()


def one(document: Json) -> Written:
    return Written(json.dumps(document))


def lines(*documents: Json) -> Written:
    return Written("".join(f"{json.dumps(document)}\n" for document in documents))


# ---- vLLM and SGLang -----------------------------------------------------------------------------------------------

_LISTS: Mapping[str, Sequence[Any]] = {
    "input_lens": [100, 200, 300, 400],
    "output_lens": [3, 1, 0, 0],
    "ttfts": [0.5, 0.25, 0.0, 0.0],
    "itls": [[0.02, 0.04], [], [], []],
    "generated_texts": ["what a secret", "no", "", ""],
    "errors": ["", "", "", "Server disconnected"],
}


def vllm_result(era: int = 2024, *, detailed: bool = True, **changed: Any) -> Json:
    """`era` is the year: 2024 without, 2025 with burstiness and limits, 2026 with times of sending."""
    document: Json = {
        "date": "20240601-120000", "backend": "vllm", "model_id": "acme/m", "tokenizer_id": "acme/m", "num_prompts": 4,
        "request_rate": 2.0, "note": SYNTHETIC,
    }  # fmt: skip
    if era >= 2025:
        document |= {"endpoint_type": "vllm", "label": None, "burstiness": 1.0, "max_concurrency": None}
    document |= {
        "duration": 2.0, "completed": 3, "total_input_tokens": 600, "total_output_tokens": 4,
        "request_throughput": 1.5, "output_throughput": 2.0, "total_token_throughput": 302.0,
    }  # fmt: skip
    if era >= 2025:
        document |= {"request_goodput:": 1.25} if era == 2025 else {"request_goodput": 1.25, "failed": 1}
    if era >= 2026:
        document |= {"start_times": [1000.0, 1000.5, 1001.0, 1001.5], "max_concurrent_requests": 3}
        document |= {"max_output_tokens_per_s": 3.0}
    document |= _LISTS
    document |= {f"{statistic}_{name}_ms": 250.0 for name in ("ttft", "tpot", "itl") for statistic in ("mean", "p99")}
    document |= {"median_ttft_ms": 240.0, "p99.9_itl_ms": 41.0, "std_ttft_ms": 10.0}
    if not detailed:
        document = {name: each for name, each in document.items() if name not in (*_LISTS, "start_times")}
    return document | changed


def sglang_line(rate: float | str = 4.0, *, detailed: bool = False, **changed: Any) -> Json:
    document: Json = {
        "tag": None, "backend": "sglang", "dataset_name": "random", "request_rate": rate, "max_concurrency": None,
        "sharegpt_output_len": None, "random_input_len": 1024, "random_output_len": 256, "random_range_ratio": 0.5,
        "duration": 100.0, "completed": 400, "total_input_tokens": 300_000, "total_output_tokens": 80_000,
        "total_output_tokens_retokenized": 79_000, "request_throughput": 4.0, "input_throughput": 3000.0,
        "output_throughput": 800.0, "mean_e2e_latency_ms": 5000.0, "median_e2e_latency_ms": 4800.0,
        "mean_ttft_ms": 90.0, "median_ttft_ms": 80.0, "p99_itl_ms": 30.0, "concurrency": 20.0, "accept_length": None,
        "note": SYNTHETIC,
    }  # fmt: skip
    if detailed:
        document |= _LISTS
        document["server_info"] = {
            "model_path": "acme/m", "tp_size": 8, "chunked_prefill_size": 8192, "disable_radix_cache": True,
            "api_key": "sk-hidden", "internal_states": [{"last_gen_throughput": 1.0}],
        }  # fmt: skip
    return document | changed


# ---- GenAI-Perf and AIPerf -----------------------------------------------------------------------------------------


def _distribution(mean: float, unit: str = "ms") -> Json:
    return {"unit": unit, "avg": mean, "min": mean / 2, "max": mean * 2, "p50": mean, "p99": mean * 1.5, "std": 1.0}


def aiperf_summary(**changed: Any) -> Json:
    return {
        "schema_version": "1.0",
        "aiperf_version": "0.5.0",
        "note": SYNTHETIC,
        "input_config": {
            "endpoint": {"model_names": ["acme/m"], "api_key": "sk-hidden"},
            "loadgen": {"request_rate": 4.0, "request_rate_mode": "poisson"},
        },
        "request_throughput": {"unit": "requests/sec", "avg": 3.5},
        "request_latency": _distribution(2000.0),
        "request_count": {"unit": "requests", "avg": 70.0},
        "time_to_first_token": _distribution(120.0),
        "inter_token_latency": _distribution(15.0),
        "output_token_throughput": {"unit": "tokens/sec", "avg": 700.0},
        "input_sequence_length": _distribution(512.0, "tokens"),
        "output_token_throughput_per_user": _distribution(66.0, "tokens/sec/user"),
        "benchmark_duration": {"unit": "sec", "avg": 20.0},
        **changed,
    }


def genai_summary() -> Json:
    summary = aiperf_summary(input_config={"model": ["acme/m"], "perf_analyzer": {"stimulus": {"concurrency": 8}}})
    return {name: each for name, each in summary.items() if name not in ("aiperf_version", "schema_version")}


def aiperf_record(number: int, **changed: Any) -> Json:
    start = STARTED_NS + number * 500_000_000
    metadata = {
        "session_num": number, "x_request_id": f"r{number}", "conversation_id": f"c{number}", "turn_index": 0,
        "request_start_ns": start, "request_end_ns": start + 200_000_000, "benchmark_phase": "profiling",
        "was_cancelled": False, "note": SYNTHETIC,
    }  # fmt: skip
    metrics = {
        "input_sequence_length": {"value": 550, "unit": "tokens"},
        "time_to_first_token": {"value": 100.0, "unit": "ms"},
        "request_latency": {"value": 180.0, "unit": "ms"},
        "output_sequence_length": {"value": 5, "unit": "tokens"},
        "inter_chunk_latency": {"value": [20.0, 20.0, 20.0, 20.0], "unit": "ms"},
    }
    record: Json = {"metadata": metadata, "metrics": metrics, "error": None}
    for name, value in changed.items():
        record[name] = record[name] | value if isinstance(record[name], dict) else value
    return record


def aiperf_records() -> Written:
    refused = {"code": 429, "type": "HTTPError", "message": "too many"}
    broken = {"code": None, "type": "Timeout", "message": None}
    return lines(
        aiperf_record(1, metadata={"benchmark_phase": "warmup"}),
        aiperf_record(3, metrics={"time_to_first_token": {"value": 150.0, "unit": "ms"}}),
        aiperf_record(2),
        aiperf_record(4) | {"metrics": {}, "error": refused},
        aiperf_record(5) | {"metrics": {}, "error": broken},
        aiperf_record(6, metadata={"was_cancelled": True}) | {"metrics": {}},
    )


def genai_profile(**changed: Any) -> Json:
    """Two requests of three tokens: the first response names a role alone, the last one ends the stream."""

    def request(start: int) -> Json:
        texts = ['{"choices":[{"delta":{"role":"assistant","content":""}}]}']
        texts += [f'{{"choices":[{{"delta":{{"content":"w{token}"}}}}]}}' for token in range(3)]
        texts.append("[DONE]")
        times = [start + offset * 1_000_000 for offset in (50, 60, 80, 100, 101)]
        outputs = [{"response": f"data: {text}\n\n"} for text in texts]
        inputs = {"payload": json.dumps({"messages": [{"role": "user", "content": "a secret"}]})}
        return {
            "timestamp": start, "request_inputs": inputs, "response_timestamps": times, "response_outputs": outputs,
        }  # fmt: skip

    return {
        "service_kind": "openai",
        "endpoint": SYNTHETIC,
        "experiments": [
            {
                "experiment": {"mode": "concurrency", "value": 2},
                "requests": [request(STARTED_NS + 1_000_000_000), request(STARTED_NS)],
                "window_boundaries": [STARTED_NS],
            }
        ],
        "version": "2.60.0",
        **changed,
    }


# ---- guidellm ------------------------------------------------------------------------------------------------------


def _guidellm_metrics() -> Json:
    def of(mean: float) -> Json:
        percentiles = {"p001": mean / 4, "p05": mean / 2, "p50": mean, "p99": mean * 2, "p999": mean * 3}
        block = {"mean": mean, "median": mean, "std_dev": 1.0, "min": 0.0, "max": mean * 4, "percentiles": percentiles}
        return {"successful": block, "errored": block, "incomplete": block, "total": block}

    return {
        "request_totals": {"successful": 2, "errored": 1, "incomplete": 0, "total": 3},
        "requests_per_second": of(1.5), "request_concurrency": of(3.0), "request_latency": of(2.5),
        "time_to_first_token_ms": of(100.0), "inter_token_latency_ms": of(20.0), "time_per_output_token_ms": of(30.0),
        "output_tokens_per_second": of(60.0), "prompt_token_count": of(256.0), "output_token_count": of(128.0),
    }  # fmt: skip


def guidellm_report(version: str = "0.5.0") -> Json:
    """Before 0.4 times stand in the request itself."""
    start = STARTED_NS / 1e9
    is_old = version < "0.4"

    def request(number: int) -> Json:
        sent = start + number
        if is_old:
            times = {"start_time": sent, "first_token_time": sent + 0.125, "last_token_time": sent + 0.5}
            return {"request_id": f"q{number}", "prompt_tokens": 256, "output_tokens": 4, **times, "end_time": sent + 1}
        timings = {
            "targeted_start": sent - 0.25, "request_start": sent, "first_token_iteration": sent + 0.125,
            "last_token_iteration": sent + 0.5, "request_end": sent + 1,
        }  # fmt: skip
        counts = {"input_metrics": {"text_tokens": 256}, "output_metrics": {"text_tokens": 4}}
        return {"request_id": f"q{number}", "info": {"status": "completed", "timings": timings}, **counts}

    failed = request(2) | {"error": "no answer", "output_tokens": 0}
    strategy = {"type_": "poisson", "rate": 4.0}
    return {
        "metadata": {"version": 1, "guidellm_version": version, "note": SYNTHETIC},
        "args": {"model": "acme/m", "target": "http://localhost:8000"},
        "benchmarks": [
            {
                "type_": "generative_benchmark",
                **({"args": {"strategy": strategy}} if is_old else {"config": {"strategy": strategy}}),
                "duration": 3.0,
                "metrics": _guidellm_metrics(),
                "requests": {"successful": [request(1), request(0)], "errored": [failed], "incomplete": []},
            }
        ],
    }


# ---- pages ---------------------------------------------------------------------------------------------------------

_BUCKETS = (("0.1", 10), ("0.5", 60), ("1.0", 95), ("2.5", 98), ("+Inf", 100))


def _histogram(name: str, labels: str, total: float) -> str:
    rows = [f'{name}_bucket{{le="{bound}",{labels}}} {count}.0' for bound, count in _BUCKETS]
    return "\n".join(
        [f"# TYPE {name} histogram", *rows, f"{name}_count{{{labels}}} 100.0", f"{name}_sum{{{labels}}} {total}"]
    )


def vllm_page(engine: int = 0, *, requests: int = 97) -> Written:
    labels = f'engine="{engine}",model_name="acme/m"'
    rows = {
        "num_requests_running": 12, "num_requests_waiting": 5, "kv_cache_usage_perc": 0.75, "num_preemptions_total": 7,
        "prefix_cache_queries_total": 4000, "prefix_cache_hits_total": 1000, "prompt_tokens_total": 50_000,
        "generation_tokens_total": 9_000, "num_preemptions_created": 1.76e9, "engine_sleep_state": 0,
    }  # fmt: skip
    text = [f"# {SYNTHETIC}", "# TYPE python_info gauge", 'python_info{version="3.12"} 1.0']
    text += [f"vllm:{name}{{{labels}}} {value}" for name, value in rows.items()]
    for reason, count in (("stop", requests - 40), ("length", 40), ("abort", 3)):
        text.append(f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {count}.0')
    text.append(_histogram("vllm:time_to_first_token_seconds", labels, 50.0))
    text.append(_histogram("vllm:e2e_request_latency_seconds", labels, 200.0))
    text.append(
        f'vllm:cache_config_info{{block_size="16",enable_prefix_caching="True",engine="{engine}",'
        'gpu_memory_utilization="0.9",num_gpu_blocks="9806"} 1.0'
    )
    return Written("\n".join(text) + "\n")


def sglang_page() -> Written:
    labels = 'model_name="acme/m",engine_type="unified",tp_rank="{}"'
    rows = {"num_running_reqs": 4, "num_queue_reqs": 3, "token_usage": 0.25, "cache_hit_rate": 0.5}
    text = [f"# {SYNTHETIC}"]
    for rank in (0, 1):
        text += [f"sglang:{name}{{{labels.format(rank)}}} {value}" for name, value in rows.items()]
    text.append('sglang:num_running_reqs{model_name="acme/m",priority="1",tp_rank="0"} 4.0')
    text.append('sglang:prompt_tokens_total{model_name="acme/m"} 1234.0')
    text.append(_histogram("sglang:time_to_first_token_seconds", 'model_name="acme/m"', 50.0))
    return Written("\n".join(text) + "\n")


SAMPLES: Mapping[str, Written] = {
    **{f"vllm {era}": one(vllm_result(era)) for era in (2024, 2025, 2026)},
    "vllm summary": one(vllm_result(2026, detailed=False)),
    "sglang": lines(sglang_line(1.0), sglang_line("inf"), sglang_line(8.0, detailed=True)),
    "aiperf": one(aiperf_summary()),
    "genai-perf summary": one(genai_summary()),
    "aiperf records": aiperf_records(),
    "genai-perf": one(genai_profile()),
    "guidellm": one(guidellm_report()),
    "guidellm 0.2": one(guidellm_report("0.2.1")),
    "vllm page": vllm_page(),
    "sglang page": sglang_page(),
}
"""One of each format."""
