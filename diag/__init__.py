"""diag: from a GPU program's run to the reason it is slow."""

__version__ = "0.1.0"
