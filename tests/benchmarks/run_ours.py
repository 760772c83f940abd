"""Our client, as the pipeline uses it: ``run_ours URL ASK FOLDER`` writes seen.json to the folder."""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pytest_llmperf import metrics
from pytest_llmperf.checks.validity import client_findings
from pytest_llmperf.load import Capture, drive
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.suite import Load, Workload
from pytest_llmperf.workload.planner import plan
from tests.benchmarks.ask import Ask

_GATES = [
    *(
        Gate(metric=METRICS[name], margin=0.05)
        for name in ("output_throughput", "mean_tpot_ms", "mean_e2el_ms", "median_itl_ms")
    ),
    Gate(metric=METRICS["p99_itl_ms"], margin=0.25),
]


def main(url: str, ask: Ask, folder: Path) -> None:
    workload = Workload(name="pace", kind="words", requests=ask.total, input_tokens=16, output_tokens=ask.tokens)
    load = Load(kind="concurrency", value=ask.streams) if ask.requests else Load(kind="burst")
    cores = sorted(os.sched_getaffinity(0))
    capture = drive(
        plan(workload, load, seed=1, model_id="pace"),
        Endpoint(url=url, model="pace"),
        folder,
        stall_timeout_s=30,
        request_timeout_s=300,
        alive=lambda: True,
        workers=ask.workers,
        cores=cores if len(cores) > 1 else (),
    )
    (folder / "seen.json").write_text(json.dumps(_seen(capture)))


def _seen(capture: Capture) -> dict[str, Any]:
    records = capture.records
    values = metrics.compute(records, capture.window_ns, None)
    latencies = {
        name: {part: values.get(f"{part}_{name}_ms", math.nan) for part in ("mean", "median", "p99")}
        for name in ("ttft", "tpot", "itl", "e2el")
    }
    findings = client_findings(capture.client, values, _GATES)
    return {
        "timings": {
            "streams": int(records.ok.sum()),
            "tokens": int(records.output_tokens[records.ok].sum()),
            **latencies,
        },
        "invalid": [str(finding) for finding in findings if finding.invalidates],
        "client": asdict(capture.client),
    }


if __name__ == "__main__":
    main(sys.argv[1], Ask(**json.loads(sys.argv[2])), Path(sys.argv[3]))
