"""Logs of distributed jobs: what NCCL, PyTorch's watchdog and launcher, Slurm and the kernel print, in any mixture."""
