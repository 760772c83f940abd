"""What makes a file a suite."""

SUITE_SUFFIX = ".llmperf.yaml"
