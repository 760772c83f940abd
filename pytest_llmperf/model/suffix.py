"""What makes a file a suite."""

SUITE_SUFFIX = ".llmperf.yaml"
SUITE_ITEM = f"{SUITE_SUFFIX}::"
"""In the node id of whatever a suite yields."""
