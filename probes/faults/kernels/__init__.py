"""Kernels with one thing wrong, one file each, whose fault can be proved from their machine code or in closed form."""
