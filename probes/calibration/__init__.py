"""What a machine does at most: micro-benchmarks of its memory, its arithmetic and its launches."""
