"""What of a log never enters a case: passwords, tokens, and variables that are nobody's business."""

from __future__ import annotations

import re

_SHOWN_VARIABLES = re.compile(
    r"(NCCL|RCCL|TORCH|PYTORCH|GLOO|UCX|FI|OFI|RDMAV|MLX5|IBV)_\w+|CUDA_(VISIBLE_DEVICES|DEVICE_ORDER|"
    r"LAUNCH_BLOCKING|DEVICE_MAX_CONNECTIONS)|OMP_NUM_THREADS|(WORLD|LOCAL_WORLD)_SIZE|(LOCAL_)?RANK"
)

_SECRET = re.compile(
    r"(?P<name>(?i:token|passw(?:or)?d|secret|api[_-]?key|credential|authorization)[\w.-]{0,40}"
    r"[\"']?\s{0,3}[:=]\s{0,3}(?i:bearer\s{1,3}|basic\s{1,3})?)[^\s,;]{1,4096}"
    r"|(?P<scheme>://)[^\s/@:]{1,200}:[^\s/@]{1,200}@"
    r"|\b(?:hf_|gh[opsur]_|github_pat_|glpat-|sk-|xox[abprs]-|AKIA|ya29\.|wandb_)[\w-]{16,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{0,4096}"
    r"|\b[0-9a-f]{40}\b"
)
"""Named secrets, those in addresses, and what looks like a key of a well-known service: 40 hexadecimal digits too."""

HIDDEN = "(hidden)"


def may_show(variable: str) -> bool:
    """Whether the value of an environment variable may be kept. No value that looks like a secret is, whatever its
    name.

    >>> may_show("NCCL_IB_DISABLE"), may_show("AWS_SECRET_ACCESS_KEY")
    (True, False)
    """
    return _SHOWN_VARIABLES.fullmatch(variable) is not None


def without_secrets(text: str) -> str:
    """
    >>> without_secrets("clone https://me:pw@host failed, HF_TOKEN=hf_abc")
    'clone https://(hidden)@host failed, HF_TOKEN=(hidden)'
    """
    return _SECRET.sub(_hidden, text)


def _hidden(match: re.Match[str]) -> str:
    if match["scheme"]:
        return f"://{HIDDEN}@"
    return f"{match['name'] or ''}{HIDDEN}"
