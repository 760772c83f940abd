"""Did your LLM engine get slower? Suites, a load client, baselines and verdicts with known error rates."""

__version__ = "0.1.0"
