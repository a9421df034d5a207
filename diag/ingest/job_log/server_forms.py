"""The lines of vLLM (0.2 to 0.2x) and SGLang about memory, by their form.

Sizes in groups named `…_gib` or `…_size` become bytes, numbers in `…_tokens` may be printed with commas.
"""

from __future__ import annotations

import re

from diag.ingest.job_log.event import form
from diag.ingest.job_log.lines import Marks

MARKS = Marks(
    gates=(
        b"out of memory", b"#running-req", b"KV cache", b"LLM engine (v", b"server_args=", b"to load model",
        b"oad weight ", b"startup complete", b"Not enough memory",
    ),
    marks=(
        b"out of memory", b"Starting to load model", b"odel loading took", b"oading model weights took",
        b"emory profiling ", b"vailable KV cache memory", b" blocks: ", b"KV cache size: ",
        b"aximum concurrency for ", b"apturing the model for CUDA graphs", b"apturing cudagraphs",
        b"apturing CUDA graph", b"Graph capturing finished", b"Preemptions: ", b"init engine (",
        b"Application startup complete", b"LLM engine (v", b"non-default args", b"Load weight ",
        b"KV Cache is allocated", b"Memory pool end", b"Capture cuda graph ", b"fired up and ready", b"server_args=",
        b" is preempted by ", b"#retracted_reqs", b"o available memory for the cache blocks", b"KV cache is needed",
        b"Not enough memory. Please try", b"Traceback (most recent call last)", b", in load_model",
        b", in profile_run", b", in determine_", b", in initialize_kv_cache", b", in initialize_cache",
        b", in init_memory_pool", b", in capture", b", in init_cuda_graphs", b", in init_device_graphs",
        b", in forward_extend", b", in forward_decode", b", in execute_model", b"#running-req",
    ),
)  # fmt: skip
"""The lines of a start stand near each other, and few gates keep the logs of others fast: one opens them all."""

_GIB = r"(?P<{}>-?\d{{1,9}}(?:\.\d{{1,9}})?) Gi?B"
"""Both servers divide by 2^30, whichever of the two they print."""


def _gib(name: str) -> str:
    return _GIB.format(f"{name}_gib")


_SIZE = r"(?P<{}>\d{{1,12}}(?:\.\d{{1,6}})? (?:[KMGT]i)?B|\d{{1,12}} bytes)"


def _size(name: str) -> str:
    return _SIZE.format(f"{name}_size")


VLLM, SGLANG = {"server": "vllm"}, {"server": "sglang"}

