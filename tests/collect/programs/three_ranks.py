"""A rank of a job of three on Gloo. In step 3 rank 1 does not come: it sleeps, or holds the GIL."""

import ctypes
import os
import sys
import time

import torch
import torch.distributed as dist


def load_batch(how: str) -> None:
    if how == "gil":
        ctypes.PyDLL(None).sleep(600)  # PyDLL keeps the GIL, as an extension does that forgets to release it
    time.sleep(600)


def train(how: str) -> None:
    gradients = torch.ones(4)
    for step in range(100):
        if step == 3:
            print(f"rank {dist.get_rank()} is in step 3", flush=True)
            if dist.get_rank() == 1:
                load_batch(how)
        dist.all_reduce(gradients)


dist.init_process_group(
    "gloo", init_method=sys.argv[1], rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"])
)
train(sys.argv[2])
