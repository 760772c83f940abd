"""Request fields: which optional fields a server is sent."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFields:
    """The fields that not every OpenAI-compatible server takes; some refuse a request with one that they do not know.

    Attributes:
        stream_options: with ``include_usage``; without it few servers say how many tokens they sent.
        ignore_eos: in workloads of exact output; without it an answer that ends by itself is too short, and fails.
        continuous_usage_stats: usage in every chunk, from which come the tokens of a chunk; part of ``stream_options``.
        return_token_ids: the ids of a chunk's tokens, from which come the same.
    """

    stream_options: bool = True
    ignore_eos: bool = True
    continuous_usage_stats: bool = False
    return_token_ids: bool = False

    def __str__(self) -> str:
        return ", ".join(name for name, sent in asdict(self).items() if sent) or "none"
