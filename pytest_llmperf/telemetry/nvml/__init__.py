"""The one NVML backend: every GPU of this machine as readings. Reads only."""

from __future__ import annotations

from pytest_llmperf.telemetry.nvml.machine import Gpus as Gpus
from pytest_llmperf.telemetry.nvml.machine import read as read
from pytest_llmperf.telemetry.nvml.present import find as find
from pytest_llmperf.telemetry.nvml.present import names as names
