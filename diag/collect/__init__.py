"""Runs profilers around a workload. They write files, which `ingest` reads like any others; no rule is known here."""
