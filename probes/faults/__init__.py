"""Healthy workloads with one thing wrong, each beside its healthy twin."""
