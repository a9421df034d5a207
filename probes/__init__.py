"""Reference workloads with closed-form answers, one file each; their sick twins are in `faults`."""
