"""How the files of Nsight Compute begin. A module of its own: to know a file, nothing that reads it need be loaded."""

MAGIC = b"NVR\x00"
