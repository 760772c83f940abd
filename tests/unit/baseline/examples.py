"""A baseline and the runs it could come from."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

from pytest_llmperf.baseline import Accepted, Baseline
from pytest_llmperf.model.calibration import Calibration, Noise
from pytest_llmperf.model.measurement import Measurement, Observation
from pytest_llmperf.model.result import CaseResult

GOLDEN = Path(__file__).parents[2] / "golden" / "baseline.yaml"
GOLDEN_CALIBRATED = GOLDEN.with_name("baseline_calibrated.yaml")
GOLDEN_NAME = "baselines/8x-nvidia-h200/deepseek-r1-h200/vllm/random-4000-200.yaml"

FACTS = {
    "hardware": "8x-nvidia-h200",
    "workload": "sha256:3f9c0d1b77aa",
    "weights": "real",
    "acceptance": "natural",
    "client": "llmperf",
    "client_placement": "pinned",
    "engine": "vllm",
    "engine_version": "0.11.0",
    "args": "-tp 8",
    "driver": "570.86.15",
    "node": "node-07",
    "model": "deepseek-ai/DeepSeek-R1-0528",
    "kernel": "6.8.0",
}

EXAMPLE = Baseline(
    case="vllm/random-4000-200",
    workload=FACTS["workload"],
    refuse_unless={k: FACTS[k] for k in ("hardware", "weights", "acceptance", "client", "client_placement")},
    environment={k: FACTS[k] for k in ("engine", "engine_version", "args", "driver", "node", "model")},
    accepted=Accepted(on=date(2026, 11, 30), commit="4e0a037", why='release 1.4 (#42): "throughput"'),
    sessions=("2026-11-28/node-07", "2026-11-29/node-07", "2026-11-30/node-12"),
    metrics={
        "output_throughput": ((753.7, 752.9), (754.8, 754.1), (752.2, 753.0)),
        "mean_e2el_ms": ((95712.0, 95833.0), (95590.0, 95644.0), (95901.0, 95777.0)),
        "acceptance_length": ((1.70125, 1.70125), (1.70125, 1.70125), (1.70125, 1.70125)),
    },
)

CALIBRATION = Calibration(
    sessions=12,
    runs=24,
    noise=(
        Noise(metric="acceptance_length", cv=0.004, cv_limit=0.005, session_share=None, session_share_interval=None,
              autocorrelation=None, visible=((1, 0.01), (3, 0.008), (5, 0.007)), margin=None, false_alarms=0),
        Noise(metric="mean_e2el_ms", cv=0.0033, cv_limit=0.0051, session_share=0.1, session_share_interval=(0.0, 0.6),
              autocorrelation=-0.2, visible=((1, 0.016), (3, 0.012), (5, 0.01)), margin=0.02, false_alarms=1),
        Noise(metric="output_throughput", cv=0.0027, cv_limit=0.0039, session_share=0.36,
              session_share_interval=(0.0, 0.93), autocorrelation=0.1,
              visible=((1, 0.0105), (3, 0.0091), (5, 0.0088)), margin=0.01, false_alarms=0),
    ),
    replays=12,
    red_replays=1,
    on=date(2026, 11, 30),
    commit="77c0b1a",
)  # fmt: skip
CALIBRATED = replace(EXAMPLE, calibration=CALIBRATION)

RESULT = CaseResult(
    suite="deepseek-r1-h200", case=EXAMPLE.case, nodeid="", arm="vllm", hardware="8x NVIDIA H200", environment=FACTS
)


def runs(**metrics: list[float]) -> Measurement:
    """Two sessions of two runs, given out of order."""
    places = [(2, "b"), (0, "a"), (1, "a"), (3, "b")]
    return Measurement(
        {
            name: tuple(Observation(values[order], session, order) for order, session in places if order < len(values))
            for name, values in metrics.items()
        }
    )


def with_metrics(**metrics: tuple[tuple[float, ...], ...]) -> Baseline:
    return replace(EXAMPLE, metrics=metrics)
