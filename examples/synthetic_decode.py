"""Writes two PyTorch traces of a language model that never ran, as it decodes: launch by launch, and as a CUDA graph.

    python examples/synthetic_decode.py FOLDER
    diag report FOLDER/synthetic-eager.pt.trace.json.gz
    diag compare FOLDER/synthetic-eager.pt.trace.json.gz FOLDER/synthetic-graph.pt.trace.json.gz

Both run the same kernels, for sixteen tokens. Launch by launch, each of them costs the host 12 µs while it takes the
device 2 to 5; a graph costs 12 µs for all of a token. Names and times are made up. It needs neither PyTorch nor a GPU.
"""

from __future__ import annotations

import sys
from pathlib import Path

from diag.probes.synthetic_decode import write

if __name__ == "__main__":
    write(Path(sys.argv[1]))
