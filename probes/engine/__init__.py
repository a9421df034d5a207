"""The paged-KV mini-engine: a small, honest inference engine to read, to profile, and to break."""
