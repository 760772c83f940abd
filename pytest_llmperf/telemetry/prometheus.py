"""Prometheus text, as engines show their counters."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_llmperf.model.counters import Counters
from pytest_llmperf.telemetry.fetch import NoAnswerError, fetch

_OK, _REDIRECT = 200, 300
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def parse(text: str) -> Counters:
    """Every sample of a metrics page by series.

    Raises:
        ValueError: the text is no Prometheus exposition.
    """
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 (not for collection time)

    try:
        return {
            _series(sample.name, sample.labels): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    except IndexError:  # the parser's own, for a line that ends too early
        raise ValueError("no Prometheus exposition: a line ends too early") from None


def scrape(url: str, timeout_s: float, headers: Mapping[str, str] | None = None) -> Counters | None:
    """The counters behind ``url`` (the page's own, usually BASE/metrics).

    None when there are none to read: no such page, more than ``fetch.LIMIT_BYTES``, or something that is no Prometheus
    text (an error page, TensorRT-LLM's JSON).

    Raises:
        SilentError: no whole answer within ``timeout_s``.
    """
    try:
        reply = fetch("GET", url, timeout_s=timeout_s, headers=headers)
    except NoAnswerError:
        return None
    if not _OK <= reply.status < _REDIRECT:
        return None
    try:
        return parse(reply.body.decode(errors="replace"))
    except ValueError:
        return None


def _series(name: str, labels: Mapping[str, str]) -> str:
    if not labels:
        return name
    pairs = ",".join(f'{key}="{value.translate(_ESCAPES)}"' for key, value in sorted(labels.items()))
    return f"{name}{{{pairs}}}"
