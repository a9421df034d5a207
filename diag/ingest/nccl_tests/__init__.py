"""Reader of measured collectives: what nccl-tests prints or writes as JSON, and tables of benchmarks in PyTorch."""
