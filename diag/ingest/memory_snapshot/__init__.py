"""Snapshots of PyTorch's allocator: what `torch.cuda.memory._dump_snapshot` writes, or the same as JSON."""