FORMS = (
    form(
        "cuda_oom",
        "ut of memory. Tried to allocate",
        r"(?P<runtime>CUDA|HIP|XPU) out of memory\. Tried to allocate " + _size("tried")
        + r"(?: \(GPU (?P<device>\d{1,4}); " + _size("total") + r" total capacity; " + _size("allocated")
        + r" already allocated; " + _size("free") + r" free(?:; " + _size("reserved") + r" reserved in total)?)?",
    ),
    form("cuda_oom", "CUDA error: out of memory", r"(?P<runtime>CUDA) error: out of memory"),
    form("cuda_oom", "CUDA out of memory", r"(?P<runtime>CUDA) out of memory"),
    form(
        "kv_oom",
        "ut of memory. Try to lower your batch size",
        r"(?P<batch>Prefill|Decode) out of memory\. Try to lower your batch size"
        r"(?:\.? ?Try to allocate (?P<tried_tokens>\d{1,12}) tokens)?",
        **SGLANG,
    ),
    form(
        "preemption",
        " is preempted by ",
        r"Sequence group (?P<request>\S{1,80}) is preempted by (?:PreemptionMode\.)?(?P<mode>\w{1,20}) mode"
        r"(?:[^\n]{0,400}total(?:_num)?_cumulative_preemption(?:_cnt)?=(?P<total>\d{1,12}))?",
        **VLLM,
    ),
    form("preemption", "Preemptions: ", r"throughput: [^\n]{0,200} Preemptions: (?P<requests>\d{1,12})", **VLLM),
    form(
        "preemption",
        "#retracted_reqs: ",
        r"#retracted_reqs: (?P<requests>\d{1,9})(?:, #new_tokens_gained: (?P<freed_tokens>\d{1,12}))?",
        mode="RECOMPUTE",
        **SGLANG,
    ),
    form("server_phase", "Starting to load model", r"Starting to load model", phase="load", state="begins", **VLLM),
    form(
        "server_phase",
        "oading ",
        r"(?:Loading model weights|Model loading) took " + _gib("weights")
        + r"(?: memory)?(?: and (?P<seconds>[\d.]{1,20}) ?s)?",
        phase="load",
        state="ended",
        **VLLM,
    ),
    form(
        "server_phase",
        "emory profiling ",
        r"Memory profiling (?:takes|took) (?P<seconds>[\d.]{1,20}) s",
        phase="profile",
        state="ended",
        **VLLM,
    ),
    form(
        "server_phase",
        "vailable KV cache memory: ",
        r"Available KV cache memory: " + _gib("kv"),
        phase="profile",
        state="ended",
        **VLLM,
    ),
    form(
        "server_phase",
        " blocks: ",
        r"# (?:GPU|cuda|CUDA|rocm) blocks: (?P<blocks>\d{1,12}), # CPU blocks: (?P<host_blocks>\d{1,12})",
        phase="kv_cache",
        state="ended",
        **VLLM,
    ),
    form(
        "server_phase",
        "KV cache size: ",
        r"KV cache size: (?P<kv_tokens>[\d,]{1,20}) tokens"
        r"(?:, Maximum concurrency for (?P<request_tokens>[\d,]{1,20}) tokens per request: "
        r"(?P<concurrency>[\d.]{1,12})x)?",
        phase="kv_cache",
        state="ended",
        **VLLM,
    ),
    form(
        "server_phase",
        "aximum concurrency for ",
        r"Maximum concurrency for (?P<request_tokens>[\d,]{1,20}) tokens per request: (?P<concurrency>[\d.]{1,12})x",
        phase="kv_cache",
        state="ended",
        **VLLM,
    ),
    form(
        "server_phase",
        "o available memory for the cache blocks",
        r"No available memory for the cache blocks",
        phase="kv_cache",
        state="failed",
        **VLLM,
    ),
    form(
        "server_phase",
        "KV cache is needed",
        _gib("needed") + r" KV cache is needed, which is larger than the available KV cache memory \("
        + _gib("available"),
        phase="kv_cache",
        state="failed",
        **VLLM,
    ),
    form("server_phase", "Graph capturing finished",
         r"Graph capturing finished in (?P<seconds>[\d.]{1,12}) secs(?:, took " + _gib("graphs") + r")?",
         phase="capture", state="ended", **VLLM),
    form("server_phase", "apturing ", r"Capturing (?:the model for CUDA graphs|cudagraphs|CUDA graphs?\b)",
         phase="capture", state="begins", **VLLM),
    form("server_phase", "init engine (", r"init engine \([^)]{1,80}\) took (?P<seconds>[\d.]{1,12}) s",
         phase="start", state="ended", **VLLM),
    form("server_phase", "Load weight begin", r"Load weight begin\. avail mem=" + _gib("free"),
         phase="load", state="begins", **SGLANG),
    form("server_phase", "Load weight end",
         r"Load weight end\.(?:[^\n]{0,200}?avail mem=" + _gib("free") + r")?(?:[^\n]{0,40}mem usage="
         + _gib("weights") + r")?",
         phase="load", state="ended", **SGLANG),
    form("server_phase", "KV Cache is allocated",
         r"KV Cache is allocated\.(?: dtype: [\w.]{1,40},)?(?: #tokens: (?P<kv_tokens>\d{1,12}),)?(?: K size: "
         + _gib("k") + r", V size: " + _gib("v") + r")?",
         phase="kv_cache", state="ended", **SGLANG),
    form("server_phase", "Memory pool end", r"Memory pool end\. avail mem=" + _gib("free"),
         phase="kv_cache", state="ended", **SGLANG),
    form("server_phase", "Not enough memory. Please try", r"Not enough memory\. Please try to increase --mem-fraction",
         phase="kv_cache", state="failed", **SGLANG),
    form("server_phase", "Capture cuda graph begin",
         r"Capture cuda graph begin\.(?:[^\n]{0,80}avail mem=" + _gib("free") + r")?",
         phase="capture", state="begins", **SGLANG),
    form("server_phase", "Capture cuda graph end",
         r"Capture cuda graph end\.(?: Time elapsed: (?P<seconds>[\d.]{1,12}) s)?(?:\. mem usage=" + _gib("graphs")
         + r")?(?:\.? avail mem=" + _gib("free") + r")?",
         phase="capture", state="ended", **SGLANG),
    form("server_phase", "fired up and ready", r"The server is fired up and ready to roll",
         phase="ready", state="ended", **SGLANG),
    form("server_phase", "Application startup complete", r"Application startup complete", phase="ready", state="ended"),
)  # fmt: skip

GPU = re.compile(
    r"GPU (?P<device>\d{1,4}) has a total capac?i?ty of " + _size("total") + r" of which " + _size("free") + " is free"
)
ALLOCATED = re.compile(_size("allocated") + " is allocated by PyTorch")
RESERVED = re.compile(_size("reserved") + " is reserved by PyTorch but unallocated")
