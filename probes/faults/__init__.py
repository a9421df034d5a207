"""Faults: healthy workloads with one thing wrong, of known size, at drawn places, under drawn names."""
