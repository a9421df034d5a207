"""Readers of serving runs: our own log, the results of others' benchmarks, the pages and logs of servers."""
