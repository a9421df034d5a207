"""The names that figures of a serving run go by, whichever tool stated them, and the unit of each.

Latencies are those of `serving_metrics.py`. A tool may count otherwise than diag does (failed requests in a mean, time
per token with the first one in it): then the name is another, or the page of its format says so.

Beside it stands a statistic: 'mean', 'min', 'max', 'std', 'total', 'value' or 'count'; a percentile, 'p50' or 'p99.9';
'p99_from' and 'p99_to' where buckets only tell between what it lies.
"""

from __future__ import annotations

from collections.abc import Mapping

UNITS: Mapping[str, str] = {
    # latencies of requests
    "ttft": "ns",
    "tpot": "ns",
    "itl": "ns",
    "e2e": "ns",
    "e2e_per_token": "ns",  # E2E over all output tokens, the first included
    "queue": "ns",
    "prefill": "ns",
    "decode": "ns",
    "inference": "ns",  # prefill and decode
    # rates over the run
    "request_rate": "requests/s",
    "goodput": "requests/s",
    "output_token_rate": "tokens/s",
    "input_token_rate": "tokens/s",
    "total_token_rate": "tokens/s",
    # counts
    "completed": "requests",
    "failed": "requests",
    "cancelled": "requests",
    "concurrency": "requests",  # in flight
    "input_tokens": "tokens",  # of all requests
    "output_tokens": "tokens",
    "output_tokens_retokenized": "tokens",
    "prompt_tokens": "tokens",  # of one request
    "generated_tokens": "tokens",
    "step_tokens": "tokens",  # of one step of the engine
    # state of an engine
    "running": "requests",
    "waiting": "requests",
    "swapped": "requests",
    "kv_share": "share",
    "kv_tokens": "tokens",  # that the KV cache holds
    "kv_capacity": "tokens",
    "prefix_hit_share": "share",
    "prefix_hit_tokens": "tokens",
    "prefix_query_tokens": "tokens",
    "preemptions": "count",
    # speculative decoding
    "drafts": "count",
    "draft_tokens": "tokens",
    "accepted_tokens": "tokens",
    "acceptance_share": "share",
    "accepted_length": "tokens",  # of a step, the token of the model itself included
    "duration": "ns",
}
