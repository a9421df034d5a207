"""How the files of Nsight Systems begin. A module of its own: to know a file, nothing that reads it need be loaded."""

MAGIC = b"NVIDIA Tegra Profiler Report "
STREAM_MAGIC = b"U3w[END]NVIDIA Nsight Systems Stream "
