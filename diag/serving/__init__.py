"""Serving runs as they lie in the case: requests, engine steps, and what their files state of them."""
