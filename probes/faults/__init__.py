"""Healthy workloads with one thing wrong, of known size, at drawn places, each beside its healthy twin."""
