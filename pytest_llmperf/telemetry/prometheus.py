"""Prometheus text, as engines show their counters."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_llmperf.model.counters import Counters

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def parse(text: str) -> Counters:
    """Every sample of a metrics page by series.

    Raises:
        ValueError: the text is no Prometheus exposition.
    """
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 (not for collection time)

    return {
        _series(sample.name, sample.labels): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scrape(url: str, timeout_s: float, headers: Mapping[str, str] | None = None) -> Counters | None:
    """The counters behind ``url`` (the page's own, usually BASE/metrics).

    None when there are none to read: no such page, no answer within ``timeout_s``, or something that is no Prometheus
    text (an error page, TensorRT-LLM's JSON).
    """
    import requests  # noqa: PLC0415 (not for collection time)

    try:
        with requests.Session() as session:
            session.trust_env = False  # no proxy and no .netrc between us and the engine
            answer = session.get(url, timeout=timeout_s, headers=headers)
    except requests.RequestException:
        return None
    if not answer.ok:
        return None
    try:
        return parse(answer.text)
    except ValueError:
        return None


def _series(name: str, labels: Mapping[str, str]) -> str:
    if not labels:
        return name
    pairs = ",".join(f'{key}="{value.translate(_ESCAPES)}"' for key, value in sorted(labels.items()))
    return f"{name}{{{pairs}}}"
