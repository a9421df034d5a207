"""Rows of decode steps that compute for nobody: a CUDA graph's bucket, or a static batch, is larger than its tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.serving.steps import Chosen, Steps


@dataclass(frozen=True, eq=False)
class PaddedSteps:
    """Steps of decode with a stated number of rows. A row is a token: of each sequence one, and its drafts."""

    chosen: Chosen  # (steps,)
    rows: NDArray[np.int64]  # (padded steps,), as is what follows
    tokens: NDArray[np.int64]

    @property
    def empty_rows(self) -> NDArray[np.int64]:
        return self.rows - self.tokens

    @property
    def empty_share(self) -> float | None:
        """Of all their rows; None without any."""
        n_rows = int(self.rows.sum())
        return int(self.empty_rows.sum()) / n_rows if n_rows else None


def padded_steps(steps: Steps) -> PaddedSteps:
    chosen = steps.has("padded_rows") & (steps["n_decodes"] > 0)
    tokens = steps["prefill_tokens"] + steps["decode_tokens"] + steps["drafted_tokens"]
    rows = steps["padded_rows"][chosen]
    return PaddedSteps(chosen, rows, np.minimum(tokens[chosen], rows))
