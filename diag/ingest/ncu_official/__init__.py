"""Reads Nsight Compute reports through NVIDIA's own package `ncu-report`, as a check of the reader in `ncu_rep`.

The package is a closed native library, and a report may come from anyone. So it runs in a worker: a process of its own
that is bounded in memory, time and output (`limits`) and answers with plain records (`frames`). Whatever becomes of it
is one sentence here (`workers`).
"""
