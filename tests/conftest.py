"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# On a busy machine a slow example says nothing about the code. The rest stays as Hypothesis chose it, for CI or not.
settings.register_profile("diag", parent=settings(), deadline=None)
settings.load_profile("diag")
