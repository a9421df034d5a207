"""What of a log never enters a case: passwords, tokens, and variables that are nobody's business."""

from __future__ import annotations

import re

_SHOWN_VARIABLES = re.compile(
    r"(NCCL|RCCL|TORCH|PYTORCH|GLOO|UCX|FI|OFI|RDMAV|MLX5|IBV)_\w+|CUDA_(VISIBLE_DEVICES|DEVICE_ORDER|"
    r"LAUNCH_BLOCKING|DEVICE_MAX_CONNECTIONS)|OMP_NUM_THREADS|(WORLD|LOCAL_WORLD)_SIZE|(LOCAL_)?RANK"
)

_NAMES = (
    r"token|passw(?:or)?d|passphrase|pwd|secret|api[_-]?key|access[_-]?key|private[_-]?key|credential|authorization|"
    r"signature"
)
_NAME_OF_SECRET = re.compile(_NAMES, re.IGNORECASE)

_SECRET = re.compile(
    rf"(?P<name>(?i:{_NAMES})[\w.-]{{0,40}}[\"']?\s{{0,3}}[:=]\s{{0,3}}(?i:bearer\s{{1,3}}|basic\s{{1,3}})?)"
    r"(?:\"[^\"]{1,4096}\"|'[^']{1,4096}'|[^\s,;&]{1,4096})"
    rf"|(?P<option>--[\w-]{{0,40}}(?i:{_NAMES})[\w-]{{0,40}}\s{{1,3}}|(?<!\S)-u\s{{1,3}}(?=[^\s:]{{1,200}}:))[^\s,;]{{1,4096}}"
    r"|(?P<scheme>://)[^\s/@:]{0,200}:[^\s/]{1,200}@"
    r"|\b(?:hf_|gh[opsur]_|github_pat_|glpat-|npm_|sk-|xox[abprs]-|AKIA|ASIA|AIza|ya29\.|wandb_)[\w-]{16,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{0,4096}"
    r"|(?P<pem>-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----).{0,4096}"
    r"|\b[0-9a-f]{40}\b"
)
"""Named secrets, those in addresses, and what looks like a key of a well-known service: 40 hexadecimal digits too."""

HIDDEN = "(hidden)"


def may_show(variable: str) -> bool:
    """Whether the value of an environment variable may be kept. No value that looks like a secret is, whatever its
    name.

    >>> [may_show(name) for name in ("NCCL_IB_DISABLE", "AWS_SECRET_ACCESS_KEY", "TORCH_HUB_TOKEN")]
    [True, False, False]
    """
    return _SHOWN_VARIABLES.fullmatch(variable) is not None and _NAME_OF_SECRET.search(variable) is None


def without_secrets(text: str) -> str:
    """
    >>> without_secrets("clone https://me:pw@host failed, HF_TOKEN=hf_abc")
    'clone https://(hidden)@host failed, HF_TOKEN=(hidden)'
    """
    return _SECRET.sub(_hidden, text)


def _hidden(match: re.Match[str]) -> str:
    if match["scheme"]:
        return f"://{HIDDEN}@"
    return f"{match['name'] or match['option'] or match['pem'] or ''}{HIDDEN}"
