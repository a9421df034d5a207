"""What an event of an OpenAI-compatible stream says: how many tokens came, and what the server counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import msgspec

from diag.probes.serve.client import Answer
from diag.probes.serve.sse import MalformedStream

DONE = b"[DONE]"
LONGEST_REASON = 300
"""Characters of what a server says went wrong."""


_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1 << 31)] | None


class _Detail(msgspec.Struct):
    cached_tokens: _Count = None


class _Usage(msgspec.Struct):
    prompt_tokens: _Count = None
    completion_tokens: _Count = None
    prompt_tokens_details: _Detail | None = None


class _Logprobs(msgspec.Struct):
    tokens: Sequence[Any] | None = None  # of completions
    content: Sequence[Any] | None = None  # of chat


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: Sequence[Any] | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    delta: _Delta | None = None
    logprobs: _Logprobs | None = None
    finish_reason: Annotated[str, msgspec.Meta(max_length=100)] | None = None


class _Event(msgspec.Struct):
    choices: Sequence[_Choice] = ()
    usage: _Usage | None = None
    error: Any = None
    object: str | None = None
    message: str | None = None


_decode = msgspec.json.Decoder(_Event).decode


@dataclass
class StreamReader:
    """Of one answer."""

    answer: Answer
    is_finished: bool = False  # the server gave a reason to finish, or said that all is done
    is_done: bool = False  # nothing more will come
    _n_seen: int = 0  # output tokens

    def event(self, data: bytes, time_ns: int) -> None:
        """`time_ns` is when its bytes arrived. Raises MalformedStream, also for an error that the server streams."""
        if data == DONE:
            self.is_finished = self.is_done = True
            return
        try:
            event = _decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedStream(f"the stream holds what is no event: {shown(data)}") from error
        if event.error is not None or event.object == "error":
            raise MalformedStream(f"the server broke off: {shown(data)}")
        counted = self._counted(event)
        n_tokens = sum(map(_tokens, event.choices)) if counted is None else counted
        if n_tokens:
            self._n_seen += n_tokens
            self.answer.output(time_ns, n_tokens)
        for choice in event.choices:
            if choice.finish_reason is not None:
                self.answer.finish_reason = choice.finish_reason
                self.is_finished = True

    def _counted(self, event: _Event) -> int | None:
        """Tokens of this event by the server's count; None where it counts only at the end. Notes what it counts."""
        usage, answer = event.usage, self.answer
        if usage is None:
            return None
        if usage.prompt_tokens is not None:
            answer.prompt_tokens = usage.prompt_tokens
        if usage.prompt_tokens_details is not None:
            answer.cached_tokens = usage.prompt_tokens_details.cached_tokens
        before, now = answer.output_tokens or 0, usage.completion_tokens
        if now is None:
            return None
        answer.output_tokens = now
        is_running = before == self._n_seen and bool(event.choices)
        return max(0, now - before) if is_running else None


def _tokens(choice: _Choice) -> int:
    """Those whose log-probabilities came; else one, if there is any text."""
    if choice.logprobs is not None:
        listed = choice.logprobs.tokens if choice.logprobs.tokens is not None else choice.logprobs.content
        if listed:
            return len(listed)
    delta = choice.delta
    if delta is None:
        return 1 if choice.text else 0
    return 1 if delta.content or delta.reasoning_content or delta.reasoning or delta.refusal or delta.tool_calls else 0


def shown(data: bytes) -> str:
    """The beginning of what a server sent, on one line."""
    text = " ".join(data[: 4 * LONGEST_REASON].decode("utf-8", "replace").split())
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 1] + "…"
