"""Counters: one scrape of an engine's metrics page."""

from __future__ import annotations

from collections.abc import Mapping

Counters = Mapping[str, float]
"""Value by series, written as Prometheus does with sorted labels: ``name`` or ``name{a="1",b="2"}``."""
