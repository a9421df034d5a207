"""Triton kernels, one file per operator, each beside its FLOP and byte count."""
