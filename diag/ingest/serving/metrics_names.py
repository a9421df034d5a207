"""What vLLM and SGLang call their metrics, over their versions, and what diag calls them."""

from __future__ import annotations

from collections.abc import Mapping

SERVERS: Mapping[str, str] = {"vllm": "vLLM", "sglang": "SGLang"}

COUNTED: Mapping[str, str] = {
    "prompt_tokens": "input_tokens",
    "generation_tokens": "output_tokens",
    "num_preemptions": "preemptions",
    "num_retracted_requests": "preemptions",
    "prefix_cache_queries": "prefix_query_tokens",
    "prefix_cache_hits": "prefix_hit_tokens",
    "gpu_prefix_cache_queries": "prefix_query_tokens",
    "gpu_prefix_cache_hits": "prefix_hit_tokens",
    "cached_tokens": "prefix_hit_tokens",
    "num_requests": "completed",
    "num_aborted_requests": "cancelled",
    "spec_decode_num_drafts": "drafts",
    "spec_decode_num_draft_tokens": "draft_tokens",
    "spec_decode_num_accepted_tokens": "accepted_tokens",
}
"""Without `_total`; SGLang's `num_requests` are those that it processed."""

STATES: Mapping[str, str] = {
    "num_requests_running": "running",
    "num_requests_waiting": "waiting",
    "num_requests_swapped": "swapped",
    "gpu_cache_usage_perc": "kv_share",
    "kv_cache_usage_perc": "kv_share",
    "gpu_prefix_cache_hit_rate": "prefix_hit_share",
    "avg_prompt_throughput_toks_per_s": "input_token_rate",
    "avg_generation_throughput_toks_per_s": "output_token_rate",
    "num_running_reqs": "running",
    "num_queue_reqs": "waiting",
    "token_usage": "kv_share",
    "num_used_tokens": "kv_tokens",
    "max_total_num_tokens": "kv_capacity",
    "cache_hit_rate": "prefix_hit_share",
    "gen_throughput": "output_token_rate",
    "spec_accept_length": "accepted_length",
}
"""Gauges. The shares are shares, whatever vLLM's `perc` says."""

FINISHED: Mapping[str, str] = {"stop": "completed", "length": "completed", "abort": "cancelled", "error": "failed"}
"""By `finished_reason`."""

HISTOGRAMS: Mapping[str, tuple[str, float]] = {
    "time_to_first_token_seconds": ("ttft", 1e9),
    "inter_token_latency_seconds": ("itl", 1e9),
    "time_per_output_token_seconds": ("itl", 1e9),
    "request_time_per_output_token_seconds": ("tpot", 1e9),
    "e2e_request_latency_seconds": ("e2e", 1e9),
    "request_queue_time_seconds": ("queue", 1e9),
    "queue_time_seconds": ("queue", 1e9),
    "request_prefill_time_seconds": ("prefill", 1e9),
    "request_decode_time_seconds": ("decode", 1e9),
    "request_inference_time_seconds": ("inference", 1e9),
    "request_prompt_tokens": ("prompt_tokens", 1),
    "request_generation_tokens": ("generated_tokens", 1),
    "iteration_tokens_total": ("step_tokens", 1),
}
"""vLLM's `time_per_output_token_seconds` observed each token, until it was renamed to what it is."""
