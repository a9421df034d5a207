"""A plug-in of diag for the counters that `nvidia-smi --query-gpu=… --format=csv` logs."""
