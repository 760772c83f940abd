"""Losses made on purpose: a proxy between client and engine that holds answers back, breaks them off, or lies."""

from pytest_llmperf.injection.proxy import Proxy

__all__ = ["Proxy"]
