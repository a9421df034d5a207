"""The kinds of inputs that diag reads itself, and what a person calls one of each."""

from __future__ import annotations

from diag.ingest.unread import KIND as UNREAD
from diag.launches.live_runs import KIND as LIVE

NAMES = {
    "kineto": "PyTorch trace",
    "nsys-sqlite": "Nsight Systems export",
    "nsys-report": "Nsight Systems report",
    "nsys-stream": "Nsight Systems stream",
    "ncu-report": "Nsight Compute report",
    "ncu-csv": "Nsight Compute CSV file",
    "ncu-text": "Nsight Compute page",
    "benchmark": "benchmark",
    "stack-dump": "stack dump",
    "heartbeat": "heartbeat",
    "flight-recorder": "flight-recorder dump",
    "memory-snapshot": "memory snapshot",
    "job-log": "job log",
    "nccl-ras": "status of NCCL's RAS",
    "nccl-tests": "nccl-tests result",
    "topology": "topology",
    "serving-log": "serving log",
    "bench-serving": "serving result",
    "genai-perf": "GenAI-Perf profile",
    "aiperf": "summary of AIPerf",
    "aiperf-records": "AIPerf record file",
    "guidellm": "guidellm report",
    "metrics-page": "page of metrics",
    LIVE: "record of a watch",
    UNREAD: "unreadable file",
}
